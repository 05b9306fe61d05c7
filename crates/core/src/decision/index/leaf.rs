//! Up to sixteen providers of about one size and load, whose figures stand in columns.

use alloc::vec::Vec;

use super::Row;
use super::asked::{columns, names};
use super::summary::Summary;
use crate::decision::score::{SHARE_BITS, Tag, share};
use crate::id::ClusterId;

/// How many rows a leaf has, and how many children a node, at most.
pub(super) const FAN: usize = 16;

/// The order in which providers stand: by size, then by what is free. Neighbours are alike in both
/// cpu and memory, so what is the most among them is not far from what any of them has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order {
    about: (u32, u32),
    free: u32,
    size: (u64, u64),
}

impl Order {
    pub(super) fn of(row: &Row) -> Self {
        let (room, size) = (&row.room, &row.allocatable);
        let free = (share(room.cpu, size.cpu), share(room.memory, size.memory));
        Self::new(row, if row.open { free } else { (0, 0) })
    }

    fn new(row: &Row, (cpu_free, memory_free): (u64, u64)) -> Self {
        let size = (row.allocatable.cpu, row.allocatable.memory);
        let free = spread(cpu_free) << 1 | spread(memory_free);
        Self { about: (about(size.0), about(size.1)), free, size }
    }
}

/// The highest bits of a share, with room for another's between them: two shares woven together
/// order pairs so that near ones are mostly near in both.
fn spread(free: u64) -> u32 {
    let coarse = u32::try_from(free >> (SHARE_BITS - FREE_BITS)).unwrap_or(u32::MAX);
    (0..=FREE_BITS).rev().fold(0, |sum, bit| sum << 2 | (coarse >> bit & 1))
}

/// Shares are told apart to this many bits: more, and every change moves its row elsewhere.
const FREE_BITS: u32 = 5;

/// The logarithm in steps of at most an eighth: the highest bit and the three after it.
fn about(amount: u64) -> u32 {
    let Some(log) = amount.checked_ilog2() else { return 0 };
    let after = amount.wrapping_shr(log.saturating_sub(3)) & 7;
    log.saturating_mul(8).saturating_add(u32::try_from(after).unwrap_or(0)).saturating_add(1)
}

/// One provider.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) cluster: ClusterId,
    pub(super) row: Row,
}

/// Some providers. In the columns, one that is closed has no room.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// The node above.
    pub(super) parent: u32,
    slots: Vec<Slot>,
    /// Numbers that order as the names do.
    ranks: [u64; FAN],
    room: [[u64; FAN]; 4],
    free: [[u64; FAN]; 4],
}

impl Leaf {
    pub(super) fn new(slots: Vec<(u64, Slot)>) -> Self {
        let mut leaf = Self::default();
        for (rank, slot) in slots {
            leaf.push(rank, slot);
        }
        leaf
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn rank(&self, at: usize) -> u64 {
        self.ranks.get(at).copied().unwrap_or(u64::MAX)
    }

    pub(super) fn rename(&mut self, at: usize, rank: u64) {
        if let Some(place) = self.ranks.get_mut(at) {
            *place = rank;
        }
    }

    pub(super) fn order(&self, at: usize) -> Option<Order> {
        let [cpu, memory, ..] = self.free(at);
        Some(Order::new(&self.slots.get(at)?.row, (cpu, memory)))
    }

    pub(super) fn position(&self, rank: u64) -> Option<usize> {
        self.ranks.iter().take(self.slots.len()).position(|other| *other == rank)
    }

    /// Adds a provider; the caller has seen to it that there is a place.
    pub(super) fn push(&mut self, rank: u64, slot: Slot) {
        self.rename(self.slots.len(), rank);
        self.write(self.slots.len(), &slot.row);
        self.slots.push(slot);
    }

    /// Replaces what is known of a provider.
    pub(super) fn replace(&mut self, at: usize, row: Row) {
        self.write(at, &row);
        if let Some(slot) = self.slots.get_mut(at) {
            slot.row = row;
        }
    }

    /// Takes a provider out; the last one gets its place.
    pub(super) fn remove(&mut self, at: usize) {
        let Some(last) = self.slots.pop() else { return };
        self.write(self.slots.len(), &Row::default());
        if at < self.slots.len() {
            self.rename(at, self.rank(self.slots.len()));
            self.write(at, &last.row);
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = last;
            }
        }
    }

    /// Empties it.
    pub(super) fn take(&mut self) -> Vec<(u64, Slot)> {
        let Self { slots, ranks, .. } = core::mem::take(self);
        ranks.into_iter().zip(slots).collect()
    }

    fn write(&mut self, at: usize, row: &Row) {
        let (room, size) = (columns(&row.room), columns(&row.allocatable));
        let kept = if row.open { u64::MAX } else { 0 };
        let both = self.room.iter_mut().zip(&mut self.free);
        for ((rooms, frees), (room, size)) in both.zip(room.into_iter().zip(size)) {
            if let (Some(to_room), Some(to_free)) = (rooms.get_mut(at), frees.get_mut(at)) {
                *to_room = room & kept;
                *to_free = share(room, size) & kept;
            }
        }
    }

    /// Those with room for `amounts` in the columns, one bit each.
    pub(super) fn fitting(&self, amounts: &[u64; 4]) -> u16 {
        let asked = self.room.iter().zip(amounts).filter(|(_, amount)| **amount > 0);
        asked.fold(u16::MAX, |fitting, (column, amount)| {
            let bits = (0..16_u32).zip(column).map(|(at, room)| u16::from(room >= amount) << at);
            fitting & bits.fold(0, |all, bit| all | bit)
        })
    }

    /// The free shares of one provider.
    pub(super) fn free(&self, at: usize) -> [u64; 4] {
        self.free.each_ref().map(|column| column.get(at).copied().unwrap_or(0))
    }

    pub(super) fn summary(&self) -> Summary {
        let mut sum = Summary::EMPTY;
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.row.open) {
            let (room, names) = (columns(&slot.row.room), names(&slot.row.room));
            if room == [0; 4] && names == 0 {
                continue;
            }
            let (free, size) = (self.free(at), columns(&slot.row.allocatable));
            let [cpu, memory, ..] = free;
            let pair = cpu.saturating_add(memory);
            sum.add(&Summary {
                room,
                free,
                pair,
                pair_first: self.rank(at),
                pair_next: u64::MAX,
                first: self.rank(at),
                pair_least: pair,
                largest: size,
                smallest: size,
                names,
                tag: Tag::of(slot.row.cost.as_ref()),
            });
        }
        sum
    }
}
