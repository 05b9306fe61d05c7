//! Unsigned integers of any size, with the few operations that quantities need.
//!
//! Almost every amount fits into 128 bits and is kept so, without allocating. Only what does not fit
//! becomes a list of limbs. A big-integer crate would bring a hundred operations for these six.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::num::NonZeroU64;

/// An unsigned integer. Each has one form, so equality is that of the form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Magnitude {
    Small(u128),
    /// Base 2^64, least significant limb first. At least three limbs, and the last one is not zero:
    /// anything less is `Small`.
    Large(Vec<u64>),
}

use Magnitude::{Large, Small};

impl Magnitude {
    pub(super) const ZERO: Self = Small(0);

    pub(super) fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// How many bits it takes to write it; none for zero.
    pub(super) fn bits(&self) -> i64 {
        match self {
            Small(n) => i64::from(u128::BITS.saturating_sub(n.leading_zeros())),
            Large(limbs) => {
                let unused = limbs.last().map_or(0, |limb| limb.leading_zeros());
                let all = limbs.len().saturating_mul(64);
                i64::try_from(all).unwrap_or(i64::MAX).saturating_sub(i64::from(unused))
            }
        }
    }

    pub(super) fn to_u64(&self) -> Option<u64> {
        match self {
            Small(n) => u64::try_from(*n).ok(),
            Large(_) => None,
        }
    }

    /// `self × factor + addend`.
    #[must_use]
    pub(super) fn times_plus(self, factor: u64, addend: u64) -> Self {
        if let Small(n) = self
            && let Some(product) = n.checked_mul(u128::from(factor))
            && let Some(sum) = product.checked_add(u128::from(addend))
        {
            return Small(sum);
        }
        let mut limbs = self.into_limbs();
        let mut carry = addend;
        for limb in &mut limbs {
            (*limb, carry) = limb.carrying_mul(factor, carry);
        }
        limbs.push(carry);
        Self::from_limbs(limbs)
    }

    /// `self × 1000^exponent`, in steps as large as a limb holds.
    #[must_use]
    pub(super) fn times_thousands(self, exponent: u32) -> Self {
        let mut product = self;
        let mut left = exponent;
        while left > 0 && !product.is_zero() {
            let step = left.min(6);
            product = product.times_plus(1000_u64.saturating_pow(step), 0);
            left = left.saturating_sub(step);
        }
        product
    }

    #[must_use]
    pub(super) fn plus(&self, other: &Self) -> Self {
        if let (Small(a), Small(b)) = (self, other)
            && let Some(sum) = a.checked_add(*b)
        {
            return Small(sum);
        }
        let (mut longer, mut shorter) = (self.clone().into_limbs(), other.clone().into_limbs());
        if longer.len() < shorter.len() {
            core::mem::swap(&mut longer, &mut shorter);
        }
        let mut carry = false;
        let addends = shorter.into_iter().chain(core::iter::repeat(0));
        for (limb, addend) in longer.iter_mut().zip(addends) {
            (*limb, carry) = limb.carrying_add(addend, carry);
        }
        longer.push(u64::from(carry));
        Self::from_limbs(longer)
    }

    /// The distance between the two, which exists whichever is the larger one.
    #[must_use]
    pub(super) fn abs_diff(&self, other: &Self) -> Self {
        if let (Small(a), Small(b)) = (self, other) {
            return Small(a.abs_diff(*b));
        }
        let (larger, smaller) = if self < other { (other, self) } else { (self, other) };
        let mut limbs = larger.clone().into_limbs();
        let mut borrow = false;
        let subtrahends = smaller.clone().into_limbs().into_iter().chain(core::iter::repeat(0));
        for (limb, subtrahend) in limbs.iter_mut().zip(subtrahends) {
            (*limb, borrow) = limb.borrowing_sub(subtrahend, borrow);
        }
        Self::from_limbs(limbs)
    }

