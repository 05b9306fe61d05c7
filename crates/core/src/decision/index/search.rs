//! The most promising first: opens nodes until providers themselves are on top.
//!
//! What is on the heap promises at most its score, and on a tie no smaller name than its first. So
//! a provider that comes off the heap is better than everything still on it, and `accept` is asked
//! about providers in exactly the order in which they would be chosen.
//!
//! Bounds help only where they tell nodes apart. When many leaves were opened in vain (prices that
//! differ from each provider to the next, extended resources, sizes of which no two are alike in
//! bin packing), the rest is finished in one pass over the columns, which costs less than the plain
//! scan does.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Index;
use super::asked::Asked;
use super::leaf::{FAN, Leaf, Slot};
use super::summary::Summary;
use crate::decision::Strategy;
use crate::decision::score::{Ranking, Score};
use crate::id::ClusterId;
use crate::resources::Resources;

/// How good it is, and on a tie how early its name: greater is better.
type Merit = (Score, Reverse<u64>);

/// What stands on the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A node over others.
    Node(u32),
    /// A leaf, as the child of a node.
    Leaf { node: u32, at: u8 },
    /// A provider whose score is not known exactly yet, only what it is at most.
    Guess { leaf: u32, at: u8 },
    /// A provider with its score.
    Provider { leaf: u32, at: u8 },
}

/// One search.
pub(super) struct Search<'a> {
    index: &'a Index,
    view: View<'a>,
    accept: &'a mut dyn FnMut(&ClusterId) -> bool,
    heap: BinaryHeap<(Merit, Item)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        index: &'a Index,
        resources: &'a Resources,
        strategy: Strategy,
        accept: &'a mut dyn FnMut(&ClusterId) -> bool,
    ) -> Self {
        let view = View { asked: Asked::new(resources), ranking: strategy.ranking() };
        Self { index, view, accept, heap: BinaryHeap::new() }
    }

    /// The `count` best, best first.
    pub(super) fn run(mut self, count: usize) -> Vec<ClusterId> {
        let mut found = Vec::new();
        self.index.tree.root.into_iter().for_each(|root| self.open(root));
        let mut patience = self.patience();
        while found.len() < count
            && let Some((merit, item)) = self.heap.pop()
        {
            match item {
                Item::Node(number) => self.open(number),
                Item::Leaf { node, at } => {
                    patience = patience.saturating_sub(1);
                    if patience == 0 {
                        return self.sweep(count);
                    }
                    self.open_leaf(node, at);
                }
                Item::Guess { leaf, at } => self.weigh(merit, leaf, at),
                Item::Provider { leaf, at } => {
                    let accepted = self.slot(leaf, at).filter(|slot| (self.accept)(&slot.cluster));
                    found.extend(accepted.map(|slot| slot.cluster.clone()));
                }
            }
        }
        found
    }

    /// How many leaves are opened before the pass over all of them: a small part of what that costs.
    fn patience(&self) -> usize {
        self.index.places.len().div_ceil(FAN * FAN).saturating_add(FAN)
    }

    fn slot(&self, leaf: u32, at: u8) -> Option<&'a Slot> {
        self.index.tree.leaf(leaf)?.slots().get(usize::from(at))
    }

    fn open(&mut self, number: u32) {
        let Some(node) = self.index.tree.node(number) else { return };
        for (at, child) in (0..).zip(&node.children) {
            let Some(merit) = self.view.merit(&child.summary) else { continue };
            if node.above_leaves && self.is_few() && !self.has_room(child.number) {
                continue;
            }
            if self.heap.is_empty() {
                // What a search has on the heap in a large fleet, so that it need not grow.
                self.heap.reserve(FAN * 6);
            }
            let leaf = Item::Leaf { node: number, at };
            let item = if node.above_leaves { leaf } else { Item::Node(child.number) };
            self.heap.push((merit, item));
        }
    }

    /// So few that a look into each leaf costs less than to put it on the heap in vain.
    fn is_few(&self) -> bool {
        self.index.places.len() <= FAN * FAN
    }

    fn has_room(&self, leaf: u32) -> bool {
        let leaf = self.index.tree.leaf(leaf);
        leaf.is_some_and(|leaf| leaf.fitting(&self.view.asked.amounts) != 0)
    }

    fn open_leaf(&mut self, node: u32, at: u8) {
        let child = self.index.tree.node(node).and_then(|node| node.children.get(usize::from(at)));
        let Some(child) = child else { return };
        let Some(leaf) = self.index.tree.leaf(child.number) else { return };
        let number = child.number;
        self.view.each_fitting(&child.summary, leaf, |merit, at, exact| {
            let (guess, provider) =
                (Item::Guess { leaf: number, at }, Item::Provider { leaf: number, at });
            self.heap.push((merit, if exact { provider } else { guess }));
        });
    }

    fn weigh(&mut self, (_, rank): Merit, number: u32, at: u8) {
        let Some(leaf) = self.index.tree.leaf(number) else { return };
        if let Some(score) = self.view.score(leaf, at) {
            self.heap.push(((score, rank), Item::Provider { leaf: number, at }));
        }
    }

    /// All that is left to do is to look at everything once.
    fn sweep(mut self, count: usize) -> Vec<ClusterId> {
        let mut found: Vec<(Merit, &ClusterId)> = Vec::new();
        for (summary, leaf) in self.index.tree.leaves() {
            let hopeless = |hope| !enters(&found, count, hope);
            if !self.view.asked.may_fit(summary)
                || !found.is_empty() && self.view.merit(summary).is_none_or(hopeless)
            {
                continue;
            }
            let (view, accept) = (&self.view, &mut self.accept);
            view.each_fitting(summary, leaf, |(guess, rank), at, exact| {
                if !enters(&found, count, (guess, rank)) {
                    return;
                }
                let score = if exact { Some(guess) } else { view.score(leaf, at) };
                let (Some(score), Some(slot)) = (score, leaf.slots().get(usize::from(at))) else {
                    return;
                };
                let merit = (score, rank);
                if enters(&found, count, merit) && accept(&slot.cluster) {
                    let place = found.partition_point(|(other, _)| *other > merit);
                    found.insert(place, (merit, &slot.cluster));
                    found.truncate(count);
                }
            });
        }
        found.into_iter().map(|(_, cluster)| cluster.clone()).collect()
    }
}

