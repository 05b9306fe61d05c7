//! Numbers that order as the names do, so that a tie is one comparison and no text is touched.
//!
//! A new name gets a number between its neighbours'. Where none is left between them, all are
//! numbered anew at even distances; with 2⁶⁴ numbers for at most millions of names that is rare.

use super::Index;
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
        let rank = |(_, number): (&ClusterId, &u32)| Some(self.slots.get(*number)?.rank);
        let below = self.numbers.range::<ClusterId, _>(..cluster).next_back().and_then(rank);
        let above = self.numbers.range::<ClusterId, _>(cluster..).next().and_then(rank);
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
        let count = u64::try_from(self.numbers.len()).unwrap_or(u64::MAX);
        let distance = u64::MAX.checked_div(count.saturating_add(2)).unwrap_or(1);
        let mut rank = 0_u64;
        for number in self.numbers.values() {
            rank = rank.saturating_add(distance);
            if let Some(slot) = self.slots.get_mut(*number) {
                slot.rank = rank;
            }
        }
        for tree in [&mut self.by_load, &mut self.by_price] {
            tree.rank_anew(&self.slots);
        }
    }
}
