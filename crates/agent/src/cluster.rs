//! The way to this cluster's API server, and what its answers mean.

use std::path::{Path, PathBuf};

use kube::Client;
use kube::config::{Config, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::runtime::watcher::{self, Event};

/// Why the API server cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file that was named.
    #[error("--kubeconfig: {} cannot be used", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: KubeconfigError,
    },
    /// The files of the environment.
    #[error("$KUBECONFIG cannot be used")]
    Environment(#[source] KubeconfigError),
    /// Nothing was named, and this is not a pod.
    #[error(
        "no cluster: give --kubeconfig or $KUBECONFIG, or run as a pod with a service account \
         ({in_cluster}); ~/.kube/config cannot be used either"
    )]
    Nowhere {
        /// Why this is not a pod.
        in_cluster: InClusterError,
        /// Why the last resort cannot be used.
        source: KubeconfigError,
    },
    /// The configuration was read and is of no use.
    #[error("the API server cannot be spoken to")]
    Client(#[source] kube::Error),
}

/// The cluster that was named, that of the environment, the one that this is a pod of, or the one
/// that a person has at home; in this order, as the Go agent looks for it.
pub async fn connect(named: Option<&Path>) -> Result<Client, Error> {
    Client::try_from(config(named).await?).map_err(Error::Client)
}

async fn config(named: Option<&Path>) -> Result<Config, Error> {
    if let Some(path) = named {
        let failed = |source| Error::File { path: path.to_owned(), source };
        return read(Kubeconfig::read_from(path).map_err(failed)?).await.map_err(failed);
    }
    if let Some(found) = Kubeconfig::from_env().map_err(Error::Environment)? {
        return read(found).await.map_err(Error::Environment);
    }
    match Config::incluster() {
        Ok(config) => Ok(config),
        Err(in_cluster) => match Config::from_kubeconfig(&KubeConfigOptions::default()).await {
            Ok(config) => Ok(config),
            Err(source) => Err(Error::Nowhere { in_cluster, source }),
        },
    }
}

async fn read(kubeconfig: Kubeconfig) -> Result<Config, KubeconfigError> {
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await
}

/// What is not there is none.
pub(crate) fn present<T>(answer: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if code(&error) == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The status of an answer; none where there was no answer.
pub(crate) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// The object that an event is about.
pub(crate) fn seen<K>(event: watcher::Result<Event<K>>) -> Option<K> {
    match event {
        Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) => Some(object),
        Ok(Event::Init | Event::InitDone) => None,
        Err(error) => {
            tracing::warn!(%error, "a watch was cut; it is opened again");
            None
        }
    }
}