/// Would something of this merit be among the `count` best?
fn enters(found: &[(Merit, &ClusterId)], count: usize, merit: Merit) -> bool {
    found.len() < count || found.last().is_some_and(|(last, _)| merit > *last)
}

/// How a request and its strategy see the tree.
struct View<'a> {
    asked: Asked<'a>,
    ranking: &'static dyn Ranking,
}

impl View<'_> {
    /// The most that can be hoped for under `summary`; none, if nobody there has room.
    fn merit(&self, summary: &Summary) -> Option<Merit> {
        if !self.asked.may_fit(summary) {
            return None;
        }
        let most = self.asked.most_left(summary)?;
        // Who reaches the bound has the greatest share free or is just below, so the first name
        // among those is all that a tie has to know.
        let at_most_free = self.ranking.prefers_headroom() && self.asked.asks_cpu_and_memory();
        let free_first = summary.pair_first.min(summary.pair_next);
        let first = if at_most_free { free_first } else { summary.first };
        Some((self.ranking.bound(most, &self.asked, summary), Reverse(first)))
    }

    /// The score of a provider that fits.
    fn score(&self, leaf: &Leaf, at: u8) -> Option<Score> {
        let at = usize::from(at);
        let row = &leaf.slots().get(at)?.row;
        let left = self.asked.left(leaf.free(at), row);
        Some(self.ranking.score(left, self.asked.resources, row))
    }

    /// Calls `each` for every provider of a leaf that has room: with its merit if that is known
    /// without a division, else with what it is at most.
    fn each_fitting(&self, summary: &Summary, leaf: &Leaf, mut each: impl FnMut(Merit, u8, bool)) {
        let asked = &self.asked;
        let exact = asked.needs_row() || summary.is_of_one_size();
        // Of the largest size the request takes the smallest share, and the other way round.
        let largest = self.ranking.prefers_headroom();
        let size = if largest { summary.largest } else { summary.smallest };
        let mut fitting = leaf.fitting(&asked.amounts);
        while fitting != 0 {
            let Ok(bit) = u8::try_from(fitting.trailing_zeros()) else { return };
            let at = usize::from(bit);
            fitting &= fitting.wrapping_sub(1);
            let Some(Slot { row, .. }) = leaf.slots().get(at) else { return };
            if asked.needs_row() && !(row.open && asked.resources.fits_in(&row.room)) {
                continue;
            }
            let score = if asked.needs_row() {
                self.score(leaf, bit)
            } else {
                let left = asked.left_of(leaf.free(at), size);
                Some(self.ranking.score(left, asked.resources, row))
            };
            if let Some(score) = score {
                each((score, Reverse(leaf.rank(at))), bit, exact);
            }
        }
    }
}
