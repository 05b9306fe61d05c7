//! Two clusters with Liqo, and an agent's peering by liqoctl in each. Rome borrows, Milan lends; both can
//! do both.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use sublet_agent::metrics::Metrics;
use sublet_agent::peering::liqo::Extras;
use sublet_agent::peering::liqoctl::{LiqoctlPeering, Program, Settings};
use sublet_agent::peering::{Networking, Peering as _, Progress, Removal};
use sublet_agent::transport::Order;
use sublet_core::id::Generation;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_testkit::binaries::{Binaries, Kit, Program as Built};
use sublet_testkit::{Api, Cluster, Liqo, Part, Tier};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::super::pair;
pub(super) use super::super::world::{is_gone, when};
pub(super) use crate::on_kubernetes::until::until;

pub(super) const NAMESPACE: &str = "sublet";
/// How long pods may take to leave, in these tests; and how long a requester has.
const EVICTION: Span = Span::from_secs(3);
const PATIENCE: Span = Span::from_secs(6);

/// Two clusters with Liqo on them, and a folder with their kubeconfigs.
pub(super) struct Rig {
    clusters: Vec<Cluster>,
    pub(super) kubeconfigs: tempfile::TempDir,
    _liqo: Vec<Liqo>,
}

impl Rig {
    pub(super) fn start() -> Self {
        let manifests = ["crds", "agent/rbac.yaml", "agent/rbac-liqoctl.yaml"];
        let (clusters, liqo) = pair::start(Tier::Full, &manifests);
        let kubeconfigs = tempfile::tempdir().unwrap();
        for cluster in &clusters {
            let place = kubeconfigs.path().join(format!("{}.kubeconfig", cluster.name()));
            fs::copy(cluster.kubeconfig(), place).unwrap();
        }
        Self { clusters, kubeconfigs, _liqo: liqo }
    }

    /// Milan's API server is gone.
    pub(super) fn stop_milan(&self) {
        self.clusters[1].part(Part::ApiServer).kill();
    }

    /// And is back.
    pub(super) fn start_milan(&self) {
        self.clusters[1].start_part(Part::ApiServer).unwrap();
    }

    pub(super) fn kubeconfig(&self, cluster: &str) -> PathBuf {
        self.kubeconfigs.path().join(format!("{cluster}.kubeconfig"))
    }
}

/// The real program.
pub(super) fn liqoctl() -> PathBuf {
    Binaries::of_this_machine(Kit::Liqoctl).unwrap().path(Built::Liqoctl).to_owned()
}

/// A cluster and the peering in it, under the agent's account.
pub(super) struct Town {
    name: &'static str,
    peer: &'static str,
    pub(super) api: Api,
    client: Client,
    kubeconfigs: PathBuf,
    pub(super) program: PathBuf,
    pub(super) timeout: Duration,
    pub(super) networking: Networking,
    pub(super) peering: Arc<LiqoctlPeering>,
    tasks: JoinSet<()>,
}

fn clock() -> Time {
    let millis = jiff::Timestamp::now().as_millisecond();
    Time::from_millis(u64::try_from(millis).unwrap())
}

impl Town {
    async fn new(rig: &Rig, cluster: &Cluster, name: &'static str, peer: &'static str) -> Self {
        let account = cluster.account(NAMESPACE, "sublet-agent").unwrap();
        let kubeconfig = Kubeconfig::read_from(account).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        let kubeconfigs = rig.kubeconfigs.path().to_owned();
        let (networking, timeout) = (Networking::Disabled, Duration::from_mins(1));
        let how = How { name, client: &client, folder: &kubeconfigs, program: &liqoctl(), timeout };
        let (peering, tasks) = how.begin(networking);
        let (api, program) = (cluster.api(), liqoctl());
        Self { name, peer, api, client, kubeconfigs, program, timeout, networking, peering, tasks }
    }

    /// Ends everything, and begins anew with nothing in memory.
    pub(super) async fn restart(&mut self) {
        self.stop().await;
        let Self { name, client, kubeconfigs, program, timeout, networking, .. } = self;
        let how = How { name, client, folder: kubeconfigs, program, timeout: *timeout };
        (self.peering, self.tasks) = how.begin(*networking);
    }

