//! Waiting for conditions, and the one clock of this crate.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// How often a condition is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(40);
/// One look and its pause count as no more than this: a machine that stood still has not waited.
const TURN_MAX: Duration = Duration::from_secs(2);

/// How long anything may take that comes soon on an idle machine: tests run on few cores, beside others.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// How long the programs of a cluster may take to start: an API server has much to do first.
pub const START_PATIENCE: Duration = Duration::from_mins(3);

/// What was waited for did not come.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("waited {} s in vain for {what}", .limit.as_secs())]
pub struct Late {
    /// For what.
    pub what: String,
    /// How long.
    pub limit: Duration,
}

/// Looks again and again until there is something, at most for so long.
pub fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T, Late> {
    let mut waited = Duration::ZERO;
    loop {
        // Asked before the look, so that the last look comes after the limit.
        let (over, turn) = (waited >= limit, Stopwatch::start());
        match look() {
            Some(found) => return Ok(found),
            None if over => return Err(Late { what: what.to_owned(), limit }),
            None => pause(LOOK_AGAIN),
        }
        waited += turn.elapsed().min(TURN_MAX);
    }
}

/// Time that passes.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// From now on.
    #[expect(clippy::disallowed_methods, reason = "the one clock of the testkit")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The time of this machine, since 1970: for comparing with what a program wrote down.
#[expect(clippy::disallowed_methods, reason = "the one clock of the testkit")]
pub fn wall() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Lets some time pass between two looks at a condition.
pub(crate) fn pause(time: Duration) {
    thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_until_there_is_something() {
        let mut looks = 0;
        let found = wait_for("three looks", Duration::from_mins(1), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, Ok(3));
    }

    #[test]
    fn what_does_not_come_is_named() {
        let never = wait_for("the moon", Duration::ZERO, || None::<()>);
        assert_eq!(never.unwrap_err().to_string(), "waited 0 s in vain for the moon");
    }
}
