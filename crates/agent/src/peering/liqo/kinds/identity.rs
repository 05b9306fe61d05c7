//! Who this cluster is in another one, at the requester.

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How it gets in there.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "authentication.liqo.io",
    version = "v1beta1",
    kind = "Identity",
    plural = "identities",
    schema = "disabled",
    namespaced
)]
#[serde(default, rename_all = "camelCase")]
pub struct IdentitySpec {
    /// The provider.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// `ControlPlane`, or `ResourceSlice`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Address, authority and certificate; passed on as they are.
    pub auth_params: Value,
    /// The namespace of this cluster over there.
    pub namespace: String,
}

/// Through which Liqo renews the certificate of an [`Identity`] that has the same name. Its status is
/// that of a [`TenantStatus`](super::TenantStatus), and wins over the identity.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "authentication.liqo.io",
    version = "v1beta1",
    kind = "Renew",
    plural = "renews",
    status = "RenewStatus",
    schema = "disabled",
    namespaced
)]
#[serde(default)]
pub struct RenewSpec {}

/// What was renewed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RenewStatus {
    /// How this cluster gets in from now on.
    pub auth_params: Value,
}
