//! One promise as its sides see it, lists of them, and what can be said about one.

use serde::Serialize;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Instruction, Side};
use sublet_core::reservation as core;
use sublet_core::resources::Resources;
use sublet_core::time::Span;

use super::reservation_text::{actor, confirmation, message, reason};
use super::{Explanation, Quantities, request};
use crate::Timestamp;
use crate::decode::object;
use crate::problem::Invalid;

/// Who reads it, and so what of it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A Go agent, or whoever uses its routes: its fields alone, and `Releasing` as `Active`.
    Go,
    /// The provider: everything but what is the requester's own.
    Provider,
    /// The requester, or an operator: everything.
    Full,
}

/// One promise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// Its name.
    pub id: String,
    /// Who asked.
    #[serde(rename = "requesterID")]
    pub requester_id: String,
    /// Who lends; empty while it waits.
    #[serde(rename = "targetClusterID")]
    pub target_cluster_id: String,
    /// How much.
    pub requested_resources: Quantities,
    /// Where it stands.
    pub status: Status,
    /// When it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// The key that it was asked for under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The priority that policy let it have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// For how long it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The number of its instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// The last number that the provider confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<u32>,
    /// What is taken from the provider, where a shrink is not confirmed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Quantities>,
    /// What pods inside of it take now, as its provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Quantities>,
    /// The revision of the log that last changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Why it was granted there, if that was asked, or why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// Where a reservation stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `Pending`, `Reserved`, `Active`, `Releasing`, `Released` or `Failed`.
    #[cfg_attr(feature = "openapi", schemars(extend("enum" = super::PHASES)))]
    pub phase: String,
    /// For people.
    pub message: String,
    /// When it was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_at: Option<Timestamp>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When the requester must have confirmed use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activate_by: Option<Timestamp>,
    /// How long it waits for something to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// Why it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What kept the clusters apart, if that is why: one of the reasons that `docs/peering.md` lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Who ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// When its end began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What is known of the provider after the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<String>,
}

/// A page of reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ReservationList {
    /// By id.
    pub reservations: Vec<Reservation>,
    /// Where the next page begins: send it as `after`. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What would happen to a request now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Always true: nothing was reserved.
    pub dry_run: bool,
    /// Who would lend.
    #[serde(rename = "targetClusterID")]
    pub target_cluster_id: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// Let it run for this long from now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Renewal {
    /// As a Go duration; without it, the operator's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

/// Change its amounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Resizing {
    /// To what.
    pub requested_resources: Quantities,
}

/// The clusters cannot be joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Failed {
    /// What happened and what to do, for people; what is too long is cut.
    #[serde(default)]
    pub why: String,
    /// What is in the way, in one word for programs: one of the reasons that `docs/peering.md` lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
}

object!(Reservation {
    "id" => id,
    "requesterID" => requester_id,
    "targetClusterID" => target_cluster_id,
    "requestedResources" => requested_resources,
    "status" => status,
    "createdAt" => created_at,
    "key" => key,
    "priority" => priority,
    "duration" => duration,
    "generation" => generation,
    "acknowledged" => acknowledged,
    "held" => held,
    "used" => used,
    "revision" => revision,
    "explanation" => explanation,
});
object!(Status {
    "phase" => phase,
    "message" => message,
    "reservedAt" => reserved_at,
    "expiresAt" => expires_at,
    "activateBy" => activate_by,
    "waitsUntil" => waits_until,
    "reason" => reason,
    "obstacle" => obstacle,
    "endedBy" => ended_by,
    "endingAt" => ending_at,
    "endedAt" => ended_at,
    "confirmation" => confirmation,
});
object!(ReservationList { "reservations" => reservations, "next" => next });
object!(Decision {
    "dryRun" => dry_run,
    "targetClusterID" => target_cluster_id,
    "explanation" => explanation,
});
object!(Renewal { "duration" => duration });
object!(Resizing { "requestedResources" => requested_resources });
object!(Failed { "why" => why, "obstacle" => obstacle });

impl Failed {
    /// As much of it as is kept.
    pub fn to_core(&self) -> Option<core::Hindrance> {
        core::Hindrance::new(self.obstacle.as_deref().unwrap_or_default(), &self.why)
    }
}

impl Renewal {
    /// How long it is to run.
    pub fn to_core(&self) -> Result<Option<Span>, Invalid> {
        request::duration(self.duration.as_deref())
    }
}

