//! I26: in calm, a naive scan over everything must agree with the broker's decision.

use std::collections::BTreeSet;

use sublet_broker::engine::Engine;
use sublet_core::advertisement::Cost;
use sublet_core::decision::Strategy;
use sublet_core::id::ClusterId;
use sublet_core::plan::Command;
use sublet_core::reservation::Ask;
use sublet_core::time::Time;
use sublet_log::Writer;

use super::waiting::meets;
use super::{Amounts, Auditor, amounts, less};
use crate::message::{Order, Ticket};

/// What the scan found.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// One of these; more than one where rounding may decide.
    Grant(BTreeSet<ClusterId>),
    /// Nobody fits.
    Nobody,
}

/// A cluster on which the request fits.
struct Fit {
    cluster: ClusterId,
    headroom: i128,
    price: (bool, String, u128),
}

/// A share that differs by less may be due to rounding.
const TOLERANCE: i128 = 16;

impl Auditor {
    /// Foretells the answer, where nothing but this request can have an influence on it.
    pub(super) fn predict(
        &mut self,
        writer: Writer,
        engine: &Engine<Ticket>,
        call: &Ticket,
        time: Time,
    ) {
        let Order::Command(Command::Reserve { requester, key, ask, .. }) = &call.order else {
            return;
        };
        let current = engine.books().ledger().stamp().revision == self.revision;
        // Those who wait have no influence: there is nothing that any of them could use (W1).
        let quiet = engine.is_done() && !engine.is_behind();
        let known = self.keys.contains_key(&(requester.clone(), key.clone()));
        if !current || !quiet || known || self.revoked.contains(requester) {
            return;
        }
        let now = time.max(self.time);
        if let Some(expected) = self.scan(writer, requester, ask, now) {
            self.expected.insert(call.number, (writer, expected));
        }
    }

    /// Nothing when an advertisement is of an age at which the auditor cannot tell.
    fn scan(
        &self,
        writer: Writer,
        requester: &ClusterId,
        ask: &Ask,
        now: Time,
    ) -> Option<Expected> {
        let wanted = amounts(&ask.resources);
        if self.exceeds(requester, wanted) {
            return Some(Expected::Nobody);
        }
        let mut best = Vec::new();
        for ((heard_by, cluster), ear) in &self.ears {
            let target = ask.target.as_ref().is_none_or(|target| target == cluster);
            let Some((heard_at, advert)) = ear.newest else { continue };
            if *heard_by != writer || !ear.heard || cluster == requester || !target {
                continue;
            }
            let advert = self.adverts.get(advert)?;
            if !self.is_open(cluster) || !meets(ask, advert) || !self.permits(requester, cluster) {
                continue;
            }
            let room = self.room_by(cluster, advert);
            if less(wanted, room) != Amounts::default() {
                continue;
            }
            if now.since(heard_at) >= self.policy.silence.suspect_min {
                return None;
            }
            best.push(Fit {
                cluster: cluster.clone(),
                headroom: headroom(wanted, room, advert.allocatable),
                price: price(wanted, advert.cost.as_ref()),
            });
        }
        Some(choose(best, ask.strategy.unwrap_or(self.policy.strategy)))
    }

    /// Others' records came in between: nothing is foretold any more.
    pub(crate) fn replans(&mut self, writer: Writer) {
        self.expected.retain(|_, (by, _)| *by != writer);
    }
}

/// The share left of each resource asked for, summed up.
fn headroom(wanted: Amounts, room: Amounts, size: Amounts) -> i128 {
    let share = |d: usize| {
        let left = ((room[d] - wanted[d]) << 32).checked_div(size[d]).unwrap_or(0);
        i128::try_from(left).unwrap_or(i128::MAX)
    };
    (0..wanted.len()).filter(|d| wanted[*d] > 0).map(share).sum()
}

/// What it costs in an hour, by currency; who names no price comes last.
fn price([cpu, memory, ..]: Amounts, cost: Option<&Cost>) -> (bool, String, u128) {
    cost.map_or((true, String::new(), 0), |cost| {
        // Per core and per GB; in a unit in which a millicore and a byte are whole.
        let cpu = cpu * u128::from(cost.cpu_micros) * 1_000_000;
        (false, cost.currency.clone(), cpu + memory * u128::from(cost.memory_micros))
    })
}

fn choose(mut candidates: Vec<Fit>, strategy: Strategy) -> Expected {
    let sign = match strategy {
        Strategy::Headroom | Strategy::Cost => 1,
        Strategy::Binpack => -1,
    };
    if strategy == Strategy::Cost {
        let cheapest = candidates.iter().map(|fit| fit.price.clone()).min();
        candidates.retain(|fit| Some(&fit.price) == cheapest.as_ref());
    }
    let Some(best) = candidates.iter().map(|fit| sign * fit.headroom).max() else {
        return Expected::Nobody;
    };
    let near = candidates.into_iter().filter(|fit| sign * fit.headroom + TOLERANCE >= best);
    Expected::Grant(near.map(|fit| fit.cluster).collect())
}
