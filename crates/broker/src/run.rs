//! The supervisor: everything that runs is started here, owned here, and ended here.
//!
//! Whatever ends although nobody asked it to ends the broker, with its reason. On `SIGTERM` or
//! `SIGINT` the broker stops accepting, tells streams to reconnect elsewhere, finishes what is open
//! within a bound, and lets the engine write what it took in.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sublet_core::policy::Policy;
use sublet_log::{Log, snapshot};
use sublet_process::{Plain, Ready, announce, end, pages};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tracing::field::display;

use crate::admission::Admission;
use crate::audit;
use crate::census;
use crate::clock::Machine;
use crate::config::{Address, Config};
use crate::engine::{self, Account, Keeping, Options};
use crate::http::{App, believed, router};
use crate::limits::Limits;
use crate::listen::{Addresses, Listeners};
use crate::mail::{self, Mail};
use crate::metrics::Metrics;
use crate::orphans::{Home, Orphans};
use crate::policy::{self, Source};
use crate::random::{self, RequestIds};
use crate::reload::{self, Teller};
use crate::revoked::Shut;
use crate::server::Server;
use crate::sparing::Sparing;
use crate::tls::{self, Places, Tls};

/// Why the broker cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runtime cannot be made.
    #[error("the runtime cannot be started")]
    Runtime(#[source] io::Error),
    /// The certificates cannot be used.
    #[error("--{flag}")]
    Tls {
        /// Which flag.
        flag: &'static str,
        /// Why.
        source: tls::Error,
    },
    /// The policy cannot be used.
    #[error("--policy")]
    Policy(#[from] policy::Error),
    /// An address cannot be listened on.
    #[error("--{flag}: cannot listen on {address}: choose another port, or end what has it")]
    Bind {
        /// Which flag.
        flag: &'static str,
        /// Where.
        address: Address,
        /// Why.
        source: io::Error,
    },
    /// The addresses cannot be written.
    #[error("--address-file: cannot write {}: name a file in a folder that is there", path.display())]
    AddressFile {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The log cannot be read.
    #[error(
        "the log cannot be loaded: check the data folder with sublet fsck, or restore a backup"
    )]
    Load(#[from] snapshot::Error),
    /// No randomness.
    #[error(transparent)]
    Random(#[from] random::Error),
    /// The engine ended.
    #[error("the engine ended")]
    Engine(#[from] engine::Error),
    /// Nobody asked it to.
    #[error("{0} ended although nobody asked it to")]
    Ended(&'static str),
    /// A part failed.
    #[error("{what} failed")]
    Part {
        /// Which.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A task panicked.
    #[error("a part of the broker failed")]
    Task(#[from] JoinError),
}

/// A broker that runs.
pub struct Broker {
    app: Arc<App>,
    addresses: Addresses,
    engine: engine::Running,
    ready: Ready,
    stopping: watch::Sender<bool>,
    tasks: JoinSet<(&'static str, Result<(), Error>)>,
    /// Ends after the engine, so that its last decisions are written down too.
    audit: JoinSet<()>,
}

/// What starts before the log is loaded.
struct Edge {
    tls: Arc<Tls>,
    metrics_tls: Option<Arc<Tls>>,
    policy: Arc<Policy>,
    source: Option<Source>,
}

impl Edge {
    fn open(config: &Config, limits: &Limits) -> Result<Self, Error> {
        let now = Machine::new().read().wall;
        let open = |flag, places: Places| {
            let tls = Tls::open(places, limits.sessions, now);
            tls.map(Arc::new).map_err(|source| Error::Tls { flag, source })
        };
        let api = Places::in_folder(&config.http_cert_path);
        let tls = open("http-cert-path", api.clone())?;
        let metrics_tls = match (&config.metrics_cert_path, config.metrics_address) {
            (Some(places), Some(_)) if *places == api => Some(Arc::clone(&tls)),
            (Some(places), Some(_)) => {
                Some(open("metrics-cert-path", places.clone().or_authority_of(&api))?)
            }
            _ => None,
        };
        let (source, policy) = match &config.policy {
            Some(path) => Source::open(path).map(|(source, policy)| (Some(source), policy))?,
            None => (None, Arc::default()),
        };
        Ok(Self { tls, metrics_tls, policy, source })
    }
}

/// Everything that can be wrong with a configuration was tried, and no log was touched yet.
struct Prepared {
    edge: Edge,
    listeners: Listeners,
    limits: Limits,
    keeping: Keeping,
}

impl Prepared {
    async fn new(config: &Config, limits: Limits) -> Result<Self, Error> {
        let edge = Edge::open(config, &limits)?;
        let listeners = Listeners::bind(config).await?;
        let (records, history) = (config.snapshot_records, config.log_history);
        let history_bytes = config.log_history_size;
        let keeping = Keeping { records, history, history_bytes, ..Keeping::default() };
        Ok(Self { edge, listeners, limits, keeping })
    }
}

impl Broker {
    /// Starts a broker on `log`: it serves when this returns.
    pub async fn start(config: &Config, limits: Limits, log: Arc<dyn Log>) -> Result<Self, Error> {
        Self::start_prepared(Prepared::new(config, limits).await?, log).await
    }

    async fn start_prepared(prepared: Prepared, log: Arc<dyn Log>) -> Result<Self, Error> {
        let Prepared { edge, listeners, limits, keeping } = prepared;
        let (ready, metrics) = (Ready::default(), Arc::new(Metrics::new()));
        let (stopping, stops) = watch::channel(false);
        let mut tasks = JoinSet::new();
        if let Some(listener) = listeners.health {
            // Before the log is loaded, which may take a while: the process is alive, not ready.
            let probes = Plain::new(pages::probes(ready.clone())).run(listener, stops.clone());
            tasks.spawn(async {
                probes.await;
                ("the probes", Ok(()))
            });
        }
        let policy = Arc::clone(&edge.policy);
        let (account, told) = Account::new();
        let options = Options { keeping, account, ..Options::alone(random::writer()?) };
        let mut audit = JoinSet::new();
        audit.spawn(audit::run(told, Arc::clone(&metrics)));
        let started = tokio::task::spawn_blocking(move || {
            let loaded = snapshot::load(log.as_ref())?;
            tracing::info!(revision = %loaded.head.revision, "the log is loaded");
            Ok::<_, Error>(engine::start(log, loaded, policy, &options)?)
        });
        let engine = started.await??;
        let (orphans, home) = Orphans::new();
        let app = Arc::new(App {
            orphans,
            too_often: Sparing::default(),
            engine: engine.handle(),
            policy: ArcSwap::new(Arc::clone(&edge.policy)),
            revoked: Shut::new(engine.handle().revoked()),
            admission: Arc::new(Admission::new(limits.clone())),
            mail: Arc::new(Mail::new(limits.clone(), Arc::clone(&metrics))),
            limits,
            metrics,
            machine: Machine::new(),
            request_ids: RequestIds::new()?,
        });
        let addresses = listeners.addresses;
        let mut broker = Self { app, addresses, engine, ready, stopping, tasks, audit };
        broker.spawn(edge, (listeners.http, home), listeners.metrics, &stops);
        broker.ready.set(true);
        broker.app.metrics.up.set(1);
        Ok(broker)
    }

    fn spawn(
        &mut self,
        edge: Edge,
        (http, home): (TcpListener, Home),
        metrics: Option<TcpListener>,
        stops: &watch::Receiver<bool>,
    ) {
        let every = self.app.limits.reload;
        let counts = Arc::clone(&self.app.metrics);
        let api = self.server(&edge.tls, stops).run(http, router(Arc::clone(&self.app)));
        let api = home.open_while(Arc::clone(&self.app), api);
        self.own("the API", async { api.await.map_err(part("the API")) });
        let teller = Teller::new("tls", &counts);
        let tls = reload::tls(Arc::clone(&edge.tls), teller, every, stops.clone());
        self.own("the reload of certificates", tls);
        if let Some(source) = edge.source {
            let policy = reload::policy(source, Arc::clone(&self.app), every, stops.clone());
            self.own("the reload of the policy", policy);
        }
        self.own("the mail", mail::run(Arc::clone(&self.app), stops.clone()));
        self.own("the watch over the engine", watch(Arc::clone(&self.app), stops.clone()));
        let Some(listener) = metrics else { return };
        // Whom nobody asks, nobody needs to count for.
        self.own("the census", census::run(Arc::clone(&self.app), stops.clone()));
        let shown = Arc::clone(&counts);
        let page = pages::metrics(move || shown.page());
        let Some(tls) = edge.metrics_tls else {
            let plain = Plain::new(page).run(listener, stops.clone());
            self.own("metrics", async {
                plain.await;
                Ok(())
            });
            return;
        };
        let page = believed(page, Arc::clone(&self.app));
        let secure = self.server(&tls, stops).run(listener, page);
        self.own("metrics", async { secure.await.map_err(part("metrics")) });
        if !Arc::ptr_eq(&tls, &edge.tls) {
            let teller = Teller::new("metrics_tls", &counts);
            let tls = reload::tls(tls, teller, every, stops.clone());
            self.own("the reload of the certificates of metrics", tls);
        }
    }

    fn own(
        &mut self,
        what: &'static str,
        part: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        self.tasks.spawn(async move { (what, part.await) });
    }

    fn server(&self, tls: &Arc<Tls>, stops: &watch::Receiver<bool>) -> Server {
        let (app, stops) = (&self.app, stops.clone());
        let (admission, metrics) = (Arc::clone(&app.admission), Arc::clone(&app.metrics));
        Server::new(Arc::clone(tls), admission, app.limits.clone(), metrics, stops)
    }

    /// Where it is served.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// What its handlers work with.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Runs until `shutdown`, or until a part ends by itself.
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let ended = tokio::select! {
            () = shutdown => None,
            ended = self.tasks.join_next() => ended,
            Some(ended) = self.audit.join_next() => {
                Some(ended.map(|()| ("the audit", Ok(()))))
            }
        };
        let first = match ended {
            None => Ok(()),
            Some(Ok((what, Ok(())))) => Err(Error::Ended(what)),
            Some(Ok((_, Err(error)))) => Err(error),
            Some(Err(error)) => Err(error.into()),
        };
        better(first, self.stop().await)
    }

    /// Finishes what is open, and ends.
    pub async fn stop(mut self) -> Result<(), Error> {
        self.ready.set(false);
        self.app.metrics.up.set(0);
        self.stopping.send_replace(true);
        let mut first = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            let result = ended.map_err(Error::from).and_then(|(_, result)| result);
            first = first.and(result);
        }
        let engine = self.engine;
        let stopped = tokio::task::spawn_blocking(move || engine.stop()).await?;
        let mut first = better(first, stopped.map_err(Error::from));
        while let Some(ended) = self.audit.join_next().await {
            first = first.and(ended.map_err(Error::from));
        }
        first
    }
}

/// The engine's own reason is better than that something ended with it.
fn better(first: Result<(), Error>, engine: Result<(), Error>) -> Result<(), Error> {
    match first {
        Ok(()) | Err(Error::Ended(_)) if engine.is_err() => engine,
        first => first,
    }
}

fn part(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Part { what, source }
}

/// Waits for the end of the engine, which is the end of the broker.
async fn watch(app: Arc<App>, mut stopping: watch::Receiver<bool>) -> Result<(), Error> {
    tokio::select! {
        _ = stopping.wait_for(|stopping| *stopping) => Ok(()),
        () = app.revoked.until_engine_ends() => Err(Error::Ended("the engine")),
    }
}

/// Runs a broker until it is told to end: what `sublet broker` does. The log is opened when the rest
/// of the configuration was found to be good, so that a start that is refused leaves nothing behind.
pub fn run<E: From<Error>>(
    config: &Config,
    open: impl FnOnce() -> Result<Arc<dyn Log>, E>,
) -> Result<(), E> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
    raise_files();
    runtime.block_on(async {
        let told = end::told().map_err(Error::Runtime)?;
        for flag in &config.without_effect {
            tracing::warn!(flag, "this flag of the Go broker has no effect here");
        }
        let prepared = Prepared::new(config, config.limits()).await?;
        let broker = Broker::start_prepared(prepared, open()?).await?;
        serving(config, broker.addresses())?;
        let ended = broker.run_until(told).await;
        tracing::info!("the broker ended");
        Ok(ended?)
    })
}

/// Every connection is an open file, and the usual bound is far below ours: takes what it may have.
fn raise_files() {
    let hard = getrlimit(Resource::Nofile).maximum;
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }) {
        tracing::warn!(%error, "the number of open files cannot be raised");
    }
}

fn serving(config: &Config, addresses: Addresses) -> Result<(), Error> {
    let Addresses { http, health, metrics } = addresses;
    // What is turned off is not named.
    let (health, metrics) = (health.map(display), metrics.map(display));
    tracing::info!(%http, health, metrics, "serving");
    let Some(path) = &config.address_file else { return Ok(()) };
    let failed = |source| Error::AddressFile { path: path.clone(), source };
    announce::write(path, &addresses).map_err(failed)
}
