//! What the broker wants done, as far as it has said so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use sublet_core::instruction::{Duty, Side};

use super::instruction::{Told, overrides};
use crate::transport::{Order, Reach};

type Name = (Side, String);
type Orders = BTreeMap<Name, Order>;

/// Of how much that is gone, and off its shelf, it is remembered that an older word may not bring it
/// back.
const SETTLED_MAX: usize = 256;

/// What is to be kept, or taken down in order: to be asked from beside the loop at any time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live(Arc<Mutex<BTreeSet<Name>>>);

impl Live {
    pub(crate) fn holds(&self, side: Side, reservation: &str) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.contains(&(side, reservation.to_owned()))
    }

    fn note(&self, name: &Name, is_live: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_live {
            all.insert(name.clone());
        } else {
            all.remove(name);
        }
    }

    fn become_those_of(&self, orders: &Orders) {
        let live = orders.iter().filter(|(_, order)| order.duty != Duty::Gone);
        let live = live.map(|(name, _)| name.clone()).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }
}

/// What the broker wants done.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    orders: Orders,
    live: Live,
    /// What is gone and off its shelf, the oldest first.
    settled: VecDeque<Name>,
    /// A list that is still being told.
    listing: Option<(Reach, Orders)>,
    /// What requests were answered since the stream was cut, or a list began, until there was a list: it
    /// may have been written before that, though it is heard later.
    answered: Orders,
    /// Is everything known that the stream has to say since it was cut?
    is_synced: bool,
    /// Of what the broker has spoken since it was reached. As long as it is the same one, its numbers
    /// only grow; one that was restored from an older log is reached anew.
    spoken_of: BTreeSet<Name>,
    /// What the last whole list was the whole of.
    listed: Option<Reach>,
}

impl Wanted {
    /// The stream was cut. Whoever is reached next may be another broker, and requests may be answered by
    /// it before the stream is heard again.
    pub(crate) fn cut(&mut self) {
        self.answered.clear();
        self.is_synced = false;
    }

    /// The broker is reached, for the first time or again: it may be another one.
    pub(crate) fn reached(&mut self) {
        self.spoken_of.clear();
    }

    /// A whole list begins.
    pub(crate) fn reset(&mut self, reach: Reach) {
        self.listing = Some((reach, Orders::new()));
    }

    /// The broker's stream says so.
    pub(crate) fn hear(&mut self, order: Order) {
        match &mut self.listing {
            Some((_, list)) => drop(list.insert(key(&order), order)),
            None => self.insert(order),
        }
    }

    /// A part of the list is not understood: it is the whole of nothing then, and who is not in it may
    /// live all the same.
    pub(crate) fn doubt(&mut self) {
        self.answered.clear();
        let list = self.listing.take().map(|(_, list)| list).unwrap_or_default();
        for order in list.into_values() {
            self.insert(order);
        }
    }

    /// The broker has said so to a request; the stream may be behind that.
    pub(crate) fn overhear(&mut self, order: Order) {
        if !self.is_synced || self.listing.is_some() {
            insert(&mut self.answered, order.clone());
        }
        self.insert(order);
    }

    fn insert(&mut self, order: Order) {
        let (name, is_live) = (key(&order), order.duty != Duty::Gone);
        if insert(&mut self.orders, order) {
            self.live.note(&name, is_live);
        }
        self.spoken_of.insert(name);
    }

    /// The object is off its shelf: what is gone need not be remembered for ever.
    pub(crate) fn settle(&mut self, side: Side, reservation: &str) {
        let name = (side, reservation.to_owned());
        let is_gone = self.orders.get(&name).is_some_and(|order| order.duty == Duty::Gone);
        if !is_gone || self.settled.contains(&name) {
            return;
        }
        self.settled.push_back(name);
        if self.settled.len() > SETTLED_MAX
            && let Some(oldest) = self.settled.pop_front()
            && self.orders.get(&oldest).is_some_and(|order| order.duty == Duty::Gone)
        {
            self.orders.remove(&oldest);
            self.spoken_of.remove(&oldest);
        }
    }

    /// What is known as a whole now; none while the broker is not heard, or a list is still being told.
    pub(crate) fn whole(&self) -> Option<Reach> {
        self.listed.filter(|_| self.is_synced && self.listing.is_none())
    }

    /// A list is complete, if one was begun: what it is the whole of.
    pub(crate) fn complete(&mut self) -> Option<Reach> {
        self.is_synced = true;
        let answered = std::mem::take(&mut self.answered);
        let (reach, mut list) = self.listing.take()?;
        for order in answered.into_values() {
            insert(&mut list, order);
        }
        for (name, listed) in &mut list {
            let known = self.orders.get(name).filter(|_| self.spoken_of.contains(name));
            if let Some(known) = known.filter(|known| known.generation > listed.generation) {
                *listed = known.clone();
            }
        }
        let kept = self.orders.iter().filter(|((side, _), _)| match reach {
            Reach::Both => false,
            Reach::Lent => *side == Side::Requester,
            Reach::Nothing => true,
        });
        list.extend(kept.map(|(key, order)| (key.clone(), order.clone())));
        self.orders = list;
        self.spoken_of = self.orders.keys().cloned().collect();
        self.live.become_those_of(&self.orders);
        self.settled.clear();
        self.listed = Some(reach);
        Some(reach)
    }

