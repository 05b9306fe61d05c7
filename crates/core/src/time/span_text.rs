//! Reading and printing spans as Go's `time.ParseDuration` and `Duration.String` do.
//!
//! A duration is a sum of numbers with units, such as `1h30m` or `1.5h`. Go counts it in nanoseconds
//! of a signed 64-bit integer, and so does this file until the result is rounded up to milliseconds;
//! what Go refuses as too long is refused here. There are no days, because their length depends on
//! where one is.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use super::Span;

/// The longest text that is read as a duration, in bytes; real ones have fewer than 30.
pub const MAX_LENGTH: usize = 256;

/// The longest span that Go can hold, in nanoseconds: about 292 years.
const NANOS_MAX: u64 = i64::MAX.unsigned_abs();

/// The most digits behind a point that are looked at; those beyond cannot make a nanosecond of an hour.
const DECIMALS_MAX: usize = 18;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Why a text is not a span.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no text.
    #[error("a duration must not be empty; write one such as 300ms, 45s or 1h30m")]
    Empty,
    /// The text exceeds [`MAX_LENGTH`].
    #[error("a duration has at most {MAX_LENGTH} bytes, this one has {length}")]
    TooLong {
        /// The length of the text in bytes.
        length: usize,
    },
    /// There is something else where a number should be.
    #[error("a duration needs a number before {rest:?}; write one such as 300ms, 45s or 1h30m")]
    Malformed {
        /// What stands where the number should be, and all that follows.
        rest: String,
    },
    /// A number has no unit.
    #[error("a duration needs a unit after every number, one of ns, us, ms, s, m and h, as in 45s")]
    MissingUnit,
    /// There is no such unit.
    #[error("{unit:?} is not a unit of durations; use ns, us, ms, s, m or h (a day is 24h)")]
    UnknownUnit {
        /// The unit as it was written.
        unit: String,
    },
    /// The duration is below zero.
    #[error("the duration is negative; write zero or more")]
    Negative,
    /// The duration is longer than Go can count.
    #[error("the duration is too long; it must be shorter than 2562047h, which is 292 years")]
    TooLarge,
}

impl FromStr for Span {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
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
        let nanos = total_nanos(unsigned, negative)?;
        if negative && nanos > 0 {
            return Err(Error::Negative);
        }
        let millis = nanos.div_ceil(NANOS_PER_MILLI);
        // The last part of a millisecond that Go can count would round up to what it cannot.
        if millis > NANOS_MAX / NANOS_PER_MILLI {
            return Err(Error::TooLarge);
        }
        Ok(Self::from_millis(millis))
    }
}

/// The sum of all parts. A negative one may be one nanosecond longer, as integers are.
fn total_nanos(text: &str, negative: bool) -> Result<u64, Error> {
    // Zero is the same in every unit, so it may stand without one.
    if text == "0" {
        return Ok(0);
    }
    if text.is_empty() {
        return Err(Error::Malformed { rest: String::new() });
    }
    let limit = NANOS_MAX.saturating_add(u64::from(negative));
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let (nanos, next) = part_nanos(rest)?;
        total = total.saturating_add(nanos);
        if total > limit {
            return Err(Error::TooLarge);
        }
        rest = next;
    }
    Ok(total)
}

/// The first part of the text, such as the `1.5h` of `1.5h3m`, and what follows it.
fn part_nanos(text: &str) -> Result<(u64, &str), Error> {
    let (whole, rest) = split_at_first(text, |c| !c.is_ascii_digit());
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_at_first(rest, |c| !c.is_ascii_digit()),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(Error::Malformed { rest: text.to_string() });
    }
    let (unit, rest) = split_at_first(rest, |c| c == '.' || c.is_ascii_digit());
    let unit_nanos = unit_nanos(unit)?;
    let nanos = number(whole)
        .and_then(|whole| whole.checked_mul(unit_nanos))
        .and_then(|nanos| nanos.checked_add(fraction_nanos(fraction, unit_nanos)))
        .ok_or(Error::TooLarge)?;
    Ok((nanos, rest))
}

fn unit_nanos(unit: &str) -> Result<u64, Error> {
    Ok(match unit {
        "ns" => 1,
        // The micro sign, and the Greek letter that looks the same.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => NANOS_PER_MILLI,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(Error::MissingUnit),
        _ => {
            return Err(Error::UnknownUnit { unit: unit.to_string() });
        }
    })
}

/// The digits as a number, unless it is too large; no digits are zero.
fn number(digits: &str) -> Option<u64> {
    digits.bytes().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit.saturating_sub(b'0')))
    })
}

/// `0.fraction × unit`, cut off below the nanosecond as Go does.
fn fraction_nanos(fraction: &str, unit_nanos: u64) -> u64 {
    let digits = fraction.get(..DECIMALS_MAX).unwrap_or(fraction);
    let numerator = u128::from(number(digits).unwrap_or(0));
    let denominator = digits.bytes().fold(1_u128, |power, _| power.saturating_mul(10));
    let nanos = numerator.saturating_mul(u128::from(unit_nanos)).checked_div(denominator);
    nanos.and_then(|nanos| u64::try_from(nanos).ok()).unwrap_or(0)
}

/// The text up to the first character that ends it, and the rest.
fn split_at_first(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(ends).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.as_millis();
        if millis == 0 {
            return f.write_str("0s");
        }
        if millis < 1_000 {
            return write!(f, "{millis}ms");
        }
        let (seconds, minutes, hours) = (millis / 1_000, millis / 60_000, millis / 3_600_000);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if minutes > 0 {
            write!(f, "{}m", minutes % 60)?;
        }
        write!(f, "{}", seconds % 60)?;
        match millis % 1_000 {
            0 => {}
            part if part % 100 == 0 => write!(f, ".{}", part / 100)?,
            part if part % 10 == 0 => write!(f, ".{:02}", part / 10)?,
            part => write!(f, ".{part:03}")?,
        }
        f.write_str("s")
    }
}
