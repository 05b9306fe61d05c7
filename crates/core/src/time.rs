//! Points in time and lengths of time, in milliseconds.
//!
//! This module owns both types and how a length is written: as Go writes it (`300ms`, `1h30m`), since
//! that is what the users of Kubernetes know and what the Go system reads and prints. It owns no
//! clock. What time it is comes in as an argument, from the broker, whose clock alone counts.
//!
//! Milliseconds, because JSON readers hold integers exactly up to 2^53 only: enough for any time in
//! milliseconds, but not in nanoseconds.
//!
//! ```
//! use sublet_core::time::{Span, Time};
//!
//! let lease: Span = "1.5h".parse()?;
//! assert_eq!(lease.to_string(), "1h30m0s");
//! assert_eq!(Time::from_millis(500).checked_add(lease), Some(Time::from_millis(5_400_500)));
//! # Ok::<(), sublet_core::time::Error>(())
//! ```

use serde::{Deserialize, Serialize};

mod span_text;

pub use span_text::{Error, MAX_LENGTH};

/// Broker time: milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// The time so many milliseconds after the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time a span later, unless that lies beyond what can be written.
    pub const fn checked_add(self, span: Span) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(millis) => Some(Self(millis)),
            None => None,
        }
    }

    /// How long ago `earlier` was; zero if it was not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time in milliseconds.
///
/// Its text form is that of Go's `time.Duration`. Reading rounds a part of a millisecond up, so that a
/// span is never shorter than what was asked for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// So many seconds; at most what milliseconds can hold, which is 584 million years.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// The length in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Both spans, one after the other.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(millis) => Some(Self(millis)),
            None => None,
        }
    }

    /// The span so many times.
    pub const fn checked_mul(self, times: u64) -> Option<Self> {
        match self.0.checked_mul(times) {
            Some(millis) => Some(Self(millis)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_between_two_times_leads_from_one_to_the_other() {
        let (early, late) = (Time::from_millis(1_000), Time::from_millis(2_500));
        assert_eq!(late.since(early), Span::from_millis(1_500));
        assert_eq!(early.checked_add(late.since(early)), Some(late));
    }

    #[test]
    fn nothing_passed_since_a_time_that_is_yet_to_come() {
        assert_eq!(Time::from_millis(1).since(Time::from_millis(2)), Span::ZERO);
    }

    #[test]
    fn what_cannot_be_written_is_none() {
        let last = Time::from_millis(u64::MAX);
        assert_eq!(last.checked_add(Span::from_millis(1)), None);
        assert_eq!(Span::from_millis(u64::MAX).checked_add(Span::from_millis(1)), None);
        assert_eq!(Span::from_secs(1).checked_mul(u64::MAX), None);
        assert_eq!(Span::from_secs(2).checked_mul(3), Some(Span::from_secs(6)));
        assert_eq!(Span::from_secs(u64::MAX), Span::from_millis(u64::MAX));
    }

    #[test]
    fn both_are_plain_numbers_in_json() {
        assert_eq!(serde_json::to_string(&Time::from_millis(7)).expect("writes"), "7");
        assert_eq!(serde_json::from_str::<Span>("7").expect("reads"), Span::from_millis(7));
    }
}
