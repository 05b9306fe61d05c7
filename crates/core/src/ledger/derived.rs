//! What is derived from the reservations: sums, deadlines, who waits, who is remembered.

use core::cmp::Reverse;

use super::{Account, Bond, Error, Ledger};
use crate::bugs::{Bug, planted};
use crate::id::{ClusterId, Key, ReservationId};
use crate::reservation::{Reservation, State};
use crate::resources::{self, Resources};

/// The one way in which reservations and what is derived from them change.
impl Ledger {
    /// Puts `new` in place of what is known under `id`; on refusal nothing has changed.
    pub(super) fn put(
        &mut self,
        id: ReservationId,
        new: Option<Reservation>,
    ) -> Result<Option<Reservation>, Error> {
        let old = self.reservations.remove(&id);
        if let Some(old) = &old {
            self.unindex(old)?;
        }
        if let Some(new) = new {
            if let Err(error) = self.index(&new) {
                if let Some(old) = old {
                    self.index(&old)?;
                    self.reservations.insert(id, old);
                }
                return Err(error);
            }
            self.reservations.insert(id, new);
        }
        Ok(old)
    }

    fn index(&mut self, reservation: &Reservation) -> Result<(), Error> {
        let Reservation { id, requester, priority, arrival, state, .. } = reservation;
        if let Some(grant) = reservation.holding() {
            if grant.provider == *requester {
                return Err(Error::ToItself(*id));
            }
            if !grant.held.is_bounded() {
                return Err(resources::Error::TooMany.into());
            }
            // Both sums are made before either is kept, so that a refusal changes nothing.
            let none = Resources::default();
            let lent = self.account(&grant.provider).map_or(&none, |a| &a.lent);
            let lent = lent.checked_add(&grant.held)?;
            let borrowed = self.account(requester).map_or(&none, |a| &a.borrowed);
            let borrowed = borrowed.checked_add(&grant.held)?;
            let provider = self.accounts.entry(grant.provider.clone()).or_default();
            provider.lent = lent;
            provider.lending.insert(*id);
            self.accounts.entry(requester.clone()).or_default().borrowed = borrowed;
        }
        if !reservation.phase().is_terminal() {
            self.accounts.entry(requester.clone()).or_default().borrowing.insert(*id);
        }
        for side in reservation.sides() {
            let account = self.accounts.entry(side.clone()).or_default();
            account.changes.insert((reservation.changed, *id));
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

    fn unindex(&mut self, reservation: &Reservation) -> Result<(), Error> {
        let Reservation { id, requester, priority, arrival, state, .. } = reservation;
        if let Some(grant) = reservation.holding()
            && let Some(provider) = self.accounts.get_mut(&grant.provider)
        {
            provider.lent = provider.lent.checked_sub(&grant.held)?;
            if planted(Bug::CreditsTwice) && matches!(state, State::Releasing(..)) {
                provider.lent = provider.lent.minus_floor(&grant.held);
            }
            provider.lending.remove(id);
        }
        if let Some(account) = self.accounts.get_mut(requester) {
            if let Some(grant) = reservation.holding() {
                account.borrowed = account.borrowed.checked_sub(&grant.held)?;
            }
            account.borrowing.remove(id);
        }
        for side in reservation.sides() {
            if let Some(account) = self.accounts.get_mut(side) {
                account.changes.remove(&(reservation.changed, *id));
            }
            self.drop_if_empty(side);
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

    fn drop_if_empty(&mut self, cluster: &ClusterId) {
        if self.accounts.get(cluster).is_some_and(Account::is_empty) {
            self.accounts.remove(cluster);
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
