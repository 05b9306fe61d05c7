//! The cluster, as far as a link is concerned: the collections, and how objects are written there.

use std::collections::BTreeMap;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Event, Namespace, Secret};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sublet_core::id::ClusterId;
use sublet_core::time::Time;

use super::super::kinds::{ForeignCluster, Identity, NamespaceMap, Renew, ResourceSlice, Tenant};
use super::super::names::{self, WRITER};
use super::Error;
use crate::cluster::present;

/// The collections in which everything about one pair is.
#[derive(Clone)]
pub(super) struct Ground {
    pub(super) client: Client,
    pub(super) peer: ClusterId,
    /// The namespace of the pair.
    pub(super) namespace: String,
    pub(super) namespaces: Api<Namespace>,
    pub(super) foreign: Api<ForeignCluster>,
    pub(super) csrs: Api<CertificateSigningRequest>,
    pub(super) secrets: Api<Secret>,
    pub(super) tenants: Api<Tenant>,
    pub(super) identities: Api<Identity>,
    pub(super) renews: Api<Renew>,
    pub(super) slices: Api<ResourceSlice>,
    pub(super) maps: Api<NamespaceMap>,
    pub(super) events: Api<Event>,
    pub(super) bindings: Api<RoleBinding>,
}

impl Ground {
    pub(super) fn new(client: &Client, peer: &ClusterId) -> Self {
        let namespace = names::tenant_namespace(peer);
        let (all, within) = (client.clone(), namespace.as_str());
        Self {
            client: client.clone(),
            peer: peer.clone(),
            namespaces: Api::all(all.clone()),
            foreign: Api::all(all.clone()),
            csrs: Api::all(all.clone()),
            secrets: Api::namespaced(all.clone(), within),
            tenants: Api::namespaced(all.clone(), within),
            identities: Api::namespaced(all.clone(), within),
            renews: Api::namespaced(all.clone(), within),
            slices: Api::namespaced(all.clone(), within),
            maps: Api::namespaced(all.clone(), within),
            events: Api::namespaced(all.clone(), within),
            bindings: Api::namespaced(all, within),
            namespace,
        }
    }
}

/// Was it made by us?
pub(in crate::peering::liqo) fn is_ours(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.get(names::MANAGED_BY).is_some_and(|by| by == WRITER))
}

/// The labels of whatever we make about a peer.
pub(super) fn our_labels(peer: &ClusterId) -> BTreeMap<String, String> {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    [pair(names::MANAGED_BY, WRITER), pair(names::REMOTE_CLUSTER_ID, peer.as_str())].into()
}

/// Writes our fields of an object, and makes it if it is not there.
pub(super) async fn apply<K>(api: &Api<K>, name: &str, object: &Value) -> Result<(), Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    api.patch(name, &PatchParams::apply(WRITER).force(), &Patch::Apply(object)).await?;
    Ok(())
}

/// Changes some fields of an object, unless it is gone.
pub(super) async fn merge<K>(api: &Api<K>, name: &str, change: &Value) -> Result<(), Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let how = PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
    Ok(present(api.patch(name, &how, &Patch::Merge(change)).await).map(drop)?)
}

/// Removes an object, unless it is gone.
pub(super) async fn remove<K>(api: &Api<K>, name: &str) -> Result<(), Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug + Serialize,
{
    Ok(present(api.delete(name, &DeleteParams::default()).await).map(drop)?)
}

/// Removes this very object, and not what somebody else made under its name meanwhile.
pub(super) async fn remove_this<K>(
    api: &Api<K>,
    name: &str,
    uid: Option<String>,
) -> Result<(), Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug + Serialize,
{
    let preconditions = Preconditions { uid, resource_version: None };
    let how = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    Ok(present(api.delete(name, &how).await).map(drop)?)
}

/// A time as annotations have it.
pub(super) fn text_of(time: Time) -> String {
    let value = serde_json::to_value(sublet_crds::from_time(time));
    value.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A time from an annotation; what cannot be read is none.
pub(super) fn time_of(text: &str) -> Option<Time> {
    let time = serde_json::from_value(Value::String(text.to_owned())).ok()?;
    sublet_crds::to_time("metadata.annotations", &time).ok()
}
