//! When the cluster is advertised if nothing happens: on a grid of the clock.

use sha2::{Digest, Sha256};
use sublet_core::id::ClusterId;
use sublet_core::time::{Span, Time};

/// The full intervals of the clock, moved by an offset of each cluster's own, so that a fleet is not
/// a herd. Without spread they are the clock's own: `:00` and `:30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    interval: u64,
    offset: u64,
}

impl Grid {
    /// The grid of a cluster.
    pub fn new(cluster: &ClusterId, interval: Span, spread: Span) -> Self {
        let interval = interval.as_millis().max(1);
        let hash = Sha256::digest(cluster.as_str());
        let hash = hash.iter().take(8).fold(0, |sum: u64, byte| (sum << 8) | u64::from(*byte));
        let offset = hash.checked_rem(spread.as_millis().min(interval)).unwrap_or(0);
        Self { interval, offset }
    }

    /// How far apart two times are.
    pub fn every(self) -> Span {
        Span::from_millis(self.interval)
    }

    /// How long from now to the next time.
    pub fn wait(self, now: Time) -> Span {
        let now = now.as_millis() % self.interval;
        let next = if self.offset > now { self.offset } else { self.offset + self.interval };
        Span::from_millis(next - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cluster(number: u32) -> ClusterId {
        format!("c{number}").parse().unwrap()
    }

    #[test]
    fn without_spread_it_is_the_clock() {
        let grid = Grid::new(&cluster(1), Span::from_secs(30), Span::ZERO);
        for (now, wait) in [(0, 30_000), (1, 29_999), (29_999, 1), (30_000, 30_000)] {
            assert_eq!(grid.wait(Time::from_millis(now)), Span::from_millis(wait));
        }
    }

    #[test]
    fn a_fleet_is_spread_evenly() {
        let minute = Span::from_secs(60);
        let offsets = (0..600).map(|number| Grid::new(&cluster(number), minute, minute).offset);
        let mut seconds = [0; 6];
        for offset in offsets {
            seconds[usize::try_from(offset / 10_000).unwrap()] += 1;
        }
        assert!(seconds.iter().all(|count| (60..140).contains(count)), "{seconds:?}");
    }

    proptest! {
        #[test]
        fn each_time_is_later_and_one_interval_after_the_one_before(
            number in any::<u32>(), interval in 1_u64..100_000, spread in 0_u64..200_000,
            now in 0_u64..10_000_000,
        ) {
            let (interval, spread) = (Span::from_millis(interval), Span::from_millis(spread));
            let grid = Grid::new(&cluster(number), interval, spread);
            let first = grid.wait(Time::from_millis(now));
            prop_assert!(!first.is_zero() && first <= interval);
            let at = Time::from_millis(now + first.as_millis());
            prop_assert_eq!(grid.wait(at), interval);
        }
    }
}
