//! From text to a quantity.
//!
//! `[+-] digits [. digits] [suffix]`, where Kubernetes is generous with what may be missing. A fraction
//! finer than a billionth is rounded away from zero, so that whoever asks for something gets some.

use alloc::string::ToString;
use core::num::NonZeroU64;

use super::decimal::Decimal;
use super::magnitude::Magnitude;
use super::{Error, Format, MAX_EXPONENT, MAX_LENGTH, Quantity};

/// The exponent of the finest amount: a billionth.
const NANO: i32 = -9;

/// What [`super::MAX_DIGITS`] is in bits, which are easier to count. All numbers of so many digits fit into so
/// many bits, and none that fits has more than one digit more, which keeps it below [`MAX_LENGTH`].
const MAX_BITS: i64 = 768;

/// Kubernetes takes every binary amount beyond the largest signed 64-bit integer for that integer.
const BINARY_MAX: u64 = i64::MAX.unsigned_abs();

pub(super) fn quantity(text: &str) -> Result<Quantity, Error> {
    if text.is_empty() {
        return Err(Error::Empty);
    }
    if text.len() > MAX_LENGTH {
        return Err(Error::TooLong { length: text.len() });
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, suffix) = Number::split_off(unsigned);
    let suffix = Suffix::read(suffix)?;
    if number.has_no_digits() && !suffix.may_stand_alone() {
        return Err(Error::NoDigits);
    }
    let coefficient = number.coefficient().times_plus(suffix.factor, 0);
    if coefficient.is_zero() {
        let amount = Decimal::from_units(0);
        return Ok(Quantity { amount, format: suffix.format });
    }
    let exponent = suffix.exponent.saturating_sub(number.decimals());
    let (coefficient, exponent) = rounded_to_nano(coefficient, exponent);
    let amount = Decimal::new(negative, coefficient, exponent);
    // Both limits are on the form that is printed, so that whatever is read can be printed and read
    // again; that form may have more digits or a larger exponent than what was written.
    if amount.exponent() > MAX_EXPONENT {
        return Err(Error::Exponent);
    }
    if amount.coefficient().bits() > MAX_BITS {
        return Err(Error::TooManyDigits);
    }
    Ok(match suffix.format {
        Format::BinarySI => binary(amount, negative),
        format => Quantity { amount, format },
    })
}

/// A number's digits, before and after its point.
struct Number<'a> {
    whole: &'a str,
    fraction: &'a str,
}

impl<'a> Number<'a> {
    /// The number that the text begins with, and what follows it.
    fn split_off(text: &'a str) -> (Self, &'a str) {
        let (whole, rest) = split_digits(text);
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        (Self { whole, fraction }, rest)
    }

    fn has_no_digits(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// All digits as one integer.
    fn coefficient(&self) -> Magnitude {
        let digits = self.whole.bytes().chain(self.fraction.bytes());
        digits.fold(Magnitude::ZERO, |number, digit| {
            number.times_plus(10, u64::from(digit.saturating_sub(b'0')))
        })
    }

    fn decimals(&self) -> i32 {
        i32::try_from(self.fraction.len()).unwrap_or(i32::MAX)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (text.strip_suffix(rest).unwrap_or_default(), rest)
}

/// What a suffix means: `factor × 10^exponent`.
struct Suffix {
    factor: u64,
    exponent: i32,
    format: Format,
}

impl Suffix {
    fn read(suffix: &str) -> Result<Self, Error> {
        Ok(match suffix {
            "n" => Self::decimal(-9),
            "u" => Self::decimal(-6),
            "m" => Self::decimal(-3),
            "" => Self::decimal(0),
            "k" => Self::decimal(3),
            "M" => Self::decimal(6),
            "G" => Self::decimal(9),
            "T" => Self::decimal(12),
            "P" => Self::decimal(15),
            "E" => Self::decimal(18),
            "Ki" => Self::binary(1 << 10),
            "Mi" => Self::binary(1 << 20),
            "Gi" => Self::binary(1 << 30),
            "Ti" => Self::binary(1 << 40),
            "Pi" => Self::binary(1 << 50),
            "Ei" => Self::binary(1 << 60),
            _ => Self::exponent(suffix)?,
        })
    }

    fn decimal(exponent: i32) -> Self {
        Self { factor: 1, exponent, format: Format::DecimalSI }
    }

    fn binary(factor: u64) -> Self {
        Self { factor, exponent: 0, format: Format::BinarySI }
    }

    fn exponent(suffix: &str) -> Result<Self, Error> {
        let unknown = || Error::Suffix { suffix: suffix.to_string() };
        let exponent = suffix.strip_prefix(['e', 'E']).ok_or_else(unknown)?;
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
            return Err(unknown());
        }
        // These are digits and one sign at most, so what fails is their size.
        let exponent = exponent.parse().map_err(|_| Error::Exponent)?;
        Ok(Self { factor: 1, exponent, format: Format::DecimalExponent })
    }

    /// Whether Kubernetes takes the suffix without digits for zero. That depends on which of its two
    /// parsers the suffix leads to: the fast one does, and handles up to `Ti` and down to a billionth.
    fn may_stand_alone(&self) -> bool {
        self.factor <= 1 << 40 && self.exponent >= NANO
    }
}

/// Rounds `coefficient × 10^exponent` away from zero where it is finer than a billionth.
fn rounded_to_nano(mut coefficient: Magnitude, exponent: i32) -> (Magnitude, i32) {
    let mut excess = NANO.saturating_sub(exponent).max(0).unsigned_abs();
    let mut inexact = false;
    while excess > 0 && !coefficient.is_zero() {
        let step = excess.min(18);
        let divisor = NonZeroU64::MIN.saturating_add(10_u64.saturating_pow(step).saturating_sub(1));
        let (quotient, remainder) = coefficient.divided_by(divisor);
        inexact |= remainder > 0;
        coefficient = quotient;
        excess = excess.saturating_sub(step);
    }
    if inexact {
        coefficient = coefficient.times_plus(1, 1);
    }
    (coefficient, exponent.max(NANO))
}

/// A binary amount is capped, and a fraction of one unit turns decimal, since it has no binary suffix.
fn binary(amount: Decimal, negative: bool) -> Quantity {
    let distance = if negative { amount.negated() } else { amount.clone() };
    if distance > Decimal::from_units(BINARY_MAX) {
        let amount = Decimal::new(negative, Magnitude::from(BINARY_MAX), 0);
        return Quantity { amount, format: Format::BinarySI };
    }
    let is_fraction = distance < Decimal::from_units(1);
    let format = if is_fraction { Format::DecimalSI } else { Format::BinarySI };
    Quantity { amount, format }
}
