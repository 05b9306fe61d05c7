//! How long to wait before the next try: longer each time, and never the same for two clients.

use std::time::Duration;

/// A random pause of at most `first · 2^failures`, and at most `max`: "full jitter", which spreads
/// a crowd best.
pub(super) fn after(failures: u32, first: Duration, max: Duration) -> Duration {
    let doubled = 1_u32.checked_shl(failures).and_then(|times| first.checked_mul(times));
    spread(doubled.unwrap_or(max).min(max))
}

/// The longest that a broker may ask to be left alone: a slip, or somebody in between, must not keep
/// a cluster away for years.
const ASKED_MAX: Duration = Duration::from_mins(5);

/// What the broker asked for, and up to a fifth more, so that all do not come back at once.
pub(super) fn asked(wanted: Duration) -> Duration {
    let wanted = wanted.min(ASKED_MAX);
    wanted.saturating_add(spread(wanted / 5))
}

/// A random part of `most`.
fn spread(most: Duration) -> Duration {
    let parts = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
    match parts.checked_add(1) {
        Some(count) => Duration::from_nanos(random() % count),
        None => Duration::from_nanos(random()),
    }
}

/// A random number; without randomness in the system, one that is not: good enough for a pause.
fn random() -> u64 {
    getrandom::u64().unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(250);
    const MAX: Duration = Duration::from_secs(30);

    #[test]
    fn a_pause_grows_and_has_an_end() {
        for failures in [0, 1, 5, 31, 32, 1000] {
            let bound = FIRST.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
            for _ in 0..100 {
                assert!(after(failures, FIRST, MAX) <= bound.min(MAX));
            }
        }
    }

    #[test]
    fn two_pauses_are_hardly_ever_the_same() {
        let pauses: std::collections::BTreeSet<_> =
            (0..100).map(|_| after(8, FIRST, MAX)).collect();
        assert!(pauses.len() > 90);
    }

    #[test]
    fn what_the_broker_asks_for_has_an_end() {
        assert!(asked(Duration::from_secs(u32::MAX.into())) <= ASKED_MAX * 6 / 5);
    }

    #[test]
    fn what_the_broker_asks_for_is_the_least() {
        for _ in 0..100 {
            let pause = asked(Duration::from_secs(5));
            assert!((Duration::from_secs(5)..=Duration::from_secs(6)).contains(&pause));
        }
    }
}
