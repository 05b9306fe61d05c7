//! The clock of whoever types a command, read here and nowhere else. It only says how old things
//! look on the screen and dates certificates; the broker's clock decides everything else.

use jiff::Timestamp;
use sublet_core::time::Time;

/// Now, by the wall.
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

/// The same as broker time is written; 0 before 1970.
pub(crate) fn broker_time(now: Timestamp) -> Time {
    Time::from_millis(u64::try_from(now.as_millisecond()).unwrap_or_default())
}
