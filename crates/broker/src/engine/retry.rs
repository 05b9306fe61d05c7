//! Which waiting requests may fit by now and have not been tried.
//!
//! They are tried from the first to the last, a piece in each step, so large that what is looked at
//! for them takes a moment. One may have to be tried on the whole fleet, so a first pass over all of
//! them can take long. Where something makes room meanwhile, or later, those who were tried have a
//! claim to it before all others; but they fit nowhere else, so a second pass asks of each only
//! whether it fits there: the first one goes on where it was. What is not about few clusters sends
//! it back to its beginning. So that a pass that is sent back again and again comes to its end all
//! the same, its pieces become larger each time.

use std::cmp::Reverse;

use sublet_core::bugs::{Bug, planted};
use sublet_core::event::{Event, Subject};
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::ledger::{Ledger, Place};
use sublet_core::plan::{Fill, Grown};

/// Where more clusters than these have grown, it is quicker to look everywhere.
const GROWN_MAX: usize = 64;
/// How often pieces double at most: more than a queue can be long.
const DOUBLED_MAX: u32 = 16;

/// How far a pass is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    #[default]
    Nobody,
    UpTo(Place),
    All,
}

impl Reached {
    fn place(self) -> Option<Place> {
        match self {
            Self::UpTo(place) => Some(place),
            Self::Nobody | Self::All => None,
        }
    }
}

/// A pass over those who wait.
#[derive(Default)]
struct Pass {
    reached: Reached,
    /// Its last piece ended before it did.
    cut: bool,
    doubled: u32,
}

impl Pass {
    fn send_back(&mut self) {
        if std::mem::take(&mut self.cut) {
            self.doubled = self.doubled.saturating_add(1).min(DOUBLED_MAX);
        }
        self.reached = Reached::Nobody;
    }
}

/// The passes over those who wait.
#[derive(Default)]
pub(super) struct Retry {
    /// Those up to here fit nowhere, but perhaps where something has grown since.
    everywhere: Pass,
    grown: Grown,
    /// Those up to here do not fit there either.
    there: Pass,
}

impl Retry {
    /// Everything may be different now.
    pub(super) fn begin_again(&mut self) {
        self.everywhere.send_back();
        self.grown = Grown::default();
        self.there = Pass::default();
    }

    /// A cluster may lend more now.
    pub(super) fn lends_more(&mut self, cluster: &ClusterId) {
        if self.everywhere.reached == Reached::Nobody {
            return;
        }
        self.grown.clusters.insert(cluster.clone());
        self.there.send_back();
        if self.grown.clusters.len() > GROWN_MAX {
            self.begin_again();
        }
    }

    /// A cluster may borrow more now.
    fn borrows_more(&mut self, cluster: &ClusterId) {
        if self.everywhere.reached != Reached::Nobody {
            self.grown.requesters.insert(cluster.clone());
            self.there.send_back();
        }
    }

    /// What may fit after this that did not before?
    pub(super) fn heed(&mut self, event: &Event, ledger: &Ledger) {
        match event {
            Event::Acknowledged { id, .. } | Event::Ended { id, .. } => {
                let Some(freed) = ledger.reservation(*id) else { return };
                let Some(grant) = freed.holding() else { return };
                self.lends_more(&grant.provider);
                let account = ledger.account(&freed.requester);
                if account.is_some_and(|account| account.waiting > 0) {
                    self.borrows_more(&freed.requester);
                }
            }
            Event::Reinstated { subject: Subject::Cluster(cluster), .. } => {
                self.lends_more(cluster);
                self.borrows_more(cluster);
            }
            Event::Uncordoned { cluster, .. }
            | Event::Capped { cluster, .. }
            | Event::Returned { cluster }
            | Event::Reconciled { cluster, .. } => self.lends_more(cluster),
            _ => {}
        }
    }

    /// Is everybody tried?
    pub(super) fn is_over(&self) -> bool {
        self.everywhere.reached == Reached::All && self.grown.is_empty()
    }

    /// The pass that is next.
    fn pass(&mut self) -> &mut Pass {
        if self.grown.is_empty() { &mut self.everywhere } else { &mut self.there }
    }

    /// Who is tried next, where, down to a priority.
    pub(super) fn next(&mut self, floor: Option<i32>, looks: u64) -> Fill {
        let after = self.pass().reached.place();
        let (until, grown) = if self.grown.is_empty() {
            (None, None)
        } else {
            (self.everywhere.reached.place(), Some(self.grown.clone()))
        };
        Fill { after, until, floor, grown, looks }
    }

