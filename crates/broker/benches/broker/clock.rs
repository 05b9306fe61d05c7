//! The one place of the benchmark that asks the clock, and what is made of many times.

use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Now.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time; this is the one place")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The middle one.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The longest time that is told apart: longer than the broker lets anybody wait.
const LONGEST: Duration = Duration::from_mins(1);

/// Times, kept to three digits.
pub(crate) struct Waits(Histogram<u64>);

impl Waits {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Histogram::new_with_bounds(1, nanos(LONGEST), 3)?))
    }

    pub(crate) fn add(&mut self, wait: Duration) {
        self.0.saturating_record(nanos(wait));
    }

    pub(crate) fn join(&mut self, other: &Self) -> Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    pub(crate) fn spread(&self) -> Spread {
        let nanos = |quantile| f64_of(self.0.value_at_quantile(quantile));
        Spread { count: f64_of(self.0.len()), p50: nanos(0.5), p99: nanos(0.99) }
    }
}

/// How many there were, and within how many nanoseconds half and 99 of 100 of them ended.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) count: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Spread {
    /// Of several turns, the median of each.
    pub(crate) fn median(turns: &[Self]) -> Self {
        Self {
            count: median(turns.iter().map(|turn| turn.count)),
            p50: median(turns.iter().map(|turn| turn.p50)),
            p99: median(turns.iter().map(|turn| turn.p99)),
        }
    }
}

fn nanos(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)
}

/// A count, for dividing.
#[expect(clippy::cast_precision_loss, reason = "nothing that is counted here needs 53 bits")]
pub(crate) fn f64_of(count: u64) -> f64 {
    count as f64
}
