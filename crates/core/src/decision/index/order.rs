//! How providers stand in a tree: like ones together, so that a summary is near to what each has.

use super::{Figures, Row};
use crate::decision::score::{SHARE_BITS, Tag};

/// By what a tree brings providers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Size, then what is free of cpu and memory.
    Load,
    /// Currency, then the prices of cpu and memory, then size: what a change of the load does not
    /// move.
    Price,
}

/// A place among the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Order([u64; 4]);

impl Order {
    /// The size or the currency.
    fn class(self) -> u64 {
        let [class, ..] = self.0;
        class
    }

    pub(super) fn new(by: By, row: &Row, tag: Tag, figures: &Figures) -> Self {
        let (cpu, memory) = (row.allocatable.cpu, row.allocatable.memory);
        let sizes = about::<3>(cpu) << 16 | about::<3>(memory);
        let [cpu_free, memory_free, ..] = figures.free;
        match by {
            By::Load => Self([sizes, weave(coarse(cpu_free), coarse(memory_free)), cpu, memory]),
            By::Price => {
                let [currency, cpu, memory] = tag.figures();
                let prices = weave(about::<6>(cpu), about::<6>(memory));
                Self([currency, prices << 32 | sizes, cpu, memory])
            }
        }
    }
}

/// Where a full row of these is to be divided, and where the upper part begins: between two sizes
/// (or currencies) if that leaves a few on either side, because a summary of one size says more.
pub(super) fn division(orders: &[Order]) -> (usize, Order) {
    let middle = orders.len() / 2;
    let few = orders.len() / 8;
    let classes = orders.iter().zip(orders.iter().skip(1)).zip(1..);
    let ends = classes.filter(|((one, next), _)| one.class() != next.class());
    let end = ends
        .filter(|(_, at)| *at >= few && orders.len().saturating_sub(*at) >= few)
        .min_by_key(|(_, at)| middle.abs_diff(*at));
    match end {
        Some(((_, next), at)) => (at, Order([next.class(), 0, 0, 0])),
        None => (middle, orders.get(middle).copied().unwrap_or_default()),
    }
}

/// Two numbers of at most 16 bits woven together: pairs are ordered so that near ones are mostly
/// near in both.
fn weave(one: u64, other: u64) -> u64 {
    spread(one) << 1 | spread(other)
}

/// The bits of a number with room for another's between them.
fn spread(number: u64) -> u64 {
    let number = (number | number << 8) & 0x00ff_00ff;
    let number = (number | number << 4) & 0x0f0f_0f0f;
    let number = (number | number << 2) & 0x3333_3333;
    (number | number << 1) & 0x5555_5555
}

/// Shares are told apart to this many bits: more, and every change moves its row elsewhere.
const FREE_BITS: u32 = 5;

/// The highest bits of a share.
fn coarse(free: u64) -> u64 {
    free >> (SHARE_BITS - FREE_BITS)
}

/// The logarithm in steps of at most 2⁻ᴮ: the highest bit and the `B` after it. Below 2¹⁶.
fn about<const B: u32>(amount: u64) -> u64 {
    let Some(log) = amount.checked_ilog2() else { return 0 };
    let after = amount.wrapping_shr(log.saturating_sub(B)) & !(u64::MAX << B);
    (u64::from(log) << B | after).saturating_add(1)
}
