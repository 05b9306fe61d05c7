//! Stage 6 of 12 · account — the hard state: every promise, and what it takes from whom.
//!
//! Upstream: `engine` sequences commands. Downstream: `decision` asks what is free.
//!
//! The reservations are the truth. What is held, which deadlines come next, who waits: all of it is
//! derived from them in `put` and nowhere else, so a sum cannot drift from its parts.
//! [`Ledger::apply`] is total: any event on any ledger either changes it completely or is refused
//! and changes nothing. It hands back a [`Change`], because the engine plans ahead of the disk and
//! must be able to take back what another broker's record made untrue.

mod apply;
mod derived;
mod image;
mod moves;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{sync::Arc, vec::Vec};
use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::bugs::{Bug, planted};
use crate::event::{Note, Subject};
use crate::id::{ClusterId, Key, ReservationId, Revision};
use crate::reservation::{Move, Phase, Reservation};
use crate::resources::{self, Limits, Resources};
use crate::time::Time;

/// Why an event cannot be applied: the log and the ledger disagree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The reservation is not there.
    #[error("reservation {0} is not in the ledger")]
    Unknown(ReservationId),
    /// The reservation is there already.
    #[error("reservation {0} is in the ledger already")]
    Exists(ReservationId),
    /// The key is taken.
    #[error("key {1} of {0} is bound already")]
    KeyTaken(ClusterId, Key),
    /// There is no such tombstone.
    #[error("key {1} of {0} has no tombstone")]
    NoTombstone(ClusterId, Key),
    /// The table of moves does not have it.
    #[error("reservation {id} is {phase}: {step:?} is not a legal move")]
    Illegal {
        /// Which.
        id: ReservationId,
        /// Where it stands.
        phase: Phase,
        /// What was tried.
        step: Move,
    },
    /// The provider would be the requester.
    #[error("reservation {0}: a cluster does not lend to itself")]
    ToItself(ReservationId),
    /// A generation that was never issued or is confirmed already.
    #[error("reservation {0}: this generation is not the one awaited")]
    Generation(ReservationId),
    /// A sum beyond 64 bits.
    #[error(transparent)]
    Amounts(#[from] resources::Error),
    /// Broker time or the revision went back.
    #[error("revision or broker time goes back")]
    Backwards,
}

/// The position of a record: its revision and the broker's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The record's place in the log.
    pub revision: Revision,
    /// The broker's time when it was planned.
    pub time: Time,
}

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// The reservation made under it.
    Reservation(ReservationId),
    /// It was released before it was used, at this time.
    Tombstone(Time),
}

/// What operators decided about a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Standing {
    /// Nothing new is granted here.
    pub cordon: Option<Note>,
    /// What it lends is being taken back.
    pub draining: bool,
    /// The most it lends.
    pub cap: Limits,
    /// It was given up.
    pub lost: Option<Note>,
    /// The revision at which it last reported after a restore, or was vouched for.
    pub reconciled: Option<Revision>,
    /// It was vouched for and has not reported yet: it lends, and what it reports is still adopted.
    pub vouched: bool,
}

/// What one cluster lends and borrows, derived from the reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// What is held on it for others.
    pub lent: Resources,
    /// By which reservations.
    pub lending: BTreeSet<ReservationId>,
    /// What is held elsewhere for it.
    pub borrowed: Resources,
    /// Its live reservations, the waiting ones included.
    pub borrowing: BTreeSet<ReservationId>,
    /// How many of these wait.
    pub waiting: u32,
    /// All remembered reservations with this cluster on either side, by their last change.
    pub changes: BTreeSet<(Revision, ReservationId)>,
    /// Those of them in which it has no live part any more.
    pub over: BTreeSet<ReservationId>,
    /// The clusters on the other side of these, and of how many.
    pub peers: BTreeMap<ClusterId, u32>,
}

