//! How well a provider suits a request: the Go system's two formulas in integers, and ours. (That one
//! also takes a tenth off the score of a provider that names a price; here price has its strategy.)
//!
//! A share is counted in parts of 2⁵⁶, rounded down: `share(part, whole) = part · 2⁵⁶ / whole`. The
//! headroom that a request leaves of one resource is `share(room) − share(request)`; a provider's
//! headroom is the sum over the resources asked for, rounded to the nearest part of 2³². (The mean
//! orders alike, because all providers are asked for the same.)
//!
//! Shares are rounded before they are subtracted, so that the sum is a figure of the provider less
//! a figure of the request on that size of provider: so the index knows the best of many like
//! providers exactly, without touching them. And the sum is rounded once more, to far fewer digits
//! than it has, so that headrooms that are truly equal come out equal, and the name decides.

use core::{cmp::Reverse, fmt};

use super::index::{Asked, By, Row, Summary};
use crate::advertisement::Cost;
use crate::resources::Resources;

/// Shares are counted in parts of this.
pub const WHOLE: u64 = 1 << SHARE_BITS;
pub(crate) const SHARE_BITS: u32 = 56;
/// The last bits of a sum of shares, which are rounded away.
pub(crate) const ROUNDED_BITS: u32 = 24;

/// A sum of shares as it is compared. It has at most 36 terms, so it is far from 2⁶³.
fn rounded(sum: u64) -> i64 {
    const HALF: u64 = 1 << (ROUNDED_BITS - 1);
    (sum.saturating_add(HALF) >> ROUNDED_BITS).cast_signed()
}

/// The share of `part` in `whole`; nothing has no shares, and nobody has more than the whole.
pub fn share(part: u64, whole: u64) -> u64 {
    if part >= whole {
        return if whole == 0 { 0 } else { WHOLE };
    }
    let quotient = (u128::from(part) << SHARE_BITS).checked_div(u128::from(whole));
    quotient.and_then(|quotient| u64::try_from(quotient).ok()).unwrap_or(0)
}

/// The headroom left after the request, summed over the resources asked for, in parts of `WHOLE`,
/// before it is rounded.
pub fn headroom(resources: &Resources, row: &Row) -> u64 {
    resources.iter().fold(0, |sum, (kind, amount)| {
        let size = row.allocatable.get(&kind);
        let left = share(row.room.get(&kind), size).saturating_sub(share(amount, size));
        sum.saturating_add(left)
    })
}

/// What a strategy is: it values one provider, and knows a value that none of many exceeds.
pub(crate) trait Ranking {
    /// How good a provider is for a request; greater is better. Only compared with others for the
    /// same request.
    type Score: Copy + Ord;

    /// The tree in which it finds like providers together.
    const BY: By;

    /// Does its bound see where there is too little of cpu and memory together, all over the tree?
    const SEES_ROOM: bool;

    /// Is more headroom never worse, all else being equal?
    const PREFERS_HEADROOM: bool;

    /// The value of a provider that fits and is left with `headroom`, not rounded yet.
    fn score(headroom: u64, resources: &Resources, tag: impl FnOnce() -> Tag) -> Self::Score;

    /// At least the value of every provider under `summary`; none, if it is clear that none there
    /// has room.
    fn bound(asked: &Asked<'_>, summary: &Summary) -> Option<Self::Score>;
}

/// The headroom that is left.
pub(crate) enum Headroom {}

impl Ranking for Headroom {
    type Score = i64;
    const BY: By = By::Load;
    const SEES_ROOM: bool = true;
    const PREFERS_HEADROOM: bool = true;

    fn score(headroom: u64, _: &Resources, _: impl FnOnce() -> Tag) -> i64 {
        rounded(headroom)
    }

    fn bound(asked: &Asked<'_>, summary: &Summary) -> Option<i64> {
        asked.most_left(summary).map(rounded)
    }
}

/// How little is left.
pub(crate) enum Binpack {}

impl Ranking for Binpack {
    type Score = i64;
    const BY: By = By::Load;
    const SEES_ROOM: bool = false;
    const PREFERS_HEADROOM: bool = false;

    fn score(headroom: u64, _: &Resources, _: impl FnOnce() -> Tag) -> i64 {
        rounded(headroom).saturating_neg()
    }

    fn bound(asked: &Asked<'_>, summary: &Summary) -> Option<i64> {
        Some(rounded(asked.least_left(summary)).saturating_neg())
    }
}

/// The cheapest for this request, then the most headroom.
///
/// Amounts in different currencies cannot be compared, and we know no rates: the currency that is
/// first in the alphabet is exhausted before the next one, and who names no price comes last. A
/// fleet that wants prices to decide agrees on one currency.
pub(crate) enum Cheapest {}

impl Ranking for Cheapest {
    /// The currency, the price in two halves (a number of 128 bits would make every score half as
    /// large again), the headroom.
    type Score = (Reverse<(u64, [u64; 2])>, i64);
    const BY: By = By::Price;
    const SEES_ROOM: bool = false;
    const PREFERS_HEADROOM: bool = true;

