//! The clock of whoever types a command, read here and nowhere else. It only says how old things
//! look on the screen and dates certificates; the broker's clock decides everything else.

use jiff::Timestamp;
use sublet_core::time::Time;

/// Now, by the wall.
pub(crate) fn today() -> Timestamp {
    Timestamp::now()
}

/// Now, as broker time is written.
pub(crate) fn now() -> Time {
    time(today())
}

/// A point in time as broker time is written; 0 before 1970.
pub(crate) fn time(stamp: Timestamp) -> Time {
    Time::from_millis(u64::try_from(stamp.as_millisecond()).unwrap_or_default())
}
