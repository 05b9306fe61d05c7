//! Signed numbers as an integer times a power of a thousand.
//!
//! A power of a thousand, because every decimal suffix is one. Thus the form kept here, with the power
//! as large as possible, is also the one that is printed, and equal numbers have equal forms.
//!
//! The power is written out only when numbers are added or printed in binary. Reading `1e9999` costs
//! no more than reading `1`, and neither does comparing it.

use core::cmp::Ordering;
use core::num::NonZeroU64;

use super::Round;
use super::magnitude::Magnitude;

/// The power of a thousand in which whole units are counted.
pub(super) const UNITS: i32 = 0;
/// The power of a thousand in which thousandths are counted.
pub(super) const MILLI: i32 = -1;

const THOUSAND: NonZeroU64 = NonZeroU64::new(1000).unwrap();
const THOUSAND_TO_THE_SIXTH: NonZeroU64 = NonZeroU64::new(1_000_000_000_000_000_000).unwrap();

/// `± coefficient × 1000^thousands`.
///
/// The coefficient is not divisible by a thousand; zero is `+ 0 × 1000^0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Decimal {
    negative: bool,
    coefficient: Magnitude,
    thousands: i32,
}

impl Decimal {
    /// `± coefficient × 10^exponent`.
    pub(super) fn new(negative: bool, coefficient: Magnitude, exponent: i32) -> Self {
        let tens = exponent.rem_euclid(3).unsigned_abs();
        let coefficient = coefficient.times_plus(10_u64.saturating_pow(tens), 0);
        Self::normal(negative, coefficient, exponent.div_euclid(3))
    }

    pub(super) fn from_units(units: u64) -> Self {
        Self::normal(false, Magnitude::from(units), UNITS)
    }

    pub(super) fn from_milli(milli: u64) -> Self {
        Self::normal(false, Magnitude::from(milli), MILLI)
    }

    fn normal(negative: bool, mut coefficient: Magnitude, mut thousands: i32) -> Self {
        if coefficient.is_zero() {
            return Self { negative: false, coefficient, thousands: 0 };
        }
        // Long ones lose their zeros in large steps first, since each step walks over all limbs.
        for (divisor, step) in [(THOUSAND_TO_THE_SIXTH, 6), (THOUSAND, 1)] {
            while let (quotient, 0) = coefficient.divided_by(divisor) {
                coefficient = quotient;
                thousands = thousands.saturating_add(step);
            }
        }
        Self { negative, coefficient, thousands }
    }

    /// How it compares to zero.
    pub(super) fn sign(&self) -> Ordering {
        match (self.coefficient.is_zero(), self.negative) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        }
    }

    pub(super) fn coefficient(&self) -> &Magnitude {
        &self.coefficient
    }

    pub(super) fn thousands(&self) -> i32 {
        self.thousands
    }

    /// The power as one of ten.
    pub(super) fn exponent(&self) -> i32 {
        self.thousands.saturating_mul(3)
    }

    #[must_use]
    pub(super) fn negated(&self) -> Self {
        Self { negative: self.sign() == Ordering::Greater, ..self.clone() }
    }

    #[must_use]
    pub(super) fn plus(&self, other: &Self) -> Self {
        // Aligning with zero would write out the other's power for nothing.
        if self.sign() == Ordering::Equal {
            return other.clone();
        }
        if other.sign() == Ordering::Equal {
            return self.clone();
        }
        let thousands = self.thousands.min(other.thousands);
        let a = self.coefficient_at(thousands);
        let b = other.coefficient_at(thousands);
        if self.negative == other.negative {
            Self::normal(self.negative, a.plus(&b), thousands)
        } else {
            let negative = if a < b { other.negative } else { self.negative };
            Self::normal(negative, a.abs_diff(&b), thousands)
        }
    }

    /// The coefficient for a smaller power of a thousand.
    fn coefficient_at(&self, thousands: i32) -> Magnitude {
        let lower_by = self.thousands.saturating_sub(thousands).max(0).unsigned_abs();
        self.coefficient.clone().times_thousands(lower_by)
    }

    /// The number without its sign if it is a whole one, written out.
    pub(super) fn whole_magnitude(&self) -> Option<Magnitude> {
        (self.thousands >= UNITS).then(|| self.coefficient_at(UNITS))
    }

    /// The number without its sign, counted in `1000^thousands`, if that fits.
    pub(super) fn magnitude_in(&self, thousands: i32, round: Round) -> Option<u64> {
        if self.coefficient.is_zero() {
            return Some(0);
        }
        let power = self.thousands.saturating_sub(thousands);
        let factor = 1000_u64.checked_pow(power.unsigned_abs());
        if power >= 0 {
            return self.coefficient.to_u64()?.checked_mul(factor?);
        }
        let (quotient, remainder) = self.coefficient.divided_by(NonZeroU64::new(factor?)?);
        let rest = u64::from(round == Round::Up && remainder > 0);
        quotient.to_u64()?.checked_add(rest)
    }

    /// Compares without the signs; neither is zero.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        match self.thousands.cmp(&other.thousands) {
            Ordering::Equal => self.coefficient.cmp(&other.coefficient),
            Ordering::Less => other.cmp_magnitude(self).reverse(),
            Ordering::Greater => {
                // A thousand is more than 2^9, so a power that is much larger decides at once, and one
                // that is not is short enough to be written out.
                let lower_by = self.thousands.saturating_sub(other.thousands);
                let at_least =
                    i64::from(lower_by).saturating_mul(9).saturating_add(self.coefficient.bits());
                if at_least > other.coefficient.bits() {
                    return Ordering::Greater;
                }
                self.coefficient_at(other.thousands).cmp(&other.coefficient)
            }
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sign().cmp(&other.sign()).then_with(|| match self.sign() {
            Ordering::Less => other.cmp_magnitude(self),
            Ordering::Equal => Ordering::Equal,
            Ordering::Greater => self.cmp_magnitude(other),
        })
    }
}
