//! Two clusters with Liqo, and in each an agent that keeps links and does nothing else.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::ExtendedKeyUsagePurpose;
use sublet_agent::metrics::Metrics;
use sublet_agent::peering::liqo::link::{Hook, Keeper, LinkState, Links, Settings};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::{Span, Time};
use sublet_testkit::wait::Stopwatch;
use sublet_testkit::{Api, Cluster, Liqo, Tier, differences, inventory};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::super::links;
use super::super::pair;
use super::super::snapshot::matters;
use super::relay::Relay;
use crate::authority::Authority;
use crate::on_kubernetes::logged::listen;
use crate::on_kubernetes::until::{PATIENCE, until};

/// Where the agents keep their objects, as the role has it.
pub(super) const NAMESPACE: &str = "sublet";
/// How long a link is kept that nobody needs, in these tests, where nothing else is said.
pub(super) const IDLE: Span = Span::from_millis(100);

/// The clusters.
pub(super) struct Rig {
    // Before the clusters, because it ends first.
    _liqo: Vec<Liqo>,
    clusters: Vec<Cluster>,
}

impl Rig {
    pub(super) fn start() -> Self {
        listen();
        let manifests = ["agent/rbac.yaml", "agent/rbac-liqo.yaml"];
        let (clusters, liqo) = pair::start(Tier::Fast, &manifests);
        Self { clusters, _liqo: liqo }
    }
}

/// One cluster, and its agent.
pub(super) struct Town {
    pub(super) id: ClusterId,
    /// As an administrator.
    pub(super) api: Api,
    /// Who signs certificates here; the key is beside it.
    pub(super) ca: PathBuf,
    /// As the agent.
    client: Client,
    pub(super) credentials: TempDir,
    relay: Relay,
    pub(super) metrics: Arc<Metrics>,
    pub(super) keeper: Arc<Keeper>,
    /// How long a link is kept that nobody needs, from the next start on.
    pub(super) idle: Span,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    before: BTreeSet<String>,
}

/// By how many milliseconds both agents are ahead of everybody else.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// What time it is for them.
pub(super) fn clock() -> Time {
    links::clock().checked_add(Span::from_millis(AHEAD.load(Ordering::Relaxed))).unwrap()
}

/// So much time passes for them at once, until everything is over.
pub(super) fn pass(time: Span) {
    AHEAD.fetch_add(time.as_millis(), Ordering::Relaxed);
}

impl Town {
    async fn new(rig: &Rig, at: usize, authority: &Authority, relay: &Relay) -> Self {
        let cluster = &rig.clusters[at];
        // What the agent may do is exactly what the roles say that come with it.
        let account = cluster.account(NAMESPACE, "sublet-agent").unwrap();
        let config = Kubeconfig::read_from(account).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(config, &options).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let credentials = folder(authority, cluster.name());
        let metrics = Arc::new(Metrics::new());
        let id: ClusterId = cluster.name().parse().unwrap();
        let (stop, _) = watch::channel(false);
        let keeper = Arc::new(Keeper::new(Settings {
            client: client.clone(),
            cluster: id.clone(),
            namespace: NAMESPACE.to_owned(),
            credentials: credentials.path().to_owned(),
            post: relay.post_of(cluster.name()),
            idle: IDLE,
            clock,
            metrics: Arc::clone(&metrics),
            hook: None,
        }));
        let api = cluster.api();
        // What Kubernetes makes for each namespace a moment later is there before as well as afterwards.
        for namespace in ["default", "liqo", NAMESPACE] {
            let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
            until(&account, || async { api.get(&account).ok() }).await;
        }
        let mut town = Self {
            id,
            before: inventory(&api).unwrap(),
            api,
            ca: cluster.ca().to_owned(),
            client,
            credentials,
            relay: relay.clone(),
            metrics,
            keeper,
            idle: IDLE,
            stop,
            tasks: JoinSet::new(),
        };
        town.restart(None).await;
        town
    }

