//! Stage 1 of 12 · collect — nodes, pods and grants, folded into what the cluster has and what is taken.
//!
//! Upstream: the watches of the API server. Downstream: `advertise` says it to the broker.
//!
//! The watches hand in objects as they come; [`Fold`] keeps the sums, so that an event costs the same
//! in a cluster of ten pods and of ten thousand, and nothing is ever listed again to count it. What
//! counts:
//!
//! - Nodes that are ready, not cordoned, and real. A virtual node is capacity of somebody else, and is
//!   never offered again. Tainted nodes do not count unless their taints are [tolerated](NodeRules),
//!   because pods of others do not tolerate them.
//! - Pods that are bound to such a node and not finished, each with what Kubernetes' scheduler would
//!   set aside for it.
//! - Pods that another cluster runs inside of a grant are part of that, and are also told per grant,
//!   so that the broker counts them once.
//!
//! An amount that cannot be read counts as nothing and is [reported](Fold::problems), with the object
//! and the field.

pub mod seen;
mod amounts;
mod guest;
mod node;
mod pod;
mod grant;
mod tally;
mod place;
mod fold;

pub use fold::{Fold, Measured, NodeCounts, Subject};
pub use grant::Grant;
pub use guest::Guest;
pub(crate) use guest::{
    came_through, claimant, claimed, guests, may_have_pods, quota_user, unclaimed,
};
pub use node::{NodeFacts, NodeRules, Standing, Tolerated};
pub use pod::PodFacts;
pub(crate) use pod::{asked_by, asked_by_all};

#[cfg(test)]
mod laws;
