//! The supervisor: everything that runs is started here, owned here, and ended here.
//!
//! Whatever ends although nobody asked it to ends the agent, with its reason. On `SIGTERM` or
//! `SIGINT` everything stops within a bound, and the lease is let go. Nothing is undone: whoever
//! comes next resumes from what it observes.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sublet_core::id::ClusterId;
use sublet_process::{Address, Plain, Ready, announce, end, pages};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::error::Error;
use crate::leader::Election;
use crate::metrics::Metrics;
use crate::work::Work;
use crate::{cluster, identity, secure};

/// How long everything may take to stop.
const STOP: Duration = Duration::from_secs(10);

/// Where the agent is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Addresses {
    /// Probes.
    pub health: Option<SocketAddr>,
    /// Metrics.
    pub metrics: Option<SocketAddr>,
}

/// The tasks of an agent.
pub(crate) struct Tasks {
    all: JoinSet<(&'static str, Result<(), Error>)>,
    stopping: watch::Sender<bool>,
}

impl Tasks {
    fn new() -> Self {
        Self { all: JoinSet::new(), stopping: watch::Sender::new(false) }
    }

    /// Becomes true when everything is to stop.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Owns a part, which ends only when everything stops.
    pub(crate) fn own(
        &mut self,
        what: &'static str,
        part: impl Future<Output = ()> + Send + 'static,
    ) {
        self.all.spawn(async move {
            part.await;
            (what, Ok(()))
        });
    }

    /// The reason why a part ended although nobody asked it to.
    async fn ended(&mut self) -> Error {
        match self.all.join_next().await {
            None => Error::Ended("everything"),
            Some(Ok((what, Ok(())))) => Error::Ended(what),
            Some(Ok((_, Err(error)))) => error,
            Some(Err(error)) => error.into(),
        }
    }

    /// Ends everything: in its own way if it is quick, else at once.
    async fn stop(mut self) {
        self.stopping.send_replace(true);
        let all = async { while self.all.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP, all).await.is_err() {
            tracing::warn!("not everything stopped in time");
        }
        self.all.shutdown().await;
    }
}

/// Runs an agent until it is told to end: what `sublet agent` does. One thread is enough for one
/// cluster, and takes the least memory.
pub fn run(config: &Config) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    runtime.block_on(async {
        let told = end::told().map_err(Error::Runtime)?;
        for flag in &config.without_effect {
            tracing::warn!(flag, "this flag of the Go agent has no effect here");
        }
        let mut tasks = Tasks::new();
        let ended = tokio::select! {
            () = told => Ok(()),
            error = supervised(config, &mut tasks) => Err(error),
        };
        tasks.stop().await;
        tracing::info!("the agent ended");
        ended
    })
}

/// Runs everything; returns only with the reason for an end.
async fn supervised(config: &Config, tasks: &mut Tasks) -> Error {
    match start(config, tasks).await {
        Ok(()) => tasks.ended().await,
        Err(error) => error,
    }
}

async fn start(config: &Config, tasks: &mut Tasks) -> Result<(), Error> {
    let metrics = Arc::new(Metrics::new());
    let ready = Ready::default();
    let certified = config.broker.as_ref().map(|broker| identity::certified(&broker.cert_path));
    let agreed = identity::agreed(config.cluster_id.as_ref(), certified.transpose()?)?;
    serve(config, tasks, &ready, &metrics).await?;
    let client = cluster::connect(config.kubeconfig.as_deref()).await?;
    let cluster: ClusterId = match agreed {
        Some(agreed) => agreed,
        None => identity::of_cluster(&client).await?,
    };
    tracing::info!(%cluster, broker = ?config.broker.as_ref().map(|at| &at.urls), "starting");
    if config.leader_elect {
        // Waiting for one's turn is being ready for it.
        ready.set(true);
        let mut election = Election::new(&client, &config.advertisement_namespace);
        election.won().await;
        tasks.own("the lease", keep(election, tasks.stopping()));
        ready.set(false);
    }
    metrics.leading.set(1);
    Work { config, client, cluster, metrics, ready }.begin(tasks).await
}

/// Renews the lease until it is lost, or lets it go at the end.
async fn keep(mut election: Election, mut stopping: watch::Receiver<bool>) {
    let stopped = tokio::select! {
        _ = stopping.wait_for(|stopping| *stopping) => true,
        () = election.lost() => false,
    };
    if stopped {
        election.give_up().await;
    }
}

async fn serve(
    config: &Config,
    tasks: &mut Tasks,
    ready: &Ready,
    metrics: &Arc<Metrics>,
) -> Result<(), Error> {
    let mut addresses = Addresses::default();
    if let Some(at) = config.health_probe_address {
        let (listener, bound) = bind("health-probe-bind-address", at).await?;
        addresses.health = Some(bound);
        let probes = Plain::new(pages::probes(ready.clone()));
        tasks.own("the probes", probes.run(listener, tasks.stopping()));
    }
    if let Some(at) = config.metrics_address {
        let (listener, bound) = bind("metrics-bind-address", at).await?;
        addresses.metrics = Some(bound);
        let metrics = Arc::clone(metrics);
        let mut page = Plain::new(pages::metrics(move || metrics.page()));
        if let Some(places) = &config.metrics_cert_path {
            let tls = secure::open(places).map_err(Error::MetricsCertificates)?;
            page = page.secure(Arc::clone(&tls));
            tasks.own("the certificates of metrics", secure::watch(tls, tasks.stopping()));
        }
        tasks.own("metrics", page.run(listener, tasks.stopping()));
    }
    let Some(path) = &config.address_file else { return Ok(()) };
    let failed = |source| Error::AddressFile { path: path.clone(), source };
    announce::write(path, &addresses).map_err(failed)
}

async fn bind(flag: &'static str, address: Address) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Bind { flag, address, source };
    let listener = address.bind().await.map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    Ok((listener, at))
}
