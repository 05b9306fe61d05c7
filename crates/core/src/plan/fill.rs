//! Who waits is granted what fits by now, in the order of priority and age.
//!
//! Many may wait, each try may look at the whole fleet, and others want to be planned too: so a plan
//! ends when it has looked at so many clusters, and says how far it came. Who was tried everywhere
//! and fits nowhere need not be again: until then nothing but what has [`Grown`] can take them.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{Plan, Reply, Scene};
use crate::id::ClusterId;
use crate::ledger::Place;
use crate::reservation::Reservation;

/// Whom to try, where, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Only those after this place.
    pub after: Option<Place>,
    /// Only those up to this place.
    pub until: Option<Place>,
    /// Only those of at least this priority.
    pub floor: Option<i32>,
    /// They fit nowhere else.
    pub grown: Option<Grown>,
    /// When so many clusters were looked at, nobody else is tried.
    pub looks: u64,
}

impl Fill {
    /// What a plan looks at without anybody noticing: a millisecond or so.
    pub const LOOKS: u64 = 2048;
}

impl Default for Fill {
    fn default() -> Self {
        Self { after: None, until: None, floor: None, grown: None, looks: Self::LOOKS }
    }
}

/// Where something may fit that did not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// Clusters that may lend more.
    pub clusters: BTreeSet<ClusterId>,
    /// Clusters that may borrow more, from whomever.
    pub requesters: BTreeSet<ClusterId>,
}

impl Grown {
    /// Is there nothing of the kind?
    pub fn is_empty(&self) -> bool {
        self.clusters.is_empty() && self.requesters.is_empty()
    }
}

impl Scene<'_> {
    /// Grants the first waiting request that fits, in the order of priority and age.
    pub(super) fn fill(&self, fill: &Fill) -> Plan {
        let Fill { after, until, floor, grown, .. } = fill;
        let ledger = self.books.ledger();
        let clusters: Vec<_> = grown.iter().flat_map(|grown| &grown.clusters).collect();
        let served = ledger.waiting(*after).take_while(|(place, _)| {
            let above = floor.is_none_or(|floor| place.0.0 >= floor);
            above && until.is_none_or(|until| *place <= until)
        });
        // Whose patience is over has not been swept yet.
        let patient =
            |reservation: &Reservation| reservation.deadline().is_some_and(|t| t > self.at.time);
        let mut looks = 0_u64;
        for (place, reservation) in served {
            looks = looks.saturating_add(1);
            let Reservation { id, requester, ask, .. } = reservation;
            let only_grown =
                grown.as_ref().is_some_and(|grown| !grown.requesters.contains(requester));
            let among = only_grown.then_some(clusters.as_slice());
            if patient(reservation)
                && !self.is_held_back(reservation)
                && !ledger.is_revoked(requester)
                && let who = (requester, ledger.account(requester))
                && let Ok(pick) = self.choose_among(who, ask, among, &mut looks)
            {
                return Plan::new([self.grant(*id, ask, pick)], Reply::Filled { place, looks });
            }
            if looks >= fill.looks {
                return Plan::new([], Reply::NotYetFilled { place, looks });
            }
        }
        Plan::new([], Reply::NothingToFill { looks })
    }
}
