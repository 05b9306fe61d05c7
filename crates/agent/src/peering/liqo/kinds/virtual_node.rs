//! What Liqo makes a node of, at the requester.

use std::collections::BTreeMap;

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// A virtual node.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1beta1",
    kind = "VirtualNode",
    plural = "virtualnodes",
    schema = "disabled",
    namespaced
)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualNodeSpec {
    /// The provider.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// The labels of the node.
    pub labels: BTreeMap<String, String>,
}
