//! How clusters can be joined, and sets of that. Every request and every grant has one, so it is copied
//! and compared like a number.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How two clusters can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Liqo through its custom resources.
    Liqo,
    /// The Go system's way, with kubeconfigs.
    Liqoctl,
    /// Nothing is joined; the instruction is the result.
    None,
}

impl Backend {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Liqo, Self::Liqoctl, Self::None];

    fn bit(self) -> u8 {
        match self {
            Self::Liqo => 1,
            Self::Liqoctl => 2,
            Self::None => 4,
        }
    }
}

/// Some of them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Backends(u8);

impl Backends {
    /// One more.
    pub fn insert(&mut self, backend: Backend) {
        self.0 |= backend.bit();
    }

    /// Is it one of them?
    pub fn contains(self, backend: Backend) -> bool {
        self.0 & backend.bit() != 0
    }

    /// Is there none?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = Backend> {
        Backend::ALL.into_iter().filter(move |backend| self.contains(*backend))
    }

    /// Can two be joined? Who names no way is not refused for it.
    pub fn meet(self, other: Self) -> bool {
        self.is_empty() || other.is_empty() || self.0 & other.0 != 0
    }
}

impl fmt::Debug for Backends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<Backend> for Backends {
    fn from_iter<I: IntoIterator<Item = Backend>>(all: I) -> Self {
        Self(all.into_iter().fold(0, |bits, backend| bits | backend.bit()))
    }
}

impl<const N: usize> From<[Backend; N]> for Backends {
    fn from(all: [Backend; N]) -> Self {
        all.into_iter().collect()
    }
}

impl Serialize for Backends {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Backends {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Backend>::deserialize(deserializer).map(|all| all.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_set_is_written_as_a_list_in_order_and_read_back() {
        for bits in 0..8 {
            let set = Backends(bits);
            let text = serde_json::to_string(&set).unwrap();
            assert_eq!(serde_json::from_str::<Backends>(&text).unwrap(), set);
            assert_eq!(set.iter().collect::<Backends>(), set);
        }
        let all: Backends = [Backend::None, Backend::Liqo, Backend::Liqo].into();
        assert_eq!(serde_json::to_value(all).unwrap().to_string(), r#"["liqo","none"]"#);
        assert!(serde_json::from_str::<Backends>(r#"["smoke"]"#).is_err());
    }

    #[test]
    fn two_can_be_joined_where_they_share_a_way_or_one_names_none() {
        let [liqo, both, other] = [
            Backends::from([Backend::Liqo]),
            Backends::from([Backend::Liqo, Backend::None]),
            Backends::from([Backend::Liqoctl]),
        ];
        assert!(liqo.meet(both) && both.meet(liqo) && other.meet(Backends::default()));
        assert!(!liqo.meet(other) && !other.meet(both));
    }
}
