//! Work that was taken in and is not planned yet, in the order in which it is to be planned.
//!
//! Requests wait behind everything that gives capacity back or keeps it alive; among themselves
//! they go by priority, then by arrival. A change of amounts may ask for more, so it goes with the
//! requests that name no priority: nobody passes those who wait by asking for little first. Each priority has a lane of its own, so that taking work in
//! costs the same however much there is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use sublet_core::plan::Command;
use sublet_core::policy::Policy;

use super::work::{Submitted, Work};

/// The priority of a request for capacity; everything else goes before it.
type Lane = Option<Reverse<i32>>;

/// What is to be planned.
pub(super) struct Backlog<T> {
    /// None of them is empty.
    lanes: BTreeMap<Lane, VecDeque<Submitted<T>>>,
}

impl<T> Backlog<T> {
    pub(super) fn new() -> Self {
        Self { lanes: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// New work.
    pub(super) fn push(&mut self, policy: &Policy, submitted: Submitted<T>) {
        self.lanes.entry(lane(policy, &submitted.work)).or_default().push_back(submitted);
    }

    /// Work that was planned and must be again, before what came after it.
    pub(super) fn push_front(&mut self, policy: &Policy, submitted: Submitted<T>) {
        self.lanes.entry(lane(policy, &submitted.work)).or_default().push_front(submitted);
    }

    /// The priority of what comes next, if that is a request.
    pub(super) fn next_priority(&self) -> Option<i32> {
        let (lane, _) = self.lanes.first_key_value()?;
        lane.map(|Reverse(priority)| priority)
    }

    /// What comes next.
    pub(super) fn pop(&mut self) -> Option<Submitted<T>> {
        let mut first = self.lanes.first_entry()?;
        let next = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        next
    }

    /// Everything, in order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Submitted<T>> + use<T> {
        std::mem::take(&mut self.lanes).into_values().flatten()
    }

    /// Under another policy, priorities may be others.
    pub(super) fn arrange(&mut self, policy: &Policy) {
        for submitted in self.drain() {
            self.push(policy, submitted);
        }
    }
}

fn lane(policy: &Policy, work: &Work) -> Lane {
    match work {
        Work::Command(Command::Reserve { requester, ask, .. }) => {
            Some(Reverse(ask.priority.min(policy.allowance(requester).priority_max)))
        }
        Work::Command(Command::Resize { .. }) => Some(Reverse(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sublet_core::id::ReservationId;
    use sublet_core::policy::Allowance;
    use sublet_core::reservation::{Actor, Ask};
    use sublet_core::resources::Resources;

    use super::*;

    fn request(ticket: u32, priority: i32) -> Submitted<u32> {
        let ask = Ask { priority, ..Ask::default() };
        let (requester, key) = ("c1".parse().unwrap(), "key".parse().unwrap());
        let work = Work::Command(Command::Reserve { requester, key, ask, explain: false });
        Submitted { work, ticket }
    }

    #[test]
    fn a_change_of_amounts_is_queued_like_a_request_without_a_priority() {
        let (mut backlog, open) = (Backlog::new(), Policy::default());
        let (id, resources) = (ReservationId::LAST, Resources::default());
        let resize = Command::Resize { by: Actor::Broker, id, resources };
        backlog.push(&open, Submitted { work: Work::Command(resize), ticket: 1 });
        for (ticket, priority) in [(2, 9), (3, 0)] {
            backlog.push(&open, request(ticket, priority));
        }
        let order: Vec<_> = backlog.drain().map(|submitted| submitted.ticket).collect();
        assert_eq!(order, [2, 1, 3]);
    }

    #[test]
    fn requests_go_last_by_priority_then_by_arrival_and_what_was_planned_goes_first() {
        let (mut backlog, open) = (Backlog::new(), Policy::default());
        for (ticket, priority) in [(1, 0), (2, 7), (3, 0), (4, 9)] {
            backlog.push(&open, request(ticket, priority));
        }
        backlog.push(
            &open,
            Submitted { work: Work::Command(Command::Sweep { expire: true }), ticket: 5 },
        );
        backlog.push_front(&open, request(6, 0));
        assert_eq!(backlog.next_priority(), None);
        assert_eq!(backlog.pop().map(|submitted| submitted.ticket), Some(5));
        assert_eq!(backlog.next_priority(), Some(9));
        let allowance = Allowance { priority_max: 7, ..Allowance::default() };
        backlog.arrange(&Policy { allowance, ..Policy::default() });
        assert_eq!(backlog.next_priority(), Some(7));
        let order: Vec<_> = backlog.drain().map(|submitted| submitted.ticket).collect();
        assert_eq!(order, [4, 2, 6, 1, 3]);
        assert!(backlog.is_empty());
    }
}
