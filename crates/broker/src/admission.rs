//! Who gets a turn: no cluster takes the turns of another, and what keeps capacity moving goes
//! before new requests.
//!
//! There are three lanes. Heartbeats, releases, acknowledgements and renewals are *urgent*: they are
//! small, and losing them makes the fleet look dead or full. New requests, lists and explanations
//! are *ordinary*. What agents tell each other may get lost, and has a small lane of its own. Each
//! lane has its seats, so that a flood of one never takes a seat of another; each cluster has a bound
//! on its seats and a rate in each lane, so that it cannot take the seats of the others. Nobody waits
//! for a seat: without one the answer is `429` with a time to come back, which is cheap for both.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::identity::Caller;
use crate::limits::Limits;

/// Which way a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Keeps capacity moving.
    Urgent,
    /// What agents tell each other.
    Message,
    /// Everything else.
    Ordinary,
}

/// No turn now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many requests at once: try again in {retry_after} s")]
pub struct Busy {
    /// Seconds after which another try makes sense.
    pub retry_after: u32,
}

/// A count with a bound.
#[derive(Debug)]
struct Seats {
    taken: AtomicUsize,
    most: usize,
}

impl Seats {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { taken: AtomicUsize::new(0), most })
    }

    fn take(self: &Arc<Self>) -> Option<Seat> {
        let (seat, before) = self.add(1);
        (before < self.most).then_some(seat)
    }

    /// So many together; more than there are only as the first, so that what is larger comes too.
    fn take_wide(self: &Arc<Self>, width: usize) -> Option<Seat> {
        let (seat, before) = self.add(width);
        (before == 0 || before.saturating_add(width) <= self.most).then_some(seat)
    }

    /// The seat gives back what it took, also where it was too much.
    fn add(self: &Arc<Self>, width: usize) -> (Seat, usize) {
        let before = self.taken.fetch_add(width, Ordering::AcqRel);
        (Seat { of: Arc::clone(self), width }, before)
    }
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct Seat {
    of: Arc<Seats>,
    width: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.of.taken.fetch_sub(self.width, Ordering::AcqRel);
    }
}

/// So many requests per second, and twice as many at once.
#[derive(Debug)]
struct Bucket {
    /// In thousandths, so that slow rates fill too.
    tokens: u64,
    filled_at: Duration,
}

const THOUSANDTHS: u64 = 1000;

impl Bucket {
    fn full(rate: u32) -> Self {
        Self { tokens: Self::most(rate), filled_at: Duration::ZERO }
    }

    fn most(rate: u32) -> u64 {
        u64::from(rate) * 2 * THOUSANDTHS
    }

    fn take(&mut self, rate: u32, now: Duration) -> Result<(), Busy> {
        let rate_each = u64::from(rate.max(1));
        let passed = now.saturating_sub(self.filled_at).as_micros();
        // One token per 1/rate seconds is `rate` thousandths per millisecond.
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let earned = passed.saturating_mul(rate_each) / 1000;
        self.tokens = self.tokens.saturating_add(earned).min(Self::most(rate));
        // Only as far as it was paid for: who comes too often would never earn anything otherwise.
        self.filled_at = self
            .filled_at
            .saturating_add(Duration::from_micros(earned.saturating_mul(1000) / rate_each));
        match self.tokens.checked_sub(THOUSANDTHS) {
            Some(rest) => {
                self.tokens = rest;
                Ok(())
            }
            None => Err(Busy { retry_after: 1 }),
        }
    }
}

#[derive(Debug)]
struct LaneShare {
    seats: Arc<Seats>,
    rate: u32,
    bucket: Mutex<Bucket>,
}

impl LaneShare {
    fn new(most: usize, rate: u32) -> Self {
        Self { seats: Seats::new(most), rate, bucket: Mutex::new(Bucket::full(rate)) }
    }
}

/// What one caller has of the broker, over all of its connections.
#[derive(Debug)]
pub struct Share {
    connections: Arc<Seats>,
    streams: Arc<Seats>,
    large: Arc<Seats>,
    answers: Arc<Seats>,
    urgent: LaneShare,
    ordinary: LaneShare,
    messages: LaneShare,
    /// Whose urgent turns these are part of.
    urgent_of_all: Arc<Seats>,
}

impl Share {
    fn new(limits: &Limits, urgent_of_all: Arc<Seats>) -> Self {
        let rate = limits.rate_per_cluster;
        Self {
            urgent_of_all,
            large: Seats::new(limits.large_bodies_per_cluster),
            answers: Seats::new(limits.answer_bytes_per_cluster),
            connections: Seats::new(limits.connections_per_cluster),
            streams: Seats::new(limits.streams_per_cluster),
            urgent: LaneShare::new(limits.urgent_per_cluster, rate),
            ordinary: LaneShare::new(limits.ordinary_per_cluster, rate),
            messages: LaneShare::new(
                limits.messages_taken_per_cluster,
                limits.message_rate_per_cluster,
            ),
        }
    }

