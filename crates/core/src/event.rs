//! What the log remembers: facts that were decided, each enough to change the ledger alone.
//!
//! An event carries every figure that its effect needs, so that folding needs no market, no policy
//! and no clock. A grant also carries its [`Basis`]: what the provider had said when it was chosen,
//! so that anyone can judge the decision later.

use alloc::{boxed::Box, string::String, vec, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::advertisement::Number;
use crate::id::{ClusterId, Generation, Key, ReservationId};
use crate::reservation::{Actor, Ask, Confirmation, Hindrance, Reason};
use crate::resources::{Limits, Resources};
use crate::time::{Span, Time};

/// What was known of the provider when capacity was taken from it.
///
/// Room is `allocatable − allocated − (held − covered) − ghosts`, where `held` is what the ledger
/// held there just before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// Which advertisement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// When the broker received it.
    pub received_at: Time,
    /// From which age on it would not have been believed.
    pub suspect_after: Span,
    /// What it said can be given to pods.
    pub allocatable: Resources,
    /// What it said pods take.
    pub allocated: Resources,
    /// The part of `allocated` that is inside what the ledger holds: counted once.
    #[serde(default, skip_serializing_if = "Resources::is_zero")]
    pub covered: Resources,
    /// What the provider still keeps for grants that the ledger does not hold.
    #[serde(default, skip_serializing_if = "Resources::is_zero")]
    pub ghosts: Resources,
    /// It did not say which grants it keeps: pods inside them are somewhere in `allocated`.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unreported: bool,
}

impl Basis {
    /// What is free on the provider while the ledger holds `held` there.
    pub fn room(&self, held: &Resources) -> Resources {
        self.ground().room(held)
    }

    /// How much the provider has too little for what is taken there.
    pub fn shortage(&self, held: &Resources) -> Resources {
        self.ground().shortage(held)
    }

    fn ground(&self) -> Ground<'_> {
        let Self { allocatable, allocated, covered, ghosts, unreported, .. } = self;
        Ground { allocatable, allocated, covered, ghosts, unreported: *unreported }
    }
}

/// The amounts of a [`Basis`], wherever they are kept.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) allocatable: &'a Resources,
    pub(crate) allocated: &'a Resources,
    pub(crate) covered: &'a Resources,
    pub(crate) ghosts: &'a Resources,
    pub(crate) unreported: bool,
}

impl Ground<'_> {
    /// What is free on the provider while the ledger holds `held` there.
    pub(crate) fn room(&self, held: &Resources) -> Resources {
        let beyond_use = held.minus_floor(self.covered);
        let taken = beyond_use.checked_add(self.ghosts);
        if let Ok(taken) = taken.and_then(|sum| sum.checked_add(self.allocated)) {
            return self.allocatable.minus_floor(&taken);
        }
        // Of something more than 64 bits are taken: none of that is free, whatever of the rest.
        let free = self.allocatable.minus_floor(self.allocated);
        free.minus_floor(self.ghosts).minus_floor(&beyond_use)
    }

    /// How much the provider has too little for what is taken there, of each resource of which the
    /// ledger holds something: nothing, unless it shrank, or its own pods grew, below what is held.
    /// Of a provider that does not report its grants, all pods may be inside them: only the larger of
    /// both is surely taken.
    pub(crate) fn shortage(&self, held: &Resources) -> Resources {
        held.iter().fold(Resources::default(), |short, (kind, amount)| {
            let allocated = self.allocated.get(&kind);
            let taken = if self.unreported {
                u128::from(amount.max(allocated))
            } else {
                u128::from(amount.saturating_sub(self.covered.get(&kind)))
                    .saturating_add(u128::from(self.ghosts.get(&kind)))
                    .saturating_add(u128::from(allocated))
            };
            let above = taken.saturating_sub(u128::from(self.allocatable.get(&kind)));
            match u64::try_from(above).unwrap_or(u64::MAX) {
                0 => short,
                // There are no more kinds than are held.
                above => short.clone().with(kind, above).unwrap_or(short),
            }
        })
    }
}

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
