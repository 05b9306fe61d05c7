//! What the cluster that borrows must do because of a reservation.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sublet_core::id::ClusterId;
use sublet_core::instruction::Duty as CoreDuty;
use sublet_core::resources::Resources;
use sublet_core::time;

use crate::schema::{self, fixed};
use crate::{RequestedAmounts, Time, from_time};

/// Which capacity to use, and where.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "rear.fluidos.eu",
    version = "v1alpha1",
    kind = "ReservationInstruction",
    plural = "reservationinstructions",
    namespaced,
    status = "ReservationInstructionStatus",
    derive = "PartialEq",
    shortname = "rins",
    category = "sublet",
    doc = "Capacity of another cluster that this one may use. Its agent writes it and acts on it.",
    printcolumn(name = "Reservation", type_ = "string", json_path = ".spec.reservationName"),
    printcolumn(name = "Target", type_ = "string", json_path = ".spec.targetClusterID"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.requestedCPU"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.requestedMemory"),
    printcolumn(name = "Delivered", type_ = "boolean", json_path = ".status.delivered"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "GPU", type_ = "string", json_path = ".spec.requestedGPU", priority = 1),
    printcolumn(name = "Duty", type_ = "string", json_path = ".spec.duty", priority = 1),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expiresAt", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".spec.message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [fixed(&["reservationName", "targetClusterID"])]))]
pub struct ReservationInstructionSpec {
    /// Because of which reservation.
    #[schemars(schema_with = "schema::name")]
    pub reservation_name: String,
    /// Where the capacity is.
    #[schemars(schema_with = "schema::cluster_id")]
    #[serde(rename = "targetClusterID")]
    pub target_cluster_id: String,
    /// How much.
    #[serde(flatten)]
    pub amounts: RequestedAmounts,
    /// For people.
    #[schemars(schema_with = "schema::message")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it ends by itself, by the broker's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// What to do; without it, Keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duty: Option<Duty>,
    /// The broker's number of this instruction; a lower one never overrides a higher one.
    #[schemars(schema_with = "schema::generation")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruction_generation: Option<u32>,
}

/// Whether it was acted on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReservationInstructionStatus {
    /// The version of the broker's object that was read; only where it is read from Kubernetes.
    #[schemars(schema_with = "schema::short_text")]
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub observed_reservation_resource_version: String,
    /// Whether the capacity is usable here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delivered: bool,
    /// When this last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,
    /// The instruction that was carried out last.
    #[schemars(schema_with = "schema::generation")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<u32>,
    /// The instruction that the broker last heard of as carried out.
    #[schemars(schema_with = "schema::generation")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged_generation: Option<u32>,
    /// What is true of it: Peered, Ready.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Duty {
    /// Keep the amounts for the other cluster, or use them there.
    #[default]
    Keep,
    /// Take it down.
    TakeDown,
    /// One that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Other,
}

impl Duty {
    /// What stays to be done of what the broker says; nothing of what is gone.
    pub fn of(duty: CoreDuty) -> Option<Self> {
        match duty {
            CoreDuty::Keep => Some(Self::Keep),
            CoreDuty::TakeDown => Some(Self::TakeDown),
            CoreDuty::Gone => None,
        }
    }
}

impl ReservationInstructionSpec {
    /// What the requester is told, in the Go system's words; number and duty are set beside it.
    pub fn new(
        reservation: &str,
        target: &ClusterId,
        amounts: &Resources,
        expires_at: Option<time::Time>,
    ) -> Self {
        let amounts = RequestedAmounts::from(amounts);
        Self {
            reservation_name: reservation.to_owned(),
            target_cluster_id: target.to_string(),
            message: format!("Use {target} for {} CPU / {} Memory", amounts.cpu, amounts.memory),
            amounts,
            expires_at: expires_at.map(from_time),
            duty: None,
            instruction_generation: None,
        }
    }
}
