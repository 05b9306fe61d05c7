//! Two clusters with a real API server each, and a real broker between them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use rcgen::ExtendedKeyUsagePurpose;
use sublet_agent::controllers::{self, Clock, Context, Hook};
use sublet_agent::transport::{Broker as _, Http};
use sublet_broker::Broker;
use sublet_broker::config::{Address, Config, Format, Level};
use sublet_broker::limits::Limits;
use sublet_core::time::Time;
use sublet_crds::{ProviderInstruction, ReservationInstruction, ResourceRequest};
use sublet_log::Memory;
use sublet_testkit::{Cluster, Port, Setup};
use sublet_wire::client::{self, Options, ReservationQuery};
use sublet_wire::v1::{Advertisement, Capabilities, Quantities, Reservation, ResourceMetrics};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::line::Line;
use super::looking::Counting;
use crate::authority::Authority;

/// Where the agents keep instructions, as the role has it.
pub(super) const NAMESPACE: &str = "sublet";

/// A broker that can be stopped and started, and keeps its log.
pub(super) struct House {
    pub(super) authority: Authority,
    certificates: TempDir,
    log: Arc<Memory>,
    /// Kept while the broker is away: no outgoing connection gets it then, nor another test.
    port: Port,
    broker: Option<Broker>,
}

impl House {
    pub(super) async fn new() -> Self {
        let (authority, certificates) = (Authority::new(), TempDir::new().unwrap());
        let (certificate, key) = authority.issue("broker", ExtendedKeyUsagePurpose::ServerAuth);
        let write = |name: &str, text: &str| {
            std::fs::write(certificates.path().join(name), text).unwrap();
        };
        write("tls.crt", &certificate);
        write("tls.key", &key);
        write("ca.crt", &authority.pem);
        // By default nothing expires in the first minute after a start.
        write("policy.toml", "recovery_grace = \"1s\"\n");
        let log = Arc::new(Memory::default());
        let port = Port::reserve().unwrap();
        let mut house = Self { authority, certificates, log, port, broker: None };
        house.open().await;
        house
    }

    pub(super) async fn open(&mut self) {
        let limits = Limits { drain: Duration::from_secs(1), ..Limits::default() };
        let config = Config {
            data_dir: self.certificates.path().to_owned(),
            policy: Some(self.certificates.path().join("policy.toml")),
            http_address: Address::new(Some(self.address().ip()), self.address().port()),
            http_cert_path: self.certificates.path().to_owned(),
            health_probe_address: None,
            metrics_address: None,
            metrics_cert_path: None,
            address_file: None,
            log_format: Format::Text,
            log_level: Level::Info,
            connections_max: limits.connections,
            cluster_connections_max: limits.connections_per_cluster,
            cluster_rate_max: limits.rate_per_cluster,
            log_history: sublet_core::time::Span::from_secs(3600),
            log_history_size: 1 << 30,
            snapshot_records: 10_000,
            without_effect: Vec::new(),
        };
        let log: Arc<Memory> = Arc::clone(&self.log);
        self.broker = Some(Broker::start(&config, limits, log).await.unwrap());
    }

    pub(super) async fn close(&mut self) {
        self.broker.take().unwrap().stop().await.unwrap();
    }

    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port.number()))
    }
}

/// A cluster and the controllers in it.
pub(super) struct Town {
    pub(super) id: &'static str,
    /// The test's own.
    pub(super) client: Client,
    /// The controllers', over the line.
    through: Client,
    pub(super) line: Line,
    pub(super) http: Http,
    pub(super) wire: client::Client,
    pub(super) peering: Arc<Counting>,
    /// What the controllers take for the time.
    pub(super) clock: Clock,
    tasks: JoinSet<()>,
}

pub(super) fn clock() -> Time {
    let millis = jiff::Timestamp::now().as_millisecond();
    Time::from_millis(u64::try_from(millis).unwrap())
}

async fn configured(path: &Path) -> kube::Config {
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let options = KubeConfigOptions::default();
    kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap()
}

impl Town {
    pub(super) async fn new(cluster: &Cluster, id: &'static str, options: Options) -> Self {
        let client = Client::try_from(configured(cluster.kubeconfig()).await).unwrap();
        // What the controllers may do is exactly what the role says that comes with the agent.
        let account = cluster.account(NAMESPACE, "sublet-agent").unwrap();
        let mut config = configured(&account).await;
        let port = config.cluster_url.port_u16().unwrap();
        let line = Line::new(SocketAddr::from(([127, 0, 0, 1], port))).await;
        config.cluster_url = format!("https://{}", line.address).parse().unwrap();
        let through = Client::try_from(config).unwrap();
        let wire = client::Client::new(options.clone()).unwrap();
        let http = Http::new(options, Some(Duration::from_millis(200))).unwrap();
        let (peering, tasks) = (Arc::default(), JoinSet::new());
        Self { id, client, through, line, http, wire, peering, clock, tasks }
    }

    /// Starts the controllers.
    pub(super) fn begin(&mut self, hook: Option<Hook>) {
        let (broker, peering) = (Arc::new(self.http.clone()), Arc::clone(&self.peering));
        let client = self.through.clone();
        let context = Context::new(client, broker, peering, NAMESPACE, self.clock);
        let context = match hook {
            Some(hook) => context.with_hook(hook),
            None => context,
        };
        self.tasks.spawn(async move { match controllers::run(context, None).await {} });
    }

    /// Ends them wherever they are, as a crash does.
    pub(super) async fn kill(&mut self) {
        self.tasks.abort_all();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Says that it has so many cores, all of them free.
    pub(super) async fn advertise(&self, cores: u32) {
        let has = Quantities {
            cpu: cores.to_string(),
            memory: "64Gi".to_owned(),
            ..Quantities::default()
        };
        let nothing =
            Quantities { cpu: "0".to_owned(), memory: "0".to_owned(), ..Quantities::default() };
        let word = Advertisement {
            cluster_id: self.id.to_owned(),
            cluster_name: self.id.to_owned(),
            resources: ResourceMetrics {
                capacity: has.clone(),
                allocatable: has.clone(),
                allocated: nothing,
                reserved: None,
                available: has,
            },
            timestamp: Some(clock().into()),
            capabilities: Some(Capabilities {
                acknowledge: true,
                activate: true,
                renew: true,
                stream: true,
                backends: vec!["none".to_owned()],
            }),
            ..Advertisement::default()
        };
        self.http.publish(&word).await.unwrap();
    }

    pub(super) fn requests(&self) -> Api<ResourceRequest> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(super) fn borrowed(&self) -> Api<ReservationInstruction> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(super) fn lent(&self) -> Api<ProviderInstruction> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// What the broker has of it, by id.
    pub(super) async fn reservations(&self) -> Vec<Reservation> {
        let (mut all, mut query) = (Vec::new(), ReservationQuery::default());
        loop {
            let mut list = self.wire.reservations(&query).await.unwrap();
            all.append(&mut list.reservations);
            query.page.after = list.next;
            if query.page.after.is_none() {
                return all;
            }
        }
    }
}

/// Two clusters, empty but for the kinds.
pub(super) fn clusters() -> Vec<Cluster> {
    let clusters = Cluster::start_all(["rome", "milan"].map(Setup::api)).unwrap();
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let (kinds, role) = (deploy.join("crds"), deploy.join("agent/rbac.yaml"));
    for cluster in &clusters {
        cluster.kubectl(&["apply", "-f", kinds.to_str().unwrap()]).unwrap();
        cluster.kubectl(&["apply", "-f", role.to_str().unwrap()]).unwrap();
        cluster
            .kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"])
            .unwrap();
    }
    clusters
}