    /// Ends it wherever it is.
    pub(super) async fn stop(&mut self) {
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Begins anew with another program, which has so long.
    pub(super) async fn restart_with(&mut self, program: &Path, timeout: Duration) {
        (self.program, self.timeout) = (program.to_owned(), timeout);
        self.restart().await;
    }

    /// What the broker wants of this cluster.
    pub(super) fn order(&self, side: Side, name: &str, amounts: &Resources) -> Order {
        Order {
            reservation: name.to_owned(),
            side,
            peer: self.peer.parse().unwrap(),
            duty: Duty::Keep,
            amounts: amounts.clone(),
            expires_at: None,
            generation: Some(Generation(1)),
        }
    }

    /// Writes an order down, as the controllers do before they act on it.
    pub(super) fn record(&self, order: &Order) {
        let (kind, peer, suffix) = kind(order.side);
        let name = format!("{}{suffix}", order.reservation);
        let spec = json!({
            "reservationName": order.reservation, peer: order.peer.as_str(),
            "requestedCPU": format!("{}m", order.amounts.cpu),
            "requestedMemory": order.amounts.memory.to_string(),
            "duty": if order.duty == Duty::Keep { "Keep" } else { "TakeDown" },
            "instructionGeneration": order.generation.map(|generation| generation.0),
        });
        let object = json!({
            "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": kind,
            "metadata": { "name": name }, "spec": spec,
        });
        let collection = instructions(order.side);
        match self.api.create(&collection, &object) {
            Err(error) if error.status() == Some(409) => {
                let change = json!({ "spec": spec });
                self.api.patch(&format!("{collection}/{name}"), &change).unwrap();
            }
            made => drop(made.unwrap()),
        }
    }

    /// Writes down that it was carried out, as the controllers do.
    pub(super) fn is_in_force(&self, order: &Order) {
        let word = if order.side == Side::Requester { "delivered" } else { "enforced" };
        let number = order.generation.map(|generation| generation.0);
        let status = json!({ "status": { word: true, "appliedGeneration": number } });
        let path = Self::record_path(order);
        self.api.patch(&format!("{path}/status"), &status).unwrap();
    }

    pub(super) fn forget(&self, order: &Order) {
        self.api.delete(&Self::record_path(order)).unwrap();
    }

    fn record_path(order: &Order) -> String {
        let (_, _, suffix) = kind(order.side);
        format!("{}/{}{suffix}", instructions(order.side), order.reservation)
    }

    /// Carries out an order, as the controllers do.
    pub(super) async fn keep(&self, order: &Order) {
        self.record(order);
        self.is_ready(order).await;
        self.is_in_force(order);
    }

    pub(super) async fn is_ready(&self, order: &Order) {
        let last = Mutex::new(String::new());
        until(&format!("{} in {}", order.reservation, self.name), || async {
            let progress = self.peering.establish(order).await;
            note(&last, &format!("{} {}: {progress:?}", self.name, order.reservation));
            (progress == Progress::Ready).then_some(())
        })
        .await;
    }

    /// Waits until it says something like this.
    pub(super) async fn says(&self, order: &Order, wanted: &str) -> Progress {
        let last = Mutex::new(String::new());
        until(wanted, || async {
            let progress = self.peering.establish(order).await;
            note(&last, &format!("{} {}: {progress:?}", self.name, order.reservation));
            let (Progress::Pending(why) | Progress::Failed(why)) = &progress else { return None };
            why.to_string().contains(wanted).then_some(progress)
        })
        .await
    }

    pub(super) async fn is_gone(&self, order: &Order) {
        let last = Mutex::new(String::new());
        until(&format!("the end of {} in {}", order.reservation, self.name), || async {
            let removal = self.peering.withdraw(order).await;
            note(&last, &format!("{} {}: {removal:?}", self.name, order.reservation));
            (removal == Removal::Gone).then_some(())
        })
        .await;
    }

    /// The one slice towards the peer.
    pub(super) fn slice(&self) -> String {
        self.liqo("authentication", "resourceslices") + "/" + self.peer
    }

    /// A collection of Liqo's about the pair.
    pub(super) fn liqo(&self, group: &str, plural: &str) -> String {
        format!("/apis/{group}.liqo.io/v1beta1/namespaces/liqo-tenant-{}/{plural}", self.peer)
    }

    /// What the node of the peer has: cpu and memory.
    pub(super) fn node(&self) -> (String, String) {
        let node = self.api.get(&format!("/api/v1/nodes/{}", self.peer)).unwrap();
        let has = |what: &str| node["status"]["allocatable"][what].as_str().unwrap().to_owned();
        (has("cpu"), has("memory"))
    }
}

/// How a peering begins.
struct How<'a> {
    name: &'a str,
    client: &'a Client,
    folder: &'a Path,
    program: &'a Path,
    timeout: Duration,
}

