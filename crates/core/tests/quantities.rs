//! Every row of what Kubernetes makes of 24 000 texts and 8 000 pairs must be what we make of them.
//!
//! The files under `data/` were written by Kubernetes' own code (apimachinery v0.35.8). Their two
//! integer columns are right only where they did not overflow, so what is right is computed here anew,
//! digit by digit from the canonical form, and both sides are held against it.

use std::cmp::Ordering;

use sublet_core::quantity::{Error, Quantity, Round};

const QUANTITIES: &str = include_str!("data/quantities.tsv");
const ARITHMETIC: &str = include_str!("data/quantity-arithmetic.tsv");

#[test]
fn texts_are_accepted_refused_and_printed_as_by_kubernetes() {
    check::<7>(QUANTITIES, 24_000, |[input, outcome, canonical, _, _, sign, format]| {
        let expected = match outcome {
            "ok" => format!("{canonical} {sign} {format}"),
            _ => "refused".to_string(),
        };
        let actual = match unescaped(input).parse::<Quantity>() {
            Ok(q) => format!("{q} {} {:?}", q.signum(), q.format()),
            Err(_) => "refused".to_string(),
        };
        equal("quantity", expected, actual)
    });
}

#[test]
fn what_is_printed_reads_back_as_the_same_amount() {
    check::<7>(QUANTITIES, 24_000, |[input, outcome, ..]| {
        if outcome != "ok" {
            return Ok(());
        }
        let first: Quantity = unescaped(input).parse().expect("checked above");
        let second: Quantity = first.to_string().parse().map_err(|e: Error| e.to_string())?;
        equal("text", first.to_string(), second.to_string())?;
        equal("amount", &first, &second)
    });
}

#[test]
fn integers_are_exact_or_refused() {
    check::<7>(QUANTITIES, 24_000, |[input, outcome, canonical, ..]| {
        if outcome != "ok" {
            return Ok(());
        }
        let q: Quantity = unescaped(input).parse().expect("checked above");
        let exact = Exact::read(canonical);
        for (decimals, up, down, signed) in [
            (0, q.to_units(Round::Up), q.to_units(Round::Down), q.value()),
            (3, q.to_milli(Round::Up), q.to_milli(Round::Down), q.milli_value()),
        ] {
            let unsigned = |round| {
                if exact.negative {
                    return Err(Error::Negative);
                }
                exact.scaled(decimals, round).ok_or(Error::TooLarge)
            };
            equal("rounded up", unsigned(Round::Up), up)?;
            equal("rounded down", unsigned(Round::Down), down)?;
            equal("signed", exact.signed(decimals).ok_or(Error::TooLarge), signed)?;
        }
        Ok(())
    });
}

#[test]
fn integers_are_those_of_kubernetes_wherever_those_are_right() {
    let mut overflowed = 0;
    let mut wrong_below_zero = 0;
    check::<7>(QUANTITIES, 24_000, |[input, outcome, canonical, value, milli, ..]| {
        if outcome != "ok" {
            return Ok(());
        }
        let q: Quantity = unescaped(input).parse().expect("checked above");
        let exact = Exact::read(canonical);
        for (decimals, theirs, ours) in [(0, value, q.value()), (3, milli, q.milli_value())] {
            let theirs = theirs.parse::<i64>().expect("an integer");
            match ours {
                Ok(ours) if ours == theirs => {}
                // No integer is right here, and theirs is whatever was left of it.
                Err(Error::TooLarge) => overflowed += 1,
                Ok(_) if exact.negative && exact.wrong_below_zero(decimals) == theirs => {
                    wrong_below_zero += 1;
                }
                ours => return Err(format!("integer: expected {theirs}, found {ours:?}")),
            }
        }
        Ok(())
    });
    // Pinned, so that neither exception can swallow more than it does today.
    assert_eq!((overflowed, wrong_below_zero), (5239, 1157));
}

#[test]
fn pairs_compare_add_and_subtract_as_in_kubernetes() {
    check::<5>(ARITHMETIC, 8_000, |[a, b, cmp, sum, difference]| {
        let a: Quantity = unescaped(a).parse().map_err(|e: Error| e.to_string())?;
        let b: Quantity = unescaped(b).parse().map_err(|e: Error| e.to_string())?;
        let ordering = match cmp {
            "-1" => Ordering::Less,
            "0" => Ordering::Equal,
            _ => Ordering::Greater,
        };
        equal("comparison", ordering, a.cmp(&b))?;
        equal("equality", ordering == Ordering::Equal, a == b)?;
        equal("sum", sum.to_string(), a.plus(&b).to_string())?;
        equal("difference", difference.to_string(), a.minus(&b).to_string())
    });
}

