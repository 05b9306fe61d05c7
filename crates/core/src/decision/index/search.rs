//! The most promising first: opens nodes until providers themselves are on top.
//!
//! What is on the heap promises at most its score, and on a tie no smaller name than its first. So
//! a provider that comes off the heap is better than everything still on it, and `accept` is asked
//! about providers in exactly the order in which they would be chosen.
//!
//! Bounds help only where they tell nodes apart. When many leaves were opened in vain (nothing
//! fits, although each amount alone would; or bin packing, whose bounds are weak), the rest is
//! finished in one pass over the columns, which costs less than the plain scan does.

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
    Leaf { node: u32, at: usize },
    /// A provider whose score is not known exactly yet, only what it is at most.
    Guess { leaf: u32, at: usize },
    /// A provider with its score.
    Provider { leaf: u32, at: usize },
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
        // What a search in a large fleet has on the heap, so that it does not grow step by step.
        Self { index, view, accept, heap: BinaryHeap::with_capacity(FAN * 6) }
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

    /// How many leaves are opened before the pass over all of them: a small part of what that costs,
    /// and next to nothing where bounds seldom help.
    fn patience(&self) -> usize {
        let part = self.index.places.len().div_ceil(FAN * FAN);
        FAN.saturating_add(if self.view.ranking.prefers_headroom() { part } else { 0 })
    }

    fn slot(&self, leaf: u32, at: usize) -> Option<&'a Slot> {
        self.index.tree.leaf(leaf)?.slots().get(at)
    }

    fn open(&mut self, number: u32) {
        let Some(node) = self.index.tree.node(number) else { return };
        for (at, child) in node.children.iter().enumerate() {
            if let Some(merit) = self.view.merit(&child.summary) {
                let leaf = Item::Leaf { node: number, at };
                let item = if node.above_leaves { leaf } else { Item::Node(child.number) };
                self.heap.push((merit, item));
            }
        }
    }

    fn open_leaf(&mut self, node: u32, at: usize) {
        let child = self.index.tree.node(node).and_then(|node| node.children.get(at));
        let Some(child) = child else { return };
        let Some(leaf) = self.index.tree.leaf(child.number) else { return };
        let number = child.number;
        self.view.each_fitting(&child.summary, leaf, |merit, at, exact| {
            let (guess, provider) =
                (Item::Guess { leaf: number, at }, Item::Provider { leaf: number, at });
            self.heap.push((merit, if exact { provider } else { guess }));
        });
    }

    fn weigh(&mut self, (_, rank): Merit, number: u32, at: usize) {
        let Some(leaf) = self.index.tree.leaf(number) else { return };
        if let Some(score) = self.view.score(leaf, at) {
            self.heap.push(((score, rank), Item::Provider { leaf: number, at }));
        }
    }

    /// All that is left to do is to look at everything once.
    fn sweep(mut self, count: usize) -> Vec<ClusterId> {
        let mut found: Vec<(Merit, &ClusterId)> = Vec::new();
        for (summary, leaf) in self.index.tree.leaves() {
            let hope = self.view.merit(summary);
            if hope.is_none_or(|hope| !enters(&found, count, hope)) {
                continue;
            }
            let (view, accept) = (&self.view, &mut self.accept);
            view.each_fitting(summary, leaf, |(guess, rank), at, exact| {
                if !enters(&found, count, (guess, rank)) {
                    return;
                }
                let score = if exact { Some(guess) } else { view.score(leaf, at) };
                let (Some(score), Some(slot)) = (score, leaf.slots().get(at)) else { return };
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
        // Who reaches the bound has the greatest share free or is just below, so the first name
        // among those is all that a tie has to know.
        let at_most_free = self.ranking.prefers_headroom() && self.asked.asks_cpu_and_memory();
        let free_first = summary.pair_first.min(summary.pair_next);
        let first = if at_most_free { free_first } else { summary.first };
        Some((self.ranking.bound(&self.asked, summary), Reverse(first)))
    }

    /// The score of a provider that fits.
    fn score(&self, leaf: &Leaf, at: usize) -> Option<Score> {
        let row = &leaf.slots().get(at)?.row;
        let left = self.asked.left(leaf.free(at), row);
        Some(self.ranking.score(left, self.asked.resources, row))
    }

    /// Calls `each` for every provider of a leaf that has room: with its merit if that is known
    /// without a division, else with what it is at most.
    fn each_fitting(
        &self,
        summary: &Summary,
        leaf: &Leaf,
        mut each: impl FnMut(Merit, usize, bool),
    ) {
        let asked = &self.asked;
        let exact = asked.needs_row() || summary.is_of_one_size();
        // Of the largest size the request takes the smallest share, and the other way round.
        let largest = self.ranking.prefers_headroom();
        let size = if largest { summary.largest } else { summary.smallest };
        let mut fitting = leaf.fitting(&asked.amounts);
        while fitting != 0 {
            let at = usize::try_from(fitting.trailing_zeros()).unwrap_or(FAN);
            fitting &= fitting.wrapping_sub(1);
            let Some(Slot { row, .. }) = leaf.slots().get(at) else { return };
            if asked.needs_row() && !(row.open && asked.resources.fits_in(&row.room)) {
                continue;
            }
            let score = if asked.needs_row() {
                self.score(leaf, at)
            } else {
                let left = asked.left_of(leaf.free(at), size);
                Some(self.ranking.score(left, asked.resources, row))
            };
            if let Some(score) = score {
                each((score, Reverse(leaf.rank(at))), at, exact);
            }
        }
    }
}
