//! Since when something is not as it should be. Most of it passes by itself in a moment, so it is called an
//! obstacle only once it lasts. A restart begins the time anew: that delays a word, and nothing else.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sublet_core::instruction::Side;
use sublet_core::time::Time;
use sublet_crds::Obstacle;

use super::requester::LIQO_MAX;
use crate::peering::Why;
use crate::transport::Order;

type Known = BTreeMap<(Side, String), (Obstacle, Time)>;

/// What is suspected, of each reservation that is not settled.
#[derive(Debug, Default)]
pub(crate) struct Lasting(Mutex<Known>);

impl Lasting {
    /// What is suspected is in the way, if it has been for long.
    pub(crate) fn judge(&self, order: &Order, why: Why, now: Time) -> Why {
        let Some(suspect) = why.suspect else {
            self.settled(order);
            return why;
        };
        let mut known = self.known();
        let (before, since) = known.entry(key(order)).or_insert((suspect, now));
        if *before != suspect {
            (*before, *since) = (suspect, now);
        }
        let is_lasting = now.since(*since) > LIQO_MAX;
        Why { obstacle: is_lasting.then_some(suspect), ..why }
    }

    /// Nothing is suspected of it any more.
    pub(crate) fn settled(&self, order: &Order) {
        self.known().remove(&key(order));
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(order: &Order) -> (Side, String) {
    (order.side, order.reservation.clone())
}

#[cfg(test)]
mod tests {
    use super::super::requester::tests::order;
    use super::*;

    #[test]
    fn what_passes_is_not_called_an_obstacle_and_what_lasts_is() {
        let lasting = Lasting::default();
        let at = |second: u64, why: Why| {
            lasting.judge(&order(), why, Time::from_millis(second * 1000)).obstacle
        };
        let differ = || Why::suspected(Obstacle::AmountsDiffer, "not yet");
        assert_eq!([at(0, differ()), at(45, differ())], [None, None]);
        assert_eq!(at(46, differ()), Some(Obstacle::AmountsDiffer));
        // Something else begins anew, and so does what was settled in between.
        let going = || Why::suspected(Obstacle::StillDeleting, "going");
        assert_eq!([at(50, going()), at(95, going())], [None, None]);
        assert_eq!(at(96, going()), Some(Obstacle::StillDeleting));
        lasting.settled(&order());
        assert_eq!(at(97, going()), None);
        assert_eq!(at(98, "something else".into()), None);
        assert_eq!(at(200, going()), None);
        let known = Why::hindered(Obstacle::PodsHeld, "known");
        assert_eq!(at(201, known), Some(Obstacle::PodsHeld));
    }
}
