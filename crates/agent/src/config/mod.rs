//! From the command line and the environment to a configuration that cannot be wrong.
//!
//! The flags of the Go agent keep their names and meanings, so that its deployments start ours; those
//! that mean nothing here are taken, and named in a log line. What is wrong is an error at the start
//! that names the flag.

mod flags;
mod joining;
mod print;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use serde::Serialize;
use sublet_core::id::{self, ClusterId};
use sublet_core::quantity::{Quantity, Round};
use sublet_core::time::Span;
use sublet_process::tls::Places;
use sublet_process::{Address, Format, Level, address};
use sublet_wire::v1::Cost;

pub use flags::Flags;
pub use joining::{Joining, Liqoctl};

use crate::advertise::{LabelError, labels};
use crate::collect::Tolerated;
use crate::offer::Offer;
use crate::peering::Networking;

/// What 0 means as an interval, as in the Go agent.
const INTERVAL_OF_ZERO: Span = Span::from_secs(60);
/// More often than this is never meant.
const INTERVAL_MIN: Span = Span::from_secs(1);

/// The longest that an unused link is kept. The broker carries letters for a day after the last
/// reservation of a pair, and a provider waits half an hour longer than this for a silent requester.
const LINK_IDLE_MAX: Span = Span::from_secs(12 * 3600);

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not built yet.
    #[error(
        "the transport kubernetes (--broker-transport or --broker-kubeconfig) is not available in \
         this version: use --broker-transport=http, which the Go broker speaks too"
    )]
    Kubernetes,
    /// A transport that is none.
    #[error("--broker-transport={0} is not known: use http, or leave it out for no broker")]
    Transport(String),
    /// Something is missing.
    #[error("--{0} is needed with --broker-transport=http")]
    Needed(&'static str),
    /// Not the name of a cluster.
    #[error("--cluster-id: {0}")]
    ClusterId(#[source] id::Error),
    /// An address that is none.
    #[error("--{flag}: {source}")]
    Address {
        /// Which flag.
        flag: &'static str,
        /// What is wrong with it.
        source: address::Error,
    },
    /// Labels that are none.
    #[error("--labels: {0}")]
    Labels(#[from] LabelError),
    /// Metrics over TLS without certificates for it.
    #[error(
        "--metrics-cert-path is needed to serve metrics over TLS on {0}, because there is no \
         --broker-cert-path whose certificate could be used: a folder with tls.crt, tls.key and ca.crt; or \
         set --metrics-secure=false and let only your Prometheus reach it"
    )]
    MetricsCertificates(Address),
    /// What is said of how clusters are joined makes no sense.
    #[error(transparent)]
    Joining(#[from] joining::Error),
    /// An amount that is none.
    #[error("--slice-storage: {0}")]
    Storage(#[source] sublet_core::quantity::Error),
    /// Too long.
    #[error("--link-idle: at most {LINK_IDLE_MAX}")]
    LinkIdle,
    /// Too often.
    #[error("--advertisement-requeue-interval: at least {INTERVAL_MIN}")]
    Interval,
}

/// The broker over HTTPS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BrokerAt {
    /// Where; the first that answers is used.
    pub urls: Vec<String>,
    /// The folder with our certificate.
    pub cert_path: PathBuf,
}

/// What is said about slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Slices {
    /// Places for pods.
    pub pods: u64,
    /// Bytes of storage, where none are reserved.
    pub storage: u64,
    /// How long pods may take to leave.
    #[serde(serialize_with = "print::text")]
    pub eviction_deadline: Span,
}

/// The configuration, resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// The kubeconfig that was named.
    pub kubeconfig: Option<PathBuf>,
    /// Who this cluster is, if it was said.
    #[serde(serialize_with = "print::some_text")]
    pub cluster_id: Option<ClusterId>,
    /// The name of the Advertisement.
    pub advertisement_name: String,
    /// Its namespace.
    pub advertisement_namespace: String,
    /// The namespace of instructions.
    pub instruction_namespace: String,
    /// How often the cluster is advertised.
    #[serde(serialize_with = "print::text")]
    pub interval: Span,
    /// Over how much of that the clusters are spread.
    #[serde(serialize_with = "print::text")]
    pub spread: Span,
    /// How often an old broker is asked for instructions.
    #[serde(serialize_with = "print::some_text")]
    pub poll_every: Option<Span>,
    /// What is offered.
    #[serde(serialize_with = "print::text")]
    pub offer: Offer,
    /// Which taints do not matter.
    #[serde(serialize_with = "print::text")]
    pub tolerated: Tolerated,
    /// Where the cluster is.
    pub region: Option<String>,
    /// Whether it lends.
    pub lend: bool,
    /// How clusters are joined; none means that it is looked whether Liqo is installed.
    pub peering: Option<Joining>,
    /// Whose the network between joined clusters is.
    pub networking: Networking,
    /// What a virtual node has beyond what is reserved.
    pub slices: Slices,
    /// How long a link is kept that nobody needs.
    #[serde(serialize_with = "print::text")]
    pub link_idle: Span,
    /// Whether one of several agents works at a time.
    pub leader_elect: bool,
    /// Where probes are served.
    pub health_probe_address: Option<Address>,
    /// Where metrics are served.
    pub metrics_address: Option<Address>,
    /// The certificates of metrics; none means without TLS.
    pub metrics_cert_path: Option<Places>,
    /// Where the addresses are written to.
    pub address_file: Option<PathBuf>,
    /// How log lines look.
    pub log_format: Format,
    /// What is logged.
    pub log_level: Level,
    /// Flags that were given and have no effect.
    pub without_effect: Vec<&'static str>,
    /// The broker; none means local only.
    pub broker: Option<BrokerAt>,
    /// What lending costs.
    pub cost: Option<Cost>,
    /// The labels of the cluster.
    pub labels: BTreeMap<String, String>,
}

