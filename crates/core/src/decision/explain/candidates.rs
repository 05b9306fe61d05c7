//! What every single cluster is to a request: for operators, a page at a time.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::granted::{price, terms};
use super::{Left, Price};
use crate::books::Books;
use crate::decision::Constraint;
use crate::decision::filter::{Filter, Known, Question};
use crate::id::ClusterId;
use crate::policy::Policy;
use crate::reservation::Ask;
use crate::resources::Resources;
use crate::time::{Span, Time};

/// One cluster and what it is to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Who.
    pub cluster: ClusterId,
    /// What it is.
    pub verdict: Judgement,
}

/// What one cluster is to a request, with the figures behind it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Judgement {
    /// It can be chosen.
    Fits {
        /// What it keeps free of each resource asked for.
        left: Vec<Left>,
        /// What it takes for it, where the price decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        price: Option<Price>,
    },
    /// It cannot.
    Refused {
        /// The first reason.
        filter: Filter,
        /// What lies behind it.
        #[serde(default)]
        detail: Detail,
    },
}

/// What lies behind a reason, as far as there is something to add.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Detail {
    /// What it is short of.
    #[serde(skip_serializing_if = "Resources::is_zero")]
    pub short: Resources,
    /// The constraints that its labels do not meet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Constraint>,
    /// How long it has been silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_for: Option<Span>,
}

/// What each cluster after `after` is to a request, by name, at most `limit` of them.
#[expect(clippy::too_many_arguments, reason = "one request in its circumstances")]
pub fn candidates(
    books: &Books,
    requester: &ClusterId,
    ask: &Ask,
    policy: &Policy,
    now: Time,
    after: Option<&ClusterId>,
    limit: usize,
) -> Vec<Candidate> {
    let question = Question { books, requester, ask, policy, now, grows: false };
    let page = books.index().rows(after).filter_map(|(cluster, _)| Known::of(books, cluster));
    page.take(limit).map(|known| judge(question, known)).collect()
}

fn judge(question: Question<'_>, known: Known<'_>) -> Candidate {
    let resources = &question.ask.resources;
    let verdict = match question.reasons(known).next() {
        None => Judgement::Fits {
            left: terms(resources, known.row),
            price: price(question.strategy(), resources, known.row),
        },
        Some(filter) => Judgement::Refused { filter, detail: detail(question, filter, known) },
    };
    Candidate { cluster: known.cluster.clone(), verdict }
}

fn detail(question: Question<'_>, filter: Filter, known: Known<'_>) -> Detail {
    let none = Detail::default();
    match filter {
        Filter::Fit => {
            Detail { short: question.ask.resources.minus_floor(&known.row.room), ..none }
        }
        Filter::Overcommitted => Detail { short: question.books.shortage(known.entry), ..none },
        Filter::Labels => Detail { unmet: question.unmet(&known).cloned().collect(), ..none },
        Filter::Stale | Filter::Suspect => {
            Detail { silent_for: Some(question.now.since(known.entry.received_at)), ..none }
        }
        _ => none,
    }
}
