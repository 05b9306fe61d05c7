//! Amounts as Kubernetes writes them, by resource.
//!
//! `gpu` and `storage` are the Go system's names for `nvidia.com/gpu` and `ephemeral-storage`;
//! other resources go by their own name. A member with an unknown name is therefore a resource:
//! asked for, it is found or refused, never ignored.

use std::collections::BTreeMap;

use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize};
use sublet_core::quantity::{Quantity, Round};
use sublet_core::resources::{Kind, Limits, Resources};

use crate::decode::{Fill, Object, Place, Trail, add_named, fill_object};
use crate::problem::Invalid;

/// Amounts with cpu and memory always there, as the Go system has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Quantities {
    /// Cores, for example `500m` or `2`.
    pub cpu: String,
    /// Bytes, for example `256Mi`.
    pub memory: String,
    /// Whole devices (`nvidia.com/gpu`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Bytes (`ephemeral-storage`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Other resources, by their Kubernetes name.
    #[serde(flatten)]
    pub others: BTreeMap<String, String>,
}

impl Object for Quantities {
    const NAMES: &'static [&'static str] = &["cpu", "memory", "gpu", "storage"];

    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        name: &'static str,
        members: &mut A,
        trail: &Trail<'_>,
    ) -> Result<(), A::Error> {
        let trail = &trail.member(name);
        match name {
            "cpu" => members.next_value_seed(Place(&mut self.cpu, trail)),
            "memory" => members.next_value_seed(Place(&mut self.memory, trail)),
            "gpu" => members.next_value_seed(Place(&mut self.gpu, trail)),
            _ => members.next_value_seed(Place(&mut self.storage, trail)),
        }
    }

    fn other<'de, A: MapAccess<'de>>(
        &mut self,
        name: String,
        members: &mut A,
        trail: &Trail<'_>,
    ) -> Result<(), A::Error> {
        let amount = members.next_value::<Option<String>>()?;
        amount.map_or(Ok(()), |amount| add_named(&mut self.others, name, amount, trail))
    }
}

impl Fill for Quantities {
    fn fill<'de, D: Deserializer<'de>>(
        &mut self,
        reader: D,
        trail: &Trail<'_>,
    ) -> Result<(), D::Error> {
        fill_object(self, reader, trail)
    }
}

impl From<&Resources> for Quantities {
    fn from(resources: &Resources) -> Self {
        let text = |kind: Kind, amount| kind.quantity(amount).to_string();
        let named = |kind: Kind, amount| (amount > 0).then(|| text(kind, amount));
        Self {
            cpu: text(Kind::Cpu, resources.cpu),
            memory: text(Kind::Memory, resources.memory),
            gpu: named(Kind::Gpu, resources.gpu),
            storage: named(Kind::Storage, resources.storage),
            others: resources
                .extended_iter()
                .map(|(name, amount)| {
                    (name.as_str().to_owned(), text(Kind::Extended(name.clone()), amount))
                })
                .collect(),
        }
    }
}

impl Quantities {
    /// Nothing was said at all.
    pub(crate) fn is_silent(&self) -> bool {
        *self == Self::default()
    }

    /// What is named, by name as the wire has it; cpu and memory first, also when they are empty.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        // An empty text is what Go has where nothing was sent.
        let gpu = self.gpu.as_deref().filter(|text| !text.is_empty());
        let storage = self.storage.as_deref().filter(|text| !text.is_empty());
        [("cpu", self.cpu.as_str()), ("memory", self.memory.as_str())]
            .into_iter()
            .chain(gpu.map(|text| ("gpu", text)))
            .chain(storage.map(|text| ("storage", text)))
            .chain(self.others.iter().map(|(name, text)| (name.as_str(), text.as_str())))
    }

    /// The amounts in our integers; an error names the member under `field`.
    pub fn resources(&self, field: &str, round: Round) -> Result<Resources, Invalid> {
        self.iter().try_fold(Resources::default(), |sum, (name, text)| {
            let at = || format!("{field}.{name}");
            let kind: Kind = name.parse().map_err(|error| Invalid::field(at(), error))?;
            let quantity = parse(&at, text)?;
            let amount =
                kind.amount(&quantity, round).map_err(|error| Invalid::field(at(), error))?;
            add(sum, kind, amount, &at)
        })
    }

    /// That everything named is a quantity, of either sign.
    pub(crate) fn check_syntax(&self, field: &str) -> Result<(), Invalid> {
        self.iter()
            .try_for_each(|(name, text)| parse(&|| format!("{field}.{name}"), text).map(drop))
    }
}

/// The sum with so much of `kind`, which must not be there already under another of its names.
pub(crate) fn add(
    sum: Resources,
    kind: Kind,
    amount: u64,
    at: &dyn Fn() -> String,
) -> Result<Resources, Invalid> {
    if sum.get(&kind) > 0 {
        let other_name = format!("the amount of {kind} is given twice, under two names");
        return Err(Invalid::field(at(), other_name));
    }
    sum.with(kind, amount).map_err(|error| Invalid::field(at(), error))
}

fn parse(at: &dyn Fn() -> String, text: &str) -> Result<Quantity, Invalid> {
    text.parse().map_err(|error| Invalid::field(at(), error))
}

/// Amounts of some resources, none of which has to be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Amounts(pub BTreeMap<String, String>);

impl Fill for Amounts {
    fn fill<'de, D: Deserializer<'de>>(
        &mut self,
        reader: D,
        trail: &Trail<'_>,
    ) -> Result<(), D::Error> {
        self.0.fill(reader, trail)
    }
}

impl From<&Resources> for Amounts {
    fn from(resources: &Resources) -> Self {
        Self(resources.iter().map(|(kind, amount)| written(&kind, amount)).collect())
    }
}

impl From<&Limits> for Amounts {
    fn from(limits: &Limits) -> Self {
        Self(limits.0.iter().map(|(kind, amount)| written(kind, *amount)).collect())
    }
}

fn written(kind: &Kind, amount: u64) -> (String, String) {
    (kind.as_str().to_owned(), kind.quantity(amount).to_string())
}

impl Amounts {
    /// As upper bounds; an error names the member under `field`.
    pub(crate) fn limits(&self, field: &str) -> Result<Limits, Invalid> {
        // A bound on what cannot be advertised bounds nothing, and is kept in the log for ever.
        if self.0.len() > Resources::EXTENDED_MAX {
            let most = format!("more than {} resources: leave some out", Resources::EXTENDED_MAX);
            return Err(Invalid::field(field.to_owned(), most));
        }
        let limits = self.0.iter().map(|(name, text)| {
            let at = || format!("{field}.{name}");
            let kind: Kind = name.parse().map_err(|error| Invalid::field(at(), error))?;
            let quantity = parse(&at, text)?;
            let amount = kind.amount(&quantity, Round::Down);
            Ok((kind, amount.map_err(|error| Invalid::field(at(), error))?))
        });
        limits.collect::<Result<_, _>>().map(Limits)
    }
}
