//! What joins clusters: chosen by the configuration, or by what is installed, and put together.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use sublet_core::id::ClusterId;
use sublet_core::time::Span;
use sublet_crds::condition::Type;
use sublet_crds::{Advertisement, AdvertisementStatus};

use crate::clock;
use crate::cluster::code;
use crate::config::{BrokerAt, Config, Joining, Liqoctl};
use crate::metrics::Metrics;
use crate::peering::liqo::kinds::ResourceSlice;
use crate::peering::liqo::{Extras, LiqoPeering, Offloader, Settings, link, names};
use crate::peering::liqoctl::{self, LiqoctlPeering, Program};
use crate::peering::{NoPeering, Peering};
use crate::run::Tasks;
use crate::transport::Broker;

/// How much longer than pods have to leave a provider waits for its requester to give a slice back.
const MARGIN: Span = Span::from_secs(30);
/// How long a slice may be there before its instruction is.
const GRACE: Span = Span::from_secs(30);
/// How long a slice that is denied, and has no reservation, is kept.
const DENIED: Span = Span::from_secs(3600);
/// How often Liqo is reminded of each slice: one small write, in this cluster alone.
const REFRESH: Span = Span::from_secs(300);

/// Why clusters cannot be joined as was said.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Liqo is not there, or may not be used.
    #[error(
        "--peering={backend}: Liqo's slices cannot be listed; install Liqo, and let the agent use it with \
         deploy/agent/rbac-{backend}.yaml"
    )]
    NoLiqo {
        /// How clusters are to be joined.
        backend: &'static str,
        /// What the API server says.
        source: kube::Error,
    },
    /// Liqo is there, and may not be used.
    #[error(
        "Liqo is installed, and the agent may not use it: apply deploy/agent/rbac-liqo.yaml, or say \
         --peering=none"
    )]
    Forbidden(#[source] kube::Error),
    /// Liqo is not there, and something that is lent or borrowed by it may be.
    #[error(
        "Liqo is not there any more, but {0}: what it lends or borrows would be taken for gone; install \
         Liqo again, or say --peering=none if nothing of it is left"
    )]
    Vanished(&'static str),
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
            (Some(_), Joining::Liqoctl(how)) => {
                self.check_name().await?;
                tracing::info!(kubeconfigs = %how.kubeconfigs_dir.display(), "clusters are joined by liqoctl");
                Ok(self.liqoctl(&how, tasks))
            }
            // Without a broker there is nobody to be joined with.
            (None, _) | (_, Joining::None) => Ok(Arc::new(NoPeering)),
        }
    }

    async fn choice(&self) -> Result<Joining, Error> {
        let chosen = &self.config.peering;
        if self.config.broker.is_none() || *chosen == Some(Joining::None) {
            return Ok(Joining::None);
        }
        if chosen.is_none() && !self.is_served().await? {
            return match self.trace().await? {
                Some(trace) => Err(Error::Vanished(trace)),
                None => Ok(Joining::None),
            };
        }
        let slices: Api<ResourceSlice> = Api::all(self.client.clone());
        match slices.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => Ok(chosen.clone().unwrap_or(Joining::Liqo)),
            Err(error) => Err(match chosen {
                Some(Joining::Liqoctl(_)) => Error::NoLiqo { backend: "liqoctl", source: error },
                Some(_) => Error::NoLiqo { backend: "liqo", source: error },
                None if code(&error) == Some(403) => Error::Forbidden(error),
                None => Error::Unknown(error),
            }),
        }
    }

    /// Does the API server have Liqo's kinds? Everybody may ask that, whatever roles there are.
    async fn is_served(&self) -> Result<bool, Error> {
        let groups = self.client.list_api_groups().await.map_err(Error::Unknown)?.groups;
        Ok(groups.iter().any(|group| group.name == ResourceSlice::group(&())))
    }

    /// What says that clusters were joined by Liqo here: whoever took nothing for everything would
    /// acknowledge the end of what still runs.
    async fn trace(&self) -> Result<Option<&'static str>, Error> {
        let Config { advertisement_namespace, advertisement_name, .. } = self.config;
        let ours: Api<Advertisement> =
            Api::namespaced(self.client.clone(), advertisement_namespace);
        match ours.get(advertisement_name).await {
            Ok(ours) if ours.status.as_ref().is_some_and(was_liqo) => {
                return Ok(Some("the Advertisement says that clusters were joined by it"));
            }
            Ok(_) => {}
            // No such object yet, or not even its kind: that is said where it is written.
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => return Err(Error::Unknown(error)),
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let tenants = format!("{}=true", names::TENANT_NAMESPACE);
        let tenants = ListParams::default().labels(&tenants).limit(1);
        match namespaces.list_metadata(&tenants).await {
            Ok(found) => {
                let is_there = !found.items.is_empty();
                Ok(is_there.then_some("there are namespaces of tenants (liqo-tenant-…)"))
            }
            // An agent that never had the role for Liqo has made none.
            Err(error) if code(&error) == Some(403) => Ok(None),
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
            denied: DENIED,
            refresh: REFRESH,
            namespace: instruction_namespace.clone(),
        };
        let stopping = tasks.stopping();
        let (client, metrics) = (self.client.clone(), Arc::clone(self.metrics));
        let (peering, keeper) =
            LiqoPeering::new(client, Arc::clone(&links) as _, settings, clock::now, metrics);
        tasks.own("the links", async move { links.run(stopping).await });
        tasks.own("the slices", keeper.run(tasks.stopping()));
        self.offload(tasks);
        Arc::new(peering)
    }

    /// Namespaces that requests name go where something is reserved, however the clusters are joined.
    fn offload(&self, tasks: &mut Tasks) {
        let offloader = Offloader::new(self.client, &self.config.instruction_namespace);
        tasks.own("the namespaces", offloader.run(tasks.stopping()));
    }

    fn liqoctl(&self, how: &Liqoctl, tasks: &mut Tasks) -> Arc<dyn Peering> {
        let Config { slices, instruction_namespace, networking, .. } = self.config;
        let eviction = slices.eviction_deadline;
        let settings = liqoctl::Settings {
            cluster: self.cluster.clone(),
            namespace: instruction_namespace.clone(),
            folder: how.kubeconfigs_dir.clone(),
            program: Program {
                path: how.path.clone(),
                environment: how.environment.clone(),
                timeout: Duration::from_millis(how.timeout.as_millis()),
            },
            networking: *networking,
            extras: Extras { pods: slices.pods, storage: slices.storage },
            eviction,
            patience: eviction.checked_add(MARGIN).unwrap_or(eviction),
        };
        let (client, metrics) = (self.client.clone(), Arc::clone(self.metrics));
        let (peering, keeper) = LiqoctlPeering::new(client, settings, clock::now, metrics);
        if let Some(what) = peering.missing() {
            // Whoever only lends needs none of it.
            tracing::warn!(what, "this cluster cannot borrow");
        }
        tasks.own("the peerings", keeper.run(tasks.stopping()));
        self.offload(tasks);
        Arc::new(peering)
    }
}

/// Was it written by an agent that joins clusters by Liqo? No other says whether it can lend.
fn was_liqo(status: &AdvertisementStatus) -> bool {
    status.conditions.iter().any(|said| said.type_ == Type::Lending.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_advertisement_tells_whether_clusters_were_joined_by_liqo() {
        let said = |about: &str| -> AdvertisementStatus {
            let condition = json!({ "type": about, "status": "False", "reason": "NotEnforced",
                                    "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
            serde_json::from_value(json!({ "conditions": [condition] })).unwrap()
        };
        assert!(was_liqo(&said("Lending")), "also one that could not enforce what it lent");
        assert!(!was_liqo(&said("Published")));
        assert!(!was_liqo(&AdvertisementStatus::default()));
    }
}
