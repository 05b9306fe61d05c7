//! The frame around every text that is kept: `{"format":N,` first and its checksum last.
//!
//! The checksum is over the exact bytes before it, so no flipped bit, torn end or swapped page goes
//! unnoticed, and nothing has to be parsed to find out. The frame is the same in every format, now
//! and later: a sound text of a later format is therefore told from a damaged one.

use std::cmp::Ordering;
use std::fmt;

use sha2::{Digest, Sha256};

/// The format that this version writes, and the latest that it reads.
pub const FORMAT: u32 = 1;

const OPENING: &str = "{\"format\":";
const BEFORE_CHECKSUM: &str = ",\"checksum\":\"";
const AFTER_CHECKSUM: &str = "\"}";
/// What [`end`] adds to a text.
pub(crate) const TAIL_BYTES: usize =
    BEFORE_CHECKSUM.len() + Checksum::DIGITS + AFTER_CHECKSUM.len();

/// Why a text cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The end is not where it should be.
    #[error("it is torn: the text does not end with its checksum; restore it from a backup")]
    Torn,
    /// The bytes are not those that were written.
    #[error("it is damaged: its checksum is {found}, not {expected}; restore it from a backup")]
    Damaged {
        /// What the text says of itself.
        expected: Checksum,
        /// What it really has.
        found: Checksum,
    },
    /// Sound, but from the future.
    #[error(
        "format {found} was written by a newer sublet, and this one reads up to {FORMAT}: upgrade"
    )]
    LaterFormat {
        /// Its format.
        found: u64,
    },
    /// Sound, but not what it should be.
    #[error("its checksum is right but {0}; this is a defect of the program that wrote it")]
    Malformed(String),
}

/// The first 128 bits of a SHA-256: enough to notice every accident.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checksum(u128);

impl Checksum {
    /// What the first record names as the checksum before it.
    pub const NONE: Self = Self(0);
    const DIGITS: usize = 32;

    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_digest(Sha256::new_with_prefix(bytes))
    }

    /// Of what was fed into `digest`.
    pub fn from_digest(digest: Sha256) -> Self {
        let bytes = digest.finalize();
        let first = bytes.iter().take(16);
        Self(first.fold(0, |sum, byte| (sum << 8) | u128::from(*byte)))
    }

    /// As bytes, big end first.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// From bytes, big end first.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Reads 32 lower-case hexadecimal digits; upper case would be a flipped bit.
    pub fn parse(text: &str) -> Option<Self> {
        hex_u128(text).map(Self)
    }
}

/// Exactly 32 lower-case hexadecimal digits.
pub(crate) fn hex_u128(text: &str) -> Option<u128> {
    let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let sound = text.len() == Checksum::DIGITS && text.bytes().all(lower_hex);
    sound.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The beginning of a text in our format; fields follow, each as `,"name":value`.
pub(crate) fn begin() -> String {
    format!("{OPENING}{FORMAT}")
}

/// Ends a text with the checksum of what it has so far.
pub(crate) fn end(mut text: String) -> (String, Checksum) {
    let checksum = Checksum::of(text.as_bytes());
    text.reserve(TAIL_BYTES);
    text.push_str(BEFORE_CHECKSUM);
    text.push_str(&checksum.to_string());
    text.push_str(AFTER_CHECKSUM);
    (text, checksum)
}

/// Verifies the frame, and gives the fields inside it and the checksum.
pub(crate) fn open(text: &str) -> Result<(Fields<'_>, Checksum), Error> {
    let split = text.len().checked_sub(TAIL_BYTES).ok_or(Error::Torn)?;
    let (body, tail) = text.split_at_checked(split).ok_or(Error::Torn)?;
    let expected = tail
        .strip_prefix(BEFORE_CHECKSUM)
        .and_then(|tail| tail.strip_suffix(AFTER_CHECKSUM))
        .and_then(Checksum::parse)
        .ok_or(Error::Torn)?;
    let found = Checksum::of(body.as_bytes());
    if found != expected {
        return Err(Error::Damaged { expected, found });
    }
    let after = body.strip_prefix(OPENING);
    let after =
        after.ok_or_else(|| Error::Malformed("it does not begin with its format".into()))?;
    let mut fields = Fields(after);
    let format = fields.digits().ok_or_else(|| malformed("format"))?;
    match format.cmp(&u64::from(FORMAT)) {
        Ordering::Equal => Ok((fields, found)),
        Ordering::Greater => Err(Error::LaterFormat { found: format }),
        Ordering::Less => Err(malformed("format")),
    }
}

fn malformed(name: &str) -> Error {
    Error::Malformed(format!("its field {name} is not where or what it should be"))
}

/// Reads fields in their fixed order, so that a chain is verified without parsing any event.
pub(crate) struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    /// A whole number.
    pub(crate) fn number(&mut self, name: &str) -> Result<u64, Error> {
        self.name(name)?;
        self.digits().ok_or_else(|| malformed(name))
    }

    /// 128 bits as hexadecimal text.
    pub(crate) fn hex(&mut self, name: &str) -> Result<u128, Error> {
        self.name(name)?;
        let quoted = self.0.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (digits, rest) = quoted.ok_or_else(|| malformed(name))?;
        self.0 = rest;
        hex_u128(digits).ok_or_else(|| malformed(name))
    }

    /// A checksum.
    pub(crate) fn checksum(&mut self, name: &str) -> Result<Checksum, Error> {
        self.hex(name).map(Checksum)
    }

    /// The last field: its value is everything that is left.
    pub(crate) fn last(mut self, name: &str) -> Result<&'a str, Error> {
        self.name(name)?;
        Ok(self.0)
    }

    fn name(&mut self, name: &str) -> Result<(), Error> {
        let rest = self.0.strip_prefix(",\"");
        let rest = rest.and_then(|rest| rest.strip_prefix(name));
        let rest = rest.and_then(|rest| rest.strip_prefix("\":"));
        self.0 = rest.ok_or_else(|| malformed(name))?;
        Ok(())
    }

    fn digits(&mut self) -> Option<u64> {
        let end = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        digits.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_framed_text_is_noticed() {
        let (text, _) = end(begin() + ",\"revision\":7");
        assert!(open(&text).is_ok());
        for bit in 0..text.len() * 8 {
            let mut bytes = text.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(flipped) = String::from_utf8(bytes) {
                let error = open(&flipped).err();
                let noticed = matches!(error, Some(Error::Torn | Error::Damaged { .. }));
                assert!(noticed, "bit {bit}: {error:?}");
            }
        }
    }

    #[test]
    fn every_shortened_text_is_noticed() {
        let (text, _) = end(begin() + ",\"revision\":7");
        for length in 0..text.len() {
            assert!(open(&text[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_sound_text_of_a_later_format_is_told_from_a_damaged_one() {
        let (text, _) = end("{\"format\":2,\"anything\":true".into());
        assert_eq!(open(&text).err(), Some(Error::LaterFormat { found: 2 }));
        let damaged = text.replace("true", "trua");
        assert!(matches!(open(&damaged).err(), Some(Error::Damaged { .. })));
    }
}
