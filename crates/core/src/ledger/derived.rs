//! What is derived from the reservations: sums, deadlines, who waits, who is remembered.

use alloc::collections::{BTreeMap, BTreeSet, btree_map::Entry};
use alloc::sync::Arc;
use core::cmp::Reverse;

use super::{Account, Bond, Error, Ledger};
use crate::bugs::{Bug, planted};
use crate::id::{ClusterId, Key, ReservationId};
use crate::reservation::{Reservation, State};
use crate::resources::{self, Resources};

/// The one way in which reservations and what is derived from them change.
impl Ledger {
    /// Puts `new` beside all others, of which none has its name; on refusal nothing has changed.
    pub(super) fn add(&mut self, new: Arc<Reservation>) -> Result<(), Error> {
        self.retrace(None, Some(Traces::of(&new)))?;
        self.reservations.insert(new.id, new);
        Ok(())
    }

    /// Puts `new` in place of what is known under `id`; on refusal nothing has changed.
    pub(super) fn put(
        &mut self,
        id: ReservationId,
        new: Option<Arc<Reservation>>,
    ) -> Result<Option<Arc<Reservation>>, Error> {
        let old = self.reservations.get(&id).cloned();
        self.retrace(old.as_deref().map(Traces::of), new.as_deref().map(Traces::of))?;
        match new {
            Some(new) => self.reservations.insert(id, new),
            None => self.reservations.remove(&id),
        };
        Ok(old)
    }

    /// Replaces the traces of a reservation by others. Only what differs is touched: most moves
    /// change little of what is derived.
    fn retrace(&mut self, old: Option<Traces<'_>>, new: Option<Traces<'_>>) -> Result<(), Error> {
        if let Some(new) = &new {
            new.check()?;
        }
        // Every sum is made before any is kept, so that a refusal changes nothing.
        let sides = sides(old.as_ref(), new.as_ref());
        let mut sums = [None, None, None, None];
        for (sum, side) in sums.iter_mut().zip(&sides) {
            *sum = side.as_ref().map(|side| self.sum(side)).transpose()?;
        }
        for (sum, side) in sums.into_iter().zip(sides) {
            if let (Some(sum), Some(side)) = (sum, side) {
                self.keep_side(side, sum);
            }
        }
        let id = |of: &Traces<'_>| of.reservation.id;
        let phase = |of: &Traces<'_>| of.reservation.phase();
        let phases = (old.as_ref().map(phase), new.as_ref().map(phase));
        recount(&mut self.phases, phases.0.as_ref(), phases.1.as_ref());
        let deadline = |of: &Traces<'_>| of.reservation.deadline().map(|time| (time, id(of)));
        swap(&mut self.deadlines, old.as_ref().and_then(deadline), new.as_ref().and_then(deadline));
        let place = |of: &Traces<'_>| {
            let priority = if planted(Bug::ByAgeOnly) { 0 } else { of.reservation.priority };
            let place = (Reverse(priority), of.reservation.arrival, id(of));
            of.waits().then_some(place)
        };
        swap(&mut self.waiting, old.as_ref().and_then(place), new.as_ref().and_then(place));
        let ended = |of: &Traces<'_>| match &of.reservation.state {
            State::Ended { at, .. } => Some((*at, id(of))),
            _ => None,
        };
        swap(&mut self.ended, old.as_ref().and_then(ended), new.as_ref().and_then(ended));
        Ok(())
    }

    /// What the cluster of `side` lends or borrows afterwards.
    fn sum(&self, side: &Side<'_>) -> Result<Option<Resources>, Error> {
        let (old, new) = (side.old.and_then(|t| t.held), side.new.and_then(|t| t.held));
        if old == new {
            return Ok(None);
        }
        let none = Resources::default();
        let account = self.account(side.cluster);
        let sum = account.map_or(&none, |account| side.role.sum_of(account));
        let mut rest = old.map_or_else(|| Ok(sum.clone()), |old| sum.checked_sub(old))?;
        if planted(Bug::BorrowsForever) && side.role == Role::Requester && new.is_none() {
            rest = sum.clone();
        }
        if planted(Bug::CreditsTwice)
            && side.role == Role::Provider
            && let Some(old) = side.old
            && matches!(old.reservation.state, State::Releasing(..))
        {
            rest = old.held.map_or(rest.clone(), |held| rest.minus_floor(held));
        }
        Ok(Some(new.map_or(Ok(rest.clone()), |new| rest.checked_add(new))?))
    }

    /// Keeps what was summed, and notes the reservation in the account; one with nothing left in
    /// it goes.
    fn keep_side<'a>(&mut self, side: Side<'a>, sum: Option<Resources>) {
        let Side { cluster, role, old, new } = side;
        let mut entry = match self.accounts.entry(cluster.clone()) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert_entry(Account::default()),
        };
        let account = entry.get_mut();
        let change = |of: &Traces<'_>| (of.reservation.changed, of.reservation.id);
        swap(&mut account.changes, old.map(change), new.map(change));
        let peer = |of: &Traces<'a>| role.peer(of);
        recount(&mut account.peers, old.and_then(peer), new.and_then(peer));
        let listed = |of: &Traces<'_>| role.lists(of).then_some(of.reservation.id);
        let list = match role {
            Role::Requester => &mut account.borrowing,
            Role::Provider => &mut account.lending,
        };
        swap(list, old.and_then(listed), new.and_then(listed));
        let over = |of: &Traces<'_>| (!role.lists(of)).then_some(of.reservation.id);
        swap(&mut account.over, old.and_then(over), new.and_then(over));
        if role == Role::Requester {
            let waits = |of: Option<&Traces<'_>>| u32::from(of.is_some_and(Traces::waits));
            account.waiting = account.waiting.saturating_add(waits(new)).saturating_sub(waits(old));
        }
        if let Some(sum) = sum {
            match role {
                Role::Requester => account.borrowed = sum,
                Role::Provider => account.lent = sum,
            }
        }
        if account.is_empty() {
            entry.remove();
        }
    }

    pub(super) fn put_bond(
        &mut self,
        requester: &ClusterId,
        key: &Key,
        new: Option<Bond>,
    ) -> Option<Bond> {
        let keys = self.keys.entry(requester.clone()).or_default();
        let old = match new {
            Some(bond) => keys.insert(key.clone(), bond),
            None => keys.remove(key),
        };
        if keys.is_empty() {
            self.keys.remove(requester);
        }
        if let Some(Bond::Tombstone(at)) = old {
            self.tombstones.remove(&(at, requester.clone(), key.clone()));
        }
        if let Some(Bond::Tombstone(at)) = new {
            self.tombstones.insert((at, requester.clone(), key.clone()));
        }
        old
    }
}

