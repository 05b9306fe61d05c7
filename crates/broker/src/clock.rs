//! Broker time: the last logged time plus elapsed monotonic time, never less than what was logged.
//!
//! The wall clock is asked once, at the start, to learn how long nobody was running. If it is far
//! ahead of the log, either the broker was down for long or the clock is wrong: we cannot tell, so
//! nothing expires until an operator confirms it. A wall clock that is behind is not believed at
//! all. While the process runs, steps and slews of the wall clock have no effect.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sublet_core::bugs::{Bug, planted};
use sublet_core::ledger::Ledger;
use sublet_core::time::{Span, Time};

/// A wall clock further ahead of the log than this needs an operator's word.
pub const FAR_AHEAD: Span = Span::from_secs(24 * 3600);

/// What the machine's two clocks show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What people's clocks show; may be wrong and may jump.
    pub wall: Time,
    /// Time since some moment; only grows.
    pub monotonic: Duration,
}

/// The machine's clocks. The only place that asks them.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    started: Instant,
}

impl Machine {
    /// Monotonic time begins here.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the clocks")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }

    /// What the clocks show now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the clocks")]
    pub fn read(&self) -> Reading {
        // A wall clock before 1970 is as good as none.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let wall = Time::from_millis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
        Reading { wall, monotonic: self.started.elapsed() }
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

/// Broker time.
#[derive(Clone, Debug)]
pub struct Clock {
    base: Time,
    since: Duration,
    suspended: bool,
}

impl Clock {
    /// The clock of a broker that starts on this ledger, whose log ends at `logged`. Where nothing
    /// can expire and nothing can be forgotten, a wall clock that is far ahead can do no harm: it
    /// is believed, as at the first start of all.
    pub fn on(ledger: &Ledger, logged: Time, at: Reading) -> Self {
        if ledger.is_untouched_by_time() {
            let mut clock = Self::start(Time::default(), at);
            clock.saw(logged, at);
            return clock;
        }
        Self::start(logged, at)
    }

    /// Starts where the log ends.
    pub fn start(logged: Time, at: Reading) -> Self {
        let fresh = logged == Time::default();
        let suspended = !fresh && at.wall.since(logged) > FAR_AHEAD;
        let base = if suspended { logged } else { at.wall.max(logged) };
        Self { base, since: at.monotonic, suspended }
    }

    /// The time now.
    pub fn now(&self, at: Reading) -> Time {
        if planted(Bug::WallClock) {
            return at.wall;
        }
        let elapsed = at.monotonic.saturating_sub(self.since).as_millis();
        let elapsed = Span::from_millis(u64::try_from(elapsed).unwrap_or(u64::MAX));
        self.base.checked_add(elapsed).unwrap_or(Time::from_millis(u64::MAX))
    }

    /// Another broker logged this time: ours is not less from now on. If our wall clock was in
    /// doubt and the log has come near to it, as it does when an operator confirmed another
    /// broker's, it is believed as at a start.
    pub fn saw(&mut self, logged: Time, at: Reading) {
        if logged > self.now(at) {
            (self.base, self.since) = (logged, at.monotonic);
        }
        if self.suspended {
            *self = Self::start(self.now(at), at);
        }
    }

    /// Does nothing expire because the wall clock is far ahead?
    pub fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// An operator says that the wall clock is right.
    pub fn confirm(&mut self, at: Reading) {
        if self.suspended {
            *self = Self { base: at.wall.max(self.now(at)), since: at.monotonic, suspended: false };
        }
    }
}

#[cfg(test)]
mod tests {
    use sublet_core::event::{Event, Note};
    use sublet_core::id::{ClusterId, Generation, Key, ReservationId, Revision};
    use sublet_core::ledger::Stamp;
    use sublet_core::reservation::Actor;
    use sublet_core::resources::Resources;

    use super::*;

    fn at(wall_s: u64, monotonic_s: u64) -> Reading {
        let wall = Time::from_millis(wall_s * 1000);
        Reading { wall, monotonic: Duration::from_secs(monotonic_s) }
    }

    fn seconds(clock: &Clock, reading: Reading) -> u64 {
        clock.now(reading).as_millis() / 1000
    }

    #[test]
    fn time_goes_on_with_the_monotonic_clock_whatever_the_wall_clock_does() {
        let clock = Clock::start(Time::from_millis(900_000), at(1000, 5));
        assert_eq!(seconds(&clock, at(1000, 5)), 1000);
        assert_eq!(seconds(&clock, at(9_999_999, 6)), 1001);
        assert_eq!(seconds(&clock, at(0, 7)), 1002);
    }

    #[test]
    fn a_wall_clock_behind_the_log_is_not_believed() {
        let clock = Clock::start(Time::from_millis(5_000_000), at(1000, 0));
        assert_eq!(seconds(&clock, at(1000, 1)), 5001);
        assert!(!clock.is_suspended());
    }

    #[test]
    fn a_wall_clock_far_ahead_suspends_until_it_is_confirmed() {
        let day = 24 * 3600;
        let mut clock = Clock::start(Time::from_millis(1_000_000), at(1001 + day, 0));
        assert!(clock.is_suspended());
        assert_eq!(seconds(&clock, at(0, 10)), 1010);
        clock.confirm(at(2000 + day, 20));
        assert!(!clock.is_suspended());
        assert_eq!(seconds(&clock, at(0, 21)), 2001 + day);
        let fine = Clock::start(Time::from_millis(1_000_000), at(1000 + day, 0));
        assert!(!fine.is_suspended());
    }

    #[test]
    fn the_first_start_of_all_believes_the_wall_clock() {
        let clock = Clock::start(Time::default(), at(1_700_000_000, 3));
        assert!(!clock.is_suspended());
        assert_eq!(seconds(&clock, at(0, 3)), 1_700_000_000);
    }

    #[test]
    fn a_wall_clock_far_ahead_is_believed_only_where_time_can_take_nothing() {
        let (logged, wrong) = (Time::from_millis(1_000_000), at(30 * 24 * 3600, 0));
        let stamp = Stamp { revision: Revision(1), time: logged };
        let apply = |event: Event| {
            let mut ledger = Ledger::default();
            ledger.apply(stamp, &event).unwrap();
            ledger
        };
        let requester: ClusterId = "c1".parse().unwrap();
        let key: Key = "a".parse().unwrap();
        let tombstone = apply(Event::KeyReleased { requester: requester.clone(), key });
        // Adopted without an end: no deadline, and still a promise.
        let reservation = apply(Event::Adopted {
            id: ReservationId::FIRST,
            requester: requester.clone(),
            provider: "c2".parse().unwrap(),
            amounts: Resources::new(1, 1),
            generation: Generation(1),
            expires_at: None,
        });
        let note = Note { by: Actor::Broker, why: String::new() };
        let cordoned = apply(Event::Cordoned { cluster: requester, drain: false, note });
        for ledger in [tombstone, reservation] {
            assert_eq!(ledger.next_deadline(), None);
            let clock = Clock::on(&ledger, logged, wrong);
            assert!(clock.is_suspended());
            assert_eq!(clock.now(wrong), logged);
        }
        let clock = Clock::on(&cordoned, logged, wrong);
        assert!(!clock.is_suspended());
        assert_eq!(clock.now(wrong), wrong.wall);
        let behind = Clock::on(&cordoned, logged, at(1, 0));
        assert_eq!(behind.now(at(1, 0)), logged, "what was logged is never undercut");
    }

    #[test]
    fn a_wall_clock_in_doubt_is_believed_once_the_log_has_come_near_to_it() {
        let day = 24 * 3600;
        let mut clock = Clock::start(Time::from_millis(1_000_000), at(1000 + 30 * day, 0));
        clock.saw(Time::from_millis(2_000_000), at(1000 + 30 * day, 1));
        assert!(clock.is_suspended(), "another broker writes, and its time is not near to ours");
        assert_eq!(seconds(&clock, at(0, 2)), 2001);
        // An operator confirmed the other's clock, which shows about what ours does.
        clock.saw(Time::from_millis((990 + 30 * day) * 1000), at(1000 + 30 * day, 3));
        assert!(!clock.is_suspended());
        assert_eq!(seconds(&clock, at(0, 4)), 1001 + 30 * day);
    }

    #[test]
    fn what_another_broker_logged_is_never_undercut() {
        let mut clock = Clock::start(Time::default(), at(100, 0));
        clock.saw(Time::from_millis(500_000), at(100, 1));
        assert_eq!(seconds(&clock, at(100, 2)), 501);
        clock.saw(Time::from_millis(1000), at(100, 2));
        assert_eq!(seconds(&clock, at(100, 2)), 501);
    }
}
