//! Amounts of cpu, memory, gpu, storage and extended resources, as one vector of integers.
//!
//! One `fits_in` and one `checked_sub` serve the filter, the ledger and the checks, because a
//! scheduler and a committer that disagree on what fits book the same capacity twice. A resource
//! that is not named is zero: a request for something nobody advertised therefore fits nowhere.
//!
//! Memory and storage are bytes, cpu is millicores, everything else is whole pieces.

mod kind;
mod limits;

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{cmp::Ordering, fmt, iter};

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::bugs::{Bug, planted};

pub use kind::{Kind, Name};
pub use limits::Limits;

/// Why amounts were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The sum cannot be held in 64 bits.
    #[error("the sum of {0} does not fit in 64 bits: ask for less")]
    Overflow(Kind),
    /// More was to be taken than is there.
    #[error("{0} would become negative: {1} too little")]
    Shortage(Kind, u64),
    /// Not the name of a Kubernetes extended resource.
    #[error("{0:?} is not a resource name: use a Kubernetes name such as 'example.com/fpga'")]
    Name(String),
    /// More kinds of extended resources than we keep.
    #[error("more than {max} extended resources: leave some out", max = Resources::EXTENDED_MAX)]
    TooMany,
}

/// A vector of amounts; what is not named is zero, and zero is not named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    /// Millicores.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
    /// Whole devices.
    pub gpu: u64,
    /// Bytes.
    pub storage: u64,
    /// Sorted by name, never zero.
    extended: Box<[(Name, u64)]>,
}

impl Resources {
    /// What a cluster may name beyond the four that everybody has.
    pub const EXTENDED_MAX: usize = 32;

    /// The two that every request has.
    pub fn new(cpu: u64, memory: u64) -> Self {
        Self { cpu, memory, ..Self::default() }
    }

    /// The same with `amount` of `kind`.
    pub fn with(mut self, kind: Kind, amount: u64) -> Result<Self, Error> {
        match kind {
            Kind::Cpu => self.cpu = amount,
            Kind::Memory => self.memory = amount,
            Kind::Gpu => self.gpu = amount,
            Kind::Storage => self.storage = amount,
            Kind::Extended(name) => self.set_extended(name, amount)?,
        }
        Ok(self)
    }

    fn set_extended(&mut self, name: Name, amount: u64) -> Result<(), Error> {
        let mut list: Vec<_> = self.extended.iter().filter(|(n, _)| *n != name).cloned().collect();
        if amount > 0 {
            list.push((name, amount));
        }
        if list.len() > Self::EXTENDED_MAX {
            return Err(Error::TooMany);
        }
        list.sort();
        self.extended = list.into_boxed_slice();
        Ok(())
    }

    /// The amount of `kind`.
    pub fn get(&self, kind: &Kind) -> u64 {
        match kind {
            Kind::Cpu => self.cpu,
            Kind::Memory => self.memory,
            Kind::Gpu => self.gpu,
            Kind::Storage => self.storage,
            Kind::Extended(name) => self.extended(name),
        }
    }

    fn extended(&self, name: &Name) -> u64 {
        let found = self.extended.binary_search_by(|(n, _)| n.cmp(name));
        found.ok().and_then(|at| self.extended.get(at)).map_or(0, |(_, amount)| *amount)
    }

    /// The extended resources, by name; none of them is zero.
    pub fn extended_iter(&self) -> impl Iterator<Item = (&Name, u64)> {
        self.extended.iter().map(|(name, amount)| (name, *amount))
    }

