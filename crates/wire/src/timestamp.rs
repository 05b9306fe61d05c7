//! Points in time on the wire: RFC 3339, read with any offset, written in UTC.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use sublet_core::time::Time;

/// Why a text is not a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time as RFC 3339 has it, such as 2026-11-15T22:11:16Z")]
pub struct Error;

/// A point in time on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// Go's zero time in seconds since the Unix epoch: what it writes for a time that was not set.
    const GO_ZERO_SECOND: i64 = -62_135_596_800;

    /// The beginning of the year 0 in seconds since the Unix epoch: the first that RFC 3339 has.
    const FIRST_SECOND: i64 = -62_167_219_200;

    /// Is this what Go writes for a time that was not set?
    pub fn is_go_zero(self) -> bool {
        self.0.as_second() == Self::GO_ZERO_SECOND
    }

    /// The same without a fraction of a second, as Kubernetes keeps it.
    #[must_use]
    pub fn whole_seconds(self) -> Self {
        // A second that was read can be written.
        jiff::Timestamp::from_second(self.0.as_second()).map_or(self, Self)
    }

    /// In the broker's terms; a time before 1970 is the beginning of 1970.
    pub fn time(self) -> Time {
        Time::from_millis(u64::try_from(self.0.as_millisecond()).unwrap_or_default())
    }
}

impl From<Time> for Timestamp {
    /// A time beyond the year 9999 is the last one that can be written.
    fn from(time: Time) -> Self {
        let millis = i64::try_from(time.as_millis()).ok();
        let stamp = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
        Self(stamp.unwrap_or(jiff::Timestamp::MAX))
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // jiff reads other ISO 8601 forms as well, which Go does not.
        let looks_right = text.len() <= 40
            && text.as_bytes().get(10) == Some(&b'T')
            && text.bytes().all(|b| b.is_ascii_digit() || b"T:.Z+-".contains(&b));
        let stamp: jiff::Timestamp = text.parse().map_err(|_| Error)?;
        // An offset can lead to before the year 0, which cannot be written.
        let writable = stamp.as_second() >= Self::FIRST_SECOND;
        if looks_right && writable { Ok(Self(stamp)) } else { Err(Error) }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time as text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
        text.parse().map_err(E::custom)
    }
}

crate::decode::leaf!(Timestamp);

#[cfg(feature = "openapi")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_offset_and_fraction_is_read_and_utc_is_written() {
        let stamp: Timestamp = "2026-11-16T00:11:20.123456+02:00".parse().unwrap();
        assert_eq!(stamp.to_string(), "2026-11-15T22:11:20.123456Z");
        assert_eq!(stamp.whole_seconds().to_string(), "2026-11-15T22:11:20Z");
        assert_eq!(Timestamp::from(stamp.time()).to_string(), "2026-11-15T22:11:20.123Z");
    }

    #[test]
    fn what_go_refuses_is_refused() {
        let bad = ["", "2026-11-15", "2026-11-15 22:11:16Z", "2026-11-15T22:11:16", "now"];
        let odd = ["2026-11-15T22:11:16Z[UTC]", "20261115T221116Z", "0000-01-01T00:00:00+01:00"];
        for text in bad.into_iter().chain(odd) {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_time_that_go_did_not_set_is_known() {
        let zero: Timestamp = "0001-01-01T00:00:00Z".parse().unwrap();
        assert!(zero.is_go_zero());
        assert_eq!(zero.time(), Time::from_millis(0));
    }

    #[test]
    fn every_broker_time_can_be_written() {
        assert_eq!(Timestamp::from(Time::from_millis(0)).to_string(), "1970-01-01T00:00:00Z");
        let last = Timestamp::from(Time::from_millis(u64::MAX)).to_string();
        assert!(last.starts_with("9999-12-30T"), "{last}");
    }
}
