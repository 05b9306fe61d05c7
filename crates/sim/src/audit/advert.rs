//! I10: an advertisement changes no reservation, no key and nothing that operators decided.
//!
//! What may follow from it all the same: somebody who waits is granted; a provider that was given up
//! is back; an agent that turned out to be an old one never confirms what it takes down; after a
//! restore, what was forgotten is adopted.

use std::collections::BTreeMap;
use std::sync::Arc;

use sublet_broker::engine::Engine;
use sublet_core::books::Books;
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::ledger::Standing;
use sublet_core::plan::Command;
use sublet_core::reservation::{Phase, Reservation};

use super::Auditor;
use crate::message::{Order, Ticket};

/// One in so many steps that take in nothing but advertisements is looked at.
const LOOK_EVERY: u64 = 4;

/// The books before advertisements are heard.
pub(crate) struct Before {
    reservations: BTreeMap<ReservationId, Arc<Reservation>>,
    standings: BTreeMap<ClusterId, Standing>,
    /// Who advertises without saying that it confirms.
    old: Vec<ClusterId>,
}

impl Auditor {
    /// A process is about to hear these and nothing else.
    pub(crate) fn before_adverts(
        &mut self,
        engine: &Engine<Ticket>,
        calls: &[Ticket],
    ) -> Option<Before> {
        let mut old = Vec::new();
        for call in calls {
            let Order::Command(Command::Advertise(advert)) = &call.order else { return None };
            if !advert.capabilities.acknowledge {
                old.push(advert.cluster.clone());
            }
        }
        self.looks_at_adverts += u64::from(!calls.is_empty());
        let looks = self.looks_at_adverts.is_multiple_of(LOOK_EVERY) && engine.is_planned();
        if calls.is_empty() || !looks {
            return None;
        }
        let ledger = engine.books().ledger();
        let ids = ledger.reservations(None).map(|reservation| reservation.id);
        let reservations = ids.filter_map(|id| Some((id, ledger.share_reservation(id)?))).collect();
        let standings = ledger.standings().map(|(c, s)| (c.clone(), s.clone())).collect();
        Some(Before { reservations, standings, old })
    }

    /// It has heard them.
    pub(crate) fn after_adverts(&mut self, before: &Before, books: &Books) {
        if let Some(wrong) = before.differs(books) {
            self.fail("I10", format!("an advertisement changed {wrong}"));
        }
    }
}

impl Before {
    fn differs(&self, books: &Books) -> Option<String> {
        let ledger = books.ledger();
        let added = ledger.reservations(None).find(|now| !self.reservations.contains_key(&now.id));
        // Only a restored ledger has something to adopt.
        if let Some(added) = added.filter(|_| ledger.restored().is_none()) {
            return Some(format!("{added:?}, which was not there"));
        }
        for (id, was) in &self.reservations {
            let Some(now) = ledger.share_reservation(*id) else {
                return Some(format!("{id}, which is gone"));
            };
            let adopted = ledger.restored().is_some() && now.grant() != was.grant();
            if !(Arc::ptr_eq(was, &now) || *was == now || adopted || self.may_move(was, &now)) {
                return Some(format!("{was:?} to {now:?}"));
            }
        }
        let decided = |one: &Standing| (one.cordon.clone(), one.draining, one.cap.clone());
        let mut standings = self.standings.iter();
        let changed = standings.find(|(cluster, was)| {
            let now = ledger.standing(cluster).cloned().unwrap_or_default();
            decided(was) != decided(&now)
        });
        changed.map(|(cluster, was)| format!("what was decided about {cluster}: {was:?}"))
    }

    /// Who waited was granted, or an old agent's word is not waited for.
    fn may_move(&self, was: &Reservation, now: &Reservation) -> bool {
        match was.phase() {
            Phase::Pending => now.phase() == Phase::Reserved,
            Phase::Releasing => was.grant().is_some_and(|grant| self.old.contains(&grant.provider)),
            _ => false,
        }
    }
}
