//! How a reservation ends: its capacity comes back when the provider has confirmed, never will
//! because its agent is old, or is lost.

use alloc::{boxed::Box, vec::Vec};

use super::{Plan, Refusal, Reply, Scene, Which};
use crate::bugs::{Bug, planted};
use crate::event::Event;
use crate::id::{ClusterId, ReservationId};
use crate::ledger::Bond;
use crate::reservation::{Actor, Confirmation, Hindrance, Phase, Reason, Reservation};

impl Scene<'_> {
    pub(super) fn release(&self, by: &Actor, which: &Which) -> Result<Plan, Refusal> {
        let id = match which {
            Which::Id(id) => *id,
            Which::Key(requester, key) => {
                if matches!(by, Actor::Cluster(cluster) if cluster != requester) {
                    return Err(Refusal::NotFound);
                }
                match self.books.ledger().bond(requester, key) {
                    Some(Bond::Reservation(id)) => id,
                    Some(Bond::Tombstone(_)) => return Ok(Plan::new([], Reply::KeyReleased)),
                    None => {
                        self.check_keys(requester, self.books.ledger().key_count(requester))?;
                        let (requester, key) = (requester.clone(), key.clone());
                        let tombstone = Event::KeyReleased { requester, key };
                        return Ok(Plan::new([tombstone], Reply::KeyReleased));
                    }
                }
            }
        };
        let reservation = self.visible(by, id)?;
        let reason = match by {
            Actor::Cluster(cluster) if reservation.requester == *cluster => {
                Reason::ReleasedByRequester
            }
            Actor::Cluster(_) => Reason::WithdrawnByProvider,
            Actor::Operator(_) | Actor::Broker => Reason::ReleasedByOperator,
        };
        Ok(Plan::about(id, Vec::from_iter(self.end(reservation, reason, by.clone()))))
    }

    pub(super) fn fail(
        &self,
        by: &ClusterId,
        id: ReservationId,
        why: Option<&Hindrance>,
    ) -> Result<Plan, Refusal> {
        let by = Actor::Cluster(by.clone());
        let reservation = self.visible(&by, id)?;
        if reservation.phase() == Phase::Pending {
            return Err(Refusal::Phase(Phase::Pending));
        }
        let mut event = self.end(reservation, Reason::PeeringFailed, by);
        if let Some(Event::Ending { hindrance, .. } | Event::Ended { hindrance, .. }) = &mut event {
            *hindrance = why.cloned().map(Box::new);
        }
        Ok(Plan::about(id, Vec::from_iter(event)))
    }

    /// The event that ends a reservation, or begins to; none where that happened already.
    pub(super) fn end(
        &self,
        reservation: &Reservation,
        reason: Reason,
        by: Actor,
    ) -> Option<Event> {
        let id = reservation.id;
        match (reservation.phase(), reservation.grant()) {
            (Phase::Pending, _) => {
                let confirmation = Confirmation::NothingHeld;
                Some(Event::Ended { id, reason, by, confirmation, hindrance: None })
            }
            (Phase::Reserved | Phase::Active, Some(grant)) => {
                let unasked = planted(Bug::ExpiryFrees) && reason == Reason::Expired;
                if self.confirms(&grant.provider).unwrap_or(grant.confirms) && !unasked {
                    Some(Event::Ending { id, reason, by, hindrance: None })
                } else {
                    let confirmation = Confirmation::Unconfirmed;
                    Some(Event::Ended { id, reason, by, confirmation, hindrance: None })
                }
            }
            _ => None,
        }
    }
}
