//! Lines that anybody can cause: of one cause at most one per second, with how many were left out.
//!
//! Everything is counted in the metrics all the same. Without this, whoever is refused often enough
//! drowns the lines about everybody else.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Between two lines of one cause.
const EVERY: Duration = Duration::from_secs(1);
/// The most causes that are told apart at a time; beyond that nothing is written until some are old.
const CAUSES_MAX: usize = 4096;

/// Who had a line when.
pub(crate) struct Sparing<K>(Mutex<HashMap<K, Said>>);

struct Said {
    at: Duration,
    left_out: u64,
}

impl<K> Default for Sparing<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq> Sparing<K> {
    /// If a line is to be written at `now`: how many of this cause had none since the last one.
    pub(crate) fn line(&self, cause: K, now: Duration) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = |said: &Said| now.saturating_sub(said.at) >= EVERY;
        if let Some(said) = all.get_mut(&cause) {
            if !is_old(said) {
                said.left_out = said.left_out.saturating_add(1);
                return None;
            }
            said.at = now;
            return Some(std::mem::take(&mut said.left_out));
        }
        if all.len() >= CAUSES_MAX {
            all.retain(|_, said| !is_old(said));
        }
        if all.len() >= CAUSES_MAX {
            return None;
        }
        all.insert(cause, Said { at: now, left_out: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_one_line_per_second_which_counts_the_others() {
        let (sparing, ms) = (Sparing::default(), Duration::from_millis);
        let lines = [0, 1, 999, 1000, 1001, 5000].map(|at| sparing.line("c1", ms(at)));
        assert_eq!(lines, [Some(0), None, None, Some(2), None, Some(1)]);
        assert_eq!(sparing.line("c2", ms(5000)), Some(0));
    }

    #[test]
    fn causes_are_bounded_and_old_ones_make_room() {
        let (sparing, second) = (Sparing::default(), Duration::from_secs);
        let said = (0..2 * CAUSES_MAX).filter(|cause| sparing.line(*cause, second(1)).is_some());
        assert_eq!(said.count(), CAUSES_MAX);
        assert_eq!(sparing.line(usize::MAX, second(2)), Some(0));
    }
}
