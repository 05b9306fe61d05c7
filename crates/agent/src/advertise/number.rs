//! Which advertisement this is.

use sublet_core::time::Time;
use sublet_crds::Number;

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
}
