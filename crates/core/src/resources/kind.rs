//! The dimensions of a vector of resources: their names, units and text.

use alloc::sync::Arc;
use core::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Error;
use crate::quantity::{self, Quantity, Round};
use crate::text::Parsed;

/// The name of an extended resource, as Kubernetes spells it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    const LENGTH_MAX: usize = 128;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = text.as_bytes();
        let inner = |b: &u8| b.is_ascii_alphanumeric() || b"-_./".contains(b);
        let valid = bytes.len() <= Self::LENGTH_MAX
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(inner)
            && text.split('/').count() <= 2
            && Kind::well_known(text).is_none();
        if valid {
            Ok(Self(Arc::from(text)))
        } else {
            Err(Error::Name(text.chars().take(64).collect()))
        }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One dimension of the vector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Millicores.
    Cpu,
    /// Bytes.
    Memory,
    /// Whole devices (`nvidia.com/gpu` in Kubernetes).
    Gpu,
    /// Bytes (`ephemeral-storage` in Kubernetes).
    Storage,
    /// Whole pieces of an extended resource.
    Extended(Name),
}

impl Kind {
    fn well_known(text: &str) -> Option<Self> {
        match text {
            "cpu" => Some(Self::Cpu),
            "memory" => Some(Self::Memory),
            "gpu" | "nvidia.com/gpu" => Some(Self::Gpu),
            "storage" | "ephemeral-storage" => Some(Self::Storage),
            _ => None,
        }
    }

    /// A Kubernetes amount in our integers: millicores of cpu, whole units of everything else.
    pub fn amount(&self, quantity: &Quantity, round: Round) -> Result<u64, quantity::Error> {
        match self {
            Self::Cpu => quantity.to_milli(round),
            _ => quantity.to_units(round),
        }
    }

    /// Our integers as Kubernetes writes them.
    pub fn quantity(&self, amount: u64) -> Quantity {
        match self {
            Self::Cpu => Quantity::from_milli(amount),
            Self::Memory | Self::Storage => Quantity::from_bytes(amount),
            Self::Extended(name) if name.as_str().starts_with("hugepages-") => {
                Quantity::from_bytes(amount)
            }
            Self::Gpu | Self::Extended(_) => Quantity::from_count(amount),
        }
    }

    /// The short name, as on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Gpu => "gpu",
            Self::Storage => "storage",
            Self::Extended(name) => name.as_str(),
        }
    }
}

impl FromStr for Kind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::well_known(text).map_or_else(|| text.parse().map(Self::Extended), Ok)
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Parsed::new())
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
