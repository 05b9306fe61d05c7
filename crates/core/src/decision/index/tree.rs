//! Summaries of many providers, and a tree of them with sixteen children to a node.

use alloc::vec;
use alloc::vec::Vec;

use crate::decision::score::Tag;

/// How many children a node has, and how many rows a block.
pub(super) const FAN: usize = 16;

/// The best that providers under one node can be: no request finds more among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The most room, of cpu, memory, gpu and storage.
    pub(super) room: [u64; 4],
    /// The greatest share free of each.
    pub(super) free: [u64; 4],
    /// The greatest sum of the free shares of cpu and memory: what almost every request asks for.
    pub(super) pair: u64,
    /// The first name, as a number, among those with that sum.
    pub(super) pair_first: u64,
    /// The first name of all.
    pub(super) first: u64,
    /// The least sum of the free shares of cpu and memory.
    pub(super) pair_least: u64,
    /// The largest size: there a request takes the smallest share.
    pub(super) largest: [u64; 4],
    /// The smallest size.
    pub(super) smallest: [u64; 4],
    /// Which extended resources there may be, one bit for each of 64 kinds of names.
    pub(super) names: u64,
    /// The lowest prices.
    pub(crate) tag: Tag,
}

impl Summary {
    /// Of nobody: nothing fits there.
    pub(super) const EMPTY: Self = Self {
        room: [0; 4],
        free: [0; 4],
        pair: 0,
        pair_first: u64::MAX,
        first: u64::MAX,
        pair_least: u64::MAX,
        largest: [0; 4],
        smallest: [u64::MAX; 4],
        names: 0,
        tag: Tag::NONE,
    };

    /// Of both.
    pub(super) fn with(&self, other: &Self) -> Self {
        let pair_first = match self.pair.cmp(&other.pair) {
            core::cmp::Ordering::Greater => self.pair_first,
            core::cmp::Ordering::Less => other.pair_first,
            core::cmp::Ordering::Equal => self.pair_first.min(other.pair_first),
        };
        Self {
            room: each(self.room, other.room, u64::max),
            free: each(self.free, other.free, u64::max),
            pair: self.pair.max(other.pair),
            pair_first,
            first: self.first.min(other.first),
            pair_least: self.pair_least.min(other.pair_least),
            largest: each(self.largest, other.largest, u64::max),
            smallest: each(self.smallest, other.smallest, u64::min),
            names: self.names | other.names,
            tag: self.tag.min(other.tag),
        }
    }

    pub(super) fn of<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        parts.into_iter().fold(Self::EMPTY, |sum, part| sum.with(part))
    }

    /// Nobody lends here.
    pub(super) fn is_empty(&self) -> bool {
        self.first == u64::MAX
    }
}

fn each(a: [u64; 4], b: [u64; 4], op: impl Fn(u64, u64) -> u64) -> [u64; 4] {
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (a, b);
    [op(a0, b0), op(a1, b1), op(a2, b2), op(a3, b3)]
}

/// Summaries over leaves, in levels from the leaves to the root.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    levels: Vec<Vec<Summary>>,
}

impl Tree {
    /// Sets one leaf, and what follows above it. The leaves end at the highest that was ever set.
    pub(super) fn set(&mut self, leaf: u32, summary: Summary) {
        let Ok(mut at) = usize::try_from(leaf) else { return };
        let mut summary = summary;
        let mut level = 0;
        loop {
            if level == self.levels.len() {
                self.levels.push(vec![]);
            }
            let Some(nodes) = self.levels.get_mut(level) else { return };
            if nodes.len() <= at {
                nodes.resize(at.saturating_add(1), Summary::EMPTY);
            }
            match nodes.get_mut(at) {
                // What is above depends on nothing else.
                Some(old) if *old == summary && level > 0 => return,
                Some(old) => *old = summary,
                None => return,
            }
            if nodes.len() == 1 {
                return;
            }
            at /= FAN;
            summary = Summary::of(children(nodes, at));
            level = level.saturating_add(1);
        }
    }

    /// The level of the root, and the root.
    pub(super) fn root(&self) -> Option<(usize, &Summary)> {
        let top = self.levels.len().checked_sub(1)?;
        Some((top, self.levels.get(top)?.first()?))
    }

    /// What stands under node `at` of `level`, with the number of the first.
    pub(super) fn children(&self, level: usize, at: usize) -> (usize, &[Summary]) {
        let nodes = level.checked_sub(1).and_then(|below| self.levels.get(below));
        (at.saturating_mul(FAN), nodes.map_or(&[], |nodes| children(nodes, at)))
    }

    pub(super) fn leaves(&self) -> &[Summary] {
        self.levels.first().map_or(&[], Vec::as_slice)
    }
}

fn children(nodes: &[Summary], at: usize) -> &[Summary] {
    let start = at.saturating_mul(FAN).min(nodes.len());
    let end = start.saturating_add(FAN).min(nodes.len());
    nodes.get(start..end).unwrap_or(&[])
}