/// Runs the check over all rows and shows the first ten that fail.
fn check<const COLUMNS: usize>(
    table: &str,
    rows_at_least: usize,
    mut row: impl FnMut([&str; COLUMNS]) -> Result<(), String>,
) {
    let mut rows = 0;
    let mut failures = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        rows += 1;
        let columns: Vec<&str> = line.split('\t').collect();
        let columns = columns.try_into().expect("as many columns as the heading says");
        if let Err(failure) = row(columns) {
            failures.push(format!("{line:?}: {failure}"));
        }
    }
    assert!(rows >= rows_at_least, "only {rows} rows");
    let shown = failures.iter().take(10).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {rows} rows fail:\n{shown}", failures.len());
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, actual: T) -> Result<(), String> {
    if expected == actual {
        return Ok(());
    }
    Err(format!("{what}: expected {expected:?}, found {actual:?}"))
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next().expect("a letter after each backslash") {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                '0' => '\0',
                other => other,
            },
            c => c,
        });
    }
    out
}

/// A canonical text, evaluated in the simplest way there is: its digits and where its point stands.
struct Exact {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Exact {
    fn read(canonical: &str) -> Self {
        let unsigned = canonical.trim_start_matches('-');
        let digits = unsigned.trim_end_matches(|c: char| !c.is_ascii_digit());
        let (digits, exponent) = match unsigned.split_once('e') {
            Some((digits, exponent)) => (digits, exponent.parse().expect("an exponent")),
            None => (digits, 0),
        };
        let suffix = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
        let (digits, exponent) = match suffix {
            "n" => (digits.to_string(), -9),
            "u" => (digits.to_string(), -6),
            "m" => (digits.to_string(), -3),
            "k" => (digits.to_string(), 3),
            "M" => (digits.to_string(), 6),
            "G" => (digits.to_string(), 9),
            "T" => (digits.to_string(), 12),
            "P" => (digits.to_string(), 15),
            "E" => (digits.to_string(), 18),
            "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => {
                let power = "KMGTPE".find(&suffix[..1]).expect("one of them") + 1;
                let product = digits.parse::<u128>().expect("short") << (10 * power);
                (product.to_string(), 0)
            }
            _ => (digits.to_string(), exponent),
        };
        Self { negative: canonical.starts_with('-'), digits, exponent }
    }

    /// Without its sign, times `10^decimals`, if that fits.
    fn scaled(&self, decimals: i32, round: Round) -> Option<u64> {
        let places = self.exponent + decimals;
        if self.digits == "0" {
            return Some(0);
        }
        if places >= 0 {
            let places = usize::try_from(places).expect("not negative");
            return format!("{}{}", self.digits, "0".repeat(places)).parse().ok();
        }
        let cut = self.digits.len().saturating_sub(places.unsigned_abs() as usize);
        let (whole, rest) = self.digits.split_at(cut);
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let up = round == Round::Up && rest.bytes().any(|digit| digit != b'0');
        whole.checked_add(u64::from(up))
    }

    /// With its sign, away from zero.
    fn signed(&self, decimals: i32) -> Option<i64> {
        let magnitude = i128::from(self.scaled(decimals, Round::Up)?);
        i64::try_from(if self.negative { -magnitude } else { magnitude }).ok()
    }

    /// What Kubernetes makes of long or fine numbers below zero: it counts them in billionths, keeps
    /// the low 64 bits, and then rounds by adding one where it had to subtract one.
    fn wrong_below_zero(&self, decimals: i32) -> i64 {
        let zeros = usize::try_from(self.exponent + 9).expect("at least a billionth");
        let nanos = self
            .digits
            .bytes()
            .chain("0".repeat(zeros).bytes())
            .fold(0, |n: i64, digit| n.wrapping_mul(10).wrapping_sub(i64::from(digit - b'0')));
        let divisor = 10_i64.pow(9 - decimals.unsigned_abs());
        nanos / divisor + i64::from(nanos % divisor != 0)
    }
}
