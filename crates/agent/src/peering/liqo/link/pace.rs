//! How often the letters of another cluster may have this one work.
//!
//! A round costs some calls to the API server and perhaps a certificate, and a letter costs its sender
//! nothing. A handshake has a few letters in a second, and they are all taken up at once; whoever goes
//! on like that is heard once a second, with the newest that it said.

use std::time::Duration;

use tokio::time::Instant;

/// How often in the long run.
const EVERY: Duration = Duration::from_secs(1);
/// How often at once: more than there are letters in both directions of a handshake.
const AT_ONCE: u32 = 8;

/// When the next letter may be taken up.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When all that was taken up has been paid for.
    even: Option<Instant>,
}

impl Pace {
    /// Not before that; none if it may be at once.
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.even?.checked_sub(EVERY.saturating_mul(AT_ONCE - 1))
    }

    /// May a letter be taken up?
    pub(super) fn allows(&self, now: Instant) -> bool {
        self.earliest().is_none_or(|earliest| earliest <= now)
    }

    /// One is.
    pub(super) fn spend(&mut self, now: Instant) {
        self.even = Some(self.even.map_or(now, |even| even.max(now)) + EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_handshake_is_heard_at_once_and_a_flood_once_a_second() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        for _ in 0..AT_ONCE {
            assert!(pace.allows(start));
            pace.spend(start);
        }
        let mut heard = 0;
        for millisecond in 1..=60_000 {
            let now = start + Duration::from_millis(millisecond);
            if pace.allows(now) {
                pace.spend(now);
                heard += 1;
            }
        }
        assert_eq!(heard, 60);
        let later = start + Duration::from_mins(10);
        (0..AT_ONCE).for_each(|_| pace.spend(later));
        assert!(!pace.allows(later), "silence saves up no more than a handshake");
        assert_eq!(pace.earliest(), Some(later + EVERY));
    }
}