    /// The quotient and the remainder.
    pub(super) fn divided_by(&self, divisor: NonZeroU64) -> (Self, u64) {
        match self {
            Small(n) => {
                let (quotient, remainder) = divide(*n, divisor);
                (Small(quotient), remainder)
            }
            Large(limbs) => {
                let mut remainder = 0;
                let mut quotient = limbs.clone();
                for limb in quotient.iter_mut().rev() {
                    let (part, rest) = divide(joined(remainder, *limb), divisor);
                    // The remainder is below the divisor, so the quotient of each step is one limb.
                    *limb = split(part).0;
                    remainder = rest;
                }
                (Self::from_limbs(quotient), remainder)
            }
        }
    }

    fn into_limbs(self) -> Vec<u64> {
        match self {
            Small(n) => {
                let (low, high) = split(n);
                Vec::from([low, high])
            }
            Large(limbs) => limbs,
        }
    }

    fn from_limbs(mut limbs: Vec<u64>) -> Self {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        match *limbs.as_slice() {
            [] => Self::ZERO,
            [low] => Small(u128::from(low)),
            [low, high] => Small(joined(high, low)),
            _ => Large(limbs),
        }
    }
}

impl From<u64> for Magnitude {
    fn from(n: u64) -> Self {
        Small(u128::from(n))
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Small(a), Small(b)) => a.cmp(b),
            (Small(_), Large(_)) => Ordering::Less,
            (Large(_), Small(_)) => Ordering::Greater,
            (Large(a), Large(b)) => {
                a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
            }
        }
    }
}

/// `high × 2^64 + low`.
fn joined(high: u64, low: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// The low and the high half.
#[expect(clippy::cast_possible_truncation, reason = "each half is cut off on purpose")]
fn split(n: u128) -> (u64, u64) {
    (n as u64, (n >> 64) as u64)
}

/// Quotient and remainder; by 64-bit division where that will do, since it is several times faster.
fn divide(n: u128, divisor: NonZeroU64) -> (u128, u64) {
    if let Ok(n) = u64::try_from(n) {
        return (u128::from(n / divisor), n % divisor);
    }
    let wide = core::num::NonZeroU128::from(divisor);
    let (remainder, _) = split(n % wide);
    (n / wide, remainder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power_of_ten(exponent: u32) -> Magnitude {
        (0..exponent).fold(Magnitude::from(1), |n, _| n.times_plus(10, 0))
    }

    #[test]
    fn sums_and_differences_cross_the_border_between_small_and_large() {
        let largest_small = Small(u128::MAX);
        let one = Magnitude::from(1);
        let sum = largest_small.plus(&one);
        assert_eq!(sum, Large(vec![0, 0, 1]));
        assert_eq!(sum.abs_diff(&one), largest_small);
        assert_eq!(one.abs_diff(&sum), largest_small);
        assert_eq!(sum.bits(), 129);
        assert!(sum > largest_small);
    }

    #[test]
    fn multiplying_and_dividing_cancel_out() {
        let digits = Magnitude::from(123_456_789);
        let divisor = NonZeroU64::new(1_000_000_000_000_000_000).expect("not zero");
        let mut n = digits.clone().times_thousands(600).plus(&Magnitude::from(7));
        let (quotient, remainder) = n.divided_by(divisor);
        assert_eq!(remainder, 7);
        n = quotient;
        for _ in 1..100 {
            let (quotient, remainder) = n.divided_by(divisor);
            assert_eq!(remainder, 0);
            n = quotient;
        }
        assert_eq!(n, digits);
    }

    #[test]
    fn the_same_number_has_the_same_form_however_it_was_made() {
        assert_eq!(power_of_ten(60), Magnitude::from(1).times_thousands(20));
        assert_eq!(power_of_ten(60).abs_diff(&power_of_ten(60)), Magnitude::ZERO);
        assert!(power_of_ten(60) < power_of_ten(61));
    }
}
