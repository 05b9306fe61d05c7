//! Work that was taken in and is not planned yet, in the order in which it is to be planned.
//!
//! Requests wait behind everything that gives capacity back or keeps it alive, and behind short
//! looks; but not without end: after so many of these in a row, one request has its turn. Among
//! themselves they go by priority, then by arrival. A change of amounts may ask for more, so it goes
//! with the requests that name no priority: nobody passes those who wait by asking for little first.
//! Lists, explanations and dry runs cost as much as requests and go with them too. Each priority has
//! a lane of its own, so that taking work in costs the same however much there is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use sublet_core::plan::Command;
use sublet_core::policy::Policy;

use super::flight::Item;
use super::work::{Submitted, Work};

/// The priority of a request for capacity; everything else goes before it.
type Lane = Option<Reverse<i32>>;

/// How many pass a request that waits for its turn. So many that what was given back together is
/// nearly always there before anybody is refused, and so few that a request notices little of it.
const PASSING_MAX: u32 = 64;

/// What is to be planned.
pub(super) struct Backlog<T> {
    /// None of them is empty.
    lanes: BTreeMap<Lane, VecDeque<Item<T>>>,
    /// How many have passed those that wait since one of them had its turn.
    passed: u32,
}

impl<T> Backlog<T> {
    pub(super) fn new() -> Self {
        Self { lanes: BTreeMap::new(), passed: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// New work.
    pub(super) fn push(&mut self, policy: &Policy, submitted: Submitted<T>) {
        let item = Item { submitted, was_news: false };
        self.push_back(policy, item);
    }

    fn push_back(&mut self, policy: &Policy, item: Item<T>) {
        self.lanes.entry(lane(policy, &item.submitted.work)).or_default().push_back(item);
    }

    /// Work that was planned and must be again, before what came after it.
    pub(super) fn push_front(&mut self, policy: &Policy, item: Item<T>) {
        self.lanes.entry(lane(policy, &item.submitted.work)).or_default().push_front(item);
    }

    /// The first lane, or the first of the requests where enough has passed them.
    fn next(&self) -> Option<Lane> {
        let mut lanes = self.lanes.keys().copied();
        let first = lanes.next()?;
        let waits_long = first.is_none() && self.passed >= PASSING_MAX;
        lanes.next().filter(|_| waits_long).or(Some(first))
    }

    /// The priority of what comes next, if that is a request.
    pub(super) fn next_priority(&self) -> Option<i32> {
        self.next()?.map(|Reverse(priority)| priority)
    }

    /// Does what comes next look at much?
    pub(super) fn next_is_survey(&self) -> bool {
        let next = self.next().and_then(|lane| self.lanes.get(&lane)?.front());
        next.is_some_and(|item| matches!(item.submitted.work, Work::Survey(_)))
    }

    /// What comes next.
    pub(super) fn pop(&mut self) -> Option<Item<T>> {
        let lane = self.next()?;
        let passes = lane.is_none() && self.lanes.len() > 1;
        self.passed = if passes { self.passed.saturating_add(1) } else { 0 };
        let items = self.lanes.get_mut(&lane)?;
        let next = items.pop_front();
        if items.is_empty() {
            self.lanes.remove(&lane);
        }
        next
    }

    /// Everything, lane by lane.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Item<T>> + use<T> {
        std::mem::take(&mut self.lanes).into_values().flatten()
    }

    /// Under another policy, priorities may be others.
    pub(super) fn arrange(&mut self, policy: &Policy) {
        for item in self.drain() {
            self.push_back(policy, item);
        }
    }
}

fn lane(policy: &Policy, work: &Work) -> Lane {
    match work {
        Work::Command(Command::Reserve { requester, ask, .. }) => {
            Some(Reverse(ask.priority.min(policy.allowance(requester).priority_max)))
        }
        work => work.is_ordinary().then_some(Reverse(0)),
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
        let order: Vec<_> = backlog.drain().map(|item| item.submitted.ticket).collect();
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
        backlog.push_front(&open, Item { submitted: request(6, 0), was_news: false });
        assert_eq!(backlog.next_priority(), None);
        assert_eq!(backlog.pop().map(|item| item.submitted.ticket), Some(5));
        assert_eq!(backlog.next_priority(), Some(9));
        let allowance = Allowance { priority_max: 7, ..Allowance::default() };
        backlog.arrange(&Policy { allowance, ..Policy::default() });
        assert_eq!(backlog.next_priority(), Some(7));
        let order: Vec<_> = backlog.drain().map(|item| item.submitted.ticket).collect();
        assert_eq!(order, [4, 2, 6, 1, 3]);
        assert!(backlog.is_empty());
    }

    fn look(ticket: u32) -> Submitted<u32> {
        Submitted { work: Work::Look(Box::new(|_, _| Box::new(|| ()))), ticket }
    }

    #[test]
    fn looks_and_releases_pass_a_request_so_many_times_and_no_more() {
        let (mut backlog, open) = (Backlog::new(), Policy::default());
        for (ticket, priority) in [(1, 0), (2, 5)] {
            backlog.push(&open, request(ticket, priority));
        }
        backlog.push(&open, look(0));
        let mut turns = Vec::new();
        for turn in 0..4 * PASSING_MAX {
            // There is always another one.
            backlog.push(&open, look(0));
            let priority = backlog.next_priority();
            let ticket = backlog.pop().map(|item| item.submitted.ticket);
            if ticket == Some(0) {
                assert_eq!(priority, None);
            } else {
                turns.push((turn, ticket, priority));
            }
        }
        let (first, second) = (PASSING_MAX, 2 * PASSING_MAX + 1);
        assert_eq!(turns, [(first, Some(2), Some(5)), (second, Some(1), Some(0))]);
    }

    #[test]
    fn lists_and_dry_runs_wait_with_the_requests_and_not_before_heartbeats() {
        let (mut backlog, open) = (Backlog::new(), Policy::default());
        let survey = Work::Survey(Box::new(|_, _| Box::new(|| ())));
        backlog.push(&open, Submitted { work: survey, ticket: 1 });
        let (requester, ask) = ("c1".parse().unwrap(), Ask::default());
        let dry_run = Work::Command(Command::DryRun { requester, ask });
        backlog.push(&open, Submitted { work: dry_run, ticket: 2 });
        backlog.push(&open, request(3, 0));
        backlog.push(&open, look(4));
        let order: Vec<_> = backlog.drain().map(|item| item.submitted.ticket).collect();
        assert_eq!(order, [4, 1, 2, 3]);
    }

    #[test]
    fn what_passed_nobody_does_not_count() {
        let (mut backlog, open) = (Backlog::new(), Policy::default());
        for _ in 0..2 * PASSING_MAX {
            backlog.push(&open, look(0));
            assert!(backlog.pop().is_some());
        }
        backlog.push(&open, request(1, 0));
        backlog.push(&open, look(2));
        assert_eq!(backlog.pop().map(|item| item.submitted.ticket), Some(2));
    }
}
