//! The clock of this machine, read here and nowhere else. It dates advertisements and places them on
//! the grid; the broker's clock decides everything else.

use std::time::{SystemTime, UNIX_EPOCH};

use sublet_core::time::Time;

/// Now, by the wall. A clock before 1970 is as good as none.
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks the clock")]
pub(crate) fn now() -> Time {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_millis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))
}