    /// A place for one more stream.
    pub fn stream(&self) -> Result<Seat, Busy> {
        self.streams.take().ok_or(Busy { retry_after: 5 })
    }
}

/// A turn: held while a request is in work.
#[derive(Debug)]
pub struct Turn {
    _own: Seat,
    _all: Seat,
}

/// The turns of all.
pub struct Admission {
    limits: Limits,
    urgent: Arc<Seats>,
    operators: Arc<Seats>,
    ordinary: Arc<Seats>,
    messages: Arc<Seats>,
    large: Arc<Seats>,
    answers: Arc<Seats>,
    /// What all have together whose certificates name nobody.
    unnamed: Arc<Share>,
    shares: Mutex<HashMap<Caller, Arc<Share>>>,
}

impl Admission {
    /// With these limits.
    pub fn new(limits: Limits) -> Self {
        let urgent = Seats::new(limits.urgent);
        Self {
            unnamed: Arc::new(Share::new(&limits, Arc::clone(&urgent))),
            urgent,
            operators: Seats::new(limits.operators),
            ordinary: Seats::new(limits.ordinary),
            messages: Seats::new(limits.messages_taken),
            large: Seats::new(limits.large_bodies),
            answers: Seats::new(limits.answer_bytes),
            shares: Mutex::default(),
            limits,
        }
    }

