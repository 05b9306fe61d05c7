//! What is derived from the reservations: sums, deadlines, who waits, who is remembered.

use alloc::{collections::btree_map::Entry, sync::Arc};
use core::cmp::Reverse;

use super::{Account, Bond, Error, Ledger};
use crate::bugs::{Bug, planted};
use crate::id::{ClusterId, Key, ReservationId};
use crate::reservation::{Grant, Reservation, State};
use crate::resources::{self, Resources};

/// The one way in which reservations and what is derived from them change.
impl Ledger {
    /// Puts `new` in place of what is known under `id`; on refusal nothing has changed.
    pub(super) fn put(
        &mut self,
        id: ReservationId,
        new: Option<Arc<Reservation>>,
    ) -> Result<Option<Arc<Reservation>>, Error> {
        let old = self.reservations.get(&id).cloned();
        if let Some(old) = &old {
            self.unindex(old)?;
        }
        if let Some(new) = &new
            && let Err(error) = self.index(new)
        {
            if let Some(old) = &old {
                self.index(old)?;
            }
            return Err(error);
        }
        match new {
            Some(new) => self.reservations.insert(id, new),
            None => self.reservations.remove(&id),
        };
        Ok(old)
    }

    fn index(&mut self, reservation: &Reservation) -> Result<(), Error> {
        let Reservation { id, requester, priority, arrival, state, .. } = reservation;
        let change = (reservation.changed, *id);
        // Both sums are made before either is kept, so that a refusal changes nothing.
        let sums = reservation.holding().map(|grant| self.sums_with(reservation, grant));
        let (borrowed, lent) = sums.transpose()?.unzip();
        let account = self.accounts.entry(requester.clone()).or_default();
        account.changes.insert(change);
        if let Some(borrowed) = borrowed {
            account.borrowed = borrowed;
        }
        if !reservation.phase().is_terminal() {
            account.borrowing.insert(*id);
        }
        if let Some(grant) = reservation.grant() {
            let account = self.accounts.entry(grant.provider.clone()).or_default();
            account.changes.insert(change);
            if let Some(lent) = lent {
                account.lent = lent;
                account.lending.insert(*id);
            }
        }
        if let Some(deadline) = reservation.deadline() {
            self.deadlines.insert((deadline, *id));
        }
        match state {
            State::Pending { .. } => {
                self.waiting.insert((Reverse(*priority), *arrival, *id));
            }
            State::Ended { at, .. } => {
                self.ended.insert((*at, *id));
            }
            State::Reserved(_) | State::Active(_) | State::Releasing(..) => {}
        }
        Ok(())
    }

    /// What the requester borrows and the provider lends with one more grant.
    fn sums_with(
        &self,
        reservation: &Reservation,
        grant: &Grant,
    ) -> Result<(Resources, Resources), Error> {
        if grant.provider == reservation.requester {
            return Err(Error::ToItself(reservation.id));
        }
        if !grant.held.is_bounded() {
            return Err(resources::Error::TooMany.into());
        }
        let none = Resources::default();
        let borrowed = self.account(&reservation.requester).map_or(&none, |a| &a.borrowed);
        let lent = self.account(&grant.provider).map_or(&none, |a| &a.lent);
        Ok((borrowed.checked_add(&grant.held)?, lent.checked_add(&grant.held)?))
    }

    fn unindex(&mut self, reservation: &Reservation) -> Result<(), Error> {
        let Reservation { id, requester, priority, arrival, state, .. } = reservation;
        let change = (reservation.changed, *id);
        let held = reservation.holding().map(|grant| &grant.held);
        self.edit_account(requester, |account| {
            account.changes.remove(&change);
            account.borrowing.remove(id);
            held.map_or(Ok(()), |held| take(&mut account.borrowed, held))
        })?;
        if let Some(grant) = reservation.grant() {
            self.edit_account(&grant.provider, |account| {
                account.changes.remove(&change);
                account.lending.remove(id);
                held.map_or(Ok(()), |held| take(&mut account.lent, held))?;
                if planted(Bug::CreditsTwice) && matches!(state, State::Releasing(..)) {
                    account.lent = account.lent.minus_floor(&grant.held);
                }
                Ok(())
            })?;
        }
        if let Some(deadline) = reservation.deadline() {
            self.deadlines.remove(&(deadline, *id));
        }
        match state {
            State::Pending { .. } => {
                self.waiting.remove(&(Reverse(*priority), *arrival, *id));
            }
            State::Ended { at, .. } => {
                self.ended.remove(&(*at, *id));
            }
            State::Reserved(_) | State::Active(_) | State::Releasing(..) => {}
        }
        Ok(())
    }

    /// Changes an account that is there, and drops it when nothing is left in it.
    fn edit_account(
        &mut self,
        cluster: &ClusterId,
        edit: impl FnOnce(&mut Account) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Entry::Occupied(mut account) = self.accounts.entry(cluster.clone()) {
            edit(account.get_mut())?;
            if account.get().is_empty() {
                account.remove();
            }
        }
        Ok(())
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

fn take(sum: &mut Resources, held: &Resources) -> Result<(), Error> {
    *sum = sum.checked_sub(held)?;
    Ok(())
}