impl Account {
    /// All remembered reservations with this cluster on either side, by name, from `from` on: a page of
    /// them costs what it shows and not what there is. Each is in one list alone, so that a new one
    /// is written down once and not twice.
    pub fn remembered(&self, from: ReservationId) -> impl Iterator<Item = ReservationId> + '_ {
        let lists = [&self.lending, &self.borrowing, &self.over];
        let mut lists = lists.map(|list| list.range(from..).copied().peekable());
        core::iter::from_fn(move || {
            let next = lists.iter_mut().filter_map(|list| list.peek().copied()).min()?;
            for list in &mut lists {
                list.next_if_eq(&next);
            }
            Some(next)
        })
    }

    fn is_empty(&self) -> bool {
        self.lending.is_empty() && self.borrowing.is_empty() && self.changes.is_empty()
    }
}

/// The order in which waiting requests are served: priority, then age.
pub type Place = (Reverse<i32>, u64, ReservationId);

/// How to take back one event.
#[derive(Debug)]
pub struct Change {
    before: Stamp,
    arrivals: u64,
    steps: Vec<Undo>,
}

#[derive(Debug)]
enum Undo {
    Reservation(ReservationId, Option<Arc<Reservation>>),
    Key(ClusterId, Key, Option<Bond>),
    Standing(ClusterId, Option<Standing>),
    Revoked(Subject, Option<Note>),
    Restored(Option<Stamp>),
    Horizon(Stamp),
}

/// The hard state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    stamp: Stamp,
    arrivals: u64,
    reservations: BTreeMap<ReservationId, Arc<Reservation>>,
    keys: BTreeMap<ClusterId, BTreeMap<Key, Bond>>,
    standings: BTreeMap<ClusterId, Standing>,
    revoked: BTreeMap<Subject, Note>,
    restored: Option<Stamp>,
    horizon: Stamp,
    accounts: BTreeMap<ClusterId, Account>,
    deadlines: BTreeSet<(Time, ReservationId)>,
    waiting: BTreeSet<Place>,
    /// How many there are in each phase; none is not noted.
    phases: BTreeMap<Phase, u32>,
    ended: BTreeSet<(Time, ReservationId)>,
    tombstones: BTreeSet<(Time, ClusterId, Key)>,
}

/// Reading.
impl Ledger {
    /// The last record that was applied.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// One reservation.
    pub fn reservation(&self, id: ReservationId) -> Option<&Reservation> {
        self.reservations.get(&id).map(Arc::as_ref)
    }

    /// The same, to be kept beyond the next change.
    pub fn share_reservation(&self, id: ReservationId) -> Option<Arc<Reservation>> {
        self.reservations.get(&id).cloned()
    }

    /// All reservations that are remembered, by id, from `from` on.
    pub fn reservations(&self, from: Option<ReservationId>) -> impl Iterator<Item = &Reservation> {
        let range = match from {
            Some(id) => self.reservations.range(id..),
            None => self.reservations.range(..),
        };
        range.map(|(_, reservation)| reservation.as_ref())
    }

    /// What the keys of a requester stand for; none when it has none.
    pub fn keys(&self, requester: &ClusterId) -> Option<&BTreeMap<Key, Bond>> {
        self.keys.get(requester)
    }

    /// What a requester's key stands for.
    pub fn bond(&self, requester: &ClusterId, key: &Key) -> Option<Bond> {
        self.keys(requester)?.get(key).copied()
    }

    /// All keys that are remembered, and what they stand for.
    pub fn bonds(&self) -> impl Iterator<Item = (&ClusterId, &Key, Bond)> {
        let bonds = |(requester, keys)| core::iter::zip(core::iter::repeat(requester), keys);
        self.keys.iter().flat_map(bonds).map(|(requester, (key, bond))| (requester, key, *bond))
    }

    /// How many keys of a requester are remembered, tombstones included.
    pub fn key_count(&self, requester: &ClusterId) -> usize {
        self.keys.get(requester).map_or(0, BTreeMap::len)
    }

    /// What a cluster lends and borrows; none when nothing.
    pub fn account(&self, cluster: &ClusterId) -> Option<&Account> {
        self.accounts.get(cluster)
    }

    /// Is there a reservation between these two, on whichever sides, live or still remembered?
    pub fn have_dealt(&self, one: &ClusterId, other: &ClusterId) -> bool {
        self.account(one).is_some_and(|account| account.peers.contains_key(other))
    }