    /// What it says of one instruction.
    pub(crate) fn told(&self, side: Side, reservation: &str) -> Told {
        match (self.orders.get(&(side, reservation.to_owned())), self.listed, side) {
            (Some(order), ..) if order.duty == Duty::Gone => Told::Gone,
            (Some(order), Some(Reach::Nothing), Side::Provider) if order.generation.is_none() => {
                Told::Mentioned(order.clone())
            }
            (Some(order), ..) => Told::Order(order.clone()),
            (None, Some(Reach::Both), _) | (None, Some(Reach::Lent), Side::Provider) => Told::Gone,
            (None, Some(Reach::Lent), Side::Requester) | (None, Some(Reach::Nothing), _) => {
                Told::Never
            }
            (None, None, _) => Told::Nothing,
        }
    }

    /// Everything that there is an order for.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &(Side, String)> {
        self.orders.keys()
    }

    /// What is to be kept, now and whenever it is asked later.
    pub(crate) fn live(&self) -> Live {
        self.live.clone()
    }
}

fn key(order: &Order) -> (Side, String) {
    (order.side, order.reservation.clone())
}

/// What is gone is remembered for a while, so that an older word does not bring it back. Says whether
/// this was news.
fn insert(orders: &mut Orders, order: Order) -> bool {
    let key = key(&order);
    let is_news = orders.get(&key).is_none_or(|known| overrides(&order, known));
    if is_news {
        orders.insert(key, order);
    }
    is_news
}

#[cfg(test)]
mod tests {
    use super::*;
    use sublet_core::id::Generation;
    use sublet_core::resources::Resources;

    fn order(side: Side, name: &str, duty: Duty, generation: u32) -> Order {
        Order {
            reservation: name.to_owned(),
            side,
            peer: "rome".parse().unwrap(),
            duty,
            amounts: Resources::new(1, 1),
            expires_at: None,
            generation: Some(Generation(generation)),
        }
    }

    #[test]
    fn absence_means_something_only_after_a_whole_list() {
        let mut wanted = Wanted::default();
        assert_eq!(wanted.told(Side::Provider, "a"), Told::Nothing);
        wanted.reset(Reach::Both);
        wanted.hear(order(Side::Provider, "a", Duty::Keep, 1));
        assert_eq!(wanted.told(Side::Provider, "b"), Told::Nothing);
        assert_eq!(wanted.whole(), None, "the list is not over");
        assert_eq!(wanted.complete(), Some(Reach::Both));
        assert_eq!(wanted.whole(), Some(Reach::Both));
        assert!(matches!(wanted.told(Side::Provider, "a"), Told::Order(_)));
        assert_eq!(wanted.told(Side::Provider, "b"), Told::Gone);
        assert_eq!(wanted.complete(), None, "a bookmark is no list");
        assert_eq!(wanted.whole(), Some(Reach::Both), "what the last list said holds");
        wanted.cut();
        assert_eq!(wanted.whole(), None, "nobody knows what was said meanwhile");
        wanted.reset(Reach::Lent);
        wanted.complete();
        assert_eq!(wanted.told(Side::Provider, "a"), Told::Gone);
        assert_eq!(wanted.told(Side::Requester, "a"), Told::Never);
    }

    #[test]
    fn a_list_that_is_not_understood_takes_nothing_away() {
        let mut wanted = Wanted::default();
        wanted.reset(Reach::Both);
        wanted.hear(order(Side::Provider, "a", Duty::Keep, 1));
        wanted.complete();
        wanted.reset(Reach::Both);
        wanted.hear(order(Side::Provider, "b", Duty::Keep, 1));
        wanted.doubt();
        wanted.hear(order(Side::Provider, "c", Duty::Keep, 1));
        assert_eq!(wanted.complete(), None);
        for name in ["a", "b", "c"] {
            assert!(matches!(wanted.told(Side::Provider, name), Told::Order(_)), "{name}");
            assert!(wanted.live().holds(Side::Provider, name), "{name}");
        }
    }

    #[test]
    fn what_is_gone_does_not_come_back_by_an_older_word() {
        let mut wanted = Wanted::default();
        wanted.hear(order(Side::Requester, "a", Duty::Gone, 2));
        wanted.overhear(order(Side::Requester, "a", Duty::Keep, 1));
        wanted.overhear(order(Side::Requester, "a", Duty::Keep, 2));
        assert_eq!(wanted.told(Side::Requester, "a"), Told::Gone);
        assert!(!wanted.live().holds(Side::Requester, "a"));
    }

