//! Leaves in the order of size and load, under nodes that summarise them.
//!
//! A B-tree in which nobody searches by key: [`super::Index`] knows the leaf of every provider. The
//! order serves only to keep like providers together, so it may be kept loosely: a node goes when
//! it is empty, and a leaf that is nearly so is given up and its few rows find new places. The
//! places of the vacant ones are used again.

use alloc::vec::Vec;

use super::leaf::{FAN, Leaf, Order, Slot};
use super::summary::Summary;
use super::{Row, at, at_mut};
use crate::id::ClusterId;

/// No node: above the root.
pub(super) const NONE: u32 = u32::MAX;
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
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    pub(super) leaves: Vec<Leaf>,
    pub(super) nodes: Vec<Node>,
    pub(super) vacant_leaves: Vec<u32>,
    pub(super) vacant_nodes: Vec<u32>,
    pub(super) root: Option<u32>,
}

/// Reading.
impl Tree {
    pub(super) fn node(&self, number: u32) -> Option<&Node> {
        at(&self.nodes, number)
    }

    pub(super) fn leaf(&self, number: u32) -> Option<&Leaf> {
        at(&self.leaves, number)
    }

    /// The slot of the provider with this number in that leaf.
    pub(super) fn slot(&self, leaf: u32, rank: u64) -> Option<&Slot> {
        let leaf = self.leaf(leaf)?;
        leaf.slots().get(leaf.position(rank)?)
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.leaves.iter().flat_map(Leaf::slots)
    }

    /// All leaves with what is known of them above.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (&Summary, &Leaf)> {
        let lowest = self.nodes.iter().filter(|node| node.above_leaves);
        lowest
            .flat_map(|node| &node.children)
            .filter_map(|child| Some((&child.summary, self.leaf(child.number)?)))
    }
}

/// Changing rows. `moved` learns of every provider that comes to stand in another leaf.
impl Tree {
    /// Replaces a row where it stands; gives it back if it must stand elsewhere.
    pub(super) fn replace(&mut self, number: u32, rank: u64, row: Row) -> Option<Row> {
        let leaf = at_mut(&mut self.leaves, number);
        let found = leaf.and_then(|leaf| leaf.position(rank).map(|place| (leaf, place)));
        let Some((leaf, place)) = found else { return Some(row) };
        let old = leaf.order(place);
        if old != Some(Order::of(&row)) {
            return Some(row);
        }
        leaf.replace(place, row);
        self.summarise(number);
        None
    }

    /// Adds a provider where its size and load belong.
    pub(super) fn insert(
        &mut self,
        rank: u64,
        slot: Slot,
        moved: &mut impl FnMut(&ClusterId, u32),
    ) {
        let order = Order::of(&slot.row);
        let mut number = self.leaf_for(order);
        if self.leaf(number).is_some_and(|leaf| leaf.slots().len() >= FAN) {
            number = self.split_leaf(number, order, moved);
        }
        moved(&slot.cluster, number);
        if let Some(leaf) = at_mut(&mut self.leaves, number) {
            leaf.push(rank, slot);
        }
        self.summarise(number);
    }

    /// Takes a provider out.
    pub(super) fn remove(
        &mut self,
        number: u32,
        rank: u64,
        moved: &mut impl FnMut(&ClusterId, u32),
    ) {
        let Some(leaf) = at_mut(&mut self.leaves, number) else { return };
        if let Some(place) = leaf.position(rank) {
            leaf.remove(place);
        }
        if leaf.slots().len() >= FEW {
            return self.summarise(number);
        }
        let (parent, few) = (leaf.parent, leaf.take());
        self.vacant_leaves.push(number);
        self.drop_child(parent, number);
        for (rank, slot) in few {
            self.insert(rank, slot, moved);
        }
    }

    /// Gives a provider another number, without what follows from that.
    pub(super) fn rename(&mut self, number: u32, old: u64, rank: u64) {
        let Some(leaf) = at_mut(&mut self.leaves, number) else { return };
        if let Some(place) = leaf.position(old) {
            leaf.rename(place, rank);
        }
    }

    /// Makes the summaries of these leaves anew.
    pub(super) fn summarise_all(&mut self) {
        let all: Vec<u32> = self
            .nodes
            .iter()
            .filter(|node| node.above_leaves)
            .flat_map(|node| node.children.iter().map(|child| child.number))
            .collect();
        for leaf in all {
            self.summarise(leaf);
        }
    }
}
