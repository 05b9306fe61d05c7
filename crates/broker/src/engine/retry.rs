//! Which waiting requests may fit by now and have not been tried.
//!
//! They are tried from the first to the last, a piece in each step. Whatever may make room sends
//! the pass back to its beginning, because who waits in front has the first claim to it. So that
//! one that is sent back again and again comes to its end all the same, its pieces become larger
//! each time.

use std::cmp::Reverse;

use sublet_core::bugs::{Bug, planted};
use sublet_core::event::Event;
use sublet_core::id::ReservationId;
use sublet_core::ledger::Place;

/// Plans of the first piece.
const PLANS: u32 = 8;
/// How often pieces double at most: more than a queue can be long.
const DOUBLED_MAX: u32 = 16;

/// How far the pass is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Untried {
    None,
    After(Place),
    All,
}

/// A pass over those who wait.
pub(super) struct Retry {
    untried: Untried,
    /// Its last piece ended before it did.
    cut: bool,
    doubled: u32,
}

impl Retry {
    pub(super) fn all() -> Self {
        Self { untried: Untried::All, cut: false, doubled: 0 }
    }

    /// Something may fit now that did not before.
    pub(super) fn begin_again(&mut self) {
        if std::mem::take(&mut self.cut) {
            self.doubled = self.doubled.saturating_add(1).min(DOUBLED_MAX);
        }
        self.untried = Untried::All;
    }

    /// Is everybody tried?
    pub(super) fn is_over(&self) -> bool {
        self.untried == Untried::None
    }

    /// Up to where they are tried.
    pub(super) fn reached(&self) -> Option<Place> {
        match self.untried {
            Untried::After(place) => Some(place),
            Untried::None | Untried::All => None,
        }
    }

    /// They are tried up to here.
    pub(super) fn go_on_after(&mut self, place: Place) {
        self.untried = Untried::After(place);
    }

    /// They are tried down to this priority, or all of them.
    pub(super) fn finish(&mut self, floor: Option<i32>) {
        if floor.is_none() {
            (self.cut, self.doubled) = (false, 0);
        }
        let tried = floor.map(|floor| (Reverse(floor), u64::MAX, ReservationId::LAST));
        self.untried = tried
            .max(self.reached())
            .filter(|_| floor.is_some() && !planted(Bug::ForgetsLane))
            .map_or(Untried::None, Untried::After);
    }

    /// There was no time for more.
    pub(super) fn cut(&mut self) {
        self.cut = true;
    }

    /// How many plans one step may make for it.
    pub(super) fn plans(&self) -> u32 {
        PLANS << self.doubled
    }
}

/// May something that waits fit after this?
pub(super) fn frees(event: &Event) -> bool {
    matches!(
        event,
        Event::Acknowledged { .. }
            | Event::Ended { .. }
            | Event::Uncordoned { .. }
            | Event::Capped { .. }
            | Event::Returned { .. }
            | Event::Reconciled { .. }
            | Event::Reinstated { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_is_always_sent_back_gets_larger_pieces_also_when_its_beginning_is_tried() {
        let mut retry = Retry::all();
        for round in 1..=4 {
            retry.cut();
            retry.begin_again();
            retry.finish(Some(9));
            assert!(!retry.is_over());
            assert_eq!(retry.plans(), PLANS << round);
        }
        retry.finish(None);
        assert!(retry.is_over());
        assert_eq!(retry.plans(), PLANS);
    }
}
