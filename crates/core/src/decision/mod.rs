//! Stage 7 of 12 · decide — filter, score, pick: which provider takes a request, and why.
//!
//! Upstream: `ledger` and `market` say what is free. Downstream: `plan` turns the pick into events.

pub mod explain;
pub mod filter;
pub mod index;
pub mod score;

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::books::Books;
use crate::event::Basis;
use crate::id::ClusterId;
use crate::market::Freshness;
use crate::policy::Policy;
use crate::reservation::Ask;
use crate::time::Time;

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

/// The provider that was chosen, and on what ground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Who.
    pub provider: ClusterId,
    /// On what ground.
    pub basis: Basis,
}

/// Nobody was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoPick {
    /// Nobody fits; waiting a moment does not help.
    NobodyFits,
    /// Somebody fits who is only overdue: ask again soon.
    OnlySuspects,
}

/// Chooses a provider for what `requester` asks.
pub fn decide(
    books: &Books,
    requester: &ClusterId,
    ask: &Ask,
    policy: &Policy,
    now: Time,
) -> Result<Pick, NoPick> {
    let strategy = ask.strategy.unwrap_or(policy.strategy);
    let found = books.index().best(&ask.resources, strategy, |cluster| {
        cluster != requester && filter(books, cluster, ask, policy, now)
    });
    found
        .and_then(|provider| {
            let basis = books.basis(&provider, policy)?;
            Some(Pick { provider, basis })
        })
        .ok_or(NoPick::NobodyFits)
}

fn filter(books: &Books, cluster: &ClusterId, _ask: &Ask, policy: &Policy, now: Time) -> bool {
    books
        .market()
        .entry(cluster)
        .is_some_and(|entry| entry.freshness(&policy.silence, now) == Freshness::Active)
}
