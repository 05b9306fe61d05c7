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

/// Sizes, and what the request takes of each: most neighbours have the same, and a division is the
/// most expensive step of the search.
#[derive(Default)]
struct Taken {
    sizes: Cell<[u64; 4]>,
    shares: Cell<[u64; 4]>,
}

impl Taken {
    /// The shares that `amounts` take of a provider of this size. Of one that has none of
    /// something, a request for it would take all.
    fn of(&self, amounts: [u64; 4], size: [u64; 4]) -> [u64; 4] {
        let mut shares = self.shares.get();
        let known = self.sizes.get();
        if known == size {
            return shares;
        }
        for (((to, amount), known), size) in shares.iter_mut().zip(amounts).zip(known).zip(size) {
            if known != size {
                *to = share(amount, size.max(1));
            }
        }
        self.sizes.set(size);
        self.shares.set(shares);
        shares
    }
}

/// A request as the search sees it.
pub(crate) struct Asked<'a> {
    pub(crate) resources: &'a Resources,
    pub(super) amounts: [u64; 4],
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
        // Of the size zero, which is the first that is known, all is taken.
        let all = amounts.map(|amount| share(amount, 1));
        let taken = || Taken { shares: Cell::new(all), ..Taken::default() };
        let (of_largest, of_smallest) = (taken(), taken());
        Self { resources, amounts, names: names(resources), extended, of_largest, of_smallest }
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

    /// The same, with a look at what is free of cpu and memory together.
    pub(super) fn may_be_met(&self, summary: &Summary) -> bool {
        self.may_fit(summary) && self.most_left(summary).is_some()
    }

    pub(super) fn asks_cpu_and_memory(&self) -> bool {
        let [cpu, memory, ..] = self.amounts;
        cpu > 0 && memory > 0
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
        let left = free.checked_sub(sum(self.of_largest.of(self.amounts, summary.largest)))?;
        // Extended resources are not summarised: all of each may be free.
        Some(left.saturating_add(self.extended.saturating_mul(WHOLE)))
    }

    /// The headroom of no provider with room under `summary` is below this.
    pub(crate) fn least_left(&self, summary: &Summary) -> u64 {
        let taken = self.of_smallest.of(self.amounts, summary.smallest);
        let asked = self.amounts.iter().zip(summary.least.into_iter().zip(taken));
        let each = asked.fold(0_u64, |sum, (amount, (least, taken))| {
            let left = if *amount > 0 { least.saturating_sub(taken) } else { 0 };
            sum.saturating_add(left)
        });
        if !self.asks_cpu_and_memory() {
            return each;
        }
        let [cpu, memory, ..] = taken;
        each.max(summary.pair_least.saturating_sub(cpu.saturating_add(memory)))
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
        self.free_of(free).saturating_sub(sum(self.of_largest.of(self.amounts, size)))
    }

    /// Must the row itself be looked at to know whether it fits?
    pub(super) fn needs_row(&self) -> bool {
        self.extended > 0
    }
}

fn sum(shares: [u64; 4]) -> u64 {
    shares.into_iter().fold(0, u64::saturating_add)
}