impl How<'_> {
    fn begin(self, networking: Networking) -> (Arc<LiqoctlPeering>, JoinSet<()>) {
        // It wants a home, and only looks for a cache there.
        let home = self.folder.to_string_lossy().into_owned();
        let environment = [("PATH", "/usr/bin:/bin".to_owned()), ("HOME", home)];
        let environment = environment.map(|(name, is)| (name.into(), is.into())).into();
        let settings = Settings {
            cluster: self.name.parse().unwrap(),
            namespace: NAMESPACE.to_owned(),
            folder: self.folder.to_owned(),
            program: Program { path: self.program.to_owned(), environment, timeout: self.timeout },
            networking,
            extras: Extras { pods: 33, storage: 1 << 30 },
            eviction: EVICTION,
            patience: PATIENCE,
        };
        let metrics = Arc::new(Metrics::new());
        let (peering, keeper) = LiqoctlPeering::new(self.client.clone(), settings, clock, metrics);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let (_never, stopping) = watch::channel(false);
            keeper.run(stopping).await;
        });
        (Arc::new(peering), tasks)
    }
}

/// Kind, the field with the other cluster, and what is appended to the name.
fn kind(side: Side) -> (&'static str, &'static str, &'static str) {
    match side {
        Side::Requester => ("ReservationInstruction", "targetClusterID", ""),
        Side::Provider => ("ProviderInstruction", "requesterClusterID", "-provider"),
    }
}

fn instructions(side: Side) -> String {
    let plural = kind(side).0.to_lowercase() + "s";
    format!("/apis/rear.fluidos.eu/v1alpha1/namespaces/{NAMESPACE}/{plural}")
}

fn note(last: &Mutex<String>, now: &str) {
    let mut last = last.lock().unwrap();
    if *last != now {
        eprintln!("  {now}");
        now.clone_into(&mut last);
    }
}

/// Both.
pub(super) struct World<'a> {
    pub(super) rig: &'a Rig,
    pub(super) rome: Town,
    pub(super) milan: Town,
}

impl<'a> World<'a> {
    pub(super) async fn new(rig: &'a Rig) -> Self {
        let rome = Town::new(rig, &rig.clusters[0], "rome", "milan").await;
        let milan = Town::new(rig, &rig.clusters[1], "milan", "rome").await;
        Self { rig, rome, milan }
    }

    /// Rome borrows from Milan, and both have carried it out.
    pub(super) async fn keep(&self, name: &str, amounts: &Resources) {
        let lent = self.milan.order(Side::Provider, name, amounts);
        let borrowed = self.rome.order(Side::Requester, name, amounts);
        tokio::join!(self.milan.keep(&lent), self.rome.keep(&borrowed));
    }

    /// The orders of what Rome borrows, as they are at the end: Rome's, and Milan's.
    pub(super) fn over(&self, name: &str) -> [Order; 2] {
        let borrowed = self.rome.order(Side::Requester, name, &small());
        let lent = self.milan.order(Side::Provider, name, &small());
        [borrowed, lent].map(|order| Order {
            duty: Duty::TakeDown,
            generation: Some(Generation(9)),
            ..order
        })
    }

    /// It ends on both sides.
    pub(super) async fn end(&self, name: &str) {
        let [borrowed, lent] = self.over(name);
        self.rome.record(&borrowed);
        self.milan.record(&lent);
        tokio::join!(self.milan.is_gone(&lent), self.rome.is_gone(&borrowed));
        self.rome.forget(&borrowed);
        self.milan.forget(&lent);
    }
}

/// A program that does this; it lives as long as its folder.
pub(super) fn script(body: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (draft, path) = (folder.path().join("draft"), folder.path().join("liqoctl"));
    fs::write(&draft, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(draft, &path).unwrap();
    (folder, path)
}

/// Two cores.
pub(super) fn small() -> Resources {
    Resources::new(2000, 4 << 30)
}

/// What a slice asks for, and was granted: cpu and memory.
pub(super) fn sizes(slice: &Value) -> [(&str, &str); 2] {
    ["spec", "status"].map(|part| {
        let has = |what: &str| slice[part]["resources"][what].as_str().unwrap_or_default();
        (has("cpu"), has("memory"))
    })
}

impl super::super::snapshot::Pair for World<'_> {
    fn apis(&self) -> [&Api; 2] {
        [&self.rome.api, &self.milan.api]
    }
}