impl Resizing {
    /// The new amounts.
    pub fn to_core(&self) -> Result<Resources, Invalid> {
        request::asked(&self.requested_resources)
    }
}

impl Reservation {
    /// As `view` may see it.
    pub fn of(known: &core::Reservation, view: View) -> Self {
        let grant = known.grant();
        let amounts = grant.map_or(&known.ask.resources, |grant| &grant.amounts);
        let mut shown = Self {
            id: known.id.to_string(),
            requester_id: known.requester.to_string(),
            target_cluster_id: grant.map(|grant| grant.provider.to_string()).unwrap_or_default(),
            requested_resources: amounts.into(),
            status: Status::of(known, view),
            created_at: Some(known.requested_at.into()),
            ..Self::default()
        };
        if view != View::Go {
            shown.priority = Some(known.priority);
            shown.generation = grant.map(|grant| grant.generation.0);
            shown.acknowledged = grant.map(|grant| grant.acknowledged.0);
            let still_held = known.holding().filter(|grant| grant.held != grant.amounts);
            shown.held = still_held.map(|grant| (&grant.held).into());
            shown.revision = Some(known.changed.0);
        }
        if view == View::Full {
            shown.key = known.key.as_ref().map(ToString::to_string);
            shown.duration = known.ask.duration.map(|span| span.to_string());
        }
        shown
    }

    /// What a Go provider is told: what it must hold as `Reserved`, also when it is in use; what
    /// is being taken down not at all.
    pub fn instruction_for_go(known: &core::Reservation) -> Option<Self> {
        let is_kept = matches!(known.phase(), core::Phase::Reserved | core::Phase::Active);
        is_kept.then(|| {
            let mut shown = Self::of(known, View::Go);
            "Reserved".clone_into(&mut shown.status.phase);
            shown
        })
    }

    /// The same from an instruction alone, which does not say when it was asked for.
    pub fn of_instruction(told: &Instruction, to: &ClusterId) -> Self {
        let (requester, provider) = match told.side {
            Side::Provider => (&told.peer, to),
            Side::Requester => (to, &told.peer),
        };
        Self {
            id: told.reservation.to_string(),
            requester_id: requester.to_string(),
            target_cluster_id: provider.to_string(),
            requested_resources: (&told.amounts).into(),
            status: Status {
                phase: "Reserved".to_owned(),
                message: format!("Resources locked in cluster {provider}"),
                expires_at: told.expires_at.map(Timestamp::from),
                ..Status::default()
            },
            ..Self::default()
        }
    }

    /// The phase, if it is one that we know.
    pub fn phase(&self) -> Option<core::Phase> {
        core::Phase::ALL.into_iter().find(|phase| phase.to_string() == self.status.phase)
    }
}

impl Status {
    fn of(known: &core::Reservation, view: View) -> Self {
        let phase = match known.phase() {
            core::Phase::Releasing if view == View::Go => core::Phase::Active,
            phase => phase,
        };
        let grant = known.grant();
        let mut status = Self {
            phase: phase.to_string(),
            message: message(known, view),
            reserved_at: grant.map(|grant| grant.granted_at.into()),
            expires_at: grant.and_then(|grant| grant.expires_at).map(Timestamp::from),
            ..Self::default()
        };
        if view == View::Go {
            return status;
        }
        match &known.state {
            core::State::Pending { until } => status.waits_until = Some((*until).into()),
            core::State::Reserved(grant) => {
                status.activate_by = grant.activate_by.map(Timestamp::from);
            }
            core::State::Active(_) => {}
            core::State::Releasing(_, ending) => status.set_ending(ending),
            core::State::Ended { ending, at, confirmation: known, .. } => {
                status.set_ending(ending);
                status.ended_at = Some((*at).into());
                status.confirmation = Some(confirmation(*known).to_owned());
            }
        }
        status
    }

    fn set_ending(&mut self, ending: &core::Ending) {
        self.reason = Some(reason(ending.reason).to_owned());
        let word = ending.hindrance.as_ref().map(|why| why.word()).unwrap_or_default();
        self.obstacle = Some(word.to_owned()).filter(|word| !word.is_empty());
        self.ended_by = Some(actor(&ending.by));
        self.ending_at = Some(ending.at.into());
    }
}
