//! Amounts as Kubernetes writes them: `500m`, `1.5`, `2Gi`, `1e3`.
//!
//! This module owns reading, printing, comparing and adding such amounts, exactly as
//! `resource.Quantity` of Kubernetes does it, and the one way from them into our integers. It knows
//! nothing of cpu or memory; what a number counts is said by whoever asks for it.
//!
//! A [`Quantity`] is exact. It is kept as an integer of any size times a power of a thousand, because
//! Kubernetes allows amounts that no machine integer holds (`1e100`, `999E` counted in `n`), and adds
//! them without loss. Decisions never use it: at the edge every amount becomes a `u64` by
//! [`Quantity::to_units`] or [`Quantity::to_milli`], which refuse instead of wrapping.
//!
//! Where we differ from Kubernetes, on purpose:
//!
//! - Printing always gives the canonical form; Kubernetes repeats some inputs word for word (`+1`).
//! - A conversion that does not fit is an [`Error`]; `Value()` and `MilliValue()` give a wrong number.
//! - Inputs longer than [`MAX_LENGTH`], and amounts with more than [`MAX_DIGITS`] digits or an exponent
//!   beyond [`MAX_EXPONENT`], are refused, so that no text can make us compute for long. Kubernetes reads the exponent
//!   into 32 bits and drops the rest: to it, `1e4294967299` is `1e3`.
//!
//! ```
//! use sublet_core::quantity::{Quantity, Round};
//!
//! let memory: Quantity = "1.5Gi".parse()?;
//! assert_eq!(memory.to_string(), "1536Mi");
//! assert_eq!(memory.to_units(Round::Up)?, 1_610_612_736);
//! # Ok::<(), sublet_core::quantity::Error>(())
//! ```

use alloc::string::String;
use core::cmp::Ordering;
use core::str::FromStr;

mod decimal;
mod magnitude;
mod parse;
mod print;
#[cfg(test)]
mod tests;

use decimal::Decimal;

/// The longest text that is read as a quantity, in bytes. Real ones have fewer than 30; the limit
/// bounds what a hostile one costs, since reading grows with the square of the length.
pub const MAX_LENGTH: usize = 256;

/// How many digits an amount may always have in its canonical form.
pub const MAX_DIGITS: usize = 231;

/// The largest exponent that an amount may have in its canonical form. It lies far beyond what any
/// conversion accepts, and bounds how large a number an addition has to write out.
pub const MAX_EXPONENT: i32 = 9_999;

/// An exact amount and the format it prints in.
///
/// Comparing is by value alone, as `Cmp` of Kubernetes does: `1`, `1000m` and `1e0` are equal although
/// they print differently.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Decimal,
    format: Format,
}

/// The family of suffixes that a quantity is printed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of a thousand by letter: `500m`, `2k`, `3G`.
    DecimalSI,
    /// Powers of 1024 by letter: `64Mi`, `2Gi`.
    BinarySI,
    /// Powers of ten by exponent: `2e3`.
    DecimalExponent,
}

/// Where a conversion goes when the amount lies between two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// To the larger one; for what is asked or used, so that it is never counted short.
    Up,
    /// To the smaller one; for what is offered, so that it is never promised twice.
    Down,
}

/// Why a text is not a quantity, or a quantity not one of our integers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no text.
    #[error("a quantity must not be empty; write a number such as 500m, 1.5 or 2Gi")]
    Empty,
    /// The text exceeds [`MAX_LENGTH`].
    #[error("a quantity has at most {MAX_LENGTH} bytes, this one has {length}")]
    TooLong {
        /// The length of the text in bytes.
        length: usize,
    },
    /// The suffix asks for digits before it, and there are none. Kubernetes lets most suffixes stand
    /// alone for zero, but not the largest and the smallest ones.
    #[error("a quantity needs digits before its suffix, such as 1Gi or 500m")]
    NoDigits,
    /// What follows the number is no suffix.
    #[error(
        "{suffix:?} cannot follow the number of a quantity; use n, u, m, k, M, G, T, P or E, \
         Ki, Mi, Gi, Ti, Pi or Ei, an exponent such as e3, or nothing"
    )]
    Suffix {
        /// All that follows the number.
        suffix: String,
    },
    /// The exponent lies beyond [`MAX_EXPONENT`], or its digits beyond any integer.
    #[error("the exponent of the quantity is out of range; it must be at most {MAX_EXPONENT}")]
    Exponent,
    /// The amount has more than [`MAX_DIGITS`] digits.
    #[error("the quantity has too many digits; write at most {MAX_DIGITS}")]
    TooManyDigits,
    /// The amount is below zero where only amounts of something are meant.
    #[error("the quantity is negative; write zero or more")]
    Negative,
    /// The amount does not fit into the integer asked for.
    #[error("the quantity is too large to be counted; write a smaller one")]
    TooLarge,
}

