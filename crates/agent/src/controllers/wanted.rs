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
