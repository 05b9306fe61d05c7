//! Who another cluster is in this one, at the provider.

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who it says to be. The three texts are base64.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "authentication.liqo.io",
    version = "v1beta1",
    kind = "Tenant",
    plural = "tenants",
    status = "TenantStatus",
    schema = "disabled",
    namespaced
)]
#[serde(default, rename_all = "camelCase")]
pub struct TenantSpec {
    /// The requester.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Its Liqo key, as PEM.
    pub public_key: String,
    /// Its request for a certificate, as PEM.
    pub csr: String,
    /// Its signature of the nonce.
    pub signature: String,
    /// What it may still do: `Active`, `Cordoned` or `Drained`.
    pub tenant_condition: String,
}

impl Tenant {
    /// May it do all that a tenant does?
    pub fn is_active(&self) -> bool {
        matches!(self.spec.tenant_condition.as_str(), "" | "Active")
    }
}

/// What Liqo made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TenantStatus {
    /// How the requester gets in; passed on as it is.
    pub auth_params: Value,
    /// The namespace in which it may do something.
    pub tenant_namespace: String,
}
