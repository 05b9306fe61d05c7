//! Up to sixteen like providers, whose figures stand in columns.

use alloc::vec::Vec;

use super::asked::{columns, names};
use super::slab::Slab;
use super::summary::{Bounds, Summary};
use super::{Row, Slot};
use crate::decision::score::share;

/// How many rows a leaf has, and how many children a node, at most.
pub(super) const FAN: usize = 16;

/// What stands in the columns of one provider; nothing, if it is closed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) room: [u64; 4],
    pub(super) free: [u64; 4],
    /// There is something to lend.
    pub(super) lends: bool,
}

impl Figures {
    pub(super) fn of(row: &Row) -> Self {
        if !row.is_open() {
            return Self::default();
        }
        let (room, [cpu, memory, gpu, storage]) = (columns(&row.room), columns(&row.allocatable));
        let [cpu_room, memory_room, gpu_room, storage_room] = room;
        let free = [
            share(cpu_room, cpu),
            share(memory_room, memory),
            share(gpu_room, gpu),
            share(storage_room, storage),
        ];
        Self { room, free, lends: room != [0; 4] || names(&row.room) != 0 }
    }
}

/// Some providers.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// The node above.
    pub(super) parent: u32,
    count: usize,
    /// Those that lend, one bit each.
    lending: u16,
    bounds: Bounds,
    /// Which they are.
    numbers: [u32; FAN],
    /// Numbers that order as the names do.
    ranks: [u64; FAN],
    room: [[u64; FAN]; 4],
    free: [[u64; FAN]; 4],
}

impl Leaf {
    pub(super) fn under(parent: u32) -> Self {
        Self {
            parent,
            count: 0,
            lending: 0,
            bounds: Bounds::EMPTY,
            numbers: [0; FAN],
            ranks: [0; FAN],
            room: [[0; FAN]; 4],
            free: [[0; FAN]; 4],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn number(&self, at: usize) -> Option<u32> {
        self.numbers.get(..self.count)?.get(at).copied()
    }

    pub(super) fn rank(&self, at: usize) -> u64 {
        self.ranks.get(at).copied().unwrap_or(u64::MAX)
    }

    pub(super) fn position(&self, number: u32) -> Option<usize> {
        self.numbers.iter().take(self.count).position(|other| *other == number)
    }

    /// Adds a provider; the caller has seen to it that there is a place.
    pub(super) fn push(&mut self, number: u32, slot: &Slot, figures: &Figures) {
        self.write(self.count, number, slot.rank, figures);
        if figures.lends {
            self.bounds.add(&slot.bounds());
        }
        self.count = self.count.saturating_add(1).min(FAN);
    }

    /// Takes a provider out; the last one gets its place.
    pub(super) fn remove(&mut self, at: usize) {
        let last = self.count.saturating_sub(1);
        if let Some(number) = self.number(last) {
            self.write(at, number, self.rank(last), &self.figures(last));
            self.write(last, 0, 0, &Figures::default());
            self.count = last;
        }
    }

    /// Replaces what is known of a provider.
    pub(super) fn write(&mut self, at: usize, number: u32, rank: u64, figures: &Figures) {
        if let (Some(to_number), Some(to_rank)) = (self.numbers.get_mut(at), self.ranks.get_mut(at))
        {
            (*to_number, *to_rank) = (number, rank);
        }
        let bit = 1_u16.checked_shl(u32::try_from(at).unwrap_or(u32::MAX)).unwrap_or(0);
        self.lending = self.lending & !bit | if figures.lends { bit } else { 0 };
        let columns = self.room.iter_mut().chain(&mut self.free);
        for (column, figure) in columns.zip(figures.room.into_iter().chain(figures.free)) {
            if let Some(place) = column.get_mut(at) {
                *place = figure;
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

    pub(super) fn figures(&self, at: usize) -> Figures {
        let room = self.room.each_ref().map(|column| column.get(at).copied().unwrap_or(0));
        let shift = u32::try_from(at).unwrap_or(u32::MAX);
        let lends = self.lending.checked_shr(shift).is_some_and(|bits| bits & 1 == 1);
        Figures { room, free: self.free(at), lends }
    }

    /// Those that stand here.
    pub(super) fn content(&self) -> Vec<(u32, Figures)> {
        let numbers = self.numbers.iter().take(self.count).enumerate();
        numbers.map(|(at, number)| (*number, self.figures(at))).collect()
    }

    /// Looks at all that lend to find the bounds, where they may have become narrower.
    pub(super) fn gather(&mut self, slots: &Slab<Slot>) {
        self.bounds = Bounds::EMPTY;
        for (number, figures) in self.content() {
            if let Some(slot) = slots.get(number).filter(|_| figures.lends) {
                self.bounds.add(&slot.bounds());
            }
        }
    }

    /// Is there nothing to gather after one has left?
    pub(super) fn is_of_one_size(&self) -> bool {
        self.bounds.is_of_one_size()
    }

    pub(super) fn summary(&self) -> Summary {
        let mut sum = Summary::EMPTY;
        let mut lending = self.lending;
        while lending != 0 {
            let at = usize::try_from(lending.trailing_zeros()).unwrap_or(FAN);
            lending &= lending.wrapping_sub(1);
            let (Figures { room, free, .. }, rank) = (self.figures(at), self.rank(at));
            let [cpu, memory, ..] = free;
            let pair = cpu.saturating_add(memory);
            sum.add(&Summary {
                room,
                free,
                pair,
                pair_first: rank,
                pair_next: u64::MAX,
                first: rank,
                pair_least: pair,
                least: free,
                bounds: self.bounds,
            });
        }
        sum
    }
}