    /// The named amounts that are not zero, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        [
            (Kind::Cpu, self.cpu),
            (Kind::Memory, self.memory),
            (Kind::Gpu, self.gpu),
            (Kind::Storage, self.storage),
        ]
        .into_iter()
        .filter(|(_, amount)| *amount > 0)
        .chain(self.extended.iter().map(|(name, amount)| (Kind::Extended(name.clone()), *amount)))
    }

    /// Nothing of anything.
    pub fn is_zero(&self) -> bool {
        [self.cpu, self.memory, self.gpu, self.storage] == [0; 4] && self.extended.is_empty()
    }

    /// Are there no more extended resources than can be written and read back?
    pub fn is_bounded(&self) -> bool {
        self.extended.len() <= Self::EXTENDED_MAX
    }

    /// The one question of capacity: is there room for all of this?
    pub fn fits_in(&self, room: &Self) -> bool {
        self.cpu <= room.cpu
            && self.memory <= room.memory
            && self.gpu <= room.gpu
            && self.storage <= room.storage
            && self.extended.iter().all(|(name, amount)| *amount <= room.extended(name))
    }

    /// The sum, refused by name where 64 bits do not hold it.
    pub fn checked_add(&self, other: &Self) -> Result<Self, Error> {
        self.combine(other, |kind, a, b| {
            let wrapped = planted(Bug::Wraps).then(|| a.wrapping_add(b));
            a.checked_add(b).or(wrapped).ok_or_else(|| Error::Overflow(kind()))
        })
    }

    /// The difference, refused by name where it would be negative.
    pub fn checked_sub(&self, other: &Self) -> Result<Self, Error> {
        self.combine(other, |kind, a, b| {
            a.checked_sub(b).ok_or_else(|| Error::Shortage(kind(), b.saturating_sub(a)))
        })
    }

    /// What remains of each amount after `other` is taken, not below zero.
    #[must_use]
    pub fn minus_floor(&self, other: &Self) -> Self {
        self.combine_total(other, u64::saturating_sub)
    }

    /// The larger of each amount.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.combine_total(other, u64::max)
    }

    /// The smaller of each amount.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        self.combine_total(other, u64::min)
    }

    fn combine_total(&self, other: &Self, op: impl Fn(u64, u64) -> u64) -> Self {
        let combined = self.combine(other, |_, a, b| Ok::<_, core::convert::Infallible>(op(a, b)));
        match combined {
            Ok(resources) => resources,
            Err(never) => match never {},
        }
    }

    fn combine<E>(
        &self,
        other: &Self,
        op: impl Fn(&dyn Fn() -> Kind, u64, u64) -> Result<u64, E>,
    ) -> Result<Self, E> {
        let extended = if self.extended.is_empty() && other.extended.is_empty() {
            Box::default()
        } else {
            let merged = merge(&self.extended, &other.extended).map(|(name, a, b)| {
                op(&|| Kind::Extended(name.clone()), a, b).map(|amount| (name.clone(), amount))
            });
            let kept: Vec<_> =
                merged.filter(|r| !matches!(r, Ok((_, 0)))).collect::<Result<_, E>>()?;
            kept.into_boxed_slice()
        };
        Ok(Self {
            cpu: op(&|| Kind::Cpu, self.cpu, other.cpu)?,
            memory: op(&|| Kind::Memory, self.memory, other.memory)?,
            gpu: op(&|| Kind::Gpu, self.gpu, other.gpu)?,
            storage: op(&|| Kind::Storage, self.storage, other.storage)?,
            extended,
        })
    }
}

/// For people: `cpu 500m, memory 1Gi`.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("nothing");
        }
        for (at, (kind, amount)) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{kind} {}", kind.quantity(amount))?;
        }
        Ok(())
    }
}

/// Walks two sorted lists as one; what a list does not name is zero in it.
fn merge<'a>(
    left: &'a [(Name, u64)],
    right: &'a [(Name, u64)],
) -> impl Iterator<Item = (&'a Name, u64, u64)> {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (Some((l, _)), Some((r, _))) => l.cmp(r),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let a = if order == Ordering::Greater { None } else { left.next() };
        let b = if order == Ordering::Less { None } else { right.next() };
        let name = a.or(b).map(|(name, _)| name)?;
        Some((name, a.map_or(0, |(_, n)| *n), b.map_or(0, |(_, n)| *n)))
    })
}

