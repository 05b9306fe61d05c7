//! What Liqo knows of another cluster.

use kube::CustomResource;
use serde::{Deserialize, Serialize};
use sublet_core::time::Time;

use super::condition::{self, Condition};

/// What Liqo says of an API server that it reaches.
const REACHED: &str = "Established";

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
    /// Since when it is known that Liqo does not reach its API server. Before the first try nothing is said.
    pub fn out_of_reach_since(&self) -> Option<Time> {
        let said = self.said().filter(|said| said.status != REACHED)?;
        let since = serde_json::from_value(said.others.get("lastTransitionTime")?.clone()).ok()?;
        sublet_crds::to_time("", &since).ok()
    }

    /// Does Liqo say that it reaches its API server? That stays said after an unlink, until Liqo restarts.
    pub fn is_reached(&self) -> bool {
        self.said().is_some_and(|said| said.status == REACHED)
    }

    fn said(&self) -> Option<&Condition> {
        let conditions = self.status.as_ref().map(|status| status.conditions.as_slice());
        condition::status(conditions.unwrap_or_default(), "APIServerStatus")
    }
}
