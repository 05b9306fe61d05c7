//! What Liqo knows of another cluster.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use super::condition::{self, Condition};

/// Which one.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "core.liqo.io",
    version = "v1beta1",
    kind = "ForeignCluster",
    plural = "foreignclusters",
    status = "ForeignClusterStatus",
    schema = "disabled"
)]
#[serde(default, rename_all = "camelCase")]
pub struct ForeignClusterSpec {
    /// Its id.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
}

/// How it is with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ForeignClusterStatus {
    /// What is said of it.
    pub conditions: Vec<Condition>,
}

impl ForeignCluster {
    /// Is it known that Liqo does not reach its API server? Before the first try nothing is said; and
    /// that it does stays said after an unlink, until Liqo restarts.
    pub fn is_out_of_reach(&self) -> bool {
        let conditions = self.status.as_ref().map(|status| status.conditions.as_slice());
        condition::status(conditions.unwrap_or_default(), "APIServerStatus")
            .is_some_and(|said| said.status != "Established")
    }
}
