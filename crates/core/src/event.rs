//! What the log remembers: facts that were decided, each enough to change the ledger alone.
//!
//! An event carries every figure that its effect needs, so that folding needs no market, no policy
//! and no clock. A grant also carries its [`Basis`]: what the provider had said when it was chosen,
//! so that anyone can judge the decision later.

mod basis;

use alloc::{boxed::Box, string::String, vec, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::id::{ClusterId, Generation, Key, ReservationId};
use crate::reservation::{Actor, Ask, Confirmation, Hindrance, Reason};
use crate::resources::{Limits, Resources};
use crate::time::Time;

pub use basis::Basis;
pub(crate) use basis::Ground;

impl Event {
    /// The single steps that it stands for, when it is in a record of time `at`.
    pub fn steps(&self, at: Time) -> Vec<Self> {
        let Self::Reserved {
            id,
            requester,
            key,
            ask,
            priority,
            provider,
            expires_at,
            activate_by,
            confirms,
            basis,
        } = self.clone()
        else {
            return vec![self.clone()];
        };
        let amounts = ask.resources.clone();
        let requested = Self::Requested { id, requester, key, ask, priority, until: at };
        vec![
            requested,
            Self::Granted { id, provider, amounts, expires_at, activate_by, confirms, basis },
        ]
    }

    /// The reservation that it is about, if it is about one.
    pub fn reservation(&self) -> Option<ReservationId> {
        match self {
            Self::Requested { id, .. }
            | Self::Reserved { id, .. }
            | Self::Granted { id, .. }
            | Self::Activated { id }
            | Self::Renewed { id, .. }
            | Self::Resized { id, .. }
            | Self::Acknowledged { id, .. }
            | Self::Ending { id, .. }
            | Self::Ended { id, .. }
            | Self::Adopted { id, .. } => Some(*id),
            _ => None,
        }
    }

    /// The cluster that an operator or recovery decided about.
    pub fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Self::Cordoned { cluster, .. }
            | Self::Uncordoned { cluster, .. }
            | Self::Capped { cluster, .. }
            | Self::Lost { cluster, .. }
            | Self::Returned { cluster }
            | Self::Reconciled { cluster, .. } => Some(cluster),
            _ => None,
        }
    }
}

/// What a revocation names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// Every certificate of a cluster.
    Cluster(ClusterId),
    /// One certificate, by its serial number in lower-case hex.
    Serial(String),
}

/// Who did it and why: what every operator's event carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Who.
    pub by: Actor,
    /// Why, in their words.
    pub why: String,
}

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// A reservation exists and waits.
    Requested {
        /// Its name.
        id: ReservationId,
        /// Who asked.
        requester: ClusterId,
        /// Under which key.
        key: Key,
        /// What.
        ask: Ask,
        /// The priority that policy lets it have.
        priority: i32,
        /// The end of its patience.
        until: Time,
    },
    /// A request that was granted at once: a `Requested` and its `Granted` in one, because almost
    /// every reservation begins like this.
    Reserved {
        /// Its name.
        id: ReservationId,
        /// Who asked.
        requester: ClusterId,
        /// Under which key.
        key: Key,
        /// What; all of it is granted.
        ask: Ask,
        /// The priority that policy lets it have.
        priority: i32,
        /// Where.
        provider: ClusterId,
        /// When it ends by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Time>,
        /// When the requester must have confirmed use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        activate_by: Option<Time>,
        /// Whether the provider's agent confirms.
        confirms: bool,
        /// On what ground.
        basis: Basis,
    },
    /// A provider holds what waited.
    Granted {
        /// Which.
        id: ReservationId,
        /// Where.
        provider: ClusterId,
        /// How much.
        amounts: Resources,
        /// When it ends by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Time>,
        /// When the requester must have confirmed use.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        activate_by: Option<Time>,
        /// Whether the provider's agent confirms.
        confirms: bool,
        /// On what ground.
        basis: Basis,
    },
    /// The requester confirmed use.
    Activated {
        /// Which.
        id: ReservationId,
    },
    /// It ends at another time.
    Renewed {
        /// Which.
        id: ReservationId,
        /// When it ends now.
        expires_at: Option<Time>,
    },
    /// The amounts change: growth is held at once, a shrink when the provider confirms.
    Resized {
        /// Which.
        id: ReservationId,
        /// What both sides are told now.
        amounts: Resources,
        /// On what ground.
        basis: Basis,
    },
    /// The provider confirmed an instruction.
    Acknowledged {
        /// Which.
        id: ReservationId,
        /// Up to which generation.
        generation: Generation,
    },
    /// Both sides are told to take it down.
    Ending {
        /// Which.
        id: ReservationId,
        /// Why.
        reason: Reason,
        /// Who asked for it.
        by: Actor,
        /// What kept the clusters apart, if that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hindrance: Option<Box<Hindrance>>,
    },
    /// It is over and holds nothing.
    Ended {
        /// Which.
        id: ReservationId,
        /// Why; where an `Ending` came before, the same.
        reason: Reason,
        /// Who asked for it.
        by: Actor,
        /// What is known of the provider.
        confirmation: Confirmation,
        /// What kept the clusters apart, if that is why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hindrance: Option<Box<Hindrance>>,
    },
    /// The provider reports a grant that a restored ledger had forgotten, or knew as it was before.
    Adopted {
        /// Which.
        id: ReservationId,
        /// For whom.
        requester: ClusterId,
        /// Where.
        provider: ClusterId,
        /// How much.
        amounts: Resources,
        /// The generation that the provider knows.
        generation: Generation,
        /// When it ends by itself.
        expires_at: Option<Time>,
    },
    /// A key was released before its request arrived: a tombstone.
    KeyReleased {
        /// Whose.
        requester: ClusterId,
        /// Which.
        key: Key,
    },
    /// Ended reservations with their keys, and old tombstones, are given up.
    Forgotten {
        /// Which reservations.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reservations: Vec<ReservationId>,
        /// Which tombstones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tombstones: Vec<(ClusterId, Key)>,
    },
    /// Nothing new is granted on this cluster.
    Cordoned {
        /// Which.
        cluster: ClusterId,
        /// Whether what it lends is taken back as well.
        drain: bool,
        /// Who and why.
        note: Note,
    },
    /// It takes part again.
    Uncordoned {
        /// Which.
        cluster: ClusterId,
        /// Who and why.
        note: Note,
    },
    /// The most that this cluster lends in all; no bound lifts the cap.
    Capped {
        /// Which.
        cluster: ClusterId,
        /// How much.
        limits: Limits,
        /// Who and why.
        note: Note,
    },
    /// A certificate, or all of a cluster's, is no longer believed.
    Revoked {
        /// Which.
        subject: Subject,
        /// Who and why.
        note: Note,
    },
    /// It is believed again.
    Reinstated {
        /// Which.
        subject: Subject,
        /// Who and why.
        note: Note,
    },
    /// The provider is given up: what it lent ends without its word.
    Lost {
        /// Which.
        cluster: ClusterId,
        /// Who and why.
        note: Note,
    },
    /// A provider that was given up is back.
    Returned {
        /// Which.
        cluster: ClusterId,
    },
    /// The log was restored from a backup: every provider must report before it lends again.
    Restored {
        /// Who and why.
        note: Note,
    },
    /// A provider has reported after a restore, or an operator vouched for it.
    Reconciled {
        /// Which.
        cluster: ClusterId,
        /// Who and why.
        note: Note,
    },
    /// An operator confirmed a wall clock that was far ahead.
    ClockConfirmed {
        /// Who and why.
        note: Note,
    },
}
