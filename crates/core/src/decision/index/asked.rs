//! A request as the search sees it: amounts in columns, and what it takes of a given size.

use core::cell::Cell;

use super::Row;
use super::summary::Summary;
use crate::decision::score::{self, WHOLE, share};
use crate::resources::Resources;

/// The four amounts that are kept in columns.
pub(super) fn columns(resources: &Resources) -> [u64; 4] {
    [resources.cpu, resources.memory, resources.gpu, resources.storage]
}

/// One bit of 64 for each extended resource there is some of. Names may share a bit: the mask tells
/// where something cannot be, never that it is there.
pub(super) fn names(resources: &Resources) -> u64 {
    resources.extended_iter().fold(0, |mask, (name, _)| {
        // FNV-1a: tiny, and the same on every machine.
        let hash = name.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        mask | 1_u64.wrapping_shl(u32::try_from(hash >> 58).unwrap_or(0))
    })
}

/// A size, and what the request takes of it: most neighbours have the same, and a division is the
/// most expensive step of the search.
struct Taken {
    size: Cell<[u64; 4]>,
    shares: Cell<[u64; 4]>,
}

impl Taken {
    /// Of those that have nothing, all of what is asked for would be taken.
    fn of_nothing(mask: &[u64; 4]) -> Self {
        Self { size: Cell::new([0; 4]), shares: Cell::new(mask.map(|mask| mask & WHOLE)) }
    }

    /// The shares that `amounts` take of a provider of this size.
    #[inline]
    fn of(&self, amounts: &[u64; 4], size: &[u64; 4]) -> [u64; 4] {
        if self.size.get() != *size {
            self.divide(amounts, size);
        }
        self.shares.get()
    }

    #[cold]
    fn divide(&self, amounts: &[u64; 4], size: &[u64; 4]) {
        let (known, mut shares) = (self.size.replace(*size), self.shares.get());
        let pairs = amounts.iter().zip(known.iter().zip(size));
        for (to, (amount, (known, size))) in shares.iter_mut().zip(pairs) {
            if known != size {
                *to = share(*amount, (*size).max(1));
            }
        }
        self.shares.set(shares);
    }
}

/// A request as the search sees it.
pub(crate) struct Asked<'a> {
    pub(crate) resources: &'a Resources,
    pub(super) amounts: [u64; 4],
    /// All bits of those that are asked for.
    mask: [u64; 4],
    names: u64,
    extended: u64,
    /// What it takes of the largest and of the smallest size that was last asked about.
    of_largest: Taken,
    of_smallest: Taken,
}

impl<'a> Asked<'a> {
    pub(super) fn new(resources: &'a Resources) -> Self {
        let amounts = columns(resources);
        let extended = u64::try_from(resources.extended_iter().count()).unwrap_or(u64::MAX);
        let (names, mask) =
            (names(resources), amounts.map(|amount| u64::from(amount == 0).wrapping_sub(1)));
        let (of_largest, of_smallest) = (Taken::of_nothing(&mask), Taken::of_nothing(&mask));
        Self { resources, amounts, mask, names, extended, of_largest, of_smallest }
    }

    /// Can any provider under `summary` have room?
    pub(super) fn may_fit(&self, summary: &Summary) -> bool {
        let [cpu, memory, gpu, storage] = self.amounts;
        let [cpu_room, memory_room, gpu_room, storage_room] = summary.room;
        cpu <= cpu_room
            && memory <= memory_room
            && gpu <= gpu_room
            && storage <= storage_room
            && self.names & !summary.bounds.names == 0
            && !summary.is_empty()
    }

    /// The same, with a look at what is free of cpu and memory together.
    pub(super) fn may_be_met(&self, summary: &Summary) -> bool {
        self.may_fit(summary) && self.most_left(summary).is_some()
    }

    pub(super) fn asks_cpu_and_memory(&self) -> bool {
        let [cpu, memory, ..] = self.amounts;
        cpu > 0 && memory > 0
    }

    /// The sum of those of the free shares that the request asks for.
    fn free_of(&self, free: &[u64; 4]) -> u64 {
        let asked = free.iter().zip(&self.mask).map(|(free, mask)| free & mask);
        asked.fold(0, u64::wrapping_add)
    }

    /// The headroom of no provider under `summary` is above this; none, if the request takes more
    /// than is free of cpu and memory together, wherever each of them may be.
    pub(crate) fn most_left(&self, summary: &Summary) -> Option<u64> {
        let [_, _, gpu, storage] = summary.free;
        let free = if self.asks_cpu_and_memory() {
            summary.pair.wrapping_add(self.free_of(&[0, 0, gpu, storage]))
        } else {
            self.free_of(&summary.free)
        };
        let taken = self.of_largest.of(&self.amounts, &summary.bounds.largest);
        let left = free.checked_sub(sum(&taken))?;
        // Extended resources are not summarised: all of each may be free.
        Some(left.saturating_add(self.extended.saturating_mul(WHOLE)))
    }

    /// The headroom of no provider with room under `summary` is below this.
    pub(crate) fn least_left(&self, summary: &Summary) -> u64 {
        let taken = self.of_smallest.of(&self.amounts, &summary.bounds.smallest);
        let left = summary.least.iter().zip(&taken).zip(&self.mask);
        let left = left.map(|((least, taken), mask)| least.saturating_sub(*taken) & mask);
        let each = left.fold(0, u64::wrapping_add);
        let [cpu, memory, ..] = taken;
        let pair = summary.pair_least.saturating_sub(cpu.wrapping_add(memory));
        if self.asks_cpu_and_memory() { each.max(pair) } else { each }
    }

    /// The headroom of a provider that fits, whose free shares are known: the same figure as
    /// [`score::headroom`], without its divisions.
    pub(super) fn left(&self, free: [u64; 4], row: &Row) -> u64 {
        if self.extended > 0 {
            return score::headroom(self.resources, row);
        }
        self.left_of(&free, &columns(&row.allocatable))
    }

    /// The same for a provider of this size, without extended resources.
    pub(super) fn left_of(&self, free: &[u64; 4], size: &[u64; 4]) -> u64 {
        self.free_of(free).saturating_sub(sum(&self.of_largest.of(&self.amounts, size)))
    }

    /// Must the row itself be looked at to know whether it fits?
    pub(super) fn needs_row(&self) -> bool {
        self.extended > 0
    }
}

/// None of them is above [`WHOLE`], so the sum is far from 2⁶⁴.
fn sum(shares: &[u64; 4]) -> u64 {
    shares.iter().copied().fold(0, u64::wrapping_add)
}
