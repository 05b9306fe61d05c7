//! Two clusters with Liqo, linked by hand, and the peering of both. Rome borrows, Milan lends.

use std::path::PathBuf;
use std::sync::Arc;

use super::links::{self, ByHand, Own};
use super::pair;
use crate::on_kubernetes::logged::listen;
use crate::on_kubernetes::until::until;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use sublet_agent::metrics::Metrics;
use sublet_agent::peering::liqo::link::Links;
use sublet_agent::peering::liqo::{Extras, LiqoPeering, Settings};
use sublet_agent::peering::{Peering as _, Progress, Removal};
use sublet_agent::transport::Order;
use sublet_core::id::Generation;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_testkit::{Api, Cluster, Liqo, Tier, link_by_hand};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(super) const NAMESPACE: &str = "sublet";
/// How long pods may take to leave, in these tests.
pub(super) const EVICTION: Span = Span::from_secs(3);

/// How long a slice may be ahead of its instruction, in these tests.
pub(super) const GRACE: Span = Span::from_secs(2);

/// How long a cluster is given to do its part of an end, in these tests.
pub(super) const PATIENCE: Span = Span::from_secs(6);

/// How long slices are kept that are denied, in these tests.
pub(super) const DENIED: Span = Span::from_secs(5);

/// How often Liqo is reminded of each slice, in these tests.
const REFRESH: Span = Span::from_secs(2);

/// Two clusters with Liqo on them.
pub(super) struct Rig {
    pub(super) clusters: Vec<Cluster>,
    pub(super) liqo: Vec<Liqo>,
}

impl Rig {
    /// Linked by hand.
    pub(super) fn start() -> Self {
        let rig = Self::unlinked();
        let clusters = &rig.clusters;
        link_by_hand(&clusters[0], &clusters[1]).unwrap();
        for (cluster, peer) in [(&clusters[0], "milan"), (&clusters[1], "rome")] {
            bind_tenant_role(cluster, peer);
        }
        rig
    }

    /// Not linked.
    pub(super) fn unlinked() -> Self {
        listen();
        let manifests = ["crds", "agent/rbac.yaml", "agent/rbac-liqo.yaml"];
        let (clusters, liqo) = pair::start(Tier::Full, &manifests);
        Self { clusters, liqo }
    }
}

/// As whoever makes the namespace does.
fn bind_tenant_role(cluster: &Cluster, peer: &str) {
    let path =
        format!("/apis/rbac.authorization.k8s.io/v1/namespaces/liqo-tenant-{peer}/rolebindings");
    let binding = json!({
        "metadata": { "name": "sublet-agent-tenant" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                     "name": "sublet-agent-tenant" },
        "subjects": [{ "kind": "ServiceAccount", "name": "sublet-agent", "namespace": NAMESPACE }],
    });
    cluster.api().create(&path, &binding).unwrap();
}

/// A cluster and the peering in it, under the agent's account.
pub(super) struct Town {
    pub(super) side: Side,
    pub(super) peer: &'static str,
    pub(super) api: Api,
    client: Client,
    pub(super) peering: Arc<LiqoPeering>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) links: Arc<ByHand>,
    /// Keeps its links itself, if they are not made by hand.
    own: Option<Own>,
    tasks: JoinSet<()>,
}

impl Town {
    async fn new(cluster: &Cluster, side: Side, own: Option<Own>) -> Self {
        let account = cluster.account(NAMESPACE, "sublet-agent").unwrap();
        let kubeconfig = Kubeconfig::read_from(account).unwrap();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        let links = Arc::new(ByHand::default());
        let peer = if side == Side::Requester { "milan" } else { "rome" };
        let (peering, metrics, tasks) = begin(&client, &links, own.as_ref());
        Self { side, peer, api: cluster.api(), client, peering, metrics, links, own, tasks }
    }

    /// Ends everything, and begins anew with nothing in memory.
    pub(super) async fn restart(&mut self) {
        self.stop().await;
        (self.peering, self.metrics, self.tasks) =
            begin(&self.client, &self.links, self.own.as_ref());
    }