/// What a reservation leaves behind in sums and lists.
struct Traces<'a> {
    reservation: &'a Reservation,
    held: Option<&'a Resources>,
}

impl<'a> Traces<'a> {
    fn of(reservation: &'a Reservation) -> Self {
        Self { reservation, held: reservation.holding().map(|grant| &grant.held) }
    }

    fn provider(&self) -> Option<&'a ClusterId> {
        self.reservation.grant().map(|grant| &grant.provider)
    }

    fn waits(&self) -> bool {
        matches!(self.reservation.state, State::Pending { .. })
    }

    fn check(&self) -> Result<(), Error> {
        let Some(held) = self.held else { return Ok(()) };
        if self.provider() == Some(&self.reservation.requester) {
            return Err(Error::ToItself(self.reservation.id));
        }
        if held.is_bounded() { Ok(()) } else { Err(resources::Error::TooMany.into()) }
    }
}

/// In which role a cluster has part in a reservation.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Requester,
    Provider,
}

impl Role {
    fn sum_of(self, account: &Account) -> &Resources {
        match self {
            Self::Requester => &account.borrowed,
            Self::Provider => &account.lent,
        }
    }

    /// The cluster on the other side.
    fn peer<'a>(self, of: &Traces<'a>) -> Option<&'a ClusterId> {
        match self {
            Self::Requester => of.provider(),
            Self::Provider => Some(&of.reservation.requester),
        }
    }

    /// Does the account list the reservation as live?
    fn lists(self, of: &Traces<'_>) -> bool {
        match self {
            Self::Requester => !of.reservation.phase().is_terminal(),
            Self::Provider => of.held.is_some(),
        }
    }
}

/// What changes for one cluster in one role.
struct Side<'a> {
    cluster: &'a ClusterId,
    role: Role,
    old: Option<&'a Traces<'a>>,
    new: Option<&'a Traces<'a>>,
}

/// Who is concerned: one cluster for each role, or two where it has changed.
fn sides<'a>(old: Option<&'a Traces<'a>>, new: Option<&'a Traces<'a>>) -> [Option<Side<'a>>; 4] {
    let both = |role: Role, cluster: fn(&Traces<'a>) -> Option<&'a ClusterId>| {
        let (before, after) = (old.and_then(cluster), new.and_then(cluster));
        if before == after {
            [after.map(|cluster| Side { cluster, role, old, new }), None]
        } else {
            let left = before.map(|cluster| Side { cluster, role, old, new: None });
            [left, after.map(|cluster| Side { cluster, role, old: None, new })]
        }
    };
    let [a, b] = both(Role::Requester, |of| Some(&of.reservation.requester));
    let [c, d] = both(Role::Provider, Traces::provider);
    [a, b, c, d]
}

/// Replaces one member of a set by another.
fn swap<T: Ord>(set: &mut BTreeSet<T>, old: Option<T>, new: Option<T>) {
    if old != new {
        if let Some(old) = old {
            set.remove(&old);
        }
        set.extend(new);
    }
}

/// Counts one less of one, and one more of another.
fn recount<T: Ord + Clone>(counts: &mut BTreeMap<T, u32>, old: Option<&T>, new: Option<&T>) {
    if old == new {
        return;
    }
    if let Some(old) = old
        && let Entry::Occupied(mut entry) = counts.entry(old.clone())
    {
        let left = entry.get().saturating_sub(1);
        if left == 0 {
            entry.remove();
        } else {
            *entry.get_mut() = left;
        }
    }
    if let Some(new) = new {
        let count = counts.entry(new.clone()).or_default();
        *count = count.saturating_add(1);
    }
}