impl Config {
    /// What was meant by the command line.
    pub fn resolve(flags: &Flags) -> Result<Self, Error> {
        let address = |flag, text: &str| {
            Address::parse(text).map_err(|source| Error::Address { flag, source })
        };
        let metrics_address = address("metrics-bind-address", &flags.metrics_bind_address)?;
        let metrics_cert_path = metrics_places(flags);
        if let Some(at) = metrics_address.filter(|_| flags.metrics_secure)
            && metrics_cert_path.is_none()
        {
            return Err(Error::MetricsCertificates(at));
        }
        let interval = interval(flags.advertisement_requeue_interval)?;
        let poll = flags.instruction_poll_interval;
        let cluster_id = some(&flags.cluster_id).map(str::parse).transpose();
        let peering = Joining::of(flags)?;
        let unused = joining::without_effect(flags, peering.as_ref());
        Ok(Self {
            kubeconfig: given(flags.kubeconfig.as_deref()).map(Path::to_owned),
            broker: broker(flags)?,
            cluster_id: cluster_id.map_err(Error::ClusterId)?,
            advertisement_name: flags.advertisement_name.clone(),
            advertisement_namespace: flags.advertisement_namespace.clone(),
            instruction_namespace: some(&flags.instruction_namespace)
                .unwrap_or(&flags.advertisement_namespace)
                .to_owned(),
            interval,
            spread: flags.advertisement_spread.unwrap_or(interval).min(interval),
            poll_every: (!poll.is_zero()).then_some(poll),
            offer: flags.offer.clone(),
            tolerated: flags.tolerate_taints.clone(),
            region: flags.region.clone(),
            lend: flags.lend,
            networking: joining::networking(flags)?,
            slices: slices(flags)?,
            link_idle: Some(flags.link_idle)
                .filter(|idle| *idle <= LINK_IDLE_MAX)
                .ok_or(Error::LinkIdle)?,
            leader_elect: flags.leader_elect,
            health_probe_address: address(
                "health-probe-bind-address",
                &flags.health_probe_bind_address,
            )?,
            metrics_address,
            metrics_cert_path,
            address_file: given(flags.address_file.as_deref()).map(Path::to_owned),
            log_format: flags.log_format.unwrap_or_else(|| flags.legacy.framework.format()),
            log_level: flags.log_level.unwrap_or_else(|| flags.legacy.framework.level()),
            without_effect: unused.chain(flags.legacy.without_effect()).collect(),
            peering,
            cost: cost(flags),
            labels: labels(&flags.labels)?,
        })
    }
}

/// The certificates of metrics; none means without TLS, or that none were named. Without any of their
/// own, they are those that the broker is shown: the Go agent makes itself one then, which nobody can
/// check, and nobody who reads it has to change more than what he shows.
fn metrics_places(flags: &Flags) -> Option<Places> {
    if !flags.metrics_secure {
        return None;
    }
    let broker = given(flags.broker_cert_path.as_deref()).map(Places::in_folder);
    let Some(folder) = given(flags.metrics_cert_path.as_deref()) else { return broker };
    let places = Places {
        certificate: folder.join(&flags.metrics_cert_name),
        key: folder.join(&flags.metrics_cert_key),
        ..Places::in_folder(folder)
    };
    Some(broker.map_or(places.clone(), |broker| places.or_authority_of(&broker)))
}

/// The flags alone, for whoever reads a command line before clap does.
pub fn command() -> Command {
    Flags::augment_args(Command::new("agent"))
}

/// Nothing means none, as in Go.
fn some(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

fn given(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

fn interval(given: Span) -> Result<Span, Error> {
    match given {
        Span::ZERO => Ok(INTERVAL_OF_ZERO),
        short if short < INTERVAL_MIN => Err(Error::Interval),
        given => Ok(given),
    }
}

fn broker(flags: &Flags) -> Result<Option<BrokerAt>, Error> {
    match (some(&flags.broker_transport), &flags.legacy.broker_kubeconfig) {
        (Some("http"), _) => {}
        (Some("kubernetes"), _) => return Err(Error::Kubernetes),
        (Some(other), _) => return Err(Error::Transport(other.to_owned())),
        (None, Some(kubeconfig)) if !kubeconfig.is_empty() => return Err(Error::Kubernetes),
        (None, _) => return Ok(None),
    }
    let urls: Vec<_> = flags.broker_url.split(',').filter_map(some).map(str::to_owned).collect();
    let cert_path = given(flags.broker_cert_path.as_deref()).map(Path::to_owned);
    let cert_path = cert_path.ok_or(Error::Needed("broker-cert-path"))?;
    if urls.is_empty() {
        return Err(Error::Needed("broker-url"));
    }
    Ok(Some(BrokerAt { urls, cert_path }))
}

fn slices(flags: &Flags) -> Result<Slices, Error> {
    let storage: Result<Quantity, _> = flags.slice_storage.parse();
    let storage = storage.and_then(|storage| storage.to_units(Round::Up));
    let storage = storage.map_err(Error::Storage)?;
    let (pods, eviction_deadline) = (flags.slice_pods, flags.eviction_deadline);
    Ok(Slices { pods, storage, eviction_deadline })
}

fn cost(flags: &Flags) -> Option<Cost> {
    Some(Cost {
        cpu_cost: flags.cpu_cost.clone()?,
        memory_cost: flags.memory_cost.clone()?,
        currency: flags.currency.clone()?,
    })
}

#[cfg(test)]
mod tests;
