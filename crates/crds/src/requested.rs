//! The amounts of a request and of both instructions: texts beside each other, as the Go system has
//! them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sublet_core::quantity::Round;
use sublet_core::resources::{Kind, Resources};

use crate::amounts::{extended, sum};
use crate::{Cause, Invalid, schema};

/// How much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedAmounts {
    /// Cores, for example 500m or 2.
    #[schemars(schema_with = "schema::positive_cores")]
    #[serde(rename = "requestedCPU")]
    pub cpu: String,
    /// Bytes, for example 256Mi.
    #[schemars(schema_with = "schema::positive_bytes")]
    #[serde(rename = "requestedMemory")]
    pub memory: String,
    /// Whole devices (nvidia.com/gpu).
    #[schemars(schema_with = "schema::count")]
    #[serde(rename = "requestedGPU", default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Bytes of ephemeral storage.
    #[schemars(schema_with = "schema::amount")]
    #[serde(rename = "requestedStorage", default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Other resources, by their Kubernetes name, such as example.com/fpga.
    #[schemars(schema_with = "schema::counts")]
    #[serde(rename = "requestedExtended", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, String>,
}

impl From<&Resources> for RequestedAmounts {
    fn from(resources: &Resources) -> Self {
        let text = |kind: &Kind, amount: u64| kind.quantity(amount).to_string();
        let some = |kind: &Kind, amount: u64| (amount > 0).then(|| text(kind, amount));
        Self {
            cpu: text(&Kind::Cpu, resources.cpu),
            memory: text(&Kind::Memory, resources.memory),
            gpu: some(&Kind::Gpu, resources.gpu),
            storage: some(&Kind::Storage, resources.storage),
            extended: extended(resources, text),
        }
    }
}

impl RequestedAmounts {
    /// The amounts in our integers, rounded up; some cpu and some memory at least.
    pub fn resources(&self) -> Result<Resources, Invalid> {
        // Go has an empty text where nothing was set.
        let given = |text: &&str| !text.is_empty();
        let [gpu, storage] = [&self.gpu, &self.storage].map(|text| text.as_deref().filter(given));
        let named = [
            ("cpu", "spec.requestedCPU", Some(self.cpu.as_str())),
            ("memory", "spec.requestedMemory", Some(self.memory.as_str())),
            ("gpu", "spec.requestedGPU", gpu),
            ("storage", "spec.requestedStorage", storage),
        ];
        let named =
            named.into_iter().filter_map(|(name, at, text)| Some((name, at.to_owned(), text?)));
        let others = self.extended.iter().map(|(name, text)| {
            (name.as_str(), format!("spec.requestedExtended.{name}"), text.as_str())
        });
        let sum = sum(named.chain(others), Round::Up)?;
        match (sum.cpu, sum.memory) {
            (0, _) => Err(Invalid::new("spec.requestedCPU", Cause::Nothing)),
            (_, 0) => Err(Invalid::new("spec.requestedMemory", Cause::Nothing)),
            _ => Ok(sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(cpu: &str, memory: &str) -> RequestedAmounts {
        let (cpu, memory) = (cpu.to_owned(), memory.to_owned());
        RequestedAmounts { cpu, memory, ..RequestedAmounts::default() }
    }

    #[test]
    fn what_is_asked_rounds_up() {
        assert_eq!(amounts("0.0001", "1").resources(), Ok(Resources::new(1, 1)));
    }

    #[test]
    fn every_field_counts_and_comes_back() {
        let mut all = amounts("1", "1Gi");
        all.gpu = Some("2".to_owned());
        all.storage = Some("10Gi".to_owned());
        all.extended.insert("example.com/fpga".to_owned(), "1".to_owned());
        let resources = all.resources().unwrap();
        assert_eq!(resources.iter().count(), 5);
        assert_eq!(RequestedAmounts::from(&resources), all);
    }

    #[test]
    fn an_empty_text_is_nothing_where_nothing_is_allowed() {
        let mut some = amounts("1", "1");
        some.gpu = Some(String::new());
        assert_eq!(some.resources(), Ok(Resources::new(1000, 1)));
    }

    #[test]
    fn nothing_and_nonsense_are_refused_by_field() {
        for (cpu, memory, field) in [
            ("0", "1", "spec.requestedCPU"),
            ("1", "0", "spec.requestedMemory"),
            ("", "1", "spec.requestedCPU"),
            ("1", "-1Gi", "spec.requestedMemory"),
            ("one", "1", "spec.requestedCPU"),
        ] {
            assert_eq!(amounts(cpu, memory).resources().unwrap_err().field, field);
        }
    }
}
