//! What is to be looked at, each thing once, and when.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::future::pending;
use std::hash::Hash;
use std::time::Duration;

use sublet_core::instruction::Side;
use tokio::time::{Instant, sleep_until};

/// The first pause after a failure, and the longest; each is twice the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// A request, by namespace and name.
    Request(String, String),
    /// An instruction, by reservation.
    Instruction(Side, String),
}

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As it should be; to be looked at again after so long, if at all.
    Done(Option<Duration>),
    /// Not yet: again after a growing pause, or after what the broker asked for.
    Retry(Option<Duration>),
}

/// What is to be looked at. Nothing is looked at twice at the same time.
#[derive(Debug)]
pub(crate) struct Queue<K = Key> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    busy: HashSet<K>,
    timers: HashMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
    failures: HashMap<K, u32>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            busy: HashSet::new(),
            timers: HashMap::new(),
            by_time: BTreeSet::new(),
            failures: HashMap::new(),
        }
    }
}

impl<K: Clone + Ord + Hash> Queue<K> {
    /// To be looked at now, or again after the look that is going on.
    pub(crate) fn push(&mut self, key: K) {
        self.cancel(&key);
        if self.queued.insert(key.clone()) && !self.busy.contains(&key) {
            self.ready.push_back(key);
        }
    }

    /// The next thing; it is busy until [`done`](Self::done).
    pub(crate) fn pop(&mut self, now: Instant) -> Option<K> {
        while let Some((time, key)) = self.by_time.first().cloned() {
            if time > now {
                break;
            }
            self.push(key);
        }
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    pub(crate) fn done(&mut self, key: K, outcome: Outcome, now: Instant) {
        self.busy.remove(&key);
        let after = match outcome {
            Outcome::Done(after) => {
                self.failures.remove(&key);
                after
            }
            Outcome::Retry(asked) => {
                let failures = self.failures.entry(key.clone()).or_default();
                let pause = pause(*failures).max(asked.unwrap_or_default());
                *failures = failures.saturating_add(1);
                Some(pause)
            }
        };
        if self.queued.contains(&key) {
            self.ready.push_back(key);
        } else if let Some(after) = after {
            self.timers.insert(key.clone(), now + after);
            self.by_time.insert((now + after, key));
        }
    }

    /// When the next timer ends.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(time, _)| *time)
    }

    /// The broker is there again: what failed is tried now.
    pub(crate) fn retry_all(&mut self) {
        let failed: Vec<_> = self.failures.drain().map(|(key, _)| key).collect();
        for key in failed {
            self.push(key);
        }
    }

    fn cancel(&mut self, key: &K) {
        if let Some(time) = self.timers.remove(key) {
            self.by_time.remove(&(time, key.clone()));
        }
    }
}

/// Waits until then; for ever, if there is no such time.
pub(crate) async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => pending().await,
    }
}

fn pause(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures).and_then(|times| PAUSE_FIRST.checked_mul(times));
    doubled.unwrap_or(PAUSE_MAX).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::Instruction(Side::Provider, name.to_owned())
    }

    #[test]
    fn a_thing_is_looked_at_once_and_again_if_it_changed_meanwhile() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(key("a"));
        queue.push(key("a"));
        assert_eq!(queue.pop(now), Some(key("a")));
        assert_eq!(queue.pop(now), None);
        queue.push(key("a"));
        assert_eq!(queue.pop(now), None, "it is busy");
        queue.done(key("a"), Outcome::Done(None), now);
        assert_eq!(queue.pop(now), Some(key("a")));
        queue.done(key("a"), Outcome::Done(None), now);
        assert_eq!((queue.pop(now), queue.next_due()), (None, None));
    }

    #[test]
    fn a_failure_is_tried_again_after_a_growing_pause_and_at_once_when_told() {
        let (mut queue, mut now) = (Queue::default(), Instant::now());
        queue.push(key("a"));
        let mut last = Duration::ZERO;
        for _ in 0..12 {
            assert_eq!(queue.pop(now), Some(key("a")));
            queue.done(key("a"), Outcome::Retry(None), now);
            assert_eq!(queue.pop(now), None);
            let due = queue.next_due().unwrap();
            assert!(due - now >= last && due - now <= PAUSE_MAX);
            last = due - now;
            now = due;
        }
        assert_eq!(last, PAUSE_MAX);
        assert_eq!(queue.pop(now), Some(key("a")));
        queue.done(key("a"), Outcome::Retry(Some(Duration::from_secs(99))), now);
        assert_eq!(queue.next_due(), Some(now + Duration::from_secs(99)));
        queue.retry_all();
        assert_eq!(queue.pop(now), Some(key("a")));
        assert_eq!(queue.next_due(), None);
    }
}
