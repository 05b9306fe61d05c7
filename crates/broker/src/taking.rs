//! Answers that wait to be taken, of one HTTP/2 connection.
//!
//! HTTP/2 lets a peer keep the connection alive and take nothing: its window stays shut while it
//! answers every ping. So every answer notes when a part of it was taken last, and a connection on
//! which one does not move for too long is closed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The answers of one connection that are not taken completely.
#[derive(Clone, Debug, Default)]
pub struct Taking(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    /// When a part of each was taken last.
    moved: BTreeMap<u64, Instant>,
}

impl Taking {
    /// One more answer.
    pub(crate) fn begin(&self) -> Taken {
        let mut waiting = self.waiting();
        let number = waiting.next;
        waiting.next = number.wrapping_add(1);
        waiting.moved.insert(number, Instant::now());
        Taken { of: self.clone(), number }
    }

    /// Waits until one of them has not moved for so long.
    pub(crate) async fn stalled(&self, patience: Duration) {
        loop {
            let oldest = self.waiting().moved.values().min().copied();
            let due = oldest.unwrap_or_else(Instant::now) + patience;
            if oldest.is_some() && due <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is not taken completely.
#[derive(Debug)]
pub(crate) struct Taken {
    of: Taking,
    number: u64,
}

impl Taken {
    /// A part of it was taken.
    pub(crate) fn moved(&self) {
        self.of.waiting().moved.insert(self.number, Instant::now());
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.of.waiting().moved.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_an_answer_that_does_not_move_for_long_is_a_stall() {
        let (taking, beat) = (Taking::default(), Duration::from_millis(20));
        let is_stalled = || tokio::time::timeout(20 * beat, taking.stalled(10 * beat));
        assert!(is_stalled().await.is_err(), "nothing waits");
        let (moves, done) = (taking.begin(), taking.begin());
        drop(done);
        let moving = async {
            for _ in 0..30 {
                tokio::time::sleep(beat).await;
                moves.moved();
            }
        };
        tokio::select! {
            () = moving => {}
            () = taking.stalled(10 * beat) => panic!("it moved"),
        }
        taking.stalled(10 * beat).await;
    }
}
