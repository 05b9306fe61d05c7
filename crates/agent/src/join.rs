//! What joins clusters: chosen by the configuration, or by what is installed, and put together.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, ListParams};
use sublet_core::id::ClusterId;
use sublet_core::time::Span;

use crate::clock;
use crate::config::{BrokerAt, Config, Joining};
use crate::metrics::Metrics;
use crate::peering::liqo::kinds::ResourceSlice;
use crate::peering::liqo::{Extras, LiqoPeering, Settings, link, names};
use crate::peering::{NoPeering, Peering};
use crate::run::Tasks;
use crate::transport::Broker;

/// How much longer than pods have to leave a provider waits for its requester to give a slice back.
const MARGIN: Span = Span::from_secs(30);
/// How long a slice may be there before its instruction is.
const GRACE: Span = Span::from_secs(30);

/// Why clusters cannot be joined as was said.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Liqo is not there, or may not be used.
    #[error(
        "--peering=liqo: Liqo's slices cannot be listed; install Liqo, and let the agent use it with \
         deploy/agent/rbac-liqo.yaml"
    )]
    NoLiqo(#[source] kube::Error),
    /// It cannot be looked whether Liqo is there.
    #[error("it cannot be looked whether Liqo is installed: say --peering=liqo or --peering=none")]
    Unknown(#[source] kube::Error),
    /// The name of the cluster to Liqo cannot be read.
    #[error("the ConfigMap liqo/liqo-clusterid-configmap cannot be read")]
    NoName(#[source] kube::Error),
    /// Liqo has another name for this cluster.
    #[error(
        "Liqo calls this cluster {liqo:?}, and its certificate says {ours}: both must be the same; \
         issue a certificate for {liqo:?}, or install Liqo with discovery.config.clusterID={ours}"
    )]
    OtherName {
        /// Liqo's.
        liqo: String,
        /// That of the certificate.
        ours: ClusterId,
    },
}

/// What is needed to join clusters.
pub(crate) struct Join<'a> {
    pub(crate) config: &'a Config,
    pub(crate) client: &'a Client,
    pub(crate) cluster: &'a ClusterId,
    pub(crate) broker: &'a Arc<dyn Broker>,
    pub(crate) metrics: &'a Arc<Metrics>,
}

impl Join<'_> {
    /// Begins with what was chosen.
    pub(crate) async fn begin(&self, tasks: &mut Tasks) -> Result<Arc<dyn Peering>, Error> {
        match (&self.config.broker, self.choice().await?) {
            (Some(at), Joining::Liqo) => {
                self.check_name().await?;
                tracing::info!("clusters are joined by Liqo");
                Ok(self.liqo(at, tasks))
            }
            // Without a broker there is nobody to be joined with.
            (None, _) | (_, Joining::None) => Ok(Arc::new(NoPeering)),
        }
    }

    async fn choice(&self) -> Result<Joining, Error> {
        let chosen = self.config.peering;
        if self.config.broker.is_none() || chosen == Some(Joining::None) {
            return Ok(Joining::None);
        }
        let slices: Api<ResourceSlice> = Api::all(self.client.clone());
        match slices.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => Ok(Joining::Liqo),
            Err(error) if chosen == Some(Joining::Liqo) => Err(Error::NoLiqo(error)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Joining::None),
            Err(kube::Error::Api(status)) if status.code == 403 => {
                tracing::info!("Liqo is not there, or the agent has no role for it: no peering");
                Ok(Joining::None)
            }
            Err(error) => Err(Error::Unknown(error)),
        }
    }

    /// Liqo's name of this cluster is written into what others have of it; ours must be the same.
    async fn check_name(&self) -> Result<(), Error> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), names::LIQO_NAMESPACE);
        let map = maps.get(names::ID_CONFIG_MAP).await.map_err(Error::NoName)?;
        let name = map.data.and_then(|data| data.get("CLUSTER_ID").cloned());
        let (liqo, ours) = (name.unwrap_or_default(), self.cluster);
        if liqo == ours.as_str() {
            return Ok(());
        }
        Err(Error::OtherName { liqo, ours: ours.clone() })
    }

    fn liqo(&self, at: &BrokerAt, tasks: &mut Tasks) -> Arc<dyn Peering> {
        let Config { slices, instruction_namespace, advertisement_namespace, .. } = self.config;
        let links = Arc::new(link::Keeper::new(link::Settings {
            client: self.client.clone(),
            cluster: self.cluster.clone(),
            namespace: advertisement_namespace.clone(),
            credentials: at.cert_path.clone(),
            post: Arc::new(Arc::clone(self.broker)),
            idle: self.config.link_idle,
            clock: clock::now,
            metrics: Arc::clone(self.metrics),
            hook: None,
        }));
        let eviction = slices.eviction_deadline;
        let settings = Settings {
            extras: Extras { pods: slices.pods, storage: slices.storage },
            eviction,
            patience: eviction.checked_add(MARGIN).unwrap_or(eviction),
            grace: GRACE,
            namespace: instruction_namespace.clone(),
        };
        let stopping = tasks.stopping();
        let (client, metrics) = (self.client.clone(), Arc::clone(self.metrics));
        let (peering, keeper) =
            LiqoPeering::new(client, Arc::clone(&links) as _, settings, clock::now, metrics);
        tasks.own("the links", async move { links.run(stopping).await });
        tasks.own("the slices", keeper.run(tasks.stopping()));
        Arc::new(peering)
    }
}
