//! How soon after a failure it is tried again, whatever else happens meanwhile.

use std::time::Duration;

use tokio::time::Instant;

/// After a failure, doubled with each further one.
const AGAIN: Duration = Duration::from_secs(1);
/// At most so long after a failure, unless the broker asks for more.
const AGAIN_MAX: Duration = Duration::from_secs(30);

/// The failures so far, and how long they are to be waited out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    failures: u32,
    not_before: Option<Instant>,
    /// What the broker itself asked for; that holds even if it is reached again meanwhile.
    asked: Option<Instant>,
}

impl Pace {
    /// How often it has failed since it last worked.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn worked(&mut self) {
        *self = Self::default();
    }

    /// Answers when to try again: later each time, and as late as the broker asks for.
    pub(super) fn failed(&mut self, now: Instant, retry_after: Option<Duration>) -> Instant {
        let wait = AGAIN.saturating_mul(1 << self.failures.min(16)).min(AGAIN_MAX);
        self.failures = self.failures.saturating_add(1);
        self.asked = retry_after.map(|asked| now + asked);
        let due = (now + wait).max(self.asked.unwrap_or(now));
        self.not_before = Some(due);
        due
    }

    /// When something that is wished for then may be tried.
    pub(super) fn at_least(&self, then: Instant) -> Instant {
        self.not_before.map_or(then, |due| due.max(then))
    }

    /// The broker is reached again: when to try.
    pub(super) fn reached(&self, now: Instant) -> Instant {
        self.asked.map_or(now, |asked| asked.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_meanwhile_does_not_shorten_the_wait_after_a_failure() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        assert_eq!(pace.at_least(now), now);
        let mut last = Duration::ZERO;
        for _ in 0..8 {
            let due = pace.failed(now, None);
            assert!(due - now >= last && due - now <= AGAIN_MAX);
            assert_eq!(pace.at_least(now + Duration::from_millis(500)), due);
            last = due - now;
        }
        assert_eq!(last, AGAIN_MAX);
        assert_eq!(pace.reached(now), now, "it is there again");
        let asked = Duration::from_secs(99);
        assert_eq!(pace.failed(now, Some(asked)), now + asked);
        assert_eq!(pace.at_least(now), now + asked);
        assert_eq!(pace.reached(now), now + asked, "it asked for that");
        pace.worked();
        assert_eq!((pace.at_least(now), pace.reached(now), pace.failures()), (now, now, 0));
    }
}