    /// They are tried up to here.
    pub(super) fn go_on_after(&mut self, place: Place) {
        self.pass().reached = Reached::UpTo(place);
    }

    /// Of those who were to be tried next, nobody fits any more down to this priority, or at all. Is
    /// everybody down to there tried?
    pub(super) fn finish(&mut self, floor: Option<i32>) -> bool {
        let floor = floor.filter(|_| !planted(Bug::ForgetsLane));
        let tried = floor.map_or(Reached::All, |floor| {
            Reached::UpTo((Reverse(floor), u64::MAX, ReservationId::LAST))
        });
        let pass = self.pass();
        pass.reached = pass.reached.max(tried);
        if pass.reached == Reached::All {
            (pass.cut, pass.doubled) = (false, 0);
        }
        if self.grown.is_empty() {
            return true;
        }
        let all = self.there.reached >= self.everywhere.reached;
        if all {
            self.grown = Grown::default();
            self.there = Pass::default();
        }
        !all
    }

    /// A planted bug forgets the rest.
    pub(super) fn give_up(&mut self) {
        while !self.is_over() {
            self.finish(None);
        }
    }

    /// There was no time for more.
    pub(super) fn cut(&mut self) {
        self.pass().cut = true;
    }

    /// How many clusters one step may look at for it.
    pub(super) fn looks(&mut self) -> u64 {
        Fill::LOOKS << self.pass().doubled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(priority: i32, age: u64) -> Place {
        (Reverse(priority), age, ReservationId::FIRST)
    }

    fn cluster(name: &str) -> ClusterId {
        name.parse().unwrap()
    }

    #[test]
    fn a_pass_that_is_always_sent_back_gets_larger_pieces_also_when_its_beginning_is_tried() {
        let mut retry = Retry::default();
        for round in 1..=4 {
            retry.cut();
            retry.begin_again();
            assert!(retry.finish(Some(9)));
            assert!(!retry.is_over());
            assert_eq!(retry.looks(), Fill::LOOKS << round);
        }
        assert!(retry.finish(None));
        assert!(retry.is_over());
        assert_eq!(retry.looks(), Fill::LOOKS);
    }

    #[test]
    fn room_on_a_cluster_is_offered_to_those_who_were_tried_and_the_pass_goes_on_where_it_was() {
        let mut retry = Retry::default();
        retry.lends_more(&cluster("c1"));
        assert_eq!(retry.next(None, 9).grown, None, "nobody was tried");
        retry.go_on_after(place(5, 3));
        retry.cut();
        retry.lends_more(&cluster("c1"));
        let next = retry.next(Some(0), 9);
        assert_eq!((next.after, next.until), (None, Some(place(5, 3))));
        assert!(next.grown.unwrap().clusters.contains(&cluster("c1")));
        retry.go_on_after(place(7, 1));
        retry.lends_more(&cluster("c2"));
        assert_eq!(retry.next(None, 9).after, None, "those in front have a claim to it as well");
        assert!(!retry.finish(Some(0)), "the rest down to there is not tried");
        let next = retry.next(Some(0), 9);
        assert_eq!((next.after, next.until, next.grown), (Some(place(5, 3)), None, None));
        assert_eq!(retry.looks(), Fill::LOOKS, "it was not sent back");
        assert!(retry.finish(None) && retry.is_over());
    }

    #[test]
    fn who_stands_lower_than_a_new_request_is_offered_the_room_after_it() {
        let mut retry = Retry::default();
        assert!(retry.finish(None));
        retry.lends_more(&cluster("c1"));
        assert!(retry.finish(Some(3)), "down to there everybody is tried");
        assert!(!retry.is_over());
        assert_eq!(retry.next(None, 9).after.map(|place| place.0), Some(Reverse(3)));
        assert!(!retry.finish(None));
        assert!(retry.is_over());
    }

    #[test]
    fn where_much_has_grown_everybody_is_tried_everywhere() {
        let mut retry = Retry::default();
        assert!(retry.finish(None));
        (0..=GROWN_MAX).for_each(|number| retry.lends_more(&cluster(&format!("c{number}"))));
        let next = retry.next(None, 9);
        assert_eq!((next.after, next.until, next.grown), (None, None, None));
    }
}
