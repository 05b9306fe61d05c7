//! Providers of one size, in blocks of sixteen whose figures stand in columns.

use alloc::vec::Vec;

use super::asked::{columns, names};
use super::tree::{FAN, Summary, Tree};
use super::{Row, at, at_mut};
use crate::decision::score::{Tag, share};
use crate::id::ClusterId;

/// What makes providers alike: a request takes about the same share of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Size {
    /// Exactly so much cpu and memory.
    Exact(u64, u64),
    /// About so much.
    About(u32, u32),
}

impl Size {
    pub(super) fn exact(row: &Row) -> Self {
        Self::Exact(row.allocatable.cpu, row.allocatable.memory)
    }

    pub(super) fn about(row: &Row) -> Self {
        Self::About(about(row.allocatable.cpu), about(row.allocatable.memory))
    }
}

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

/// The figures of sixteen providers. One that is closed has no room here.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    room: [[u64; FAN]; 4],
    free: [[u64; FAN]; 4],
    pub(super) ranks: [u64; FAN],
}

impl Block {
    fn put(&mut self, at: usize, row: &Row) {
        let (room, size) = (columns(&row.room), columns(&row.allocatable));
        let open = if row.open { u64::MAX } else { 0 };
        let columns = self.room.iter_mut().zip(&mut self.free).zip(room.into_iter().zip(size));
        for ((room_column, free_column), (room, size)) in columns {
            if let (Some(to_room), Some(to_free)) =
                (room_column.get_mut(at), free_column.get_mut(at))
            {
                *to_room = room & open;
                *to_free = share(room, size) & open;
            }
        }
    }

    /// Those with room for `amounts` in the columns, one bit each.
    pub(super) fn fitting(&self, amounts: &[u64; 4]) -> u16 {
        let asked = self.room.iter().zip(amounts).filter(|(_, amount)| **amount > 0);
        asked.fold(u16::MAX, |fitting, (column, amount)| {
            // The last comes first, so that the first ends in the lowest bit.
            let column = column.iter().rev();
            fitting & column.fold(0, |bits, room| (bits << 1) | u16::from(room >= amount))
        })
    }

    pub(super) fn free(&self, at: usize) -> [u64; 4] {
        self.free.each_ref().map(|column| column.get(at).copied().unwrap_or(0))
    }

    fn summary(&self, slots: &[Slot]) -> Summary {
        slots.iter().enumerate().fold(Summary::EMPTY, |sum, (at, slot)| {
            let room = self.room.each_ref().map(|column| column.get(at).copied().unwrap_or(0));
            let names = if slot.row.open { names(&slot.row.room) } else { 0 };
            if room == [0; 4] && names == 0 {
                return sum;
            }
            let free = self.free(at);
            let [cpu, memory, ..] = free;
            let pair = cpu.saturating_add(memory);
            let rank = self.ranks.get(at).copied().unwrap_or(u64::MAX);
            let size = columns(&slot.row.allocatable);
            sum.with(&Summary {
                room,
                free,
                pair,
                pair_first: rank,
                first: rank,
                pair_least: pair,
                largest: size,
                smallest: size,
                names,
                tag: Tag::of(slot.row.cost.as_ref()),
            })
        })
    }
}

/// Providers of one size.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    slots: Vec<Slot>,
    blocks: Vec<Block>,
    pub(super) tree: Tree,
}

impl Class {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(super) fn slot(&self, number: u32) -> Option<&Slot> {
        at(&self.slots, number)
    }

    /// One block and the slots that it is about.
    pub(super) fn block(&self, number: usize) -> Option<(&Block, &[Slot])> {
        let start = number.saturating_mul(FAN).min(self.slots.len());
        let end = start.saturating_add(FAN).min(self.slots.len());
        Some((self.blocks.get(number)?, self.slots.get(start..end)?))
    }

    pub(super) fn summary(&self) -> Summary {
        self.tree.root().map_or(Summary::EMPTY, |(_, summary)| *summary)
    }

    /// Adds a provider at the end; returns where that is.
    pub(super) fn push(&mut self, slot: Slot, rank: u64) -> u32 {
        let number = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(slot);
        if self.slots.len() > self.blocks.len().saturating_mul(FAN) {
            self.blocks.push(Block::default());
        }
        self.rename(number, rank);
        self.refresh(number);
        number
    }

    /// Replaces what is known of a provider.
    pub(super) fn replace(&mut self, number: u32, row: Row) {
        if let Some(slot) = at_mut(&mut self.slots, number) {
            slot.row = row;
        }
        self.refresh(number);
    }

    /// Takes a provider out and puts the last one in its place; returns the name of that one.
    pub(super) fn swap_remove(&mut self, number: u32) -> Option<&ClusterId> {
        let last = u32::try_from(self.slots.len()).ok()?.checked_sub(1)?;
        let rank = self.rank(last);
        self.slots.swap_remove(usize::try_from(number).ok()?);
        self.clear(last);
        if number == last {
            return None;
        }
        self.rename(number, rank);
        self.refresh(number);
        self.slot(number).map(|slot| &slot.cluster)
    }

    /// Gives a provider's name another number, without what follows from that.
    pub(super) fn rename(&mut self, number: u32, rank: u64) {
        let (block, within) = split(number);
        let to = self.blocks.get_mut(block).and_then(|block| block.ranks.get_mut(within));
        if let Some(to) = to {
            *to = rank;
        }
    }

    /// Makes all summaries anew.
    pub(super) fn summarise_all(&mut self) {
        for block in 0..self.blocks.len() {
            self.summarise(block);
        }
    }

    fn rank(&self, number: u32) -> u64 {
        let (block, within) = split(number);
        let rank = self.blocks.get(block).and_then(|block| block.ranks.get(within));
        rank.copied().unwrap_or(u64::MAX)
    }

    /// Brings the columns and summaries in line with a slot.
    fn refresh(&mut self, number: u32) {
        let (block, within) = split(number);
        if let (Some(slot), Some(block)) = (at(&self.slots, number), self.blocks.get_mut(block)) {
            block.put(within, &slot.row);
        }
        self.summarise(block);
    }

    /// The same for a slot that is gone.
    fn clear(&mut self, number: u32) {
        let (block, within) = split(number);
        if let Some(block) = self.blocks.get_mut(block) {
            block.put(within, &Row::default());
        }
        self.summarise(block);
    }

    fn summarise(&mut self, number: usize) {
        if let Some((block, slots)) = self.block(number)
            && let Ok(leaf) = u32::try_from(number)
        {
            let summary = block.summary(slots);
            self.tree.set(leaf, summary);
        }
    }
}

/// The block of a slot, and its place in there.
fn split(number: u32) -> (usize, usize) {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    (number / FAN, number % FAN)
}
