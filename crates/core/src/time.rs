//! Broker time and spans (stub until the parser lands).
use serde::{Deserialize, Serialize};
/// Broker time: milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);
impl Time {
    /// From ms.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }
    /// As ms.
    pub const fn as_millis(self) -> u64 {
        self.0
    }
    /// Later by `span`, if that can be told.
    pub fn checked_add(self, span: Span) -> Option<Self> {
        self.0.checked_add(span.0).map(Self)
    }
    /// Since `earlier`; zero if it is later.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}
/// A length of time in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(u64);
impl Span {
    /// From ms.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }
    /// From s.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1000))
    }
    /// As ms.
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}
