//! The most promising first: opens nodes until providers themselves are on top.
//!
//! What is on the heap promises at most its score, and on a tie no smaller name than its first. So
//! a provider that comes off the heap is better than everything still on it, and `accept` is asked
//! about providers in exactly the order in which they would be chosen.
//!
//! Bounds help only where they tell nodes apart. When many leaves were opened in vain (extended
//! resources, sizes of which no two are alike in bin packing, the cheapest all being full), the rest
//! is finished in one pass over the columns of the tree by load, which costs less than the plain
//! scan does.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::marker::PhantomData;

use super::asked::Asked;
use super::leaf::{FAN, Leaf};
use super::slab::Slab;
use super::summary::Summary;
use super::tree::{Node, Tree};
use super::{Index, Slot};
use crate::decision::score::Ranking;
use crate::id::ClusterId;
use crate::resources::Resources;

/// How good it is, and on a tie how early its name: greater is better.
type Merit<R> = (<R as Ranking>::Score, Reverse<u64>);

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
    Provider(u32),
}

/// One search.
pub(super) struct Search<'a, R: Ranking> {
    tree: &'a Tree,
    view: View<'a, R>,
    index: &'a Index,
    accept: &'a mut dyn FnMut(&ClusterId) -> bool,
    heap: BinaryHeap<(Merit<R>, Item)>,
    /// Leaves that were looked into.
    opened: u64,
}

impl<'a, R: Ranking> Search<'a, R> {
    pub(super) fn new(
        index: &'a Index,
        resources: &'a Resources,
        accept: &'a mut dyn FnMut(&ClusterId) -> bool,
    ) -> Self {
        let view = View { asked: Asked::new(resources), slots: &index.slots, ranking: PhantomData };
        Self { tree: index.tree(R::BY), view, index, accept, heap: BinaryHeap::new(), opened: 0 }
    }

    /// The `count` best, best first, and how many leaves were looked into for them.
    pub(super) fn run(mut self, count: usize) -> (Vec<ClusterId>, u64) {
        let found = self.find(count);
        (found, self.opened)
    }

