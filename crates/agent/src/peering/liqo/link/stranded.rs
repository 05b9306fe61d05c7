//! What Liqo's replicator keeps for ever. It holds on to whatever it has copied to a provider until the
//! copy is gone, and stops when the identity goes, after all of that is given back. One that is killed
//! just then begins with nothing to give back, and no way to the provider: what it kept stays, and the
//! namespace of the pair could never go.

use std::fmt::Debug;

use kube::api::{ListParams, PartialObjectMeta};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::super::names;
use super::Error;
use super::ground::{Ground, merge, remove};

impl Ground {
    /// What the replicator has copied, and keeps until the copy is gone. Where the agent may not see it,
    /// there is nothing that it could do about it.
    pub(super) async fn stranded(&self) -> Result<Vec<Stranded>, Error> {
        let mut all = kept(&self.renews, Stranded::Renew).await?;
        all.extend(kept(&self.maps, Stranded::Map).await?);
        Ok(all)
    }

    /// Lets go of it: nobody else will, and the namespace could never go.
    pub(super) async fn free_stranded(&self) -> Result<(), Error> {
        for one in self.stranded().await? {
            tracing::warn!(peer = %self.peer, what = ?one, "Liqo lost its way to the provider before it gave this back");
            match one {
                Stranded::Renew(name) => free(&self.renews, &name).await?,
                Stranded::Map(name) => free(&self.maps, &name).await?,
            }
        }
        Ok(())
    }
}

/// Something that the replicator keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stranded {
    Renew(String),
    Map(String),
}

/// Those of a kind.
async fn kept<K>(api: &Api<K>, as_what: fn(String) -> Stranded) -> Result<Vec<Stranded>, Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let copied = ListParams::default().labels(&format!("{}=true", names::REPLICATION));
    let all = match api.list_metadata(&copied).await {
        Err(kube::Error::Api(no)) if no.code == 403 => return Ok(Vec::new()),
        all => all?.items,
    };
    let is_kept = |one: &&PartialObjectMeta<K>| {
        one.finalizers().iter().any(|name| name == names::COPIED_FINALIZER)
    };
    Ok(all.iter().filter(is_kept).map(|one| as_what(one.name_any())).collect())
}

/// Deletes it, and takes the replicator's finalizer off.
async fn free<K>(api: &Api<K>, name: &str) -> Result<(), Error>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Serialize,
{
    remove(api, name).await?;
    let Some(one) = api.get_metadata_opt(name).await? else { return Ok(()) };
    let others = one.finalizers().iter().filter(|name| *name != names::COPIED_FINALIZER);
    let others: Vec<_> = others.collect();
    let version = one.resource_version();
    let change = json!({ "metadata": { "finalizers": others, "resourceVersion": version } });
    merge(api, name, &change).await
}
