//! What the cluster that lends must do because of a reservation.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sublet_core::id::ClusterId;
use sublet_core::resources::Resources;
use sublet_core::time;

use crate::schema::{self, fixed};
use crate::{Duty, Invalid, RequestedAmounts, Time, from_time};

/// Which capacity to keep, and for whom.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "rear.fluidos.eu",
    version = "v1alpha1",
    kind = "ProviderInstruction",
    plural = "providerinstructions",
    namespaced,
    status = "ProviderInstructionStatus",
    derive = "PartialEq",
    shortname = "pins",
    category = "sublet",
    doc = "Capacity of this cluster that is kept for another. Its agent writes it and enforces it.",
    printcolumn(name = "Reservation", type_ = "string", json_path = ".spec.reservationName"),
    printcolumn(name = "Requester", type_ = "string", json_path = ".spec.requesterClusterID"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.requestedCPU"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.requestedMemory"),
    printcolumn(name = "Enforced", type_ = "boolean", json_path = ".status.enforced"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "GPU", type_ = "string", json_path = ".spec.requestedGPU", priority = 1),
    printcolumn(name = "Duty", type_ = "string", json_path = ".spec.duty", priority = 1),
    printcolumn(name = "Expires", type_ = "string", json_path = ".spec.expiresAt", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".spec.message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [fixed(&["reservationName", "requesterClusterID"])]))]
pub struct ProviderInstructionSpec {
    /// Because of which reservation.
    #[schemars(schema_with = "schema::name")]
    pub reservation_name: String,
    /// For whom.
    #[schemars(schema_with = "schema::cluster_id")]
    #[serde(rename = "requesterClusterID")]
    pub requester_cluster_id: String,
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
pub struct ProviderInstructionStatus {
    /// Whether the amounts are kept for the other cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enforced: bool,
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
    /// What is true of it: Enforced, Acknowledged.
    #[schemars(schema_with = "schema::conditions")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl ProviderInstructionSpec {
    /// What comes after the reservation's id in the name of the object.
    pub const NAME_SUFFIX: &str = "-provider";

    /// What the provider is told, in the Go system's words; number and duty are set beside it.
    pub fn new(
        reservation: &str,
        requester: &ClusterId,
        amounts: &Resources,
        expires_at: Option<time::Time>,
    ) -> Self {
        let amounts = RequestedAmounts::from(amounts);
        let message = format!(
            "Hold {} CPU / {} Memory for requester {requester}",
            amounts.cpu, amounts.memory
        );
        Self {
            reservation_name: reservation.to_owned(),
            requester_cluster_id: requester.to_string(),
            message,
            amounts,
            expires_at: expires_at.map(from_time),
            duty: None,
            instruction_generation: None,
        }
    }

    /// The name of the object about a reservation.
    pub fn object_name(reservation: &str) -> String {
        format!("{reservation}{}", Self::NAME_SUFFIX)
    }

    /// For whom, in the core's terms.
    pub fn requester(&self) -> Result<ClusterId, Invalid> {
        let named = |error| Invalid::new("spec.requesterClusterID", error);
        self.requester_cluster_id.parse().map_err(|error: sublet_core::id::Error| named(error))
    }
}
