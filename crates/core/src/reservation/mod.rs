//! Stage 8 of 12 · reserve — one promise, its phases, and every legal move between them.
//!
//! Upstream: `decision` picked a provider. Downstream: `log` makes the events durable.
//!
//! `Pending → Reserved → Active → Releasing → Released | Failed`. What a reservation takes from its
//! provider is `held`; it counts from `Reserved` to the end of `Releasing`, so capacity comes back
//! only when the provider has confirmed, is old and never will, or is lost. The table in [`Move`]
//! is the only place that says which move is legal in which phase.

mod ask;
mod hindrance;

use alloc::{boxed::Box, string::String};
use core::{fmt, iter};

use serde::{Deserialize, Serialize};

use crate::bugs::{Bug, planted};
use crate::id::{ClusterId, Generation, Key, ReservationId, Revision};
use crate::resources::Resources;
use crate::time::Time;

pub use ask::{Ask, AskError};
pub use hindrance::Hindrance;

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// A cluster's agent, by its certificate.
    Cluster(ClusterId),
    /// A person with the operator role, by name.
    Operator(String),
    /// The broker itself: time, sweep, recovery.
    Broker,
}

/// Why a reservation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// The requester no longer needs it.
    ReleasedByRequester,
    /// The provider took it back.
    WithdrawnByProvider,
    /// An operator ended it.
    ReleasedByOperator,
    /// Its time was over.
    Expired,
    /// Its provider is being emptied.
    Drained,
    /// Its provider was given up.
    ProviderLost,
    /// The clusters could not be joined.
    PeeringFailed,
    /// The requester did not confirm use in time.
    NeverActivated,
    /// Nothing fitted while it waited.
    WaitOver,
}

impl Reason {
    /// The phase that an ending for this reason leads to.
    pub fn outcome(self) -> Phase {
        match self {
            Self::ReleasedByRequester
            | Self::ReleasedByOperator
            | Self::Expired
            | Self::Drained => Phase::Released,
            Self::WithdrawnByProvider
            | Self::ProviderLost
            | Self::PeeringFailed
            | Self::NeverActivated
            | Self::WaitOver => Phase::Failed,
        }
    }
}

/// How sure we are that the provider holds nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confirmation {
    /// The provider said that it is gone.
    Confirmed,
    /// An old provider, which never says.
    Unconfirmed,
    /// The provider was given up.
    ProviderLost,
    /// Nothing had been held.
    NothingHeld,
}

/// What a provider gives to a requester.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Who lends.
    pub provider: ClusterId,
    /// What both sides are told.
    pub amounts: Resources,
    /// What is taken from the provider: `amounts`, and until a shrink is confirmed what it was.
    pub held: Resources,
    /// When.
    pub granted_at: Time,
    /// When it ends by itself.
    pub expires_at: Option<Time>,
    /// When the requester must have confirmed use.
    pub activate_by: Option<Time>,
    /// The number of the instructions that say all this.
    pub generation: Generation,
    /// The last generation that the provider confirmed.
    pub acknowledged: Generation,
    /// Whether the provider's agent confirms at all.
    pub confirms: bool,
}

/// The beginning of the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why.
    pub reason: Reason,
    /// Who asked for it.
    pub by: Actor,
    /// When.
    pub at: Time,
    /// What kept the clusters apart, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<Box<Hindrance>>,
}

/// Where a reservation stands, with what is true only there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Waits until then for something to fit.
    Pending {
        /// The end of its patience.
        until: Time,
    },
    /// Held, and both sides are told.
    Reserved(Grant),
    /// The requester has confirmed that it is usable.
    Active(Grant),
    /// Both sides are told to take it down; it still counts.
    Releasing(Grant, Ending),
    /// Over; kept for a day so that a repeat finds its answer.
    Ended {
        /// The grant there was, if any.
        grant: Option<Grant>,
        /// Why it ended.
        ending: Ending,
        /// When it was over.
        at: Time,
        /// What is known about the provider.
        confirmation: Confirmation,
    },
}

/// The name of a state, as the Go system has it, and `Releasing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Waiting for something to fit.
    Pending,
    /// Held.
    Reserved,
    /// In use.
    Active,
    /// Being taken down.
    Releasing,
    /// Ended in order.
    Released,
    /// Ended out of order.
    Failed,
}

impl Phase {
    /// All of them, in the order of a life.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Reserved,
        Self::Active,
        Self::Releasing,
        Self::Released,
        Self::Failed,
    ];

    /// Nothing moves any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Released | Self::Failed)
    }

    /// It takes capacity from a provider.
    pub fn holds(self) -> bool {
        matches!(self, Self::Reserved | Self::Active)
            || self == Self::Releasing && !planted(Bug::ForgetsReleasing)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pending => "Pending",
            Self::Reserved => "Reserved",
            Self::Active => "Active",
            Self::Releasing => "Releasing",
            Self::Released => "Released",
            Self::Failed => "Failed",
        })
    }
}

