//! One promise, where the broker keeps its objects in Kubernetes.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sublet_core::id::{self, ClusterId};
use sublet_core::quantity::Round;
use sublet_core::reservation::{Ask, Phase};

use crate::constraint::{self, given};
use crate::schema::{self, fixed, fixed_once_set};
use crate::{Cause, Constraint, Invalid, Quantity, ResourceQuantities, Time};

/// What is asked for, by whom and of whom.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "broker.fluidos.eu",
    version = "v1alpha1",
    kind = "Reservation",
    plural = "reservations",
    namespaced,
    status = "ReservationStatus",
    derive = "PartialEq",
    shortname = "rsv",
    category = "sublet",
    doc = "Capacity of one cluster that is held for another. Deleting it gives the capacity back.",
    printcolumn(name = "Target-Cluster", type_ = "string", json_path = ".spec.targetClusterID"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.requestedResources.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.requestedResources.memory"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Requester",
        type_ = "string",
        json_path = ".spec.requesterID",
        priority = 1
    ),
    printcolumn(
        name = "GPU",
        type_ = "string",
        json_path = ".spec.requestedResources.gpu",
        priority = 1
    ),
    printcolumn(name = "Expires", type_ = "string", json_path = ".status.expiresAt", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    fixed_once_set("requesterID"),
    fixed_once_set("targetClusterID"),
    fixed(&["constraints", "strategy", "wait"]),
]))]
pub struct ReservationSpec {
    /// Who lends; where it is empty the broker chooses, and writes it.
    #[schemars(schema_with = "schema::optional_cluster_id")]
    #[serde(rename = "targetClusterID", default, skip_serializing_if = "String::is_empty")]
    pub target_cluster_id: String,
    /// How much.
    pub requested_resources: RequestedResources,
    /// For how long, for example 1h30m; without it, the operator's default.
    #[schemars(schema_with = "schema::duration")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Higher goes first among requests that arrive or wait together.
    #[schemars(schema_with = "schema::priority")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Who borrows.
    #[schemars(schema_with = "schema::optional_cluster_id")]
    #[serde(rename = "requesterID", default, skip_serializing_if = "String::is_empty")]
    pub requester_id: String,
    /// How long it may wait for something to fit, for example 10m; without it, not at all.
    #[schemars(schema_with = "schema::duration")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// What the labels of the provider must be like; all of them.
    #[schemars(schema_with = "schema::constraints")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// How to choose among clusters; without it, as the broker does.
    #[schemars(schema_with = "schema::strategy")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
}

/// Amounts of a reservation; some cpu and some memory at least.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedResources {
    /// Cores, for example 500m or 2.
    #[schemars(schema_with = "schema::positive_quantity")]
    pub cpu: Quantity,
    /// Bytes, for example 256Mi.
    #[schemars(schema_with = "schema::positive_quantity")]
    pub memory: Quantity,
    /// Whole devices (nvidia.com/gpu).
    #[schemars(schema_with = "schema::quantity")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Quantity>,
    /// Bytes of ephemeral storage.
    #[schemars(schema_with = "schema::quantity")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Quantity>,
    /// Other resources, by their Kubernetes name.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, Quantity>,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationStatus {
    /// Where it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ReservationPhase>,
    /// For people: what happens now, or why it ended.
    #[schemars(schema_with = "schema::message")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_at: Option<Time>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// When this last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// The metadata.generation that this is about.
    #[schemars(schema_with = "schema::counter")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is true of it. An old requester may write `RequesterActive` and `RequesterReleased`.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// Where a reservation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReservationPhase {
    /// Nothing fits yet.
    Pending,
    /// Held, and both sides are told.
    Reserved,
    /// The requester has confirmed that it is usable.
    Active,
    /// Both sides are told to take it down; it is still held.
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

impl From<Phase> for ReservationPhase {
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

impl ReservationSpec {
    /// The finalizer that releases before the object goes; the Go system's, so that a cluster can
    /// change from one to the other.
    pub const FINALIZER: &str = "reservation.broker.fluidos.eu/finalizer";

    /// Who borrows, in the core's terms.
    pub fn requester(&self) -> Result<ClusterId, Invalid> {
        let named = |error: id::Error| Invalid::new("spec.requesterID", error);
        self.requester_id.parse().map_err(named)
    }

    /// What is asked, in the core's terms.
    pub fn ask(&self) -> Result<Ask, Invalid> {
        const AMOUNTS: &str = "spec.requestedResources";
        let named = |error: id::Error| Invalid::new("spec.targetClusterID", error);
        let target = given(Some(&self.target_cluster_id));
        let resources =
            ResourceQuantities::from(&self.requested_resources).resources(AMOUNTS, Round::Up)?;
        if let Some(empty) = [("cpu", resources.cpu), ("memory", resources.memory)]
            .into_iter()
            .find_map(|(name, amount)| (amount == 0).then_some(name))
        {
            return Err(Invalid::new(format!("{AMOUNTS}.{empty}"), Cause::Nothing));
        }
        Ok(Ask {
            resources,
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

impl From<&RequestedResources> for ResourceQuantities {
    fn from(demand: &RequestedResources) -> Self {
        let RequestedResources { cpu, memory, gpu, storage, extended } = demand.clone();
        Self { cpu, memory, gpu, storage, extended }
    }
}

impl From<ResourceQuantities> for RequestedResources {
    fn from(amounts: ResourceQuantities) -> Self {
        let ResourceQuantities { cpu, memory, gpu, storage, extended } = amounts;
        Self { cpu, memory, gpu, storage, extended }
    }
}
