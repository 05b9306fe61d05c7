//! Why the agent cannot start, or ended.

use std::io;
use std::path::PathBuf;

use sublet_process::Address;
use sublet_wire::{Invalid, client};
use tokio::task::JoinError;

use crate::{cluster, identity, join, kinds, publish};

/// Why the agent cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runtime cannot be made.
    #[error("the runtime cannot be started")]
    Runtime(#[source] io::Error),
    /// It is not known who this cluster is.
    #[error(transparent)]
    Identity(#[from] identity::Error),
    /// The API server cannot be spoken to.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// The certificates or the address of the broker cannot be used.
    #[error("--broker-url or --broker-cert-path cannot be used")]
    Broker(#[source] client::Error),
    /// The certificates of the broker cannot be read.
    #[error("--broker-cert-path")]
    Credentials(#[source] client::CredentialsError),
    /// The certificates of the metrics cannot be used.
    #[error("--metrics-cert-path, or without it --broker-cert-path, cannot be used for metrics")]
    MetricsCertificates(#[source] sublet_process::tls::Error),
    /// What is said of the cluster is not as the broker takes it.
    #[error("--labels, --region or the cost cannot be used")]
    Profile(#[source] Invalid),
    /// The Advertisement cannot be read.
    #[error(transparent)]
    Object(#[from] publish::Error),
    /// The kinds are not ours.
    #[error(transparent)]
    Kinds(#[from] kinds::Lost),
    /// Clusters cannot be joined as was said.
    #[error(transparent)]
    Join(#[from] join::Error),
    /// An address cannot be listened on.
    #[error("--{flag}: cannot listen on {address}")]
    Bind {
        /// Which flag.
        flag: &'static str,
        /// Where.
        address: Address,
        /// Why.
        source: io::Error,
    },
    /// The addresses cannot be written.
    #[error("--address-file: cannot write {}", path.display())]
    AddressFile {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody asked it to.
    #[error("{0} ended although nobody asked it to")]
    Ended(&'static str),
    /// A task panicked.
    #[error("a part of the agent failed")]
    Task(#[from] JoinError),
}