impl Quantity {
    /// A count of thousandths, such as millicores: `2500m`, `3`.
    pub fn from_milli(milli: u64) -> Self {
        Self { amount: Decimal::from_milli(milli), format: Format::DecimalSI }
    }

    /// A count of bytes: `5Gi`, `100Ki`, `1000`.
    ///
    /// Kubernetes reads no binary amount above 2^63 − 1 and takes that instead, so what this prints
    /// for 2^63 bytes and more (`8Ei`) may come back smaller.
    pub fn from_bytes(bytes: u64) -> Self {
        Self { amount: Decimal::from_units(bytes), format: Format::BinarySI }
    }

    /// A count of things, such as GPUs: `3`, `12k`.
    pub fn from_count(count: u64) -> Self {
        Self { amount: Decimal::from_units(count), format: Format::DecimalSI }
    }

    /// The format it prints in, where the amount allows that (see `Display`).
    pub fn format(&self) -> Format {
        self.format
    }

    /// −1 below zero, 0 at zero, 1 above.
    pub fn signum(&self) -> i32 {
        match self.amount.sign() {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.amount.sign() == Ordering::Equal
    }

    /// The sum. It keeps the format of `self`, unless `self` is zero: then it takes the other's.
    ///
    /// Every sum can be printed, but one that crosses the limits of reading ([`MAX_DIGITS`],
    /// [`MAX_EXPONENT`], or 2^63 − 1 in binary) does not come back from its text.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self { amount: self.amount.plus(&other.amount), format: self.format_with(other) }
    }

    /// The difference, which may be negative. Its format follows the rule of [`Quantity::plus`].
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let amount = self.amount.plus(&other.amount.negated());
        Self { amount, format: self.format_with(other) }
    }

    fn format_with(&self, other: &Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }

    /// The amount in whole units: cores, bytes, devices.
    pub fn to_units(&self, round: Round) -> Result<u64, Error> {
        self.unsigned(decimal::UNITS, round)
    }

    /// The amount in thousandths of a unit: millicores.
    pub fn to_milli(&self, round: Round) -> Result<u64, Error> {
        self.unsigned(decimal::MILLI, round)
    }

    fn unsigned(&self, thousands: i32, round: Round) -> Result<u64, Error> {
        if self.amount.sign() == Ordering::Less {
            return Err(Error::Negative);
        }
        self.amount.magnitude_in(thousands, round).ok_or(Error::TooLarge)
    }

    /// What `Value()` of Kubernetes means: whole units of either sign, rounded away from zero.
    pub fn value(&self) -> Result<i64, Error> {
        self.signed(decimal::UNITS)
    }

    /// What `MilliValue()` of Kubernetes means: thousandths of either sign, rounded away from zero.
    pub fn milli_value(&self) -> Result<i64, Error> {
        self.signed(decimal::MILLI)
    }

    fn signed(&self, thousands: i32) -> Result<i64, Error> {
        let magnitude = self.amount.magnitude_in(thousands, Round::Up).ok_or(Error::TooLarge)?;
        let signed = match self.amount.sign() {
            Ordering::Less => 0_i64.checked_sub_unsigned(magnitude),
            Ordering::Equal | Ordering::Greater => i64::try_from(magnitude).ok(),
        };
        signed.ok_or(Error::TooLarge)
    }
}

impl FromStr for Quantity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse::quantity(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl core::hash::Hash for Quantity {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.amount.hash(state);
    }
}
