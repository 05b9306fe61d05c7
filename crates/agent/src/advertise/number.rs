//! Which advertisement this is.

use sublet_core::time::Time;
use sublet_crds::Number;
use sublet_wire::v1;

/// How far apart two that rise above the same number may come to be.
const APART: u64 = 1000;

/// Numbers the advertisements of one start of the agent.
///
/// The broker never lets an older one replace a newer one. A start is known by when it was, and is
/// always later than the one that left its number in the cluster, whatever the clock says.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    last: Number,
}

impl Numbers {
    /// The numbers of an agent that starts `now`, after the one that left this number, if any did.
    pub fn after(left: Option<Number>, now: Time) -> Self {
        let by_clock = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let incarnation =
            left.map_or(by_clock, |left| left.incarnation.saturating_add(1).max(by_clock));
        Self { last: Number { incarnation, sequence: 0 } }
    }

    /// From now on, numbers above this one, which somebody else has used. `random` sets those apart who
    /// do that at the same moment. False if there are none.
    pub fn rise_above(&mut self, used: v1::Number, random: u64, now: Time) -> bool {
        let beyond = used.incarnation.saturating_add(1).saturating_add(random % APART);
        let Ok(beyond) = i64::try_from(beyond) else { return false };
        self.last = Self::after(None, now.max(Time::from_millis(beyond.unsigned_abs()))).last;
        true
    }

    /// The next one.
    pub fn take(&mut self) -> Number {
        self.last.sequence = self.last.sequence.saturating_add(1);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_later_than_the_one_before_even_when_the_clock_goes_back() {
        let mut first = Numbers::after(None, Time::from_millis(1000));
        let (one, two) = (first.take(), first.take());
        assert!(one < two);
        let mut second = Numbers::after(Some(two), Time::from_millis(10));
        assert!(two < second.take());
        assert_eq!(Numbers::after(Some(two), Time::from_millis(5000)).take().incarnation, 5000);
    }

    #[test]
    fn they_rise_above_what_somebody_else_has_used() {
        let now = Time::from_millis(1000);
        let used = |incarnation| v1::Number { incarnation, sequence: 7 };
        for (incarnation, random) in [(5, 0), (999_999, 0), (999_999, 12_345)] {
            let mut numbers = Numbers::after(None, now);
            assert!(numbers.rise_above(used(incarnation), random, now));
            let next = numbers.take();
            assert!(next.incarnation > i64::try_from(incarnation).unwrap() && next.sequence == 1);
            assert!(next.incarnation >= 1000, "never below the clock");
        }
        let mut numbers = Numbers::after(None, now);
        let before = numbers.take();
        for top in [i64::MAX.unsigned_abs(), u64::MAX] {
            assert!(!numbers.rise_above(used(top), 0, now), "nothing is above");
        }
        assert!(numbers.take() > before);
    }
}
