//! What follows from the log: a batch is handed to it, and is durable, or others were faster.

use std::sync::Arc;

use sublet_core::bugs::{Bug, planted};
use sublet_core::id::ReservationId;
use sublet_core::reservation::Reservation;
use sublet_core::time::{Span, Time};
use sublet_log::Record;

use super::{Contradiction, Engine};
use crate::engine::decided::Decided;
use crate::engine::flight::{Batch, Flight, Item, Planned, changes_belief, leave_early, tell};
use crate::engine::handle::Revoked;
use crate::engine::work::{Answer, Failure};

/// All that is in a batch is planned as of the time at which it was opened; an open one that is older
/// than this is not written.
const OPEN_MAX: Span = Span::from_secs(1);

impl<T> Engine<T> {
    /// Closes the open batch, if none is being written: hands out what is to be written, and
    /// answers that depend on nothing unwritten.
    pub fn close(&mut self) -> (Option<Batch>, Vec<(T, Answer)>) {
        if self.writing.is_some() {
            return (None, vec![]);
        }
        let Some(mut flight) = self.open.take() else { return (None, vec![]) };
        let idle = flight.planned.is_empty() && flight.body.events().is_empty();
        let confirmed = !self.shared || planted(Bug::NoBarrier);
        if idle || (confirmed && flight.body.events().is_empty()) {
            return (None, tell(flight.planned));
        }
        // Nothing of the next batch is planned yet: this is how things stand at the end of this one.
        flight.changed = self.share(std::mem::take(&mut flight.touched));
        let believed_anew = flight.body.events().iter().any(changes_belief);
        flight.revoked = believed_anew.then(|| self.revoked());
        self.room = flight.room();
        // From here on only the log needs the events: what is taken back needs none of them.
        let batch = Batch { stamp: flight.stamp, body: std::mem::take(&mut flight.body) };
        let early = leave_early(&mut flight);
        self.writing = Some(flight);
        (Some(batch), tell(early))
    }

    /// The batch that was being written is durable.
    pub fn committed(&mut self) -> Vec<(T, Answer)> {
        let Some(flight) = self.writing.take() else { return vec![] };
        self.changes.at = flight.stamp;
        self.changes.reservations.extend(flight.changed);
        if flight.revoked.is_some() {
            self.changes.revoked = flight.revoked;
        }
        let revision = flight.stamp.revision;
        let decided = flight.uncalled.into_iter().map(|event| Decided { revision, event });
        self.changes.decided.extend(decided);
        tell(flight.planned)
    }

    fn revoked(&self) -> Revoked {
        Arc::new(self.books.ledger().revoked().clone())
    }

    fn share(&self, mut ids: Vec<ReservationId>) -> Vec<Arc<Reservation>> {
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().filter_map(|id| self.books.ledger().share_reservation(id)).collect()
    }

    /// Others' records stand where ours were to be: takes back what was planned, applies theirs,
    /// and puts the work back to be planned again, in its order.
    pub fn overtaken(&mut self, records: &[Record]) -> Result<(), Contradiction> {
        let flights = [self.open.take(), self.writing.take()];
        for flight in flights.into_iter().flatten() {
            self.take_back(flight)?;
        }
        let (mut touched, mut believed_anew) = (Vec::new(), false);
        for record in records {
            let stamp = record.head().stamp();
            for event in record.events() {
                self.books.apply(stamp, event)?;
                touched.extend(event.reservation().filter(|_| self.watched));
                believed_anew |= changes_belief(event);
            }
            self.books.advance(stamp)?;
        }
        self.changes.at = self.books.ledger().stamp();
        if believed_anew {
            self.changes.revoked = Some(self.revoked());
        }
        let changed = self.share(touched);
        self.changes.reservations.extend(changed);
        self.retry.begin_again();
        Ok(())
    }

    /// What was planned long before the disk was free is planned again, as of now: by then a grant may
    /// be over, a wait too, and a provider silent. To be asked before each step while nothing is on its
    /// way to the disk; says whether something was taken back.
    pub fn plan_anew(&mut self, now: Time) -> Result<bool, Contradiction> {
        let is_old = |open: &mut Flight<T>| now.since(open.stamp.time) > OPEN_MAX;
        let Some(flight) = self.open.take_if(is_old) else { return Ok(false) };
        self.take_back(flight)?;
        self.retry.begin_again();
        Ok(true)
    }

    /// Takes back what was planned, and puts the work back to be planned again, in its order.
    fn take_back(&mut self, flight: Flight<T>) -> Result<(), Contradiction> {
        for reversal in flight.reversals.into_iter().rev() {
            if !planted(Bug::NoReplan) {
                self.books.revert(reversal)?;
            }
        }
        let dropped = usize::from(planted(Bug::DropsOvertaken));
        for planned in flight.planned.into_iter().rev().skip(dropped) {
            self.backlog.push_front(&self.policy, planned.item);
        }
        Ok(())
    }

    /// The log cannot be written any more: nobody is told a result, and who may have one is told
    /// that it is not known.
    pub fn halt(&mut self) -> Vec<(T, Answer)> {
        let writing = self.writing.take().map(|flight| (flight.planned, Failure::Unknown));
        let open = self.open.take().map(|flight| (flight.planned, Failure::Unavailable));
        let mut answers = Vec::new();
        for (planned, failure) in writing.into_iter().chain(open) {
            let tell = |p: Planned<T>| (p.item.submitted.ticket, Err(failure.clone()));
            answers.extend(planned.into_iter().map(tell));
        }
        let tell = |item: Item<T>| (item.submitted.ticket, Err(Failure::Unavailable));
        answers.extend(self.backlog.drain().map(tell));
        answers
    }
}
