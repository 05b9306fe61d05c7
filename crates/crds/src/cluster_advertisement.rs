//! What the broker knows of a cluster, where it keeps its objects in Kubernetes.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::schema::{self, fixed};
use crate::{CostInfo, Number, ResourceQuantities, Time};

/// What a cluster said of itself, with what is held there.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "broker.fluidos.eu",
    version = "v1alpha1",
    kind = "ClusterAdvertisement",
    plural = "clusteradvertisements",
    namespaced,
    status = "ClusterAdvertisementStatus",
    derive = "PartialEq",
    shortname = "cadv",
    category = "sublet",
    doc = "What the broker knows of one cluster.",
    printcolumn(name = "ClusterID", type_ = "string", json_path = ".spec.clusterID"),
    printcolumn(
        name = "Available-CPU",
        type_ = "string",
        json_path = ".spec.resources.available.cpu"
    ),
    printcolumn(
        name = "Available-Memory",
        type_ = "string",
        json_path = ".spec.resources.available.memory"
    ),
    printcolumn(name = "Score", type_ = "string", json_path = ".status.score"),
    printcolumn(name = "Active", type_ = "boolean", json_path = ".status.active"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Available-GPU",
        type_ = "string",
        json_path = ".spec.resources.available.gpu",
        priority = 1
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", priority = 1),
    printcolumn(
        name = "Heard",
        type_ = "date",
        json_path = ".status.lastUpdateTime",
        priority = 1
    ),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [fixed(&["clusterID"])]))]
pub struct ClusterAdvertisementSpec {
    /// Who; the CN of the agent's certificate.
    #[schemars(schema_with = "schema::cluster_id")]
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// What its agent calls it.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cluster_name: String,
    /// What it has, and what of that is taken.
    pub resources: ClusterResources,
    /// What lending costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostInfo>,
    /// When it was measured, by the agent's clock.
    pub timestamp: Time,
    /// Where it can be reached. The Go system has the field and never uses it; nor do we.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(rename = "endpointURL", default, skip_serializing_if = "String::is_empty")]
    pub endpoint_url: String,
    /// Free labels, matched by the constraints of a request.
    #[schemars(schema_with = "schema::labels")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Which of the agent's advertisements this is; an older one never replaces a newer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// False when the cluster takes part but does not lend now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending: Option<bool>,
}

/// What a cluster has, what is taken, what is held, and what is left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterResources {
    /// What its nodes have.
    pub capacity: ResourceQuantities,
    /// What of that can be given to pods.
    pub allocatable: ResourceQuantities,
    /// What pods take.
    pub allocated: ResourceQuantities,
    /// What is held for other clusters; written by the broker, never believed from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<ResourceQuantities>,
    /// What is left; written by the broker, never believed from others.
    pub available: ResourceQuantities,
}

/// How the cluster counts in decisions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAdvertisementStatus {
    /// Whether it is heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClusterPhase>,
    /// Whether it can be chosen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub active: bool,
    /// What is free of it, from 0 to 100, with two decimals.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub score: String,
    /// For people.
    #[schemars(schema_with = "schema::message")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it was last heard, by the broker's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// What is true of it: Ready, Stale, Overcommitted.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Whether a cluster is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterPhase {
    /// Its advertisements come.
    Active,
    /// They are late; not chosen for now.
    Suspect,
    /// They stopped.
    Stale,
    /// One that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Other,
}
