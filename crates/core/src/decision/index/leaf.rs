//! Up to sixteen like providers, whose figures stand in columns.

use alloc::vec::Vec;

use super::asked::{columns, names};
use super::slab::Slab;
use super::summary::Summary;
use super::{Row, Slot};
use crate::decision::score::share;

/// How many rows a leaf has, and how many children a node, at most.
pub(super) const FAN: usize = 16;

/// What stands in the columns of one provider; nothing, if it is closed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) room: [u64; 4],
    pub(super) free: [u64; 4],
}

impl Figures {
    pub(super) fn of(row: &Row) -> Self {
        if !row.open {
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
        Self { room, free }
    }
}

/// Some providers.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// The node above.
    pub(super) parent: u32,
    count: usize,
    /// Which they are.
    numbers: [u32; FAN],
    /// Numbers that order as the names do.
    ranks: [u64; FAN],
    room: [[u64; FAN]; 4],
    free: [[u64; FAN]; 4],
}

impl Leaf {
    pub(super) fn under(parent: u32) -> Self {
        Self { parent, ..Self::default() }
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
    pub(super) fn push(&mut self, number: u32, rank: u64, figures: &Figures) {
        self.write(self.count, number, rank, figures);
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
        Figures { room, free: self.free(at) }
    }

    /// Those that stand here.
    pub(super) fn content(&self) -> Vec<(u32, Figures)> {
        let numbers = self.numbers.iter().take(self.count).enumerate();
        numbers.map(|(at, number)| (*number, self.figures(at))).collect()
    }

    pub(super) fn summary(&self, slots: &Slab<Slot>) -> Summary {
        let mut sum = Summary::EMPTY;
        for (at, number) in self.numbers.iter().take(self.count).enumerate() {
            let Some(slot) = slots.get(*number).filter(|slot| slot.row.open) else { continue };
            let (Figures { room, free }, names) = (self.figures(at), names(&slot.row.room));
            if room == [0; 4] && names == 0 {
                continue;
            }
            let size = columns(&slot.row.allocatable);
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
                least: free,
                largest: size,
                smallest: size,
                names,
                tag: slot.tag,
            });
        }
        sum
    }
}