    /// Ends it wherever it is.
    pub(super) async fn stop(&mut self) {
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
    }

    /// What the broker wants of this cluster.
    pub(super) fn order(&self, name: &str, amounts: &Resources) -> Order {
        Order {
            reservation: name.to_owned(),
            side: self.side,
            peer: self.peer.parse().unwrap(),
            duty: Duty::Keep,
            amounts: amounts.clone(),
            expires_at: None,
            generation: Some(Generation(1)),
        }
    }

    pub(super) async fn is_ready(&self, order: &Order) {
        let last = std::sync::Mutex::new(String::new());
        until(&format!("{:?} of {}", self.side, order.reservation), || async {
            let progress = self.peering.establish(order).await;
            note(&last, &format!("{:?} {}: {progress:?}", self.side, order.reservation));
            (progress == Progress::Ready).then_some(())
        })
        .await;
    }

    pub(super) async fn is_gone(&self, order: &Order) {
        let last = std::sync::Mutex::new(String::new());
        until(&format!("the end of {} in {:?}", order.reservation, self.side), || async {
            let removal = self.peering.withdraw(order).await;
            note(&last, &format!("{:?} {}: {removal:?}", self.side, order.reservation));
            (removal == Removal::Gone).then_some(())
        })
        .await;
    }

    /// Where the slice is here.
    pub(super) fn slice(&self, name: &str) -> String {
        self.liqo("authentication", "resourceslices") + "/" + name
    }

    /// A collection of Liqo's about the pair.
    pub(super) fn liqo(&self, group: &str, plural: &str) -> String {
        format!("/apis/{group}.liqo.io/v1beta1/namespaces/liqo-tenant-{}/{plural}", self.peer)
    }

    pub(super) fn instructions() -> String {
        format!("/apis/rear.fluidos.eu/v1alpha1/namespaces/{NAMESPACE}/providerinstructions")
    }
}

fn note(last: &std::sync::Mutex<String>, now: &str) {
    let mut last = last.lock().unwrap();
    if *last != now {
        eprintln!("  {now}");
        now.clone_into(&mut last);
    }
}

fn begin(
    client: &Client,
    links: &Arc<ByHand>,
    own: Option<&Own>,
) -> (Arc<LiqoPeering>, Arc<Metrics>, JoinSet<()>) {
    let settings = Settings {
        eviction: EVICTION,
        patience: PATIENCE,
        grace: GRACE,
        denied: DENIED,
        refresh: REFRESH,
        extras: Extras { pods: 110, storage: 20 << 30 },
        namespace: NAMESPACE.to_owned(),
    };
    let (metrics, mut tasks) = (Arc::new(Metrics::new()), JoinSet::new());
    let (links, clock): (Arc<dyn Links>, fn() -> Time) = match own {
        Some(own) => (own.begin(client, &metrics, &mut tasks), links::later),
        None => (Arc::clone(links) as _, links::clock),
    };
    let (peering, keeper) =
        LiqoPeering::new(client.clone(), links, settings, clock, Arc::clone(&metrics));
    tasks.spawn(async move {
        let (_never, stopping) = watch::channel(false);
        keeper.run(stopping).await;
    });
    (Arc::new(peering), metrics, tasks)
}

/// Both.
pub(super) struct World<'a> {
    pub(super) rig: &'a Rig,
    pub(super) rome: Town,
    pub(super) milan: Town,
}

impl<'a> World<'a> {
    pub(super) async fn new(rig: &'a Rig) -> Self {
        let rome = Town::new(&rig.clusters[0], Side::Requester, None).await;
        let milan = Town::new(&rig.clusters[1], Side::Provider, None).await;
        Self { rig, rome, milan }
    }

    /// The agents link the clusters themselves.
    pub(super) async fn joined(rig: &'a Rig) -> Self {
        let [own_rome, own_milan] = Own::pair(["rome", "milan"]);
        let rome = Town::new(&rig.clusters[0], Side::Requester, Some(own_rome)).await;
        let milan = Town::new(&rig.clusters[1], Side::Provider, Some(own_milan)).await;
        Self { rig, rome, milan }
    }

