//! The terms of the winner's score and of those that came next.

use alloc::vec::Vec;

use super::{Granted, Left, Price, RUNNERS_UP_MAX, Ranked};
use crate::decision::Strategy;
use crate::decision::filter::{Question, Verdict};
use crate::decision::index::Row;
use crate::decision::score::{self, SHARE_BITS, WHOLE, share};
use crate::id::ClusterId;
use crate::reservation::Grant;
use crate::resources::{Kind, Resources};

/// Of what is held already: the winner's room is what it keeps free beside it.
pub(super) fn explain_held(question: Question<'_>, grant: &Grant) -> Granted {
    let winner = &grant.provider;
    let mut told = explain(question, winner);
    if let Some(row) = question.books.index().row(winner) {
        let kept = |(resource, _)| left(resource, 0, row);
        told.winner.left = grant.amounts.iter().map(kept).collect();
    }
    told
}

pub(super) fn explain(question: Question<'_>, winner: &ClusterId) -> Granted {
    let (index, strategy) = (question.books.index(), question.strategy());
    let resources = &question.ask.resources;
    let next = |count| {
        index.best_of(count, resources, strategy, |cluster| {
            cluster != winner && question.verdict(cluster) == Verdict::Fits
        })
    };
    // A fixed target had no rivals.
    let runners_up = if question.ask.target.is_some() { Vec::new() } else { next(RUNNERS_UP_MAX) };
    let rank = |cluster: &ClusterId| {
        let row = index.row(cluster);
        Ranked {
            cluster: cluster.clone(),
            left: row.map(|row| terms(resources, row)).unwrap_or_default(),
            price: row.and_then(|row| price(strategy, resources, row)),
        }
    };
    Granted { strategy, winner: rank(winner), runners_up: runners_up.iter().map(rank).collect() }
}

/// What stays free of each resource asked for.
pub(super) fn terms(resources: &Resources, row: &Row) -> Vec<Left> {
    resources.iter().map(|(resource, amount)| left(resource, amount, row)).collect()
}

fn left(resource: Kind, amount: u64, row: &Row) -> Left {
    let size = row.allocatable.get(&resource);
    let left = share(row.room.get(&resource), size).saturating_sub(share(amount, size));
    let parts = u128::from(left).saturating_mul(10_000);
    // Shares are rounded down, so 85 % is a hair less: to the nearest, as people count.
    let hundredths = parts.saturating_add(u128::from(WHOLE / 2)) >> SHARE_BITS;
    Left { resource, hundredths_of_percent: u32::try_from(hundredths).unwrap_or(u32::MAX) }
}

/// What the request costs there, if the price decides.
pub(super) fn price(strategy: Strategy, resources: &Resources, row: &Row) -> Option<Price> {
    let cost = row.cost.as_ref().filter(|_| strategy == Strategy::Cost)?;
    let micros = u64::try_from(score::price_micros(resources, cost)).unwrap_or(u64::MAX);
    Some(Price { micros, currency: cost.currency.clone() })
}
