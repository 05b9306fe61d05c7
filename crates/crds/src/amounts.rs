//! Amounts by resource, as the Go system has them in measured resources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sublet_core::quantity::{self, Round};
use sublet_core::resources::{Kind, Resources};

use crate::{Cause, Invalid, schema};

/// An amount as it was written: a number or a text in the object, a text here.
pub use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Amounts by resource; cpu and memory are always there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceQuantities {
    /// Cores, for example 500m or 2.
    #[schemars(schema_with = "schema::quantity")]
    pub cpu: Quantity,
    /// Bytes, for example 256Mi.
    #[schemars(schema_with = "schema::quantity")]
    pub memory: Quantity,
    /// Whole devices (nvidia.com/gpu).
    #[schemars(schema_with = "schema::quantity")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Quantity>,
    /// Bytes of ephemeral storage.
    #[schemars(schema_with = "schema::quantity")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Quantity>,
    /// Other resources, by their Kubernetes name.
    #[schemars(schema_with = "schema::quantities")]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, Quantity>,
}

impl From<&Resources> for ResourceQuantities {
    fn from(resources: &Resources) -> Self {
        let some = |kind: Kind, amount: u64| (amount > 0).then(|| written(&kind, amount));
        Self {
            cpu: written(&Kind::Cpu, resources.cpu),
            memory: written(&Kind::Memory, resources.memory),
            gpu: some(Kind::Gpu, resources.gpu),
            storage: some(Kind::Storage, resources.storage),
            extended: extended(resources, written),
        }
    }
}

impl ResourceQuantities {
    /// The amounts in our integers; what is wrong is named under `field`.
    pub fn resources(&self, field: &str, round: Round) -> Result<Resources, Invalid> {
        let named = [("cpu", Some(&self.cpu)), ("memory", Some(&self.memory))]
            .into_iter()
            .chain([("gpu", self.gpu.as_ref()), ("storage", self.storage.as_ref())])
            .filter_map(|(name, amount)| Some((name, format!("{field}.{name}"), amount?)));
        let others = self
            .extended
            .iter()
            .map(|(name, amount)| (name.as_str(), format!("{field}.extended.{name}"), amount));
        sum(named.chain(others).map(|(name, at, amount)| (name, at, amount.0.as_str())), round)
    }
}

fn written(kind: &Kind, amount: u64) -> Quantity {
    Quantity(kind.quantity(amount).to_string())
}

/// The extended ones of some resources, written.
pub(crate) fn extended<T>(
    resources: &Resources,
    written: impl Fn(&Kind, u64) -> T,
) -> BTreeMap<String, T> {
    let named = |(name, amount): (&sublet_core::resources::Name, u64)| {
        (name.as_str().to_owned(), written(&Kind::Extended(name.clone()), amount))
    };
    resources.extended_iter().map(named).collect()
}

/// The vector of some named amounts: the name of the resource, where it stands, and its text.
pub(crate) fn sum<'a>(
    mut amounts: impl Iterator<Item = (&'a str, String, &'a str)>,
    round: Round,
) -> Result<Resources, Invalid> {
    amounts.try_fold(Resources::default(), |sum, (name, at, text)| {
        let kind: Kind = name
            .parse()
            .map_err(|error: sublet_core::resources::Error| Invalid::new(at.clone(), error))?;
        let amount = amount(&kind, text, round).map_err(|error| Invalid::new(at.clone(), error))?;
        if sum.get(&kind) > 0 {
            return Err(Invalid::new(at, Cause::Twice));
        }
        sum.with(kind, amount).map_err(|error| Invalid::new(at, error))
    })
}

fn amount(kind: &Kind, text: &str, round: Round) -> Result<u64, quantity::Error> {
    kind.amount(&text.parse()?, round)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Resources, Invalid> {
        let amounts: ResourceQuantities = serde_json::from_str(text).unwrap();
        amounts.resources("spec.resources.capacity", Round::Down)
    }

    #[test]
    fn numbers_and_texts_are_amounts() {
        let both = read(r#"{"cpu":2,"memory":"1Gi","gpu":"1","extended":{"example.com/fpga":3}}"#);
        let fpga = "example.com/fpga".parse().unwrap();
        let expected = Resources::new(2000, 1 << 30).with(Kind::Gpu, 1).unwrap();
        assert_eq!(both, Ok(expected.with(fpga, 3).unwrap()));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let resources = Resources::new(2500, 3 << 30).with(Kind::Storage, 5 << 20).unwrap();
        let resources = resources.with("example.com/fpga".parse().unwrap(), 2).unwrap();
        let text = serde_json::to_string(&ResourceQuantities::from(&resources)).unwrap();
        assert_eq!(
            text,
            r#"{"cpu":"2500m","memory":"3Gi","storage":"5Mi","extended":{"example.com/fpga":"2"}}"#
        );
        assert_eq!(read(&text), Ok(resources));
    }

    #[test]
    fn an_error_says_where() {
        let said = |text: &str| read(text).unwrap_err().to_string();
        let negative = said(r#"{"cpu":"-1","memory":"0"}"#);
        assert!(negative.starts_with("spec.resources.capacity.cpu: "), "{negative}");
        let twice = said(r#"{"cpu":"1","memory":"1","gpu":"1","extended":{"nvidia.com/gpu":"1"}}"#);
        assert!(twice.starts_with("spec.resources.capacity.extended.nvidia.com/gpu: "), "{twice}");
        let name = said(r#"{"cpu":"1","memory":"1","extended":{"not a name":"1"}}"#);
        assert!(name.contains("not a resource name"), "{name}");
    }
}
