//! Stage 7 of 12 · decide — filter, score, pick: which provider takes a request, and why.
//!
//! Upstream: `ledger` and `market` say what is free. Downstream: `plan` turns the pick into events.
//!
//! [`filter`] is the one place that says who may take a request; [`score`] says who of them is
//! best; [`index`] finds that one without looking at all, or `labels` the few that can be chosen; [`explain`] tells people afterwards.
//! Nothing here changes anything: the same books, request, policy and time give the same answer.

pub mod explain;
pub mod filter;
pub mod index;
pub(crate) mod labels;
pub mod score;

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::books::Books;
use crate::event::Basis;
use crate::id::ClusterId;
use crate::policy::Policy;
use crate::reservation::Ask;
use crate::time::Time;
use filter::{Filter, Question, Verdict};

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

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Headroom, Self::Binpack, Self::Cost];
}

/// What a provider's label must be like.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Constraint {
    /// The label.
    pub label: String,
    /// What is asked of it.
    pub is: Match,
}

impl Constraint {
    /// Do these labels satisfy it?
    pub fn admits(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.label);
        match &self.is {
            Match::In(values) => value.is_some_and(|value| values.contains(value)),
            Match::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Match::Exists => value.is_some(),
            Match::Absent => value.is_none(),
        }
    }
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
    /// Whether its agent confirms what it did.
    pub confirms: bool,
}

/// Nobody was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    let question = Question { books, requester, ask, policy, now, grows: false };
    search(&question, None, &mut 0)
}

/// The same among some alone, or everywhere; counts the clusters that it looks at.
pub(crate) fn search(
    question: &Question<'_>,
    among: Option<&[&ClusterId]>,
    looks: &mut u64,
) -> Result<Pick, NoPick> {
    let Question { books, ask, policy, now, .. } = *question;
    // `Suspect` is the last filter, and without a pick every provider with room was looked at: one
    // that is refused as Suspect could have met the request.
    let (mut suspects, mut asked) = (false, 0_u64);
    let mut accept = |cluster: &ClusterId| {
        asked = asked.saturating_add(1);
        match question.verdict(cluster) {
            Verdict::Fits => true,
            Verdict::Refused(filter) => {
                suspects |= filter == Filter::Suspect;
                false
            }
        }
    };
    let (resources, strategy) = (&ask.resources, question.strategy());
    let few = || books.labels().few(&ask.constraints);
    let (found, passed) = if let Some(target) = &ask.target {
        (accept(target).then(|| target.clone()), 0)
    } else if let Some(some) = among.map(<[_]>::to_vec).or_else(few) {
        let passed = u64::try_from(some.len()).unwrap_or(u64::MAX);
        (books.index().best_among(&some, resources, strategy, accept), passed)
    } else {
        let (mut found, leaves) = books.index().search(1, resources, strategy, accept);
        (found.pop(), leaves)
    };
    *looks = looks.saturating_add(asked).saturating_add(passed);
    found
        .and_then(|provider| {
            let entry = books.market().entry(&provider)?;
            let confirms = entry.advertisement.capabilities.acknowledge;
            Some(Pick { basis: books.basis_of(entry, policy, now), confirms, provider })
        })
        .ok_or(if suspects { NoPick::OnlySuspects } else { NoPick::NobodyFits })
}