/// Amounts are written as integers by short name, zeros left out.
impl Serialize for Resources {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Resources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Amounts)
    }
}

/// Reads amounts by name.
struct Amounts;

impl<'de> Visitor<'de> for Amounts {
    type Value = Resources;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of amounts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut amounts: A) -> Result<Resources, A::Error> {
        let mut resources = Resources::default();
        while let Some((kind, amount)) = amounts.next_entry()? {
            resources = resources.with(kind, amount).map_err(de::Error::custom)?;
        }
        Ok(resources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Round;
    use alloc::string::ToString;

    fn fpga(amount: u64) -> Resources {
        Resources::new(1, 1).with("example.com/fpga".parse().unwrap(), amount).unwrap()
    }

    #[test]
    fn a_resource_nobody_advertised_fits_nowhere() {
        let room = Resources::new(1000, 1 << 40);
        assert!(Resources::new(1000, 1 << 40).fits_in(&room));
        assert!(!fpga(1).fits_in(&room));
        let gpu = Resources { gpu: 1, ..Resources::new(1, 1) };
        assert!(!gpu.fits_in(&room));
    }

    #[test]
    fn sums_and_differences_are_checked_by_name() {
        let sum = fpga(2).checked_add(&fpga(3)).unwrap();
        assert_eq!(sum.get(&"example.com/fpga".parse().unwrap()), 5);
        let full = Resources::new(u64::MAX, 0);
        assert_eq!(full.checked_add(&Resources::new(1, 0)), Err(Error::Overflow(Kind::Cpu)));
        let kind: Kind = "example.com/fpga".parse().unwrap();
        assert_eq!(fpga(1).checked_sub(&fpga(3)), Err(Error::Shortage(kind, 2)));
    }

    #[test]
    fn what_becomes_zero_is_no_longer_named() {
        let rest = fpga(2).checked_sub(&fpga(2)).unwrap();
        assert_eq!(rest, Resources::default());
        assert!(rest.is_zero());
    }

    #[test]
    fn kubernetes_names_of_gpu_and_storage_are_the_short_ones() {
        assert_eq!("nvidia.com/gpu".parse(), Ok(Kind::Gpu));
        assert_eq!("ephemeral-storage".parse(), Ok(Kind::Storage));
        assert!("".parse::<Kind>().is_err());
        assert!("a/b/c".parse::<Kind>().is_err());
    }

    #[test]
    fn what_is_offered_rounds_down_and_what_is_asked_rounds_up() {
        let quantity = |text: &str| text.parse::<crate::quantity::Quantity>().unwrap();
        let fine = quantity("1500u");
        assert_eq!(Kind::Cpu.amount(&fine, Round::Down).unwrap(), 1);
        assert_eq!(Kind::Cpu.amount(&fine, Round::Up).unwrap(), 2);
        assert_eq!(Kind::Memory.amount(&quantity("1.5"), Round::Up).unwrap(), 2);
        assert!(Kind::Memory.amount(&quantity("-1"), Round::Up).is_err());
    }

    #[test]
    fn amounts_print_as_kubernetes_prints_them() {
        let hugepages = "hugepages-2Mi".parse().unwrap();
        let some = Resources { gpu: 2, ..Resources::new(1500, 3 << 30) };
        let some = some.with(hugepages, 4 << 20).unwrap();
        assert_eq!(some.to_string(), "cpu 1500m, memory 3Gi, gpu 2, hugepages-2Mi 4Mi");
        assert_eq!(Resources::default().to_string(), "nothing");
    }

    #[test]
    fn amounts_survive_json() {
        let before = Resources { gpu: 2, ..fpga(3) };
        let text = serde_json::to_string(&before).unwrap();
        assert_eq!(text, r#"{"cpu":1,"memory":1,"gpu":2,"example.com/fpga":3}"#);
        assert_eq!(serde_json::from_str::<Resources>(&text).unwrap(), before);
    }
}
