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

/// A request as the search sees it.
pub(crate) struct Asked<'a> {
    pub(crate) resources: &'a Resources,
    pub(super) amounts: [u64; 4],
    names: u64,
    extended: u64,
    /// The last size that was asked about, and what the request takes of it: most neighbours have
    /// the same size, and a division is the most expensive step of the search.
    taken: Cell<Option<([u64; 4], u64)>>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(resources: &'a Resources) -> Self {
        let amounts = columns(resources);
        let extended = u64::try_from(resources.extended_iter().count()).unwrap_or(u64::MAX);
        Self { resources, amounts, names: names(resources), extended, taken: Cell::new(None) }
    }

    /// Can any provider under `summary` have room?
    pub(super) fn may_fit(&self, summary: &Summary) -> bool {
        let [cpu, memory, gpu, storage] = self.amounts;
        let [cpu_room, memory_room, gpu_room, storage_room] = summary.room;
        cpu <= cpu_room
            && memory <= memory_room
            && gpu <= gpu_room
            && storage <= storage_room
            && self.names & !summary.names == 0
            && !summary.is_empty()
    }

    pub(super) fn asks_cpu_and_memory(&self) -> bool {
        let [cpu, memory, ..] = self.amounts;
        cpu > 0 && memory > 0
    }

    /// The share that the request takes of a provider of this size, summed over the four columns.
    fn taken_of(&self, size: [u64; 4]) -> u64 {
        if let Some((known, sum)) = self.taken.get()
            && known == size
        {
            return sum;
        }
        // Of a provider that has none of it, the request would take all.
        let sum = self
            .amounts
            .iter()
            .zip(size)
            .fold(0_u64, |sum, (amount, size)| sum.saturating_add(share(*amount, size.max(1))));
        self.taken.set(Some((size, sum)));
        sum
    }

    /// The sum of those of the free shares that the request asks for.
    fn free_of(&self, free: [u64; 4]) -> u64 {
        let asked = self.amounts.iter().zip(free).filter(|(amount, _)| **amount > 0);
        asked.fold(0_u64, |sum, (_, free)| sum.saturating_add(free))
    }

    /// The headroom of no provider under `summary` is above this; none, if the request takes more
    /// than is free of cpu and memory together, wherever each of them may be.
    pub(crate) fn most_left(&self, summary: &Summary) -> Option<u64> {
        let [cpu, memory, gpu, storage] = summary.free;
        let free = if self.asks_cpu_and_memory() {
            summary.pair.saturating_add(self.free_of([0, 0, gpu, storage]))
        } else {
            self.free_of([cpu, memory, gpu, storage])
        };
        let left = free.checked_sub(self.taken_of(summary.largest))?;
        // Extended resources are not summarised: all of each may be free.
        Some(left.saturating_add(self.extended.saturating_mul(WHOLE)))
    }

    /// The headroom of no provider with room under `summary` is below this.
    pub(crate) fn least_left(&self, summary: &Summary) -> u64 {
        if !self.asks_cpu_and_memory() {
            return 0;
        }
        let ([cpu, memory, ..], [cpu_size, memory_size, ..]) = (self.amounts, summary.smallest);
        let taken = share(cpu, cpu_size.max(1)).saturating_add(share(memory, memory_size.max(1)));
        summary.pair_least.saturating_sub(taken)
    }

    /// The headroom of a provider that fits, whose free shares are known: the same figure as
    /// [`score::headroom`], without its divisions.
    pub(super) fn left(&self, free: [u64; 4], row: &Row) -> u64 {
        if self.extended > 0 {
            return score::headroom(self.resources, row);
        }
        self.left_of(free, columns(&row.allocatable))
    }

    /// The same for a provider of this size, without extended resources.
    pub(super) fn left_of(&self, free: [u64; 4], size: [u64; 4]) -> u64 {
        self.free_of(free).saturating_sub(self.taken_of(size))
    }

    /// Must the row itself be looked at to know whether it fits?
    pub(super) fn needs_row(&self) -> bool {
        self.extended > 0
    }
}