/// What can happen to a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Move {
    /// A provider was found.
    Grant,
    /// The requester confirmed use.
    Activate,
    /// It runs longer, or shorter.
    Renew,
    /// The amounts change.
    Resize,
    /// The provider confirmed a generation.
    Acknowledge,
    /// Both sides are told to take it down.
    BeginEnd,
    /// It is over.
    End,
    /// Its memory is given up.
    Forget,
}

impl Move {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Grant,
        Self::Activate,
        Self::Renew,
        Self::Resize,
        Self::Acknowledge,
        Self::BeginEnd,
        Self::End,
        Self::Forget,
    ];

    /// The whole table: is this move legal in `phase`?
    pub fn is_legal_in(self, phase: Phase) -> bool {
        use Phase::{Active, Failed, Pending, Released, Releasing, Reserved};
        match self {
            Self::Grant => matches!(phase, Pending),
            Self::Activate => matches!(phase, Reserved),
            Self::Renew | Self::Resize | Self::BeginEnd => matches!(phase, Reserved | Active),
            Self::Acknowledge => matches!(phase, Reserved | Active | Releasing),
            Self::End => matches!(phase, Pending | Reserved | Active | Releasing),
            Self::Forget => matches!(phase, Released | Failed),
        }
    }
}

/// One promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its name.
    pub id: ReservationId,
    /// Who asked.
    pub requester: ClusterId,
    /// Under which key; an adopted one has none.
    pub key: Option<Key>,
    /// What was asked.
    pub ask: Ask,
    /// The priority that policy let it have.
    pub priority: i32,
    /// When.
    pub requested_at: Time,
    /// Its place in the order of arrival.
    pub arrival: u64,
    /// Where it stands.
    pub state: State,
    /// The revision that last changed it.
    pub changed: Revision,
}

impl Reservation {
    /// The name of its state.
    pub fn phase(&self) -> Phase {
        match &self.state {
            State::Pending { .. } => Phase::Pending,
            State::Reserved(_) => Phase::Reserved,
            State::Active(_) => Phase::Active,
            State::Releasing(..) => Phase::Releasing,
            State::Ended { ending, .. } => ending.reason.outcome(),
        }
    }

    /// The grant, also of one that has ended.
    pub fn grant(&self) -> Option<&Grant> {
        match &self.state {
            State::Pending { .. } => None,
            State::Reserved(grant) | State::Active(grant) | State::Releasing(grant, _) => {
                Some(grant)
            }
            State::Ended { grant, .. } => grant.as_ref(),
        }
    }

    /// The grant while it takes capacity from its provider.
    pub fn holding(&self) -> Option<&Grant> {
        if self.phase().holds() { self.grant() } else { None }
    }

    /// The requester, and the provider if there is one.
    pub fn sides(&self) -> impl Iterator<Item = &ClusterId> {
        iter::once(&self.requester).chain(self.grant().map(|grant| &grant.provider))
    }

    /// The next time at which something is due by itself.
    pub fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Pending { until } => Some(*until),
            State::Reserved(grant) => grant.activate_by.into_iter().chain(grant.expires_at).min(),
            State::Active(grant) => grant.expires_at,
            State::Releasing(..) | State::Ended { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_table_of_moves_reads_as_the_design_says() {
        let rows: Vec<String> = Phase::ALL
            .iter()
            .map(|phase| {
                let legal: Vec<_> = Move::ALL
                    .iter()
                    .filter(|step| step.is_legal_in(*phase))
                    .map(|step| alloc::format!("{step:?}"))
                    .collect();
                alloc::format!("{phase}: {}", legal.join(" "))
            })
            .collect();
        assert_eq!(
            rows,
            [
                "Pending: Grant End",
                "Reserved: Activate Renew Resize Acknowledge BeginEnd End",
                "Active: Renew Resize Acknowledge BeginEnd End",
                "Releasing: Acknowledge End",
                "Released: Forget",
                "Failed: Forget",
            ]
        );
    }

    #[test]
    fn a_terminal_phase_holds_nothing_and_moves_nowhere() {
        for phase in Phase::ALL.into_iter().filter(|phase| phase.is_terminal()) {
            assert!(!phase.holds());
            let legal: Vec<_> =
                Move::ALL.into_iter().filter(|step| step.is_legal_in(phase)).collect();
            assert_eq!(legal, [Move::Forget]);
        }
    }
}
