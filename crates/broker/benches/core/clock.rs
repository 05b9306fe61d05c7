//! The one place of the benchmark that asks the clock.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Now.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time; this is the one place")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// How long one call took, and what it gave.
pub(crate) fn timed<T>(call: impl FnOnce() -> T) -> (Duration, T) {
    let start = now();
    let result = call();
    (start.elapsed(), result)
}

/// How rounds are made.
#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    /// How many; the median counts.
    pub(crate) count: u32,
    /// How long each is, about.
    pub(crate) length: Duration,
}

impl Rounds {
    /// Short ones when the whole is to be quick.
    pub(crate) fn new(quick: bool) -> Self {
        let (count, millis) = if quick { (5, 2) } else { (7, 8) };
        Self { count, length: Duration::from_millis(millis) }
    }

    /// Nanoseconds of one call: the median of the rounds, each of as many calls as fill it.
    pub(crate) fn nanos<T>(self, mut call: impl FnMut() -> T) -> f64 {
        let calls = self.calls(&mut call);
        let mut rounds: Vec<f64> = (0..self.count).map(|_| round(calls, &mut call)).collect();
        median(&mut rounds)
    }

    /// How many calls fill a round; finding out warms the caches.
    fn calls<T>(self, call: &mut impl FnMut() -> T) -> u32 {
        let start = worked();
        let mut calls = 0;
        while worked().saturating_sub(start) < self.length {
            black_box(call());
            calls += 1;
        }
        calls
    }
}

fn round<T>(calls: u32, call: &mut impl FnMut() -> T) -> f64 {
    let start = worked();
    for _ in 0..calls {
        black_box(call());
    }
    worked().saturating_sub(start).as_secs_f64() * 1e9 / f64::from(calls)
}

/// How long this thread has had a processor. What runs beside it hardly counts.
fn worked() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// The middle one.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
