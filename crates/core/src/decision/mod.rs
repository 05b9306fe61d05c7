//! Stage 7 of 12 · decide — filter, score, pick: which provider takes a request, and why.
//!
//! Upstream: `ledger` and `market` say what is free. Downstream: `plan` turns the pick into events.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

/// How to choose among the providers that fit.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The most left over afterwards, as a share of what the provider has: spreads the load.
    #[default]
    Headroom,
    /// The least left over afterwards: keeps large gaps for large requests.
    Binpack,
    /// The cheapest; then headroom.
    Cost,
}

/// What a provider's label must be like.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Constraint {
    /// The label.
    pub label: String,
    /// What is asked of it.
    pub is: Match,
}

/// What is asked of a label, with the meanings of Kubernetes' selectors.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Match {
    /// One of these values.
    In(Vec<String>),
    /// None of these values, or absent.
    NotIn(Vec<String>),
    /// Present.
    Exists,
    /// Absent.
    Absent,
}
