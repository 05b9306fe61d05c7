//! How the tree grows, splits and shrinks, and how summaries find their way up.

use alloc::vec;
use alloc::vec::Vec;

use super::Slot;
use super::leaf::{FAN, Leaf};
use super::order::{Order, division};
use super::slab::{NONE, Slab};
use super::summary::Summary;
use super::tree::{Child, Node, Tree};

impl Tree {
    /// The leaf in which a provider belongs; the last of them, if there are several.
    pub(super) fn leaf_for(&mut self, order: Order) -> u32 {
        let Some(mut number) = self.root else { return self.plant() };
        loop {
            let Some(node) = self.nodes.get(number) else { return self.plant() };
            let after = node.children.partition_point(|child| child.from <= order);
            let Some(child) = node.children.get(after.saturating_sub(1)) else {
                return self.plant();
            };
            if node.above_leaves {
                return child.number;
            }
            number = child.number;
        }
    }

    /// The first leaf, under the first node.
    fn plant(&mut self) -> u32 {
        let leaf = self.leaves.add(Leaf::under(NONE));
        let child = Child { number: leaf, from: Order::default(), summary: Summary::EMPTY };
        let root = self.nodes.add(Node { parent: NONE, above_leaves: true, children: vec![child] });
        self.adopt(true, leaf, root);
        self.root = Some(root);
        leaf
    }

    fn adopt(&mut self, is_leaf: bool, child: u32, parent: u32) {
        if is_leaf {
            if let Some(leaf) = self.leaves.get_mut(child) {
                leaf.parent = parent;
            }
        } else if let Some(node) = self.nodes.get_mut(child) {
            node.parent = parent;
        }
    }

    /// Makes room in a full leaf for another row; returns the half where that belongs. What
    /// comes at the end gets a leaf of its own, so that a fleet that grows in order fills its leaves.
    pub(super) fn split_leaf(&mut self, slots: &mut Slab<Slot>, number: u32, order: Order) -> u32 {
        let Some(leaf) = self.leaves.get(number) else { return number };
        let parent = leaf.parent;
        let ordered = leaf.content().into_iter().filter_map(|(row, figures)| {
            slots.get(row).map(|slot| (self.order(slot, &figures), row, figures))
        });
        let mut lower: Vec<_> = ordered.collect();
        lower.sort_by_key(|(order, ..)| *order);
        let at_end = lower.last().is_none_or(|(last, ..)| *last <= order);
        let orders: Vec<Order> = lower.iter().map(|(order, ..)| *order).collect();
        let (keep, from) = if at_end { (orders.len(), order) } else { division(&orders) };
        let upper = lower.split_off(keep);
        let new = self.leaves.add(Leaf::under(parent));
        for (home, rows) in [(number, lower), (new, upper)] {
            let Some(leaf) = self.leaves.get_mut(home) else { continue };
            *leaf = Leaf::under(parent);
            for (_, row, figures) in rows {
                let Some(slot) = slots.get_mut(row) else { continue };
                slot.move_to(self.by, home);
                leaf.push(row, slot, &figures);
            }
        }
        self.add_child(parent, number, &Child { number: new, from, summary: Summary::EMPTY });
        self.summarise(new);
        self.summarise(number);
        if order < from { number } else { new }
    }

    /// Puts a new child after an old one.
    fn add_child(&mut self, parent: u32, after: u32, child: &Child) {
        let Some(node) = self.nodes.get_mut(parent) else { return };
        let is_leaf = node.above_leaves;
        let place = node.children.iter().position(|other| other.number == after);
        let place = place.map_or(node.children.len(), |place| place.saturating_add(1));
        node.children.insert(place, *child);
        let full = node.children.len() > FAN;
        let at_end = place.saturating_add(1) == node.children.len();
        self.adopt(is_leaf, child.number, parent);
        if full {
            self.split_node(parent, at_end);
        }
    }

    /// Moves the upper part of the children into a new node beside this one: the last one alone, if
    /// it came at the end.
    fn split_node(&mut self, number: u32, at_end: bool) {
        let Some(node) = self.nodes.get_mut(number) else { return };
        let (grandparent, above_leaves) = (node.parent, node.above_leaves);
        let orders: Vec<Order> = node.children.iter().map(|child| child.from).collect();
        let keep = if at_end { FAN } else { division(&orders).0 };
        let children = node.children.split_off(keep.min(node.children.len()));
        let Some(from) = children.first().map(|child| child.from) else { return };
        let summary = sum(&children);
        let moved: Vec<u32> = children.iter().map(|child| child.number).collect();
        let new = self.nodes.add(Node { parent: grandparent, above_leaves, children });
        for child in moved {
            self.adopt(above_leaves, child, new);
        }
        let child = Child { number: new, from, summary };
        if grandparent == NONE {
            let old = self.nodes.get(number).map_or(Summary::EMPTY, |node| sum(&node.children));
            let first = Child { number, from: Order::default(), summary: old };
            let children = vec![first, child];
            let root = self.nodes.add(Node { parent: NONE, above_leaves: false, children });
            self.adopt(false, number, root);
            self.adopt(false, new, root);
            self.root = Some(root);
        } else {
            self.add_child(grandparent, number, &child);
            self.summarise_node(number);
        }
    }

    /// Removes a child, and what becomes empty by that.
    pub(super) fn drop_child(&mut self, parent: u32, number: u32) {
        let Some(node) = self.nodes.get_mut(parent) else { return };
        node.children.retain(|child| child.number != number);
        if !node.children.is_empty() {
            return self.summarise_node(parent);
        }
        let grandparent = node.parent;
        self.nodes.take(parent);
        if grandparent == NONE {
            self.root = None;
        } else {
            self.drop_child(grandparent, parent);
        }
    }

    pub(super) fn summarise(&mut self, number: u32) {
        if let Some(leaf) = self.leaves.get(number) {
            let (parent, summary) = (leaf.parent, leaf.summary());
            self.note(parent, number, summary);
        }
    }

    fn summarise_node(&mut self, number: u32) {
        if let Some(node) = self.nodes.get(number) {
            let (parent, summary) = (node.parent, sum(&node.children));
            self.note(parent, number, summary);
        }
    }

    /// Tells a parent what its child has become, and so on up to where nothing changes.
    fn note(&mut self, parent: u32, child: u32, summary: Summary) {
        let (mut parent, mut child, mut summary) = (parent, child, summary);
        while let Some(node) = self.nodes.get_mut(parent) {
            let known = node.children.iter_mut().find(|known| known.number == child);
            match known {
                Some(known) if known.summary != summary => known.summary = summary,
                _ => return,
            }
            (child, summary, parent) = (parent, sum(&node.children), node.parent);
        }
    }
}

fn sum(children: &[Child]) -> Summary {
    let mut sum = Summary::EMPTY;
    for child in children {
        sum.add(&child.summary);
    }
    sum
}