    /// All clusters that lend or borrow.
    pub fn accounts(&self) -> impl Iterator<Item = (&ClusterId, &Account)> {
        self.accounts.iter()
    }

    /// What operators decided about a cluster; none when nothing.
    pub fn standing(&self, cluster: &ClusterId) -> Option<&Standing> {
        self.standings.get(cluster)
    }

    /// All clusters that operators decided about.
    pub fn standings(&self) -> impl Iterator<Item = (&ClusterId, &Standing)> {
        self.standings.iter()
    }

    /// What is no longer believed, and why.
    pub fn revoked(&self) -> &BTreeMap<Subject, Note> {
        &self.revoked
    }

    /// Is a cluster, whatever its certificate, no longer believed?
    pub fn is_revoked(&self, cluster: &ClusterId) -> bool {
        // Hardly ever is anything revoked, and then the name need not be copied for the search.
        !self.revoked.is_empty() && self.revoked.contains_key(&Subject::Cluster(cluster.clone()))
    }

    /// Where and when a backup was restored last. What was seen before that time may be of another
    /// history, also at a later revision: the restored log gives the same numbers to other records.
    pub fn restored(&self) -> Option<Stamp> {
        self.restored
    }

    /// How far back it can be said what has changed since: to the last change of anything that was
    /// forgotten, and to the time of the first record. Who has seen less, or something before that
    /// time, which was of another log, has to be told everything.
    pub fn horizon(&self) -> Stamp {
        self.horizon
    }

    /// Must this cluster report before anything is granted on it?
    pub fn awaits_report(&self, cluster: &ClusterId) -> bool {
        let restored = self.restored.filter(|_| !planted(Bug::LendsUnreported));
        restored.is_some_and(|restored| {
            let reconciled = self.standing(cluster).and_then(|standing| standing.reconciled);
            reconciled.is_none_or(|at| at < restored.revision)
        })
    }

    /// Has this cluster itself said what it keeps since the last restore, if there was one?
    pub fn has_reported(&self, cluster: &ClusterId) -> bool {
        let vouched = self.standing(cluster).is_some_and(|standing| standing.vouched);
        !vouched && !self.awaits_report(cluster)
    }

    /// Reservations with something due at or before `now`, earliest first.
    pub fn due(&self, now: Time) -> impl Iterator<Item = &Reservation> {
        let due = self.deadlines.iter().take_while(move |(time, _)| *time <= now);
        due.filter_map(|(_, id)| self.reservation(*id))
    }

    /// The next time at which something is due.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(time, _)| *time)
    }

    /// Is there nothing that time could end or forget: no reservation, and with it no key, and no
    /// tombstone?
    pub fn is_untouched_by_time(&self) -> bool {
        self.reservations.is_empty() && self.tombstones.is_empty()
    }

    /// How many of the reservations that are remembered are in this phase.
    pub fn count(&self, phase: Phase) -> u32 {
        self.phases.get(&phase).copied().unwrap_or_default()
    }

    /// How many wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// The waiting reservations after `after`, in the order in which they are served.
    pub fn waiting(&self, after: Option<Place>) -> impl Iterator<Item = (Place, &Reservation)> {
        use core::ops::Bound::{Excluded, Unbounded};
        let range = (after.map_or(Unbounded, Excluded), Unbounded);
        let places = self.waiting.range::<Place, _>(range);
        places.filter_map(|place| self.reservation(place.2).map(|r| (*place, r)))
    }

    /// Reservations that ended before `time`, and with them their keys.
    pub fn ended_before(&self, time: Time) -> impl Iterator<Item = ReservationId> + '_ {
        self.ended.iter().take_while(move |(at, _)| *at < time).map(|(_, id)| *id)
    }

    /// Tombstones set before `time`.
    pub fn tombstones_before(&self, time: Time) -> impl Iterator<Item = (ClusterId, Key)> + '_ {
        let old = self.tombstones.iter().take_while(move |(at, ..)| *at < time);
        old.map(|(_, requester, key)| (requester.clone(), key.clone()))
    }
}
