//! From a quantity to its canonical text.
//!
//! The canonical form has no fraction, loses nothing, and has the largest suffix that allows both. A
//! binary amount below 1024, or with a fraction, prints as a decimal one.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::num::NonZeroU64;

use super::magnitude::Magnitude;
use super::{Format, Quantity};

const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const BINARY_STEP: NonZeroU64 = NonZeroU64::new(1024).unwrap();

/// How many decimal digits of a large number are printed at a time.
const CHUNK_DIGITS: usize = 19;
const CHUNK: NonZeroU64 = NonZeroU64::new(10_000_000_000_000_000_000).unwrap();

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.amount.sign() == Ordering::Less {
            f.write_str("-")?;
        }
        if self.format == Format::BinarySI
            && let Some(whole) = self.amount.whole_magnitude()
            && whole >= Magnitude::from(BINARY_STEP.get())
        {
            return binary(whole, f);
        }
        write_digits(self.amount.coefficient(), f)?;
        let thousands = self.amount.thousands();
        let letter = match self.format {
            Format::DecimalSI | Format::BinarySI => decimal_letter(thousands),
            Format::DecimalExponent => None,
        };
        match (letter, thousands) {
            (Some(letter), _) => f.write_str(letter),
            (None, 0) => Ok(()),
            (None, _) => write!(f, "e{}", self.amount.exponent()),
        }
    }
}

/// The letter of a power of a thousand. Beyond `E` there is none, and exponents go on from there.
fn decimal_letter(thousands: i32) -> Option<&'static str> {
    Some(match thousands {
        -3 => "n",
        -2 => "u",
        -1 => "m",
        0 => "",
        1 => "k",
        2 => "M",
        3 => "G",
        4 => "T",
        5 => "P",
        6 => "E",
        _ => return None,
    })
}

fn binary(mut whole: Magnitude, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut suffix = "";
    for larger in BINARY_SUFFIXES {
        let (quotient, remainder) = whole.divided_by(BINARY_STEP);
        if remainder > 0 {
            break;
        }
        (whole, suffix) = (quotient, larger);
    }
    write_digits(&whole, f)?;
    f.write_str(suffix)
}

fn write_digits(number: &Magnitude, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut head = number.clone();
    let mut chunks = Vec::new();
    loop {
        if let Magnitude::Small(n) = head {
            write!(f, "{n}")?;
            break;
        }
        let (quotient, chunk) = head.divided_by(CHUNK);
        chunks.push(chunk);
        head = quotient;
    }
    chunks.iter().rev().try_for_each(|chunk| write!(f, "{chunk:0CHUNK_DIGITS$}"))
}
