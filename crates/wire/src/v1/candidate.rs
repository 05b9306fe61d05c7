//! What every single cluster is to a request: for operators, a page at a time.

use serde::Serialize;
use sublet_core::decision::explain::{self, Judgement};
use sublet_core::decision::filter::Filter;
use sublet_core::id::ClusterId;
use sublet_core::reservation::Ask;

use super::{Amounts, Constraint, Left, Price, ReservationRequest};
use crate::decode::object;
use crate::problem::Invalid;

/// A request that somebody else might make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CandidateRequest {
    /// Who would ask.
    #[serde(rename = "requesterID")]
    pub requester_id: String,
    /// For what.
    pub request: ReservationRequest,
}

/// One cluster and what it is to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Who.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// Whether it can be chosen.
    pub fits: bool,
    /// What it keeps free of each resource asked for, if it can.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    /// What it takes for it, where the price decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The first reason against it, if it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it is short of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short: Option<Amounts>,
    /// The constraints that its labels do not meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Constraint>,
    /// How long it has been silent, as a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_for: Option<String>,
}

/// A page of candidates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CandidateList {
    /// By name.
    pub candidates: Vec<Candidate>,
    /// Where the next page begins: send it as `after`. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

object!(CandidateRequest { "requesterID" => requester_id, "request" => request });
object!(Candidate {
    "clusterID" => cluster_id,
    "fits" => fits,
    "left" => left,
    "price" => price,
    "filter" => filter,
    "text" => text,
    "short" => short,
    "unmet" => unmet,
    "silentFor" => silent_for,
});
object!(CandidateList { "candidates" => candidates, "next" => next });

impl CandidateRequest {
    /// Who would ask, and for what.
    pub fn to_core(&self) -> Result<(ClusterId, Ask), Invalid> {
        let requester = self.requester_id.parse();
        let requester =
            requester.map_err(|error| Invalid::field("requesterID".to_owned(), error))?;
        Ok((requester, self.request.to_core()?))
    }
}

impl From<&explain::Candidate> for Candidate {
    fn from(candidate: &explain::Candidate) -> Self {
        let named = Self { cluster_id: candidate.cluster.to_string(), ..Self::default() };
        match &candidate.verdict {
            Judgement::Fits { left, price } => Self {
                fits: true,
                left: left.iter().map(Left::from).collect(),
                price: price.as_ref().map(Price::from),
                ..named
            },
            Judgement::Refused { filter, detail } => Self {
                filter: Some(filter_name(*filter).to_owned()),
                text: Some(filter.as_str().to_owned()),
                short: (!detail.short.is_zero()).then(|| (&detail.short).into()),
                unmet: detail.unmet.iter().map(Constraint::from).collect(),
                silent_for: detail.silent_for.map(|span| span.to_string()),
                ..named
            },
        }
    }
}

/// A reason not to choose a cluster, as the wire names it.
pub(crate) fn filter_name(filter: Filter) -> &'static str {
    match filter {
        Filter::Itself => "itself",
        Filter::Unknown => "unknown",
        Filter::Target => "target",
        Filter::NotLending => "notLending",
        Filter::Cordoned => "cordoned",
        Filter::Lost => "lost",
        Filter::AwaitingReport => "awaitingReport",
        Filter::Revoked => "revoked",
        Filter::Crowded => "crowded",
        Filter::Overcommitted => "overcommitted",
        Filter::Policy => "policy",
        Filter::Backend => "backend",
        Filter::Labels => "labels",
        Filter::Stale => "stale",
        Filter::Fit => "fit",
        Filter::Suspect => "suspect",
    }
}
