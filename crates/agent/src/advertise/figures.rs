//! The amounts that are told.

use sublet_core::resources::Resources;

use crate::collect::Measured;
use crate::offer::Offer;

/// The amounts that are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// What the nodes have.
    pub capacity: Resources,
    /// What the cluster's own pods take, and what is offered to others.
    pub allocatable: Resources,
    /// What pods take, those of other clusters included.
    pub allocated: Resources,
    /// What pods take outside of grants, and inside of them beyond what was granted.
    pub outside: Resources,
    /// What is kept for others: of each grant, what was granted, or what is used where that is more.
    pub lent: Resources,
    /// What is offered and not lent yet.
    pub available: Resources,
}

impl Figures {
    /// What was measured, as far as it is offered.
    pub fn of(measured: &Measured, offer: &Offer) -> Self {
        let Measured { capacity, allocatable, allocated, grants, .. } = measured;
        let sum = |all: &mut dyn Iterator<Item = Resources>| {
            all.fold(Resources::default(), |sum, one| plus(&sum, &one))
        };
        let used = sum(&mut grants.iter().map(|(_, used)| used.clone()));
        let covered = sum(&mut grants.iter().map(|(grant, used)| grant.amounts.min(used)));
        let lent = sum(&mut grants.iter().map(|(grant, used)| grant.amounts.max(used)));
        let own = allocated.minus_floor(&used);
        let offered = offer.of(&allocatable.minus_floor(&own));
        Self {
            capacity: capacity.clone(),
            allocatable: plus(&own, &offered).min(allocatable),
            allocated: allocated.clone(),
            outside: allocated.minus_floor(&covered),
            available: offered.minus_floor(&lent),
            lent,
        }
    }
}

/// The sum. Grants are promises within 64 bits in all, or the broker would not have made them; should
/// they ever not be, the larger one is told.
fn plus(left: &Resources, right: &Resources) -> Resources {
    left.checked_add(right).unwrap_or_else(|_| left.max(right))
}
