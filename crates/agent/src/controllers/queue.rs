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
    /// Somebody has to put something right: not before so long, whatever happens to it meanwhile. What
    /// cannot work changes the thing each time, and that would be a reason to look again.
    Barred(Duration),
}

/// What is to be looked at. Nothing is looked at twice at the same time.
#[derive(Debug)]
pub(crate) struct Queue<K = Key> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    busy: HashSet<K>,
    /// What changed while it was looked at, maybe by that look.
    changed: HashSet<K>,
    timers: HashMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
    failures: HashMap<K, u32>,
    barred: HashSet<K>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            busy: HashSet::new(),
            changed: HashSet::new(),
            timers: HashMap::new(),
            by_time: BTreeSet::new(),
            failures: HashMap::new(),
            barred: HashSet::new(),
        }
    }
}

impl<K: Clone + Ord + Hash> Queue<K> {
    /// To be looked at now, or again after the look that is going on.
    pub(crate) fn push(&mut self, key: K) {
        if self.barred.contains(&key) {
            return;
        }
        self.cancel(&key);
        if self.queued.insert(key.clone()) && !self.busy.contains(&key) {
            self.ready.push_back(key);
        }
    }

    /// It was changed. Whether somebody else than the look that is going on has done that, is known at
    /// its end: [`settle`](Self::settle).
    pub(crate) fn changed(&mut self, key: K) {
        if self.busy.contains(&key) {
            self.changed.insert(key);
        } else {
            self.push(key);
        }
    }

    /// A look is about to be done, and knows the thing as it is now, or does not: then a change of it
    /// is a reason for another. Our own would make an end of every pause after a failure.
    pub(crate) fn settle(&mut self, key: &K, is_known: bool) {
        if self.changed.remove(key) && !is_known {
            self.push(key.clone());
        }
    }

    /// How many things are looked at.
    pub(crate) fn busy(&self) -> usize {
        self.busy.len()
    }

    /// The next thing; it is busy until [`done`](Self::done).
    pub(crate) fn pop(&mut self, now: Instant) -> Option<K> {
        while let Some((time, key)) = self.by_time.first().cloned() {
            if time > now {
                break;
            }
            self.barred.remove(&key);
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
            Outcome::Barred(pause) => {
                self.queued.remove(&key);
                self.barred.insert(key.clone());
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
    fn what_is_barred_is_not_looked_at_before_its_time_whatever_happens() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push(key("a"));
        assert_eq!(queue.pop(now), Some(key("a")));
        queue.push(key("a"));
        let minute = Duration::from_mins(1);
        queue.done(key("a"), Outcome::Barred(minute), now);
        queue.push(key("a"));
        queue.retry_all();
        assert_eq!(queue.pop(now), None);
        assert_eq!(queue.next_due(), Some(now + minute));
        assert_eq!(queue.pop(now + minute), Some(key("a")));
        queue.done(key("a"), Outcome::Done(None), now + minute);
        queue.push(key("a"));
        assert_eq!(queue.pop(now + minute), Some(key("a")), "it is as any other");
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

    #[test]
    fn a_failure_waits_for_its_pause_though_its_look_has_changed_the_thing_and_nobody_else() {
        let asked = Duration::from_secs(5);
        for is_known in [true, false] {
            let (mut queue, now) = (Queue::default(), Instant::now());
            queue.changed(key("a"));
            assert_eq!(queue.pop(now), Some(key("a")));
            queue.changed(key("a"));
            assert_eq!(queue.pop(now), None, "it is busy");
            queue.settle(&key("a"), is_known);
            queue.done(key("a"), Outcome::Retry(Some(asked)), now);
            assert_eq!(queue.pop(now), (!is_known).then(|| key("a")));
            assert_eq!(queue.next_due(), is_known.then_some(now + asked));
            // An edit does not wait for it.
            queue.done(key("a"), Outcome::Retry(Some(asked)), now);
            queue.changed(key("a"));
            assert_eq!(queue.pop(now), Some(key("a")));
            // Nor does what else there is to know, though the thing is as it is known.
            queue.push(key("a"));
            queue.changed(key("a"));
            queue.settle(&key("a"), true);
            queue.done(key("a"), Outcome::Retry(Some(asked)), now);
            assert_eq!(queue.pop(now), Some(key("a")));
        }
    }
}
