//! Version 1 of the JSON: the Go system's types with their exact names, and what we add to them.
//!
//! A file per resource, each with the way into the core's types (checked once, every error names
//! its field) and back. What we add is optional everywhere, so that either side may be a Go
//! program: an agent that says nothing more than the Go agents do is treated as one.

mod quantities;
mod advertisement;
mod request;
mod reservation;
mod reservation_text;
mod explanation;
mod candidate;
mod instruction;
mod message;
mod cluster;
mod operator;

pub use advertisement::{
    Advertisement, AdvertisementResponse, Capabilities, Cost, GrantReport, Number, ResourceMetrics,
};
pub use candidate::{Candidate, CandidateList, CandidateRequest};
pub use cluster::{Cluster, ClusterList};
pub use explanation::{Explanation, Granted, Left, Lift, Nearest, Price, Ranked, Refused};
pub use instruction::{Acknowledgement, Cursor, Instruction, WatchEvent, WatchType};
pub use message::{Message, Posted};
pub use operator::{Cap, ClusterDecision, Note, Revocation, RevocationList, Why, why};
pub use quantities::{Amounts, Quantities};
pub use request::{Constraint, Operator, ReservationRequest};
pub use reservation::{
    Decision, Failed, Renewal, Reservation, ReservationList, Resizing, Status, View,
};

pub(crate) use explanation::text as explanation_text;
pub use reservation_text::{actor, hindrance, reason};

/// The phases, as the wire names them.
pub const PHASES: [&str; 6] = ["Pending", "Reserved", "Active", "Releasing", "Released", "Failed"];

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