    /// The agent ends wherever it is, and another one begins, which knows nothing.
    pub(super) async fn restart(&mut self, hook: Option<Hook>) {
        self.tasks.shutdown().await;
        let keeper = Arc::new(Keeper::new(Settings {
            client: self.client.clone(),
            cluster: self.id.clone(),
            namespace: NAMESPACE.to_owned(),
            credentials: self.credentials.path().to_owned(),
            post: self.relay.post_of(self.id.as_str()),
            idle: self.idle,
            clock,
            metrics: Arc::clone(&self.metrics),
            hook,
        }));
        self.keeper = Arc::clone(&keeper);
        self.relay.listen(self.id.as_str(), &keeper);
        let stopping = self.stop.subscribe();
        self.tasks.spawn(async move { keeper.run(stopping).await });
    }

    /// How it stands with a link.
    pub(super) async fn state(&self, side: Side, peer: &Town) -> LinkState {
        self.keeper.ensure(side, &peer.id).await
    }

    /// What was counted under a name and its labels.
    pub(super) fn counted(&self, what: &str) -> u64 {
        let page = self.metrics.page();
        let line = page.lines().find_map(|line| line.strip_prefix(what));
        line.map_or(0, |count| count.trim().parse().unwrap())
    }

    /// Waits until the cluster is as it was when the test began.
    pub(super) async fn as_before(&self) {
        let what = format!("{} to be as before", self.id);
        let mut left = Vec::new();
        let clock = Stopwatch::start();
        while clock.elapsed() < PATIENCE {
            left = differences(&self.api, &self.before, matters).unwrap();
            if left.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("waited in vain for {what}: {left:#?}");
    }

    /// The path of something in the namespace of the pair.
    pub(super) fn secret(peer: &str, name: &str) -> String {
        format!("/api/v1/namespaces/liqo-tenant-{peer}/secrets/{name}")
    }
}

/// A folder with certificates for a cluster.
pub(in super::super) fn folder(authority: &Authority, name: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let (certificate, key) = authority.issue(name, ExtendedKeyUsagePurpose::ClientAuth);
    let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
    write("tls.crt", &certificate);
    write("tls.key", &key);
    write("ca.crt", &authority.pem);
    folder
}

/// Two clusters: Rome borrows from Milan, and in some tests the other way round too.
pub(super) struct World {
    pub(super) authority: Authority,
    pub(super) relay: Relay,
    pub(super) rome: Town,
    pub(super) milan: Town,
}

impl World {
    pub(super) async fn new(rig: &Rig) -> Self {
        let (authority, relay) = (Authority::new(), Relay::default());
        let rome = Town::new(rig, 0, &authority, &relay).await;
        let milan = Town::new(rig, 1, &authority, &relay).await;
        Self { authority, relay, rome, milan }
    }

    /// Waits until Rome and Milan are linked, asking again and again as agents do.
    pub(super) async fn linked(&self) {
        until("a link", || async {
            let (borrows, lends) = tokio::join!(
                self.rome.state(Side::Requester, &self.milan),
                self.milan.state(Side::Provider, &self.rome),
            );
            (borrows == LinkState::Ready && lends == LinkState::Ready).then_some(())
        })
        .await;
    }

    /// Nobody needs the link any more.
    pub(super) async fn unused(&self) {
        self.rome.keeper.unused(Side::Requester, &self.milan.id).await;
        self.milan.keeper.unused(Side::Provider, &self.rome.id).await;
    }

    /// Waits until both clusters are as they were, and makes everything new: agents and letters.
    pub(super) async fn over(&mut self) {
        self.rome.as_before().await;
        self.milan.as_before().await;
        self.relay.be_good();
        self.relay.forget();
        AHEAD.store(0, Ordering::Relaxed);
        self.rome.restart(None).await;
        self.milan.restart(None).await;
    }
}
