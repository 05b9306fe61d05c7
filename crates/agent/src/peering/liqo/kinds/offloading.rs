//! A namespace whose pods may go to other clusters.

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which namespaces of the requester are which at the provider; only that it is there is looked at.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "NamespaceMap",
    plural = "namespacemaps",
    schema = "disabled",
    namespaced
)]
#[serde(default)]
pub struct NamespaceMapSpec {}

/// Where to.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "NamespaceOffloading",
    plural = "namespaceoffloadings",
    schema = "disabled",
    namespaced
)]
#[serde(default, rename_all = "camelCase")]
pub struct NamespaceOffloadingSpec {
    /// Whether pods stay, go, or both.
    pub pod_offloading_strategy: String,
    /// What the namespace is called over there.
    pub namespace_mapping_strategy: String,
    /// To which clusters, as a selector of nodes.
    pub cluster_selector: Value,
}
