//! What a cluster says of itself, kept beside its agent for people to look at.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::schema;
use crate::{CostInfo, Number, ResourceQuantities, Time};

/// What the agent measured and published.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "rear.fluidos.eu",
    version = "v1alpha1",
    kind = "Advertisement",
    plural = "advertisements",
    namespaced,
    status = "AdvertisementStatus",
    derive = "PartialEq",
    shortname = "adv",
    category = "sublet",
    doc = "What this cluster says of itself. Its agent writes it; the broker has it over the wire.",
    printcolumn(name = "ClusterID", type_ = "string", json_path = ".spec.clusterID"),
    printcolumn(
        name = "Allocatable-CPU",
        type_ = "string",
        json_path = ".spec.resources.allocatable.cpu"
    ),
    printcolumn(
        name = "Available-CPU",
        type_ = "string",
        json_path = ".spec.resources.available.cpu"
    ),
    printcolumn(
        name = "Allocatable-Mem",
        type_ = "string",
        json_path = ".spec.resources.allocatable.memory"
    ),
    printcolumn(
        name = "Available-Mem",
        type_ = "string",
        json_path = ".spec.resources.available.memory"
    ),
    printcolumn(name = "Published", type_ = "boolean", json_path = ".status.published"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Available-GPU",
        type_ = "string",
        json_path = ".spec.resources.available.gpu",
        priority = 1
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase", priority = 1),
    printcolumn(
        name = "Last-Published",
        type_ = "date",
        json_path = ".status.lastUpdateTime",
        priority = 1
    ),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct AdvertisementSpec {
    /// Who; the CN of the agent's certificate.
    #[schemars(schema_with = "schema::cluster_id")]
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// What it has, and what of that is taken.
    pub resources: ResourceMetrics,
    /// What lending costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostInfo>,
    /// When it was measured, by the agent's clock.
    pub timestamp: Time,
    /// Free labels, matched by the constraints of a request.
    #[schemars(schema_with = "schema::labels")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Which of the agent's advertisements this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// False when the cluster takes part but does not lend now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending: Option<bool>,
}

/// What a cluster has, what is taken, and what is left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceMetrics {
    /// What its nodes have.
    pub capacity: ResourceQuantities,
    /// What of that is for pods at home, or offered to others.
    pub allocatable: ResourceQuantities,
    /// What pods take, those of other clusters included.
    pub allocated: ResourceQuantities,
    /// What is left after pods and grants.
    pub available: ResourceQuantities,
    /// What pods really use. The Go system has the field and never writes it; nor do we.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<ResourceQuantities>,
    /// What is kept for other clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent: Option<ResourceQuantities>,
}

/// Whether it was measured and published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdvertisementStatus {
    /// Whether it could be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<AdvertisementPhase>,
    /// When the agent last said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Whether the broker has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub published: bool,
    /// For people.
    #[schemars(schema_with = "schema::message")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What is true of it: Measured, Published.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Whether it could be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdvertisementPhase {
    /// It could.
    Active,
    /// It could not; the message says why.
    Error,
    /// One that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Other,
}