    /// Writes down in Milan what it is to keep, as its controllers do before they act.
    pub(super) fn instruct(&self, order: &Order) {
        let (collection, amounts) = (Town::instructions(), &order.amounts);
        let spec = json!({
            "reservationName": order.reservation, "requesterClusterID": order.peer.as_str(),
            "requestedCPU": format!("{}m", amounts.cpu),
            "requestedMemory": amounts.memory.to_string(),
            "duty": "Keep", "instructionGeneration": order.generation.map(|generation| generation.0),
        });
        let name = format!("{}-provider", order.reservation);
        let object = json!({
            "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ProviderInstruction",
            "metadata": { "name": name }, "spec": spec,
        });
        match self.milan.api.create(&collection, &object) {
            Err(error) if error.status() == Some(409) => {
                let change = json!({ "spec": spec });
                self.milan.api.patch(&format!("{collection}/{name}"), &change).unwrap();
            }
            made => drop(made.unwrap()),
        }
    }

    pub(super) fn forget(&self, name: &str) {
        let path = format!("{}/{name}-provider", Town::instructions());
        self.milan.api.delete(&path).unwrap();
    }

    /// Brings it about on both sides.
    pub(super) async fn keep(&self, name: &str, amounts: &Resources) {
        let lent = self.milan.order(name, amounts);
        self.instruct(&lent);
        let borrowed = self.rome.order(name, amounts);
        tokio::join!(self.milan.is_ready(&lent), self.rome.is_ready(&borrowed));
    }

    /// Writes down in Milan that it is to be taken down, as its controllers do before they act.
    pub(super) fn tell_end(&self, name: &str) {
        let path = format!("{}/{name}-provider", Town::instructions());
        let over = json!({ "spec": { "duty": "TakeDown", "instructionGeneration": 2 } });
        self.milan.api.patch(&path, &over).unwrap();
    }

    /// Takes it down on both sides.
    pub(super) async fn end(&self, name: &str) {
        self.tell_end(name);
        let duty = Duty::TakeDown;
        let lent = Order { duty, ..self.milan.order(name, &small()) };
        let borrowed = Order { duty, ..self.rome.order(name, &small()) };
        tokio::join!(self.milan.is_gone(&lent), self.rome.is_gone(&borrowed));
        self.forget(name);
    }
}

/// What Liqo has given to Rome to get into Milan with, as a file that lives as long as its folder.
pub(super) fn stolen(world: &World<'_>, secret: &str) -> (tempfile::TempDir, PathBuf) {
    let secret = format!("/api/v1/namespaces/liqo-tenant-milan/secrets/{secret}");
    let secret = world.rome.api.get(&secret).unwrap();
    let kubeconfig = BASE64.decode(secret["data"]["kubeconfig"].as_str().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stolen");
    std::fs::write(&path, kubeconfig).unwrap();
    (folder, path)
}

/// Two cores.
pub(super) fn small() -> Resources {
    Resources::new(2000, 4 << 30)
}

/// What is at a path when it is as wanted.
pub(super) async fn when(api: &Api, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until(path, || async { api.get(path).ok().filter(&wanted) }).await
}

pub(super) async fn when_gone(api: &Api, path: &str) {
    until(&format!("the end of {path}"), || async { is_gone(api, path).then_some(()) }).await;
}

pub(super) fn is_gone(api: &Api, path: &str) -> bool {
    api.get(path).is_err_and(|error| error.status() == Some(404))
}

/// A moment, as an object has it.
pub(super) fn at(written: &Value) -> Time {
    let written: jiff::Timestamp = written.as_str().unwrap().parse().unwrap();
    Time::from_millis(u64::try_from(written.as_millisecond()).unwrap())
}

/// Has somebody been given all of his time, who was to have it from then on? What a test expects of the time
/// before that, it can expect only if it was quick enough.
pub(super) fn is_late(since: &Value) -> bool {
    links::clock().since(at(since)) >= PATIENCE
}

pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}

impl super::snapshot::Pair for World<'_> {
    fn apis(&self) -> [&Api; 2] {
        [&self.rome.api, &self.milan.api]
    }
}