    /// One more connection of a caller; the seat is held while it lasts.
    pub fn connect(&self, caller: &Caller) -> Result<(Arc<Share>, Seat), Busy> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if !shares.contains_key(caller) {
            // A share outlives its connections, so that a new one does not bring new turns. Callers
            // have certificates, so there are not many; those that are not here make room for more.
            if shares.len() >= self.limits.connections {
                shares.retain(|_, share| Arc::strong_count(share) > 1);
            }
            let urgent = match caller {
                Caller::Cluster(_) => &self.urgent,
                Caller::Operator(_) => &self.operators,
            };
            let share = Share::new(&self.limits, Arc::clone(urgent));
            shares.insert(caller.clone(), Arc::new(share));
        }
        let share = shares.get(caller).map(Arc::clone).ok_or(Busy { retry_after: 5 })?;
        let seat = share.connections.take().ok_or(Busy { retry_after: 5 })?;
        Ok((share, seat))
    }

    /// The same of somebody whose certificate names nobody.
    pub fn connect_unnamed(&self) -> Result<(Arc<Share>, Seat), Busy> {
        let seat = self.unnamed.connections.take().ok_or(Busy { retry_after: 5 })?;
        Ok((Arc::clone(&self.unnamed), seat))
    }

    /// A place for one more large body, while it is read.
    pub fn large_body(&self, share: &Share) -> Result<Turn, Busy> {
        let busy = Busy { retry_after: 1 };
        let own = share.large.take().ok_or(busy)?;
        let all = self.large.take().ok_or(busy)?;
        Ok(Turn { _own: own, _all: all })
    }

    /// Room for an answer of so many bytes, until it is delivered: turns bound how many are not taken
    /// yet, not how large they are.
    pub fn answer(&self, share: &Share, bytes: usize) -> Result<Turn, Busy> {
        let busy = Busy { retry_after: 1 };
        let own = share.answers.take_wide(bytes).ok_or(busy)?;
        let all = self.answers.take_wide(bytes).ok_or(busy)?;
        Ok(Turn { _own: own, _all: all })
    }

    /// A turn in a lane at `now`, which is time since some moment.
    pub fn turn(&self, share: &Share, lane: Lane, now: Duration) -> Result<Turn, Busy> {
        let (own, all) = match lane {
            Lane::Urgent => (&share.urgent, &share.urgent_of_all),
            Lane::Ordinary => (&share.ordinary, &self.ordinary),
            Lane::Message => (&share.messages, &self.messages),
        };
        own.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(own.rate, now)?;
        let busy = Busy { retry_after: 1 };
        let own = own.seats.take().ok_or(busy)?;
        let all = all.take().ok_or(busy)?;
        Ok(Turn { _own: own, _all: all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(change: impl FnOnce(&mut Limits)) -> Admission {
        let mut limits = Limits::default();
        change(&mut limits);
        Admission::new(limits)
    }

    fn share(admission: &Admission, cluster: &str) -> Arc<Share> {
        admission.connect(&Caller::Cluster(cluster.parse().unwrap())).unwrap().0
    }

    #[test]
    fn one_cluster_cannot_take_the_seats_of_another() {
        let admission = admission(|limits| limits.ordinary_per_cluster = 2);
        let (greedy, polite) = (share(&admission, "greedy"), share(&admission, "polite"));
        let turn = |share: &Share| admission.turn(share, Lane::Ordinary, Duration::ZERO);
        let held = [turn(&greedy).unwrap(), turn(&greedy).unwrap()];
        assert_eq!(turn(&greedy).unwrap_err(), Busy { retry_after: 1 });
        assert!(turn(&polite).is_ok());
        drop(held);
        assert!(turn(&greedy).is_ok());
    }

    #[test]
    fn new_requests_cannot_take_the_seats_of_heartbeats() {
        let admission = admission(|limits| limits.ordinary = 1);
        let share = share(&admission, "c1");
        let held = admission.turn(&share, Lane::Ordinary, Duration::ZERO);
        assert!(held.is_ok());
        assert!(admission.turn(&share, Lane::Ordinary, Duration::ZERO).is_err());
        assert!(admission.turn(&share, Lane::Urgent, Duration::ZERO).is_ok());
    }

    #[test]
    fn an_operator_gets_a_turn_however_many_clusters_have_theirs() {
        let admission = admission(|limits| limits.urgent = 1);
        let turn = |share: &Share| admission.turn(share, Lane::Urgent, Duration::ZERO);
        let flood = share(&admission, "c1");
        let held = turn(&flood);
        assert!(held.is_ok() && turn(&share(&admission, "c2")).is_err());
        assert!(turn(&admission.connect_unnamed().unwrap().0).is_err());
        let (operator, _seat) = admission.connect(&Caller::Operator("ada".into())).unwrap();
        assert!(turn(&operator).is_ok());
    }

    #[test]
    fn one_cluster_cannot_have_all_places_for_large_bodies() {
        let admission = admission(|limits| limits.large_bodies = 3);
        let (greedy, polite) = (share(&admission, "greedy"), share(&admission, "polite"));
        let held = [admission.large_body(&greedy), admission.large_body(&greedy)];
        assert!(held.iter().all(Result::is_ok) && admission.large_body(&greedy).is_err());
        let last = admission.large_body(&polite);
        assert!(last.is_ok() && admission.large_body(&polite).is_err());
    }

    #[test]
    fn answers_that_wait_to_be_taken_are_bounded_in_bytes_and_a_single_one_is_not() {
        let admission = admission(|limits| {
            (limits.answer_bytes, limits.answer_bytes_per_cluster) = (150, 100);
        });
        let (greedy, polite) = (share(&admission, "greedy"), share(&admission, "polite"));
        let held = [admission.answer(&greedy, 60), admission.answer(&greedy, 40)];
        assert!(held.iter().all(Result::is_ok) && admission.answer(&greedy, 1).is_err());
        assert!(admission.answer(&polite, 51).is_err() && admission.answer(&polite, 50).is_ok());
        drop(held);
        let whole = admission.answer(&greedy, 1000);
        assert!(whole.is_ok() && admission.answer(&greedy, 1).is_err());
        drop(whole);
        assert!(admission.answer(&polite, 100).is_ok());
    }

    #[test]
    fn who_comes_far_too_often_still_gets_its_rate() {
        // Between two visits less than a thousandth is earned, or one and a part of another: what is
        // cut off each time must not be lost.
        for (rate, gap_us) in [(1, 130), (3, 500), (7, 139), (7, 271), (1000, 130)] {
            let admission = admission(|limits| limits.rate_per_cluster = rate);
            let share = share(&admission, "c1");
            let visits = (0..60_000_000 / gap_us).map(|n| Duration::from_micros(gap_us * n));
            let served = visits.filter(|at| admission.turn(&share, Lane::Urgent, *at).is_ok());
            // Twice the rate at once, and the rate for a minute, to a part in a hundred.
            let (served, due) = (served.count() as u64, u64::from(rate) * 62);
            assert!(served.abs_diff(due) <= due / 100 + 1, "{served} of {due}, {gap_us} us apart");
        }
    }

    #[test]
    fn a_rate_is_kept_over_connections_and_refills_with_time() {
        let admission = admission(|limits| limits.rate_per_cluster = 1);
        let turn = |at| admission.turn(&share(&admission, "c1"), Lane::Urgent, at).is_ok();
        let second = Duration::from_secs;
        assert_eq!([turn(second(0)), turn(second(0)), turn(second(0))], [true, true, false]);
        assert_eq!([turn(second(1)), turn(second(1))], [true, false]);
        assert_eq!([turn(second(99)), turn(second(99)), turn(second(99))], [true, true, false]);
    }

    #[test]
    fn connections_and_streams_of_a_cluster_are_bounded() {
        let admission = admission(|limits| {
            limits.connections_per_cluster = 1;
            limits.streams_per_cluster = 1;
        });
        let caller = Caller::Operator("ada".into());
        let (share, seat) = admission.connect(&caller).unwrap();
        assert!(admission.connect(&caller).is_err());
        let stream = share.stream().unwrap();
        assert!(share.stream().is_err());
        drop((seat, stream));
        assert!(admission.connect(&caller).is_ok() && share.stream().is_ok());
    }
}
