//! What a user of a cluster asks for: capacity somewhere else.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sublet_core::id;
use sublet_core::reservation::{Ask, Phase};

use crate::constraint::{self, given};
use crate::schema::{self, fixed};
use crate::{Constraint, Invalid, RequestedAmounts, Time};

/// What is asked for. Amounts, duration, renewal and namespaces may be changed later; the rest is
/// decided with the request.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "rear.fluidos.eu",
    version = "v1alpha1",
    kind = "ResourceRequest",
    plural = "resourcerequests",
    namespaced,
    status = "ResourceRequestStatus",
    derive = "PartialEq",
    shortname = "rr",
    category = "sublet",
    doc = "Asks for capacity of another cluster. Deleting it gives the capacity back.",
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.requestedCPU"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.requestedMemory"),
    printcolumn(name = "Target", type_ = "string", json_path = ".status.targetClusterID"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "GPU", type_ = "string", json_path = ".spec.requestedGPU", priority = 1),
    printcolumn(
        name = "Reservation",
        type_ = "string",
        json_path = ".status.reservationName",
        priority = 1
    ),
    printcolumn(name = "Expires", type_ = "string", json_path = ".status.expiresAt", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    fixed(&["priority", "targetClusterID", "constraints", "strategy", "wait"]),
    {
        "rule": "!has(self.renew) || !self.renew || has(self.duration) && self.duration != ''",
        "message": "renew needs a duration: how long each renewal lasts",
    },
]))]
pub struct ResourceRequestSpec {
    /// How much.
    #[serde(flatten)]
    pub amounts: RequestedAmounts,
    /// Higher goes first among requests that arrive or wait together.
    #[schemars(schema_with = "schema::priority")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// For how long, for example 1h30m; without it, the operator's default.
    #[schemars(schema_with = "schema::duration")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Whether the agent renews it for another duration before it ends, as long as this object is
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew: Option<bool>,
    /// How long it may wait for something to fit, for example 10m; without it, not at all.
    #[schemars(schema_with = "schema::duration")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// The one cluster that will do, if only one will.
    #[schemars(schema_with = "schema::cluster_id")]
    #[serde(rename = "targetClusterID", default, skip_serializing_if = "Option::is_none")]
    pub target_cluster_id: Option<String>,
    /// What the labels of the other cluster must be like; all of them.
    #[schemars(schema_with = "schema::constraints")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// How to choose among clusters; without it, as the broker does.
    #[schemars(schema_with = "schema::strategy")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The namespaces of this cluster whose pods may go to the other one while this is reserved,
    /// where agents run with --peering=liqo: that of the request, and others that have the label
    /// sublet.io/may-be-offloaded=true.
    #[schemars(schema_with = "schema::namespaces")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequestStatus {
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<RequestPhase>,
    /// Who lends.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(rename = "targetClusterID", default, skip_serializing_if = "String::is_empty")]
    pub target_cluster_id: String,
    /// The id of the reservation, and the name of its instruction.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reservation_name: String,
    /// For people: what happens now, or why it failed.
    #[schemars(schema_with = "schema::message")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When this last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// Since when the capacity is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_at: Option<Time>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// The metadata.generation that this is about.
    #[schemars(schema_with = "schema::counter")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The spec.duration that expiresAt comes from: only another one moves the end.
    #[schemars(schema_with = "schema::duration")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_duration: Option<String>,
    /// What is true of it: Accepted, Reserved, Ready.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RequestPhase {
    /// The broker has not answered yet, or nothing fits yet.
    Pending,
    /// Held, and both clusters are told.
    Reserved,
    /// The capacity is usable.
    Active,
    /// Being taken down.
    Releasing,
    /// Over, as it should be.
    Released,
    /// Refused, or lost.
    Failed,
    /// One that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Other,
}

impl From<Phase> for RequestPhase {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Pending => Self::Pending,
            Phase::Reserved => Self::Reserved,
            Phase::Active => Self::Active,
            Phase::Releasing => Self::Releasing,
            Phase::Released => Self::Released,
            Phase::Failed => Self::Failed,
        }
    }
}

impl RequestPhase {
    /// Is it over, one way or the other?
    pub fn is_over(self) -> bool {
        matches!(self, Self::Released | Self::Failed)
    }
}

impl ResourceRequestSpec {
    /// What is asked, in the core's terms. Whether the requester confirms use, and how it can be
    /// joined, is its agent's to say.
    pub fn ask(&self) -> Result<Ask, Invalid> {
        let named = |error: id::Error| Invalid::new("spec.targetClusterID", error);
        let target = given(self.target_cluster_id.as_deref());
        Ok(Ask {
            resources: self.amounts.resources()?,
            priority: self.priority.unwrap_or_default(),
            target: target.map(str::parse).transpose().map_err(named)?,
            constraints: constraint::all("spec.constraints", &self.constraints)?,
            strategy: constraint::strategy(self.strategy.as_deref())?,
            duration: constraint::span("spec.duration", self.duration.as_deref())?,
            wait: constraint::span("spec.wait", self.wait.as_deref())?,
            ..Ask::default()
        })
    }
}
