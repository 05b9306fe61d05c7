//! Since when a slice is over. That is written on the slice itself, where everybody sees it; but who writes on a slice
//! has Liqo's webhook asked, and while that does not answer nothing can be written there. Then it is written on the
//! instruction, about which nobody is asked, and on the slice when that is possible again: no restart of the agent,
//! and nobody who hinders it, has the time begin anew.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::PostParams;
use kube::{Api, ResourceExt};
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};
use sublet_core::time::Time;

use super::ground::{Answer, Ground, Mark, moment};
use super::pods::{ASKING, promptly};
use crate::controllers::Record;
use crate::peering::liqo::kinds::ResourceSlice;
use crate::transport::Order;

/// Of which instruction the end is that was noted.
const NOTED_OF: &str = "sublet.io/noted-of-generation";

type Known = BTreeMap<(Side, ClusterId, String), Time>;

/// Since when slices are over on which that could not be written, until it is on the instruction: whatever takes time
/// to be taken down has one. What nobody instructs us about any more is given no time here, and at its requester's
/// it is the mark on the slice that says that it goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Unwritten(Arc<Mutex<Known>>);

impl Unwritten {
    /// Since that was first tried.
    fn since(&self, order: &Order, now: Time) -> Time {
        *self.known().entry(key(order)).or_insert(now)
    }

    /// Since when, if that could not be written before.
    fn before(&self, order: &Order) -> Option<Time> {
        self.known().get(&key(order)).copied()
    }

    /// Nothing is left of it, or it is to be kept after all.
    pub(super) fn settled(&self, order: &Order) {
        self.known().remove(&key(order));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(order: &Order) -> (Side, ClusterId, String) {
    (order.side, order.peer.clone(), order.reservation.clone())
}

/// Since when a slice is over, and what came of writing that on it.
pub(super) struct Over {
    pub(super) since: Time,
    pub(super) written: Answer<()>,
}

impl Ground {
    /// Since when a slice is over; from now on, if that was not known.
    pub(super) async fn over_since<K: Record>(
        &self,
        order: &Order,
        slice: &ResourceSlice,
        mark: Mark,
    ) -> Over {
        let (now, slices) = (self.now(), self.slices(&order.peer));
        let past = |since: &Time| *since <= now;
        if let Some(since) = mark.of(slice).filter(past).filter(|_| mark.is_complete(slice)) {
            return Over { since, written: Ok(()) };
        }
        // What cannot be read is as if it were not there: that ends nothing too early.
        let record = self.ended::<K>(order).await.ok().flatten();
        let noted = record.as_ref().and_then(|record| noted(record, mark)).filter(past);
        let known = [mark.of(slice).filter(past), noted, self.unwritten.before(order)];
        let since = known.into_iter().flatten().min();
        let written = promptly(ASKING, self.mark(&slices, slice, mark, since.unwrap_or(now))).await;
        if written.is_err() && noted.is_none() {
            let first = self.unwritten.since(order, since.unwrap_or(now));
            if let Some(record) = record
                && let Err(error) = self.note(record, mark, first).await
            {
                let name = &order.reservation;
                tracing::debug!(name, %error, "since when it is over is written later");
            }
        }
        Over { since: since.unwrap_or(now), written }
    }

    /// The instruction, if it says that this slice is to be taken down. One that is to be kept says nothing of an end.
    async fn ended<K: Record>(&self, order: &Order) -> Answer<Option<K>> {
        let records: Api<K> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let found = records.get_opt(&K::object_name(&order.reservation)).await?;
        let is_over = |record: &K| {
            record.order().is_ok_and(|said| said.peer == order.peer && said.duty != Duty::Keep)
        };
        Ok(found.filter(is_over))
    }

    /// Writes it on the instruction. If somebody else has just changed that, it is written at the next look.
    async fn note<K: Record>(&self, mut record: K, mark: Mark, since: Time) -> Answer<()> {
        let records: Api<K> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let of = generation(&record);
        record.annotations_mut().insert(NOTED_OF.to_owned(), of);
        record.annotations_mut().insert(mark.name().to_owned(), moment(since));
        records.replace(&record.name_any(), &PostParams::default(), &record).await.map(drop)
    }
}

/// Since when it is over, by the instruction itself. What was noted of an earlier end counts no more: between the two, the
/// reservation was to be kept after all, and whoever has it has all of its time again.
fn noted<K: Record>(record: &K, mark: Mark) -> Option<Time> {
    let annotations = record.annotations();
    let is_of_this = annotations.get(NOTED_OF).is_some_and(|of| *of == generation(record));
    mark.on(annotations).filter(|_| is_of_this)
}

/// Which instruction it is.
fn generation<K: Record>(record: &K) -> String {
    let order = record.order().ok();
    order.and_then(|order| order.generation).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use sublet_core::id::Generation;
    use sublet_crds::ProviderInstruction;

    use super::super::requester::tests::order;
    use super::*;

    #[test]
    fn what_was_noted_of_an_end_counts_for_that_end_alone() {
        let of =
            |duty, generation| Order { duty, generation: Some(Generation(generation)), ..order() };
        let mut record = ProviderInstruction::new_of(&of(Duty::TakeDown, 3));
        let at = Time::from_millis(1234);
        record.annotations_mut().insert(Mark::Reclaimed.name().to_owned(), moment(at));
        assert_eq!(noted(&record, Mark::Reclaimed), None, "of which is not said");
        let of_this = generation(&record);
        record.annotations_mut().insert(NOTED_OF.to_owned(), of_this);
        assert_eq!(noted(&record, Mark::Reclaimed), Some(at));
        assert_eq!(noted(&record, Mark::Leaving), None);
        record.record(&of(Duty::Keep, 4));
        record.record(&of(Duty::TakeDown, 5));
        assert_eq!(noted(&record, Mark::Reclaimed), None);
    }

    #[test]
    fn the_time_runs_although_it_can_be_written_nowhere() {
        let (unwritten, at) = (Unwritten::default(), Time::from_millis);
        assert_eq!(unwritten.before(&order()), None);
        assert_eq!(unwritten.since(&order(), at(1)), at(1));
        assert_eq!(unwritten.since(&order(), at(5)), at(1));
        assert_eq!(unwritten.before(&order()), Some(at(1)));
        unwritten.settled(&order());
        assert_eq!(unwritten.since(&order(), at(11)), at(11));
    }

    #[test]
    fn a_moment_is_read_as_it_was_written() {
        let written =
            BTreeMap::from([(Mark::Leaving.name().to_owned(), moment(Time::from_millis(1234)))]);
        assert_eq!(Mark::Leaving.on(&written), Some(Time::from_millis(1234)));
    }
}
