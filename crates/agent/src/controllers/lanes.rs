//! Requests and instructions, each with places of their own: a broker that is slow to answer requests
//! keeps nobody from carrying out what it has ordered, nor the other way round.

use tokio::time::Instant;

use super::queue::{Key, Outcome, Queue};

/// How many requests, and how many instructions, are looked at at the same time.
const AT_ONCE: usize = 16;

/// What is to be looked at, by kind.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    requests: Queue,
    instructions: Queue,
}

impl Lanes {
    /// See [`Queue::push`].
    pub(crate) fn push(&mut self, key: Key) {
        self.of(&key).push(key);
    }

    /// See [`Queue::changed`].
    pub(crate) fn changed(&mut self, key: Key) {
        self.of(&key).changed(key);
    }

    /// The next thing for which there is a place.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Key> {
        [&mut self.instructions, &mut self.requests]
            .into_iter()
            .filter(|lane| has_place(lane))
            .find_map(|lane| lane.pop(now))
    }

    /// A look is over, and knew the thing as it is now, or did not.
    pub(crate) fn done(&mut self, key: Key, outcome: Outcome, is_known: bool) {
        let lane = self.of(&key);
        lane.settle(&key, is_known);
        lane.done(key, outcome, Instant::now());
    }

    /// When the next timer ends of those for which there is a place.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let lanes = [&self.instructions, &self.requests].into_iter();
        lanes.filter(|lane| has_place(lane)).filter_map(Queue::next_due).min()
    }

    /// See [`Queue::retry_all`].
    pub(crate) fn retry_all(&mut self) {
        self.instructions.retry_all();
        self.requests.retry_all();
    }

    fn of(&mut self, key: &Key) -> &mut Queue {
        match key {
            Key::Request(..) => &mut self.requests,
            Key::Instruction(..) => &mut self.instructions,
        }
    }
}

fn has_place(lane: &Queue) -> bool {
    lane.busy() < AT_ONCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use sublet_core::instruction::Side;

    fn request(number: usize) -> Key {
        Key::Request("default".to_owned(), number.to_string())
    }

    #[test]
    fn requests_that_are_all_slow_hold_up_no_instruction() {
        let (mut lanes, now) = (Lanes::default(), Instant::now());
        for number in 0..=AT_ONCE {
            lanes.push(request(number));
        }
        for number in 0..AT_ONCE {
            assert_eq!(lanes.pop(now), Some(request(number)));
        }
        assert_eq!(lanes.pop(now), None, "there is no place for one more");
        let order = Key::Instruction(Side::Provider, "a".to_owned());
        lanes.push(order.clone());
        assert_eq!(lanes.pop(now), Some(order));
        lanes.done(request(0), Outcome::Retry(Some(Duration::from_mins(1))), true);
        assert_eq!(lanes.pop(now), Some(request(AT_ONCE)));
        assert_eq!(lanes.next_due(), None, "nobody waits for what has no place");
        lanes.done(request(1), Outcome::Done(None), true);
        assert!(lanes.next_due().is_some());
    }
}