    fn score(headroom: u64, resources: &Resources, tag: impl FnOnce() -> Tag) -> Self::Score {
        let tag = tag();
        (Reverse((tag.currency, halves(tag.price(resources)))), rounded(headroom))
    }

    fn bound(asked: &Asked<'_>, summary: &Summary) -> Option<Self::Score> {
        asked
            .most_left(summary)
            .map(|most| Self::score(most, asked.resources, || summary.bounds.tag))
    }
}

/// A price tag as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    currency: u64,
    cpu_micros: u64,
    memory_micros: u64,
}

impl Tag {
    /// Who names no price comes after all who do.
    pub(crate) const NONE: Self =
        Self { currency: u64::MAX, cpu_micros: u64::MAX, memory_micros: u64::MAX };

    pub(crate) fn of(cost: Option<&Cost>) -> Self {
        cost.map_or(Self::NONE, |cost| Self {
            currency: currency_order(&cost.currency),
            cpu_micros: cost.cpu_micros,
            memory_micros: cost.memory_micros,
        })
    }

    /// Its currency, and what it takes of cpu and of memory.
    pub(crate) fn figures(self) -> [u64; 3] {
        [self.currency, self.cpu_micros, self.memory_micros]
    }

    /// The smaller of each figure: no price under both is below it.
    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            currency: self.currency.min(other.currency),
            cpu_micros: self.cpu_micros.min(other.cpu_micros),
            memory_micros: self.memory_micros.min(other.memory_micros),
        }
    }

    /// What the request costs in an hour, in millionths of a billionth of the currency: small
    /// enough that neither millicores nor bytes are rounded.
    fn price(self, resources: &Resources) -> u128 {
        const BILLIONTHS_PER_MILLI: u128 = 1_000_000;
        let times = |amount: u64, micros: u64| u128::from(amount).saturating_mul(micros.into());
        times(resources.cpu, self.cpu_micros)
            .saturating_mul(BILLIONTHS_PER_MILLI)
            .saturating_add(times(resources.memory, self.memory_micros))
    }
}

/// The upper and the lower half of a number, which order as it does.
fn halves(number: u128) -> [u64; 2] {
    let half = |number| u64::try_from(number).unwrap_or(u64::MAX);
    [half(number >> 64), half(number & u128::from(u64::MAX))]
}

/// What the request costs there in an hour, in millionths of the currency, rounded up.
pub fn price_micros(resources: &Resources, cost: &Cost) -> u128 {
    Tag::of(Some(cost)).price(resources).div_ceil(1_000_000_000)
}

/// The first eight bytes of a currency's name as a number that orders like them. Real ones have
/// three letters; longer names that begin alike count as one.
fn currency_order(name: &str) -> u64 {
    let bytes = name.bytes().chain(core::iter::repeat(0)).take(8);
    bytes.fold(0, |sum, byte| (sum << 8) | u64::from(byte)).min(u64::MAX.saturating_sub(1))
}

/// The Go system's `status.score` in hundredths: 0 to 10 000, printed as `87.50`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusScore(u32);

impl StatusScore {
    /// In hundredths.
    pub fn hundredths(self) -> u32 {
        self.0
    }
}

impl fmt::Display for StatusScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// `50 · available/allocatable` of cpu plus the same of memory; 0 if either allocatable is 0.
///
/// Halves of a hundredth go to the even neighbour, as Go's `%.2f` does with values that a float
/// holds exactly, such as 12.125.
pub fn status_score(available: &Resources, allocatable: &Resources) -> StatusScore {
    let (cpu, cpu_of) = narrow(available.cpu, allocatable.cpu);
    let (memory, memory_of) = narrow(available.memory, allocatable.memory);
    let of = cpu_of.saturating_mul(memory_of);
    let sum = cpu.saturating_mul(memory_of).saturating_add(memory.saturating_mul(cpu_of));
    let sum = sum.saturating_mul(5000);
    let (Some(whole), Some(rest)) = (sum.checked_div(of), sum.checked_rem(of)) else {
        return StatusScore(0);
    };
    let up = match rest.saturating_mul(2).cmp(&of) {
        core::cmp::Ordering::Less => 0,
        core::cmp::Ordering::Equal => whole % 2,
        core::cmp::Ordering::Greater => 1,
    };
    StatusScore(u32::try_from(whole.saturating_add(up)).unwrap_or(0))
}

/// A part of a whole, small enough that two of them multiply; what is cut off is far below a
/// hundredth, and nothing is cut below 2⁵⁰.
fn narrow(part: u64, whole: u64) -> (u128, u128) {
    let cut = 14_u32.saturating_sub(whole.leading_zeros());
    (u128::from(part.min(whole) >> cut), u128::from(whole >> cut))
}
