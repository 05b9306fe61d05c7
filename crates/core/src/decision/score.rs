//! How well a provider suits a request: the Go system's two formulas in integers, and ours.

use super::{Strategy, index::Row};
use crate::resources::Resources;

/// Greater is better; only compared with others for the same request and strategy.
pub type Score = (i128, i128);

/// Shares are counted in parts of this.
pub const WHOLE: u64 = 1 << 32;

/// The mean headroom left after the request, over the resources asked for, in parts of `WHOLE`.
pub fn headroom(resources: &Resources, row: &Row) -> u64 {
    let (mut sum, mut count) = (0u128, 0u128);
    for (kind, amount) in resources.iter() {
        let left = row.room.get(&kind).saturating_sub(amount);
        sum = sum.saturating_add(share(left, row.allocatable.get(&kind)));
        count = count.saturating_add(1);
    }
    sum.checked_div(count).and_then(|mean| u64::try_from(mean).ok()).unwrap_or(0)
}

fn share(part: u64, whole: u64) -> u128 {
    u128::from(part).saturating_mul(u128::from(WHOLE)).checked_div(u128::from(whole)).unwrap_or(0)
}

/// The score of a provider that fits.
pub fn score(strategy: Strategy, resources: &Resources, row: &Row) -> Score {
    let headroom = i128::from(headroom(resources, row));
    match strategy {
        Strategy::Headroom => (headroom, 0),
        Strategy::Binpack => (headroom.saturating_neg(), 0),
        Strategy::Cost => (0, headroom),
    }
}
