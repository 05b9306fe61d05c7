//! Who else advertises this cluster: the broker keeps the word with the highest number, and that may
//! be another's.
//!
//! Somebody who is gone, or whose clock was ahead, is risen above at once. Somebody who is alive rises
//! above us in turn, and that could go on for ever: so whoever has risen once and finds himself
//! overtaken again waits until the other's number stands still, each time longer.

use std::time::Duration;

use sublet_wire::v1::Number;
use tokio::time::Instant;

/// A number must stand still for so many of our own intervals before its owner counts as gone.
const INTERVALS: u32 = 3;
/// And at least so long, however short the interval is.
const STILL_MIN: Duration = Duration::from_secs(10);
/// Longer than this nobody waits for somebody who does not say anything.
const STILL_MAX: Duration = Duration::from_hours(1);
/// Who was overtaken so long ago, and not since, is as if that had never happened.
const FORGOTTEN: Duration = Duration::from_hours(2);
/// That we are not heard is logged this often.
const SAY_EVERY: Duration = Duration::from_mins(10);

/// What is known of whoever else advertises this cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rivals {
    /// How long a number must stand still.
    still: Duration,
    shortest: Duration,
    /// When we last rose above somebody.
    risen: Option<Instant>,
    /// The number that the broker keeps instead of ours, and since when it is that one.
    kept: Option<(Number, Instant)>,
    said: Option<Instant>,
}

impl Rivals {
    /// Nobody is known yet. We advertise every so often.
    pub(super) fn new(every: Duration) -> Self {
        let shortest = every.saturating_mul(INTERVALS).clamp(STILL_MIN, STILL_MAX);
        Self { still: shortest, shortest, risen: None, kept: None, said: None }
    }

    /// The broker keeps this instead of ours: may we rise above it? Whoever does that says so here.
    pub(super) fn may_rise(&mut self, kept: Number, now: Instant) -> bool {
        let is_new = self.kept.is_none_or(|(known, _)| known != kept);
        if is_new {
            self.kept = Some((kept, now));
        }
        let Some(_) = self.risen else {
            self.risen = Some(now);
            return true;
        };
        let since = self.kept.map_or(now, |(_, since)| since);
        if now.duration_since(since) < self.still {
            return false;
        }
        self.risen = Some(now);
        self.still = self.still.saturating_mul(2).min(STILL_MAX);
        true
    }

    /// The broker keeps ours. True if it did not before.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        let was_unheard = self.kept.take().is_some();
        if self.risen.is_some_and(|then| now.duration_since(then) >= FORGOTTEN) {
            (self.risen, self.still) = (None, self.shortest);
        }
        was_unheard
    }

    /// We are not heard: is it time to log that?
    pub(super) fn is_to_be_said(&mut self, now: Instant) -> bool {
        let is_due = self.said.is_none_or(|then| now.duration_since(then) >= SAY_EVERY);
        if is_due {
            self.said = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);

    fn number(incarnation: u64, sequence: u64) -> Number {
        Number { incarnation, sequence }
    }

    #[test]
    fn who_is_gone_is_risen_above_at_once() {
        let (mut rivals, now) = (Rivals::new(EVERY), Instant::now());
        assert!(rivals.may_rise(number(9, 9), now));
        assert!(rivals.heard(now), "we were not heard before");
        assert!(!rivals.heard(now));
    }

    #[test]
    fn who_is_alive_is_left_alone_until_its_number_stands_still() {
        let (mut rivals, mut now) = (Rivals::new(EVERY), Instant::now());
        assert!(rivals.may_rise(number(9, 9), now));
        for sequence in 0..100 {
            now += EVERY;
            assert!(!rivals.may_rise(number(11, sequence), now), "it is alive");
        }
        now += EVERY * (INTERVALS - 1);
        assert!(!rivals.may_rise(number(11, 99), now), "it may only be slow");
        now += EVERY;
        assert!(rivals.may_rise(number(11, 99), now), "it is gone");
    }

    /// Two that publish in turn at one broker, which keeps the highest number.
    #[test]
    fn two_that_live_come_to_rest_and_do_not_rise_without_end() {
        for (every_a, every_b) in [(EVERY, EVERY), (EVERY, EVERY * 10), (EVERY * 40, EVERY)] {
            let start = Instant::now();
            let mut kept = number(0, 0);
            let mut agents = [(1, every_a), (2, every_b)]
                .map(|(incarnation, every)| (Rivals::new(every), number(incarnation, 0), every));
            let (mut rises, mut due) = (0, [start; 2]);
            while due[0] < start + Duration::from_hours(48) {
                let who = usize::from(due[1] < due[0]);
                let (rivals, own, every) = &mut agents[who];
                let now = due[who];
                due[who] += *every;
                own.sequence += 1;
                if kept > *own && rivals.may_rise(kept, now) {
                    *own = number(kept.incarnation + 1, 1);
                    rises += 1;
                }
                if *own > kept {
                    kept = *own;
                    rivals.heard(now);
                }
            }
            assert!(rises <= 60, "{rises} in two days with {every_a:?} and {every_b:?}");
        }
    }

    #[test]
    fn that_we_are_not_heard_is_logged_now_and_then() {
        let (mut rivals, start) = (Rivals::new(EVERY), Instant::now());
        let ticks = (0..120).filter(|tick| rivals.is_to_be_said(start + EVERY * *tick));
        assert_eq!(ticks.count(), 6, "in an hour");
    }
}
