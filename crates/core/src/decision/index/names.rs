//! Numbers that order as the names do, so that a tie is one comparison and no text is touched.
//!
//! A new name gets a number between its neighbours'. Where none is left between them, all are
//! numbered anew at even distances; with 2⁶⁴ numbers for at most millions of names that is rare.

use super::{Index, Place};
use crate::id::ClusterId;

/// How far apart names are put at first: fleets are often numbered upwards, and each new name then
/// takes this much of the gap instead of half of it.
const STEP: u64 = 1 << 32;

impl Index {
    /// A number for a name that is not there yet.
    pub(super) fn rank_of(&mut self, cluster: &ClusterId) -> u64 {
        self.rank_between(cluster).unwrap_or_else(|| {
            self.rank_anew();
            self.rank_between(cluster).unwrap_or(u64::MAX)
        })
    }

    fn rank_between(&self, cluster: &ClusterId) -> Option<u64> {
        let rank = |(_, place): (&ClusterId, &Place)| place.rank;
        let below = self.places.range::<ClusterId, _>(..cluster).next_back().map(rank);
        let above = self.places.range::<ClusterId, _>(cluster..).next().map(rank);
        match (below, above) {
            (None, None) => Some(u64::MAX / 2),
            (None, Some(above)) => above.checked_sub(STEP),
            (Some(below), None) => below.checked_add(STEP),
            (Some(below), Some(above)) => {
                let gap = above.saturating_sub(below);
                (gap > 1).then(|| below.saturating_add((gap / 2).min(STEP)))
            }
        }
    }

    fn rank_anew(&mut self) {
        let count = u64::try_from(self.places.len()).unwrap_or(u64::MAX);
        let distance = u64::MAX.checked_div(count.saturating_add(2)).unwrap_or(1);
        let mut rank = 0_u64;
        for place in self.places.values_mut() {
            rank = rank.saturating_add(distance);
            let old = core::mem::replace(&mut place.rank, rank);
            self.tree.rename(place.leaf, old, rank);
        }
        self.tree.summarise_all();
    }
}
