//! What the operator decided beforehand: who may borrow from whom, how much, how long, how fresh.
//!
//! A value, so that the same plan comes out of the same policy; the shell reads it from a file and
//! swaps it whole. The default lets everybody lend to everybody.

use alloc::{collections::BTreeMap, collections::BTreeSet, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::decision::Strategy;
use crate::id::ClusterId;
use crate::resources::Limits;
use crate::time::{Span, Time};

/// When a cluster that falls silent stops being chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Silence {
    /// Suspect after so many of its own intervals.
    pub intervals: u32,
    /// But not before this.
    pub suspect_min: Span,
    /// Inactive after this.
    pub stale_after: Span,
}

impl Default for Silence {
    fn default() -> Self {
        Self { intervals: 3, suspect_min: Span::from_secs(90), stale_after: Span::from_secs(600) }
    }
}

impl Silence {
    /// Is a cluster that was heard then silent for so long now that it counts as inactive?
    pub fn is_stale(&self, received_at: Time, now: Time) -> bool {
        now.since(received_at) >= self.stale_after
    }
}

/// A set of clusters in a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clusters {
    /// Every cluster.
    Any,
    /// Those that are named.
    These(BTreeSet<ClusterId>),
}

impl Clusters {
    fn contain(&self, cluster: &ClusterId) -> bool {
        match self {
            Self::Any => true,
            Self::These(set) => set.contains(cluster),
        }
    }
}

/// One line of who may borrow from whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Who asks.
    pub requesters: Clusters,
    /// Who lends.
    pub providers: Clusters,
    /// Whether it may.
    pub allow: bool,
}

/// What one requester may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Allowance {
    /// The most that may be held for it in all.
    pub held: Limits,
    /// The highest priority it may claim; what is above is lowered to it.
    pub priority_max: i32,
    /// The most live reservations it may have, waiting ones included.
    pub reservations_max: u32,
    /// The most requests of it that wait at the same time.
    pub waiting_max: u32,
    /// The most keys of it that are remembered, those of ended reservations and tombstones included.
    pub keys_max: u32,
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            held: Limits::default(),
            priority_max: i32::MAX,
            reservations_max: 100_000,
            waiting_max: 100,
            keys_max: 500_000,
        }
    }
}

/// How much a cluster is told about others in an explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Visibility {
    /// Counts only: how many were refused, and for what.
    Counts,
    /// Also which cluster was chosen or was nearest, and what would have been enough.
    #[default]
    Names,
    /// Everything, as an operator sees it.
    Everything,
}

/// What the operator decided beforehand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// How to choose where a request does not say.
    pub strategy: Strategy,
    /// When silence counts.
    pub silence: Silence,
    /// For requests that name no duration; none means no end.
    pub duration_default: Option<Span>,
    /// The longest a reservation may run from now; none means no limit.
    pub duration_max: Option<Span>,
    /// The longest a request may wait.
    pub wait_max: Span,
    /// The most requests that wait at the same time, of all requesters.
    pub waiting_max: u32,
    /// A requester that confirms use must have done so by then.
    pub activate_within: Span,
    /// A provider silent for so long is declared lost; none means never.
    pub lost_after: Option<Span>,
    /// Nothing expires for so long after a start, so that holders can renew after an outage.
    pub recovery_grace: Span,
    /// How long keys outlive their reservation, and tombstones stay.
    pub key_retention: Span,
    /// The first rule that matches decides; without a match it is allowed.
    pub lending: Vec<Rule>,
    /// For requesters that `requesters` does not name.
    pub allowance: Allowance,
    /// For the requesters that it names.
    pub requesters: BTreeMap<ClusterId, Allowance>,
    /// What a cluster is told about others.
    pub visibility: Visibility,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            silence: Silence::default(),
            duration_default: None,
            duration_max: None,
            wait_max: Span::from_secs(24 * 3600),
            waiting_max: 1000,
            activate_within: Span::from_secs(15 * 60),
            lost_after: None,
            recovery_grace: Span::from_secs(60),
            key_retention: Span::from_secs(24 * 3600),
            lending: Vec::new(),
            allowance: Allowance::default(),
            requesters: BTreeMap::new(),
            visibility: Visibility::default(),
        }
    }
}

impl Policy {
    /// May `requester` borrow from `provider`?
    pub fn allows(&self, requester: &ClusterId, provider: &ClusterId) -> bool {
        let matches =
            |rule: &&Rule| rule.requesters.contain(requester) && rule.providers.contain(provider);
        self.lending.iter().find(matches).is_none_or(|rule| rule.allow)
    }

    /// Is there a rule about what `requester` may borrow?
    pub fn rules_on(&self, requester: &ClusterId) -> bool {
        self.lending.iter().any(|rule| rule.requesters.contain(requester))
    }

    /// What `requester` may have.
    pub fn allowance(&self, requester: &ClusterId) -> &Allowance {
        self.requesters.get(requester).unwrap_or(&self.allowance)
    }
}
