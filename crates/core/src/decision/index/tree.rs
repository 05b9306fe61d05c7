//! Leaves of like providers, under nodes that summarise them.
//!
//! A B-tree in which nobody searches by key: every [`Slot`] knows its leaf. The order serves only to
//! keep like providers together, so it may be kept loosely: a node goes when it is empty, and a leaf
//! that is nearly so is given up and its few rows find new places.

use alloc::vec::Vec;

use super::Slot;
use super::leaf::{FAN, Figures, Leaf};
use super::order::{By, Order};
use super::slab::Slab;
use super::summary::Summary;

/// A leaf with fewer rows is given up.
const FEW: usize = FAN / 4;

/// What a node knows of one below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    pub(super) number: u32,
    /// Where it begins; the first child of a node begins before everything.
    pub(super) from: Order,
    pub(super) summary: Summary,
}

/// A node that summarises others.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) parent: u32,
    pub(super) above_leaves: bool,
    pub(super) children: Vec<Child>,
}

/// All providers.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) by: By,
    pub(super) leaves: Slab<Leaf>,
    pub(super) nodes: Slab<Node>,
    pub(super) root: Option<u32>,
}

impl Tree {
    pub(super) fn new(by: By) -> Self {
        Self { by, leaves: Slab::default(), nodes: Slab::default(), root: None }
    }

    /// All leaves with what is known of them above.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (&Summary, &Leaf)> {
        let lowest = self.nodes.iter().filter(|node| node.above_leaves);
        lowest
            .flat_map(|node| &node.children)
            .filter_map(|child| Some((&child.summary, self.leaves.get(child.number)?)))
    }

    /// The figures of a provider, as they stand in its leaf.
    pub(super) fn figures(&self, number: u32, slot: &Slot) -> Option<Figures> {
        let leaf = self.leaves.get(slot.leaf(self.by))?;
        Some(leaf.figures(leaf.position(number)?))
    }

    pub(super) fn order(&self, slot: &Slot, figures: &Figures) -> Order {
        Order::new(self.by, &slot.row, slot.tag, figures)
    }

    /// Takes over what is known of a provider now, which stood at `before`. Are its `bounds` others
    /// than they were?
    pub(super) fn update(
        &mut self,
        slots: &mut Slab<Slot>,
        number: u32,
        (before, stirred): (Order, bool),
        figures: &Figures,
    ) {
        let Some(slot) = slots.get(number) else { return };
        if self.order(slot, figures) != before {
            self.remove(slots, number);
            return self.insert(slots, number, figures);
        }
        let home = slot.leaf(self.by);
        if let Some(leaf) = self.leaves.get_mut(home)
            && let Some(at) = leaf.position(number)
        {
            leaf.write(at, number, slot.rank, figures);
            if stirred {
                leaf.gather(slots);
            }
        }
        self.summarise(home);
    }

    /// Adds a provider where it belongs.
    pub(super) fn insert(&mut self, slots: &mut Slab<Slot>, number: u32, figures: &Figures) {
        let Some(slot) = slots.get(number) else { return };
        let order = self.order(slot, figures);
        let mut home = self.leaf_for(order);
        if self.leaves.get(home).is_some_and(|leaf| leaf.len() >= FAN) {
            home = self.split_leaf(slots, home, order);
        }
        if let (Some(slot), Some(leaf)) = (slots.get_mut(number), self.leaves.get_mut(home)) {
            slot.move_to(self.by, home);
            leaf.push(number, slot, figures);
        }
        self.summarise(home);
    }

    /// Takes a provider out.
    pub(super) fn remove(&mut self, slots: &mut Slab<Slot>, number: u32) {
        let Some(home) = slots.get(number).map(|slot| slot.leaf(self.by)) else { return };
        let Some(leaf) = self.leaves.get_mut(home) else { return };
        if let Some(at) = leaf.position(number) {
            leaf.remove(at);
        }
        if !leaf.is_of_one_size() {
            leaf.gather(slots);
        }
        if leaf.len() >= FEW {
            return self.summarise(home);
        }
        let (parent, few) = (leaf.parent, leaf.content());
        self.leaves.take(home);
        self.drop_child(parent, home);
        for (number, figures) in few {
            self.insert(slots, number, &figures);
        }
    }

    /// Takes over the numbers of all names, which have changed.
    pub(super) fn rank_anew(&mut self, slots: &Slab<Slot>) {
        let lowest = self.nodes.iter().filter(|node| node.above_leaves);
        let all: Vec<u32> =
            lowest.flat_map(|node| node.children.iter().map(|child| child.number)).collect();
        for home in all {
            let Some(leaf) = self.leaves.get_mut(home) else { continue };
            for (at, (number, figures)) in leaf.content().into_iter().enumerate() {
                let rank = slots.get(number).map_or(u64::MAX, |slot| slot.rank);
                leaf.write(at, number, rank, &figures);
            }
            self.summarise(home);
        }
    }
}
