//! What is in memory, and may be lost: which reservations were last spoken of, what went wrong, and
//! what is to be looked at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::live::One;
use crate::peering::{Change, Why};
use crate::transport::Order;

/// The first pause after liqoctl came to nothing; each is twice the one before.
const PAUSE_FIRST: Duration = Duration::from_secs(2);
const PAUSES_MAX: u32 = 5;
/// Of how much that is gone it is remembered that its object, while it is still there, means nothing.
const GONE_MAX: usize = 256;

type Name = (Side, String);

#[derive(Debug, Default)]
struct Known {
    orders: BTreeMap<Name, Order>,
    /// Those of them that are gone, the oldest first.
    gone: VecDeque<Name>,
    pairs: BTreeMap<ClusterId, Pair>,
    /// Pairs that are to be seen to.
    due: BTreeSet<ClusterId>,
    /// Reservations that are to be looked at again.
    woken: BTreeSet<Name>,
}

/// What is known of a pair.
#[derive(Clone, Debug, Default)]
pub(super) struct Pair {
    /// What went wrong, or is being waited for.
    pub(super) trouble: Option<Trouble>,
    /// When liqoctl was last run, or would have been.
    pub(super) ran: Option<Instant>,
    /// How often in a row that came to nothing.
    pub(super) failures: u32,
    /// Whether somebody has said that something of it is over.
    pub(super) may_end: bool,
    /// Whether the broker says that something of it is gone: the other cluster has confirmed, or was lost.
    pub(super) is_over: bool,
    /// What was last told of it.
    told: Option<(Option<Trouble>, bool)>,
}

impl Pair {
    /// Something went wrong with liqoctl.
    pub(super) fn failed(&mut self, trouble: Trouble) {
        self.trouble = Some(trouble);
        self.failures = self.failures.saturating_add(1);
    }

    /// All is well.
    pub(super) fn is_well(&mut self) {
        self.trouble = None;
        self.failures = 0;
    }

    /// Something is being waited for that is not liqoctl.
    pub(super) fn waits(&mut self, why: Why) {
        self.trouble = Some(Trouble { why, is_lasting: false });
    }

    /// The same, unless there is something to be said of liqoctl.
    pub(super) fn waits_unless_failed(&mut self, text: &str) {
        if self.failures == 0 {
            self.waits(text.into());
        }
    }

    /// How long it is until liqoctl is run again, after it came to nothing.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        let doubled = PAUSE_FIRST * (1 << self.failures.saturating_sub(1).min(PAUSES_MAX));
        let again = self.ran.filter(|_| self.failures > 0)? + doubled;
        Some(again.duration_since(now)).filter(|rest| !rest.is_zero())
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    pub(super) why: Why,
    /// Whether it will not get better unless somebody does something.
    pub(super) is_lasting: bool,
}

/// What is in memory.
#[derive(Debug, Default)]
pub(super) struct Board {
    known: Mutex<Known>,
    news: Notify,
    due: Notify,
}

impl Board {
    /// This reservation is to be kept. A new one is a new try, whatever went wrong before.
    pub(super) fn keep(&self, order: &Order) {
        let mut known = self.lock();
        let name = name_of(order);
        known.gone.retain(|gone| *gone != name);
        let before = known.orders.insert(name, order.clone());
        let pair = known.pairs.entry(order.peer.clone()).or_default();
        if order.side == Side::Requester {
            if before.is_none_or(|before| before.duty != Duty::Keep) {
                pair.is_well();
            }
            pair.is_over = false;
            pair.may_end = false;
        }
    }

    /// This reservation is to go.
    pub(super) fn leave(&self, order: &Order) {
        let mut known = self.lock();
        let is_gone = order.duty == Duty::Gone;
        let duty = if is_gone { Duty::Gone } else { Duty::TakeDown };
        known.orders.insert(name_of(order), Order { duty, ..order.clone() });
        let pair = known.pairs.entry(order.peer.clone()).or_default();
        if order.side == Side::Requester {
            pair.may_end = true;
            pair.is_over |= is_gone;
        }
    }

    /// This reservation is gone. Its object may be there for a while, and say that it is kept.
    pub(super) fn settle(&self, order: &Order) {
        let (mut known, name) = (self.lock(), name_of(order));
        if !known.gone.contains(&name) {
            known.gone.push_back(name);
        }
        if known.gone.len() > GONE_MAX
            && let Some(oldest) = known.gone.pop_front()
        {
            known.orders.remove(&oldest);
        }
    }

    /// Those of a pair that are kept, as far as they were spoken of.
    pub(super) fn kept(&self, side: Side, peer: &ClusterId) -> BTreeMap<String, One> {
        let known = self.lock();
        let kept = known
            .orders
            .values()
            .filter(|order| order.side == side && order.peer == *peer && order.duty == Duty::Keep);
        let one = |order: &Order| One { amounts: order.amounts.clone(), in_force: false };
        kept.map(|order| (order.reservation.clone(), one(order))).collect()
    }

    /// Is it being taken down, whatever is written in its object?
    pub(super) fn is_leaving(&self, side: Side, reservation: &str) -> bool {
        let known = self.lock();
        let order = known.orders.get(&(side, reservation.to_owned()));
        order.is_some_and(|order| order.duty != Duty::Keep)
    }

    pub(super) fn pair(&self, peer: &ClusterId) -> Pair {
        self.lock().pairs.get(peer).cloned().unwrap_or_default()
    }

    /// Changes what is known of a pair.
    pub(super) fn note(&self, peer: &ClusterId, change: impl FnOnce(&mut Pair)) {
        change(self.lock().pairs.entry(peer.clone()).or_default());
    }