    #[test]
    fn what_is_gone_and_off_its_shelf_does_not_pile_up() {
        let mut wanted = Wanted::default();
        wanted.reset(Reach::Both);
        wanted.complete();
        wanted.hear(order(Side::Provider, "stays", Duty::Gone, 2));
        for number in 0..10 * SETTLED_MAX {
            let name = format!("rsv-{number}");
            wanted.hear(order(Side::Provider, &name, Duty::Keep, 1));
            wanted.settle(Side::Provider, &name);
            assert!(matches!(wanted.told(Side::Provider, &name), Told::Order(_)));
            wanted.hear(order(Side::Provider, &name, Duty::Gone, 2));
            wanted.settle(Side::Provider, &name);
            wanted.settle(Side::Provider, &name);
        }
        assert_eq!(wanted.keys().count(), SETTLED_MAX + 1, "one is on its shelf");
        assert_eq!(wanted.told(Side::Provider, "rsv-0"), Told::Gone);
    }

    #[test]
    fn what_came_after_a_list_is_live_when_the_sweep_asks() {
        let mut wanted = Wanted::default();
        wanted.reset(Reach::Both);
        wanted.hear(order(Side::Provider, "old", Duty::TakeDown, 1));
        wanted.complete();
        let live = wanted.live();
        assert!(live.holds(Side::Provider, "old") && !live.holds(Side::Requester, "old"));
        wanted.hear(order(Side::Provider, "new", Duty::Keep, 1));
        wanted.hear(order(Side::Provider, "old", Duty::Gone, 1));
        assert!(live.holds(Side::Provider, "new") && !live.holds(Side::Provider, "old"));
    }

    #[test]
    fn what_is_only_mentioned_is_kept_without_a_list() {
        let mut wanted = Wanted::default();
        wanted.reset(Reach::Nothing);
        wanted.complete();
        let unnumbered = Order { generation: None, ..order(Side::Provider, "a", Duty::Keep, 0) };
        wanted.hear(unnumbered.clone());
        assert_eq!(wanted.told(Side::Provider, "a"), Told::Mentioned(unnumbered));
        assert_eq!(wanted.told(Side::Provider, "b"), Told::Never);
    }

    fn number(wanted: &Wanted, name: &str) -> Option<u32> {
        match wanted.told(Side::Requester, name) {
            Told::Order(order) => order.generation.map(|generation| generation.0),
            told => panic!("{told:?}"),
        }
    }

    fn keep(generation: u32) -> Order {
        order(Side::Requester, "a", Duty::Keep, generation)
    }

    #[test]
    fn a_list_that_is_older_than_an_answer_does_not_bring_the_older_word_back() {
        // The answer comes after the list has begun, and before the older line of it.
        let mut wanted = Wanted::default();
        wanted.reached();
        wanted.reset(Reach::Both);
        wanted.overhear(keep(3));
        wanted.hear(keep(2));
        wanted.complete();
        assert_eq!(number(&wanted, "a"), Some(3));
        // It comes before the connection is heard of: what is not in the list is not gone.
        wanted.cut();
        wanted.overhear(order(Side::Requester, "b", Duty::Keep, 1));
        wanted.reached();
        wanted.reset(Reach::Both);
        wanted.hear(keep(3));
        wanted.complete();
        assert_eq!((number(&wanted, "a"), number(&wanted, "b")), (Some(3), Some(1)));
        assert!(wanted.live().holds(Side::Requester, "b"));
        // Long after, and a list comes because the stream fell behind.
        wanted.overhear(keep(5));
        wanted.reset(Reach::Both);
        wanted.hear(keep(4));
        wanted.complete();
        assert_eq!(number(&wanted, "a"), Some(5));
        assert_eq!(wanted.told(Side::Requester, "b"), Told::Gone, "that one is really gone");
    }

    #[test]
    fn a_broker_that_was_restored_is_right_with_its_older_numbers() {
        let mut wanted = Wanted::default();
        for generation in [5, 3] {
            wanted.cut();
            wanted.reached();
            wanted.reset(Reach::Both);
            wanted.hear(keep(generation));
            wanted.complete();
            assert_eq!(number(&wanted, "a"), Some(generation));
        }
    }

    #[test]
    fn a_stream_that_goes_on_where_it_was_remembers_no_answers() {
        let mut wanted = Wanted::default();
        wanted.reached();
        wanted.overhear(keep(1));
        assert_eq!(wanted.complete(), None, "there was no list");
        wanted.hear(order(Side::Requester, "a", Duty::Gone, 2));
        wanted.reset(Reach::Both);
        wanted.complete();
        assert_eq!(wanted.told(Side::Requester, "a"), Told::Gone);
    }

    #[test]
    fn what_a_request_heard_while_a_list_is_told_is_not_lost() {
        let mut wanted = Wanted::default();
        wanted.reset(Reach::Both);
        wanted.overhear(order(Side::Requester, "a", Duty::Keep, 1));
        wanted.complete();
        assert!(matches!(wanted.told(Side::Requester, "a"), Told::Order(_)));
        assert!(wanted.live().holds(Side::Requester, "a"));
    }
}
