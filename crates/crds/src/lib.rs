//! The contract with Kubernetes: the six kinds, and the way between them and the core.
//!
//! Four kinds live in every cluster with an agent (`rear.fluidos.eu`), two where the broker keeps its
//! objects in Kubernetes (`broker.fluidos.eu`). Names and fields are the Go system's, so that its
//! objects are read here and ours are read there; what is ours on top is optional and ignored by it.
//!
//! Reading is lenient, writing is strict. A type here never refuses an object that an API server
//! kept, because one object that cannot be read would stop a whole watch: amounts, names and
//! durations stay texts, and an unknown phase is a phase that we do not know. What they mean comes
//! out of the conversions, with an [`Invalid`] that names the field. The schema in `deploy/crds`,
//! made from these types by `cargo xtask gen`, refuses what is wrong when somebody writes it.

#![expect(clippy::duplicated_attributes, reason = "the columns of a kind have things in common")]

mod invalid;
pub mod schema;
mod definition;
mod amounts;
mod requested;
mod moment;
mod constraint;
pub mod condition;
mod obstacle;
mod market;
mod advertisement;
mod resource_request;
mod reservation_instruction;
mod provider_instruction;
mod cluster_advertisement;
mod reservation;

pub use advertisement::{
    Advertisement, AdvertisementPhase, AdvertisementSpec, AdvertisementStatus, ResourceMetrics,
};
pub use amounts::{Quantity, ResourceQuantities};
pub use cluster_advertisement::{
    ClusterAdvertisement, ClusterAdvertisementSpec, ClusterAdvertisementStatus, ClusterPhase,
    ClusterResources,
};
pub use constraint::{Constraint, Operator};
pub use definition::{FILES, all, file_name};
pub use invalid::{Cause, Invalid};
pub use market::{CostInfo, Number};
pub use moment::{Time, from_time, to_time};
pub use obstacle::Obstacle;
pub use provider_instruction::{
    ProviderInstruction, ProviderInstructionSpec, ProviderInstructionStatus,
};
pub use requested::RequestedAmounts;
pub use reservation::{
    RequestedResources, Reservation, ReservationPhase, ReservationSpec, ReservationStatus,
};
pub use reservation_instruction::{
    Duty, ReservationInstruction, ReservationInstructionSpec, ReservationInstructionStatus,
};
pub use resource_request::{
    RequestPhase, ResourceRequest, ResourceRequestSpec, ResourceRequestStatus,
};

/// The group of the kinds in a cluster with an agent.
pub const REAR: &str = "rear.fluidos.eu";
/// The group of the broker's kinds.
pub const BROKER: &str = "broker.fluidos.eu";
/// The one version of both groups.
pub const VERSION: &str = "v1alpha1";