    /// The pair was seen to. Whoever waits for it is told if that is news: how it is, and whether that
    /// is as it should be.
    pub(super) fn seen_to(&self, peer: &ClusterId, is_done: bool) {
        let mut is_news = false;
        self.note(peer, |pair| {
            let now = Some((pair.trouble.clone(), is_done));
            is_news = pair.told != now;
            pair.told = now;
        });
        if is_news {
            self.wake(peer);
        }
    }

    /// The pair is to be seen to.
    pub(super) fn attend(&self, peer: &ClusterId) {
        self.lock().due.insert(peer.clone());
        self.due.notify_one();
    }

    /// The next pair to be seen to. Nothing is lost when the future is dropped.
    pub(super) async fn due(&self) -> ClusterId {
        loop {
            if let Some(peer) = self.lock().due.pop_first() {
                return peer;
            }
            self.due.notified().await;
        }
    }

    /// Whoever waits for something of this pair is to look again.
    pub(super) fn wake(&self, peer: &ClusterId) {
        let mut known = self.lock();
        let of_pair = known.orders.iter().filter(|(_, order)| order.peer == *peer);
        let waiting = of_pair.filter(|(name, _)| !known.gone.contains(name));
        let names: Vec<_> = waiting.map(|(name, _)| name.clone()).collect();
        known.woken.extend(names);
        drop(known);
        self.news.notify_one();
    }

    /// What is to be looked at again. Nothing is lost when the future is dropped.
    pub(super) async fn changed(&self) -> Change {
        loop {
            if let Some((side, name)) = self.lock().woken.pop_first() {
                return Change::One(side, name);
            }
            self.news.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name_of(order: &Order) -> Name {
    (order.side, order.reservation.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use sublet_core::resources::Resources;

    fn order(name: &str, duty: Duty) -> Order {
        Order {
            reservation: name.to_owned(),
            side: Side::Requester,
            peer: "milan".parse().unwrap(),
            duty,
            amounts: Resources::new(1, 1),
            expires_at: None,
            generation: None,
        }
    }

    #[test]
    fn what_leaves_does_not_count_and_may_be_kept_again() {
        let (board, milan) = (Board::default(), "milan".parse().unwrap());
        board.keep(&order("a", Duty::Keep));
        assert_eq!(board.kept(Side::Requester, &milan).len(), 1);
        assert_eq!(board.kept(Side::Provider, &milan).len(), 0);
        assert!(!board.pair(&milan).may_end, "nobody said so");
        board.leave(&order("a", Duty::TakeDown));
        assert!(
            board.is_leaving(Side::Requester, "a")
                && board.kept(Side::Requester, &milan).is_empty()
        );
        assert!(board.pair(&milan).may_end && !board.pair(&milan).is_over);
        board.leave(&order("a", Duty::Gone));
        assert!(board.pair(&milan).is_over);
        board.keep(&order("a", Duty::Keep));
        assert!(!board.is_leaving(Side::Requester, "a") && !board.pair(&milan).is_over);
    }

    #[test]
    fn what_is_gone_is_remembered_as_long_as_there_is_room() {
        let (board, milan) = (Board::default(), "milan".parse().unwrap());
        for number in 0..=GONE_MAX {
            let over = order(&format!("rsv-{number}"), Duty::Gone);
            board.leave(&over);
            board.settle(&over);
            board.settle(&over);
        }
        assert!(!board.is_leaving(Side::Requester, "rsv-0"), "the oldest is forgotten");
        assert!(board.is_leaving(Side::Requester, "rsv-1"));
        board.wake(&milan);
        assert_eq!(board.changed().now_or_never(), None, "nobody waits for what is gone");
    }

    #[test]
    fn what_came_to_nothing_is_tried_again_later_each_time_and_at_once_for_a_new_reservation() {
        let (board, milan) = (Board::default(), "milan".parse().unwrap());
        board.keep(&order("a", Duty::Keep));
        let (now, mut last) = (Instant::now(), Duration::ZERO);
        assert_eq!(board.pair(&milan).pause(now), None);
        for _ in 0..20 {
            let trouble = Trouble { why: "no".into(), is_lasting: true };
            board.note(&milan, |pair| {
                pair.failed(trouble);
                pair.ran = Some(now);
            });
            let pause = board.pair(&milan).pause(now).unwrap();
            assert!(pause >= last && pause <= PAUSE_FIRST * (1 << PAUSES_MAX));
            last = pause;
        }
        board.keep(&order("a", Duty::Keep));
        assert!(board.pair(&milan).pause(now).is_some(), "nothing is new");
        board.keep(&order("b", Duty::Keep));
        assert_eq!(board.pair(&milan).pause(now), None);
        assert_eq!(board.pair(&milan).trouble, None);
    }

    #[test]
    fn a_pair_that_is_as_it_was_wakes_nobody() {
        let (board, milan) = (Board::default(), "milan".parse().unwrap());
        board.keep(&order("a", Duty::Keep));
        for (is_done, is_news) in [(false, true), (false, false), (true, true), (true, false)] {
            board.seen_to(&milan, is_done);
            assert_eq!(board.changed().now_or_never().is_some(), is_news);
        }
    }

    #[test]
    fn each_is_told_once_whoever_stops_waiting() {
        let (board, milan) = (Board::default(), "milan".parse().unwrap());
        board.keep(&order("a", Duty::Keep));
        assert_eq!(board.changed().now_or_never(), None);
        board.wake(&milan);
        board.wake(&"turin".parse().unwrap());
        let told = Change::One(Side::Requester, "a".to_owned());
        assert_eq!(board.changed().now_or_never(), Some(told));
        assert_eq!(board.changed().now_or_never(), None);
        board.attend(&milan);
        board.attend(&milan);
        assert_eq!(board.due().now_or_never(), Some(milan));
        assert_eq!(board.due().now_or_never(), None);
    }
}
