//! What the broker wants done, as far as it has said so.

use std::collections::{BTreeMap, BTreeSet};

use sublet_core::instruction::{Duty, Side};

use super::instruction::{Told, overrides};
use crate::transport::{Order, Reach};

type Orders = BTreeMap<(Side, String), Order>;

/// What the broker wants done.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    orders: Orders,
    /// A list that is still being told.
    listing: Option<(Reach, Orders)>,
    /// What the last whole list was the whole of.
    listed: Option<Reach>,
}

impl Wanted {
    /// A whole list begins.
    pub(crate) fn reset(&mut self, reach: Reach) {
        self.listing = Some((reach, Orders::new()));
    }

    /// The broker's stream says so.
    pub(crate) fn hear(&mut self, order: Order) {
        let Some((_, list)) = &mut self.listing else { return insert(&mut self.orders, order) };
        list.insert(key(&order), order);
    }

    /// The broker has said so to a request; the stream may be behind that.
    pub(crate) fn overhear(&mut self, order: Order) {
        if let Some((_, list)) = &mut self.listing {
            insert(list, order.clone());
        }
        insert(&mut self.orders, order);
    }

    /// A list is complete, if one was begun: what it is the whole of.
    pub(crate) fn complete(&mut self) -> Option<Reach> {
        let (reach, mut list) = self.listing.take()?;
        if reach == Reach::Lent {
            let borrowed =
                |((side, _), _): &(&(Side, String), &mut Order)| *side == Side::Requester;
            let kept = self.orders.iter_mut().filter(borrowed);
            list.extend(kept.map(|(key, order)| (key.clone(), order.clone())));
        }
        self.orders = list;
        self.listed = Some(reach);
        Some(reach)
    }

    /// What it says of one instruction.
    pub(crate) fn told(&self, side: Side, reservation: &str) -> Told {
        match (self.orders.get(&(side, reservation.to_owned())), self.listed, side) {
            (Some(order), ..) if order.duty == Duty::Gone => Told::Gone,
            (Some(order), ..) => Told::Order(order.clone()),
            (None, Some(Reach::Both), _) | (None, Some(Reach::Lent), Side::Provider) => Told::Gone,
            (None, Some(Reach::Lent), Side::Requester) => Told::Never,
            (None, None, _) => Told::Nothing,
        }
    }

    /// Everything that there is an order for.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &(Side, String)> {
        self.orders.keys()
    }

    /// The reservations that are to be kept, of these sides.
    pub(crate) fn live(&self, sides: &[Side]) -> BTreeSet<String> {
        let is_live = |((side, _), order): &(&(Side, String), &Order)| {
            sides.contains(side) && order.duty != Duty::Gone
        };
        self.orders.iter().filter(is_live).map(|((_, name), _)| name.clone()).collect()
    }
}

fn key(order: &Order) -> (Side, String) {
    (order.side, order.reservation.clone())
}

/// What is gone is remembered until the next whole list, so that an older word does not bring it
/// back.
fn insert(orders: &mut Orders, order: Order) {
    let key = key(&order);
    if orders.get(&key).is_none_or(|known| overrides(&order, known)) {
        orders.insert(key, order);
    }
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
        assert_eq!(wanted.complete(), Some(Reach::Both));
        assert!(matches!(wanted.told(Side::Provider, "a"), Told::Order(_)));
        assert_eq!(wanted.told(Side::Provider, "b"), Told::Gone);
        assert_eq!(wanted.complete(), None, "a bookmark is no list");
        wanted.reset(Reach::Lent);
        wanted.complete();
        assert_eq!(wanted.told(Side::Provider, "a"), Told::Gone);
        assert_eq!(wanted.told(Side::Requester, "a"), Told::Never);
    }

    #[test]
    fn what_is_gone_does_not_come_back_by_an_older_word() {
        let mut wanted = Wanted::default();
        wanted.hear(order(Side::Requester, "a", Duty::Gone, 2));
        wanted.overhear(order(Side::Requester, "a", Duty::Keep, 1));
        wanted.overhear(order(Side::Requester, "a", Duty::Keep, 2));
        assert_eq!(wanted.told(Side::Requester, "a"), Told::Gone);
        assert!(wanted.live(&[Side::Requester]).is_empty());
    }

    #[test]
    fn what_a_request_heard_while_a_list_is_told_is_not_lost() {
        let mut wanted = Wanted::default();
        wanted.reset(Reach::Both);
        wanted.overhear(order(Side::Requester, "a", Duty::Keep, 1));
        wanted.complete();
        assert!(matches!(wanted.told(Side::Requester, "a"), Told::Order(_)));
        assert_eq!(wanted.live(&[Side::Requester, Side::Provider]).len(), 1);
    }
}
