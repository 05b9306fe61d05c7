//! Why a request was granted where it was, or why not: a value for people, made after the decision.
//!
//! Of a grant: what the winner keeps free and who came next. Of a refusal: how many clusters each
//! filter refused, and the smallest changes that would have been granted. What is proposed is true:
//! it comes from the same verdicts that the decision goes by. The size is bounded by the named
//! limits below, whatever the size of the fleet, and so is the number of clusters that are looked
//! at; of a refusal, the rest is only counted.

mod candidates;
mod count;
mod granted;
mod refused;
mod text;

use alloc::collections::BTreeMap;
use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::filter::{Filter, Question};
use super::{Constraint, Pick, Strategy};
use crate::books::Books;
use crate::id::ClusterId;
use crate::policy::{Policy, Visibility};
use crate::reservation::{Ask, Reservation};
use crate::resources::{Kind, Resources};
use crate::time::{Span, Time};

pub use candidates::{Candidate, Detail, Judgement, candidates};

/// Runners-up that a grant names.
pub const RUNNERS_UP_MAX: usize = 3;
/// Clusters that a refusal names as nearest.
pub const NEAREST_MAX: usize = 3;
/// Filters whose lifting a refusal proposes.
pub const LIFTS_MAX: usize = 3;
/// Clusters that are looked at one by one to count a refusal: beyond, it says "at least".
pub const LOOKS_MAX: u64 = 256;

/// Why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Explanation {
    /// Why there.
    Granted(Granted),
    /// Why nowhere.
    Refused(Refused),
}

/// Why a request was granted where it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// How it was chosen.
    pub strategy: Strategy,
    /// Who was chosen.
    pub winner: Ranked,
    /// Who came next, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runners_up: Vec<Ranked>,
}

/// A cluster that fits, and the terms of its score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ranked {
    /// Who.
    pub cluster: ClusterId,
    /// What it keeps free after the request, of each resource asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// What it takes for it, where the price decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// What stays free of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Left {
    /// Of what.
    pub resource: Kind,
    /// In hundredths of a percent of what the cluster has.
    pub hundredths_of_percent: u32,
}

/// What a request costs in an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    /// In millionths of the currency, rounded up.
    pub micros: u64,
    /// As the provider names it.
    pub currency: String,
}

/// Why a request was granted nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Refused {
    /// What was asked for.
    #[serde(skip_serializing_if = "Resources::is_zero")]
    pub asked: Resources,
    /// How many clusters are known.
    pub clusters: u64,
    /// How many each filter refused; each cluster is counted once, at its first reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<Filter, u64>,
    /// How many would have taken it, were it not for the allowance.
    pub fitting: u64,
    /// How many clusters were not looked at. Unless it is zero, there may be more than is told of
    /// those that fit and of the filters that depend on the request.
    #[serde(skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// For how long it is held back after a restore, whoever fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<Span>,
    /// How much less must be asked for to stay within the requester's allowance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowance: Option<Resources>,
    /// The clusters that are short of the least, nearest first; then those that have less than is
    /// held on them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<Nearest>,
    /// Clusters with room that only one other reason stands against.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lifts: Vec<Lift>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What would have been enough on a cluster that is too full, and nothing else. Each change that is named is
/// enough by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Nearest {
    /// Who.
    pub cluster: ClusterId,
    /// Ask for so much less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub less: Option<Resources>,
    /// So much more free there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Resources>,
    /// Its cap raised by so much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Resources>,
}

/// One reason less, and a cluster with room would have been chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lift {
    /// The reason.
    pub filter: Filter,
    /// A cluster that it alone stands against.
    pub cluster: ClusterId,
    /// Which constraint is not met, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Constraint>,
}

impl Explanation {
    /// The part of it that a cluster may see.
    #[must_use]
    pub fn seen_by(&self, visibility: Visibility) -> Self {
        match (visibility, self.clone()) {
            (Visibility::Everything, whole) => whole,
            (Visibility::Names, Self::Granted(granted)) => Self::Granted(Granted {
                winner: granted.winner.name_only(),
                runners_up: granted.runners_up.into_iter().map(Ranked::name_only).collect(),
                ..granted
            }),
            // What would have been enough is what `Names` is for.
            (Visibility::Names, refused) => refused,
            // The requester is told its provider in any case.
            (Visibility::Counts, Self::Granted(granted)) => Self::Granted(Granted {
                winner: granted.winner.name_only(),
                runners_up: Vec::new(),
                ..granted
            }),
            // The allowance is the requester's own affair.
            (Visibility::Counts, Self::Refused(refused)) => {
                Self::Refused(Refused { nearest: Vec::new(), lifts: Vec::new(), ..refused })
            }
        }
    }
}

impl Ranked {
    fn name_only(self) -> Self {
        Self { left: Vec::new(), price: None, ..self }
    }
}

/// Why `pick` was chosen, on the books as they were before it was granted.
#[expect(clippy::too_many_arguments, reason = "one request in its circumstances")]
pub fn granted(
    books: &Books,
    requester: &ClusterId,
    ask: &Ask,
    pick: &Pick,
    policy: &Policy,
    now: Time,
) -> Explanation {
    let question = Question { books, requester, ask, policy, now, grows: false };
    Explanation::Granted(granted::explain(question, &pick.provider))
}

/// Why a reservation is where it is, on the books as they are now; none if it holds nothing. What
/// it holds is taken from its provider's room already, and counts as it is after any resize.
pub fn held(
    books: &Books,
    reservation: &Reservation,
    policy: &Policy,
    now: Time,
) -> Option<Explanation> {
    let grant = reservation.holding()?;
    let ask = &Ask { resources: grant.amounts.clone(), ..reservation.ask.clone() };
    let question =
        Question { books, requester: &reservation.requester, ask, policy, now, grows: false };
    Some(Explanation::Granted(granted::explain_held(question, grant)))
}

/// Why a reservation waits, on the books as they are now.
pub fn waiting(
    books: &Books,
    reservation: &Reservation,
    policy: &Policy,
    now: Time,
) -> Explanation {
    let Reservation { requester, ask, .. } = reservation;
    let told = refused::explain(Question { books, requester, ask, policy, now, grows: false });
    let until = books.held_back_until(reservation, &policy.silence, now);
    Explanation::Refused(match until.map(|until| until.since(now)) {
        None => told,
        // Until then, nothing that is proposed would be enough.
        held_back => Refused { held_back, nearest: Vec::new(), lifts: Vec::new(), ..told },
    })
}

/// Why nobody was chosen.
pub fn refused(
    books: &Books,
    requester: &ClusterId,
    ask: &Ask,
    policy: &Policy,
    now: Time,
) -> Explanation {
    let question = Question { books, requester, ask, policy, now, grows: false };
    Explanation::Refused(refused::explain(question))
}

/// Why a reservation cannot grow by `growth.resources` where it is, which `growth.target` names.
pub(crate) fn growth_refused(
    books: &Books,
    requester: &ClusterId,
    growth: &Ask,
    policy: &Policy,
    now: Time,
) -> Explanation {
    let question = Question { books, requester, ask: growth, policy, now, grows: true };
    let mut told = refused::explain(question);
    // Another target is no way out.
    told.lifts.retain(|lift| lift.filter != Filter::Target);
    Explanation::Refused(told)
}
