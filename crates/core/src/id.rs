//! Names that cannot be wrong: parsed once at the edge, then passed around as values.
//!
//! A [`ClusterId`] is a DNS-1123 label of at most 50 characters, so that every Kubernetes and Liqo
//! name we build from it fits. A [`ReservationId`] is `rsv-` and 20 base32 characters: a hash of
//! requester, key and revision, so that planning needs no randomness and two brokers that plan the
//! same request at different revisions never invent the same id for different promises.

use alloc::{string::String, sync::Arc};
use core::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::text::Parsed;

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a DNS-1123 label of the allowed length.
    #[error(
        "cluster id {0:?} is not a DNS-1123 label of at most {max} characters: use lower-case \
         letters, digits and '-', beginning and ending with a letter or digit",
        max = ClusterId::LENGTH_MAX
    )]
    Cluster(String),
    /// Not an idempotency key.
    #[error(
        "idempotency key must have 1 to {max} visible ASCII characters; a UUID is a good choice",
        max = Key::LENGTH_MAX
    )]
    Key,
    /// Not a reservation id.
    #[error("reservation id {0:?} is not 'rsv-' followed by 20 characters of a-z and 2-7")]
    Reservation(String),
}

/// The name of one cluster, and the CN of its certificate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(Arc<str>);

impl ClusterId {
    /// Leaves room for the prefixes and suffixes that Kubernetes and Liqo names need within 63.
    pub const LENGTH_MAX: usize = 50;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn show<R>(&self, show: impl FnOnce(&str) -> R) -> R {
        show(self.as_str())
    }

    fn is_valid(text: &str) -> bool {
        let bytes = text.as_bytes();
        let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        bytes.len() <= Self::LENGTH_MAX
            && bytes.first().is_some_and(alphanumeric)
            && bytes.last().is_some_and(alphanumeric)
            && bytes.iter().all(|b| alphanumeric(b) || *b == b'-')
    }
}

impl FromStr for ClusterId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if Self::is_valid(text) {
            Ok(Self(Arc::from(text)))
        } else {
            // A hostile name may be megabytes long: the message quotes only its beginning.
            Err(Error::Cluster(text.chars().take(64).collect()))
        }
    }
}

/// The client's name for its request, unique per requester: what makes a retry harmless.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// Longer than any UUID or ULID with a prefix, short enough to keep a million of them.
    pub const LENGTH_MAX: usize = 128;

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn show<R>(&self, show: impl FnOnce(&str) -> R) -> R {
        show(self.as_str())
    }
}

impl FromStr for Key {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let length_ok = (1..=Self::LENGTH_MAX).contains(&text.len());
        if length_ok && text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(Arc::from(text)))
        } else {
            Err(Error::Key)
        }
    }
}

/// The name of one reservation: 100 bits of a hash, so it is copied and compared like a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservationId(u128);

impl ReservationId {
    /// Before every other: where a range over all begins.
    pub const FIRST: Self = Self(0);
    /// After every other.
    pub const LAST: Self = Self(u128::MAX);
    const PREFIX: &'static str = "rsv-";
    const ALPHABET: &'static [u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    const DIGITS: u32 = 20;
    const BITS_PER_DIGIT: u32 = 5;

    /// The id of the reservation that `requester` asks for under `key`, planned at `revision`.
    pub fn derive(requester: &ClusterId, key: &Key, revision: Revision) -> Self {
        let mut hash = Sha256::new();
        // Neither name can hold a NUL, so the three parts cannot be confused.
        hash.update(requester.as_str());
        hash.update([0]);
        hash.update(key.as_str());
        hash.update([0]);
        hash.update(revision.0.to_be_bytes());
        let value = hash
            .finalize()
            .iter()
            .take(13)
            .fold(0, |sum: u128, byte| (sum << 8) | u128::from(*byte));
        Self(value >> 4)
    }

    /// Shows the id as text.
    fn show<R>(self, show: impl FnOnce(&str) -> R) -> R {
        let mut text = *b"rsv-????????????????????";
        let (mut rest, digits) = (self.0, Self::DIGITS as usize);
        for digit in text.iter_mut().rev().take(digits) {
            let letter = usize::try_from(rest & 31).ok().and_then(|d| Self::ALPHABET.get(d));
            *digit = letter.copied().unwrap_or(*digit);
            rest >>= Self::BITS_PER_DIGIT;
        }
        show(core::str::from_utf8(&text).unwrap_or_default())
    }
}

impl FromStr for ReservationId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = || Error::Reservation(text.chars().take(64).collect());
        let digits = text.strip_prefix(Self::PREFIX).ok_or_else(refuse)?;
        if digits.len() != Self::DIGITS as usize {
            return Err(refuse());
        }
        digits
            .bytes()
            .try_fold(0u128, |sum, byte| {
                let digit = match byte {
                    b'a'..=b'z' => byte.wrapping_sub(b'a'),
                    b'2'..=b'7' => byte.wrapping_sub(b'2').wrapping_add(26),
                    _ => return Err(refuse()),
                };
                Ok((sum << Self::BITS_PER_DIGIT) | u128::from(digit))
            })
            .map(Self)
    }
}

/// A position in the log. Revision 0 is the empty log; the first record is revision 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl Revision {
    /// The position after this one. A log of 2^64 records is beyond reach, so this saturates.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Numbers the instructions of one reservation; a lower one never overrides a higher one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u32);

impl Generation {
    /// The generation of the next instruction.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Text in, text out: what conversions and serde need of a name.
macro_rules! text_name {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = Error;
            fn try_from(text: String) -> Result<Self, Error> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> Self {
                alloc::string::ToString::to_string(&name)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.show(|text| f.pad(text))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.show(|text| serializer.serialize_str(text))
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Parsed::new())
            }
        }
    };
}

text_name!(ClusterId);
text_name!(Key);
text_name!(ReservationId);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn id(requester: &str, key: &str, revision: u64) -> ReservationId {
        let (requester, key) = (requester.parse().unwrap(), key.parse().unwrap());
        ReservationId::derive(&requester, &key, Revision(revision))
    }

    #[test]
    fn a_cluster_id_is_a_dns_label_of_at_most_50_characters() {
        for good in ["a", "c1", "edge-7", &"x".repeat(50)] {
            assert!(good.parse::<ClusterId>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a b", "../x", &"x".repeat(51)] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_is_visible_ascii_of_bounded_length() {
        assert!("k".repeat(128).parse::<Key>().is_ok());
        for bad in ["", "a b", "a\n", "ü", &"k".repeat(129)] {
            assert!(bad.parse::<Key>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_reservation_id_prints_and_parses_back() {
        let id = id("c1", "k", 7);
        let text = id.to_string();
        assert_eq!(text.len(), 24);
        assert_eq!(text.parse::<ReservationId>().unwrap(), id);
        assert!("rsv-aaaa".parse::<ReservationId>().is_err());
        assert!(text.to_uppercase().parse::<ReservationId>().is_err());
    }

    #[test]
    fn requester_key_and_revision_each_change_the_id() {
        let base = id("c1", "k", 7);
        assert_eq!(base, id("c1", "k", 7));
        assert_ne!(base, id("c2", "k", 7));
        assert_ne!(base, id("c1", "l", 7));
        assert_ne!(base, id("c1", "k", 8));
    }
}
