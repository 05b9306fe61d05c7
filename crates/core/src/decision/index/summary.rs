//! What many providers are at most: enough to know where not to look.

use core::cmp::Ordering;

use super::Row;
use super::asked::{columns, names};
use crate::decision::score::{ROUNDED_BITS, Tag};

/// The best that providers under one node can be: no request finds more among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The most room, of cpu, memory, gpu and storage.
    pub(super) room: [u64; 4],
    /// The greatest share free of each.
    pub(super) free: [u64; 4],
    /// The greatest sum of the free shares of cpu and memory: what almost every request asks for.
    pub(super) pair: u64,
    /// The first name, as a number, among those with that sum, as far as it is not rounded away.
    pub(super) pair_first: u64,
    /// The same among those just below: a rounded score may not tell them apart.
    pub(super) pair_next: u64,
    /// The first name of all.
    pub(super) first: u64,
    /// The least sum of the free shares of cpu and memory.
    pub(super) pair_least: u64,
    /// The least share free of each.
    pub(super) least: [u64; 4],
    /// What does not change with the load.
    pub(crate) bounds: Bounds,
}

/// The limits of what seldom changes. They may be wider than what is there: a provider that left a
/// leaf may leave its mark behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The largest size: there a request takes the smallest share.
    pub(super) largest: [u64; 4],
    /// The smallest size.
    pub(super) smallest: [u64; 4],
    /// Which extended resources there may be, one bit for each of 64 kinds of names.
    pub(super) names: u64,
    /// The lowest prices.
    pub(crate) tag: Tag,
}

impl Bounds {
    /// Of nobody.
    pub(super) const EMPTY: Self =
        Self { largest: [0; 4], smallest: [u64::MAX; 4], names: 0, tag: Tag::NONE };

    pub(super) fn of(row: &Row, tag: Tag) -> Self {
        let size = columns(&row.allocatable);
        Self { largest: size, smallest: size, names: names(&row.room), tag }
    }

    /// Takes others in.
    pub(super) fn add(&mut self, other: &Self) {
        raise(&mut self.largest, &other.largest);
        lower(&mut self.smallest, &other.smallest);
        self.names |= other.names;
        self.tag = self.tag.min(other.tag);
    }

    /// Has one as much of everything as another?
    pub(super) fn is_of_one_size(&self) -> bool {
        self.largest == self.smallest
    }
}

impl Summary {
    /// Of nobody: nothing fits there.
    pub(super) const EMPTY: Self = Self {
        room: [0; 4],
        free: [0; 4],
        pair: 0,
        pair_first: u64::MAX,
        pair_next: u64::MAX,
        first: u64::MAX,
        pair_least: u64::MAX,
        least: [u64::MAX; 4],
        bounds: Bounds::EMPTY,
    };

    /// Takes others in.
    pub(super) fn add(&mut self, other: &Self) {
        self.add_first(other);
        raise(&mut self.room, &other.room);
        raise(&mut self.free, &other.free);
        lower(&mut self.least, &other.least);
        self.pair = self.pair.max(other.pair);
        self.first = self.first.min(other.first);
        self.pair_least = self.pair_least.min(other.pair_least);
        self.bounds.add(&other.bounds);
    }

    fn add_first(&mut self, other: &Self) {
        let (mine, theirs) = (self.pair >> ROUNDED_BITS, other.pair >> ROUNDED_BITS);
        match theirs.cmp(&mine) {
            Ordering::Equal => {
                self.pair_first = self.pair_first.min(other.pair_first);
                self.pair_next = self.pair_next.min(other.pair_next);
            }
            Ordering::Less if theirs.saturating_add(1) == mine => {
                self.pair_next = self.pair_next.min(other.pair_first);
            }
            Ordering::Less => {}
            Ordering::Greater => {
                let near = mine.saturating_add(1) == theirs;
                let next = if near { self.pair_first } else { u64::MAX };
                (self.pair_first, self.pair_next) = (other.pair_first, other.pair_next.min(next));
            }
        }
    }

    /// Nobody lends here.
    pub(super) fn is_empty(&self) -> bool {
        self.first == u64::MAX
    }
}

fn raise(mine: &mut [u64; 4], other: &[u64; 4]) {
    for (mine, other) in mine.iter_mut().zip(other) {
        *mine = (*mine).max(*other);
    }
}

fn lower(mine: &mut [u64; 4], other: &[u64; 4]) {
    for (mine, other) in mine.iter_mut().zip(other) {
        *mine = (*mine).min(*other);
    }
}