    fn find(&mut self, count: usize) -> Vec<ClusterId> {
        let mut found = Vec::new();
        // Where room is no ground of the order, it takes long to see that there is none.
        if !R::SEES_ROOM && !self.may_fit_under(self.index.by_load.root) {
            return found;
        }
        self.tree.root.into_iter().for_each(|root| self.open(root));
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
                Item::Provider(number) => {
                    let slot = self.view.slots.get(number);
                    let accepted = slot.filter(|slot| (self.accept)(&slot.cluster));
                    found.extend(accepted.map(|slot| slot.cluster.clone()));
                }
            }
        }
        found
    }

    /// Could there be room somewhere under this node of the tree by load?
    fn may_fit_under(&self, node: Option<u32>) -> bool {
        let node = node.and_then(|number| self.index.by_load.nodes.get(number));
        node.is_some_and(|Node { above_leaves, children, .. }| {
            let asked = &self.view.asked;
            let hopeful = children.iter().filter(|child| asked.may_be_met(&child.summary));
            hopeful.into_iter().any(|child| *above_leaves || self.may_fit_under(Some(child.number)))
        })
    }

    /// How many leaves are opened before the pass over all of them: a small part of what that costs.
    fn patience(&self) -> usize {
        self.index.len().div_ceil(FAN * FAN).saturating_add(FAN)
    }

    fn open(&mut self, number: u32) {
        let Some(node) = self.tree.nodes.get(number) else { return };
        for (at, child) in (0..).zip(&node.children) {
            let Some(merit) = self.view.merit(&child.summary) else { continue };
            if node.above_leaves && self.is_few() && !self.has_room(child.number) {
                continue;
            }
            if self.heap.is_empty() {
                self.heap.reserve(self.heap_room());
            }
            let leaf = Item::Leaf { node: number, at };
            let item = if node.above_leaves { leaf } else { Item::Node(child.number) };
            self.heap.push((merit, item));
        }
    }

    /// So few that a look into each leaf costs less than to put it on the heap in vain.
    fn is_few(&self) -> bool {
        self.index.len() <= FAN * FAN
    }

    /// What a search has on the heap, so that it need not grow; more of it in a large fleet.
    fn heap_room(&self) -> usize {
        if self.is_few() { FAN * 2 } else { FAN * 6 }
    }

    fn has_room(&self, leaf: u32) -> bool {
        let leaf = self.tree.leaves.get(leaf);
        leaf.is_some_and(|leaf| leaf.fitting(&self.view.asked.amounts) != 0)
    }

    fn open_leaf(&mut self, node: u32, at: u8) {
        self.opened = self.opened.saturating_add(1);
        let child = self.tree.nodes.get(node).and_then(|node| node.children.get(usize::from(at)));
        let Some(child) = child else { return };
        let Some(leaf) = self.tree.leaves.get(child.number) else { return };
        let number = child.number;
        self.view.each_fitting(&child.summary, leaf, |merit, at, exact| {
            let item = match leaf.number(usize::from(at)) {
                Some(number) if exact => Item::Provider(number),
                _ => Item::Guess { leaf: number, at },
            };
            self.heap.push((merit, item));
        });
    }

    fn weigh(&mut self, (_, rank): Merit<R>, leaf: u32, at: u8) {
        let Some(leaf) = self.tree.leaves.get(leaf) else { return };
        let weighed = self.view.slot(leaf, at).map(|(number, slot)| {
            let score = self.view.score(leaf, at, slot);
            ((score, rank), Item::Provider(number))
        });
        self.heap.extend(weighed);
    }

    /// All that is left to do is to look at everything once.
    fn sweep(&mut self, count: usize) -> Vec<ClusterId> {
        let mut found: Vec<(Merit<R>, &ClusterId)> = Vec::new();
        for (summary, leaf) in self.index.by_load.leaves() {
            let hopeless = |hope| !enters(&found, count, hope);
            if !self.view.asked.may_fit(summary)
                || !found.is_empty() && self.view.merit(summary).is_none_or(hopeless)
            {
                continue;
            }
            self.opened = self.opened.saturating_add(1);
            let (view, accept) = (&self.view, &mut self.accept);
            view.each_fitting(summary, leaf, |(guess, rank), at, exact| {
                if !enters(&found, count, (guess, rank)) {
                    return;
                }
                let Some((_, slot)) = view.slot(leaf, at) else { return };
                let score = if exact { guess } else { view.score(leaf, at, slot) };
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
fn enters<M: Ord>(found: &[(M, &ClusterId)], count: usize, merit: M) -> bool {
    found.len() < count || found.last().is_some_and(|(last, _)| merit > *last)
}

/// How a request and its strategy see the tree.
struct View<'a, R> {
    asked: Asked<'a>,
    slots: &'a Slab<Slot>,
    ranking: PhantomData<R>,
}

impl<'a, R: Ranking> View<'a, R> {
    /// The most that can be hoped for under `summary`; none, if nobody there has room.
    fn merit(&self, summary: &Summary) -> Option<Merit<R>> {
        if !self.asked.may_fit(summary) {
            return None;
        }
        // Who reaches the bound has the greatest share free or is just below, so the first name
        // among those is all that a tie has to know.
        let at_most_free = R::PREFERS_HEADROOM && self.asked.asks_cpu_and_memory();
        let free_first = summary.pair_first.min(summary.pair_next);
        let first = if at_most_free { free_first } else { summary.first };
        Some((R::bound(&self.asked, summary)?, Reverse(first)))
    }

    fn slot(&self, leaf: &Leaf, at: u8) -> Option<(u32, &'a Slot)> {
        let number = leaf.number(usize::from(at))?;
        Some((number, self.slots.get(number)?))
    }

    /// The score of a provider that fits.
    fn score(&self, leaf: &Leaf, at: u8, slot: &Slot) -> R::Score {
        let left = self.asked.left(leaf.free(usize::from(at)), &slot.row);
        R::score(left, self.asked.resources, || slot.tag)
    }

    /// Calls `each` for every provider of a leaf that has room: with its merit if that is known
    /// without a division, else with what it is at most.
    fn each_fitting(
        &self,
        summary: &Summary,
        leaf: &Leaf,
        mut each: impl FnMut(Merit<R>, u8, bool),
    ) {
        let asked = &self.asked;
        let exact = asked.needs_row() || summary.bounds.is_of_one_size();
        // Of the largest size the request takes the smallest share, and the other way round.
        let size =
            if R::PREFERS_HEADROOM { &summary.bounds.largest } else { &summary.bounds.smallest };
        let mut fitting = leaf.fitting(&asked.amounts);
        while fitting != 0 {
            let Ok(at) = u8::try_from(fitting.trailing_zeros()) else { return };
            fitting &= fitting.wrapping_sub(1);
            let rank = Reverse(leaf.rank(usize::from(at)));
            if !asked.needs_row() {
                let left = asked.left_of(&leaf.free(usize::from(at)), size);
                let tag = || self.slot(leaf, at).map_or(summary.bounds.tag, |(_, slot)| slot.tag);
                each((R::score(left, asked.resources, tag), rank), at, exact);
            } else if let Some((_, slot)) = self.slot(leaf, at)
                && slot.row.is_open()
                && asked.resources.fits_in(&slot.row.room)
            {
                each((self.score(leaf, at, slot), rank), at, exact);
            }
        }
    }
}
