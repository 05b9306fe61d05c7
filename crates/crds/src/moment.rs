//! Points in time as Kubernetes has them, and the core's.

use sublet_core::time::Time as CoreTime;

use crate::{Cause, Invalid};

/// A point in time as Kubernetes writes it: RFC 3339, whole seconds.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A point in time for an object; beyond the year 9999 it is the last one that can be written.
pub fn from_time(time: CoreTime) -> Time {
    let millis = i64::try_from(time.as_millis()).ok();
    let stamp = millis.and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    Time(stamp.unwrap_or(jiff::Timestamp::MAX))
}

/// A point in time from an object.
pub fn to_time(field: &str, time: &Time) -> Result<CoreTime, Invalid> {
    let millis = u64::try_from(time.0.as_millisecond());
    millis.map(CoreTime::from_millis).map_err(|_| Invalid::new(field, Cause::BeforeTime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_goes_there_and_back_in_whole_seconds() {
        let time = from_time(CoreTime::from_millis(1_794_780_000_000));
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, "\"2026-11-15T22:00:00Z\"");
        let back: Time = serde_json::from_str(&text).unwrap();
        assert_eq!(to_time("x", &back), Ok(CoreTime::from_millis(1_794_780_000_000)));
    }

    #[test]
    fn what_no_clock_shows_is_refused_or_bounded() {
        let old: Time = serde_json::from_str("\"0001-01-01T00:00:00Z\"").unwrap();
        assert!(to_time("spec.timestamp", &old).is_err());
        assert!(from_time(CoreTime::from_millis(u64::MAX)).0.as_second() > 253_000_000_000);
    }
}
