//! The most promising first: opens subtrees until providers themselves are on top.
//!
//! What is on the heap promises at most its score, and on a tie no smaller name than its first. So
//! a provider that comes off the heap is better than everything still on it, and `accept` is asked
//! about providers in exactly the order in which they would be chosen.
//!
//! Bounds help only where they tell subtrees apart. When many blocks were opened in vain (nothing
//! fits, although each amount alone would; or bin packing, whose bounds are weak), the rest is
//! finished in one pass over the columns, which costs less than the plain scan ever does.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::asked::Asked;
use super::class::Class;
use super::tree::{FAN, Summary};
use super::{Index, at};
use crate::decision::Strategy;
use crate::decision::score::{Ranking, Score};
use crate::id::ClusterId;
use crate::resources::Resources;

/// How good it is, and on a tie how early its name: greater is better.
type Merit = (Score, Reverse<u64>);

/// What stands on the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A node over classes.
    Classes { level: usize, at: usize },
    /// A node of one class; on level 0 it is a block.
    Node { class: u32, level: usize, at: usize },
    /// A provider.
    Provider { class: u32, slot: u32 },
}

/// One search.
pub(super) struct Search<'a> {
    index: &'a Index,
    asked: Asked<'a>,
    ranking: &'static dyn Ranking,
    accept: &'a mut dyn FnMut(&ClusterId) -> bool,
    heap: BinaryHeap<(Merit, Item)>,
    opened: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        index: &'a Index,
        resources: &'a Resources,
        strategy: Strategy,
        accept: &'a mut dyn FnMut(&ClusterId) -> bool,
    ) -> Self {
        let (asked, ranking) = (Asked::new(resources), strategy.ranking());
        Self { index, asked, ranking, accept, heap: BinaryHeap::new(), opened: 0 }
    }

    /// The `count` best, best first.
    pub(super) fn run(mut self, count: usize) -> Vec<ClusterId> {
        let mut found = Vec::new();
        if let Some((level, summary)) = self.index.top.root() {
            self.promise(summary, Item::Classes { level, at: 0 });
        }
        // A small part of what the pass over all blocks costs.
        let patience = self.index.places.len().div_ceil(FAN * FAN).saturating_add(FAN);
        while found.len() < count
            && let Some((_, item)) = self.heap.pop()
        {
            match item {
                Item::Provider { class, slot } => {
                    let slot = at(&self.index.classes, class).and_then(|class| class.slot(slot));
                    found.extend(
                        slot.filter(|slot| (self.accept)(&slot.cluster))
                            .map(|slot| slot.cluster.clone()),
                    );
                }
                Item::Node { class, level: 0, at } => {
                    self.opened = self.opened.saturating_add(1);
                    if self.opened > patience {
                        return self.sweep(count);
                    }
                    self.open_block(class, at);
                }
                Item::Node { class, level, at } => self.open_node(class, level, at),
                Item::Classes { level: 0, at } => self.open_class(at),
                Item::Classes { level, at } => self.open_classes(level, at),
            }
        }
        found
    }

    fn promise(&mut self, summary: &Summary, item: Item) {
        if let Some(merit) = self.merit(summary) {
            self.heap.push((merit, item));
        }
    }

    /// The most that can be hoped for under `summary`; none, if nobody there has room.
    fn merit(&self, summary: &Summary) -> Option<Merit> {
        if !self.asked.may_fit(summary) {
            return None;
        }
        let at_most_free = self.ranking.ends_at_most_free() && self.asked.asks_cpu_and_memory();
        let first = if at_most_free { summary.pair_first } else { summary.first };
        Some((self.ranking.bound(&self.asked, summary), Reverse(first)))
    }

    fn open_classes(&mut self, level: usize, at: usize) {
        let (first, nodes) = self.index.top.children(level, at);
        for (at, summary) in (first..).zip(nodes) {
            self.promise(summary, Item::Classes { level: level.saturating_sub(1), at });
        }
    }

    fn open_class(&mut self, number: usize) {
        let root = self.index.classes.get(number).and_then(|class| class.tree.root());
        if let (Some((level, summary)), Ok(class)) = (root, u32::try_from(number)) {
            self.promise(summary, Item::Node { class, level, at: 0 });
        }
    }

    fn open_node(&mut self, number: u32, level: usize, at_node: usize) {
        let Some(class) = at(&self.index.classes, number) else { return };
        let (first, nodes) = class.tree.children(level, at_node);
        for (at, summary) in (first..).zip(nodes) {
            let level = level.saturating_sub(1);
            self.promise(summary, Item::Node { class: number, level, at });
        }
    }

    fn open_block(&mut self, number: u32, block: usize) {
        let Some(class) = at(&self.index.classes, number) else { return };
        let (asked, ranking, heap) = (&self.asked, self.ranking, &mut self.heap);
        each_fitting(asked, ranking, class, block, |merit, slot| {
            heap.push((merit, Item::Provider { class: number, slot }));
        });
    }

    /// All that is left to do is to look at everything once.
    fn sweep(mut self, count: usize) -> Vec<ClusterId> {
        let mut found: Vec<(Merit, &ClusterId)> = Vec::new();
        for class in &self.index.classes {
            for (block, summary) in class.tree.leaves().iter().enumerate() {
                let hope = self.merit(summary);
                if hope.is_none_or(|hope| !enters(&found, count, hope)) {
                    continue;
                }
                let accept = &mut self.accept;
                each_fitting(&self.asked, self.ranking, class, block, |merit, slot| {
                    let Some(slot) = class.slot(slot) else { return };
                    if enters(&found, count, merit) && accept(&slot.cluster) {
                        let place = found.partition_point(|(other, _)| *other > merit);
                        found.insert(place, (merit, &slot.cluster));
                        found.truncate(count);
                    }
                });
            }
        }
        found.into_iter().map(|(_, cluster)| cluster.clone()).collect()
    }
}

/// Would something of this merit be among the `count` best?
fn enters(found: &[(Merit, &ClusterId)], count: usize, merit: Merit) -> bool {
    found.len() < count || found.last().is_some_and(|(last, _)| merit > *last)
}

/// Calls `each` with the merit and the slot of every provider of a block that has room.
fn each_fitting(
    asked: &Asked<'_>,
    ranking: &dyn Ranking,
    class: &Class,
    number: usize,
    mut each: impl FnMut(Merit, u32),
) {
    let Some((block, slots)) = class.block(number) else { return };
    let mut fitting = block.fitting(&asked.amounts);
    while fitting != 0 {
        let within = usize::try_from(fitting.trailing_zeros()).unwrap_or(FAN);
        fitting &= fitting.wrapping_sub(1);
        let (Some(slot), Some(rank)) = (slots.get(within), block.ranks.get(within)) else { return };
        let row = &slot.row;
        if asked.needs_row() && !(row.open && asked.resources.fits_in(&row.room)) {
            continue;
        }
        let score = ranking.score(asked.left(block.free(within), row), asked.resources, row);
        let place = number.saturating_mul(FAN).saturating_add(within);
        if let Ok(place) = u32::try_from(place) {
            each((score, Reverse(*rank)), place);
        }
    }
}
