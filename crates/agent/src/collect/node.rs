//! One node: what it has, and whether it counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use sublet_core::quantity::Round;
use sublet_core::resources::Resources;
use sublet_crds::Invalid;

use super::amounts::Reader;
use super::seen::{Node, Taint};

/// Labels of nodes that stand for another cluster, as Liqo and other virtual kubelets write them.
const VIRTUAL: [(&str, &str); 2] = [("liqo.io/type", "virtual-node"), ("type", "virtual-kubelet")];

/// Which nodes count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRules {
    /// Which taints do not matter.
    pub tolerated: Tolerated,
}

/// Which taints do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tolerated {
    /// All do: a tainted node does not count.
    #[default]
    None,
    /// None does.
    All,
    /// These do not, by key.
    Keys(BTreeSet<String>),
}

impl FromStr for Tolerated {
    type Err = std::convert::Infallible;

    /// `none`, `all`, or the keys of taints with commas between them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let keys = || text.split(',').map(str::trim).filter(|key| !key.is_empty());
        Ok(match text.trim() {
            "" | "none" => Self::None,
            "all" => Self::All,
            _ => Self::Keys(keys().map(str::to_owned).collect()),
        })
    }
}

impl fmt::Display for Tolerated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::All => f.write_str("all"),
            Self::Keys(keys) => f.write_str(&keys.iter().cloned().collect::<Vec<_>>().join(",")),
        }
    }
}

/// Whether a node counts, or why not. The first reason that applies, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It stands for another cluster.
    Virtual,
    /// It is not ready, or does not say.
    NotReady,
    /// It is cordoned.
    Cordoned,
    /// It has a taint that matters.
    Tainted,
    /// It counts.
    Counted,
}

impl Standing {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Virtual, Self::NotReady, Self::Cordoned, Self::Tainted, Self::Counted];
}

/// What is kept of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Whether it counts.
    pub standing: Standing,
    /// What it has, rounded down.
    pub capacity: Resources,
    /// What of that is for pods, rounded down.
    pub allocatable: Resources,
    /// What could not be read.
    pub problems: Box<[Invalid]>,
}

impl NodeFacts {
    /// What is kept of this node.
    pub fn of(node: &Node, rules: &NodeRules) -> Self {
        let mut reader = Reader::default();
        let status = &node.status;
        Self {
            standing: standing(node, rules),
            capacity: reader.list("status.capacity", &status.capacity, Round::Down),
            allocatable: reader.list("status.allocatable", &status.allocatable, Round::Down),
            problems: reader.problems(),
        }
    }
}

fn standing(node: &Node, rules: &NodeRules) -> Standing {
    let has = |labels: &BTreeMap<String, String>| {
        VIRTUAL.iter().any(|(key, value)| labels.get(*key).is_some_and(|found| found == value))
    };
    let ready = |node: &Node| {
        node.status.conditions.iter().any(|one| one.kind == "Ready" && one.status == "True")
    };
    match node {
        node if node.metadata.labels.as_ref().is_some_and(has) => Standing::Virtual,
        node if !ready(node) => Standing::NotReady,
        node if node.spec.unschedulable => Standing::Cordoned,
        node if node.spec.taints.iter().any(|taint| rules.matters(taint)) => Standing::Tainted,
        _ => Standing::Counted,
    }
}

impl NodeRules {
    fn matters(&self, taint: &Taint) -> bool {
        let keeps_pods_away = matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        keeps_pods_away
            && match &self.tolerated {
                Tolerated::None => true,
                Tolerated::All => false,
                Tolerated::Keys(keys) => !keys.contains(&taint.key),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(change: &Value) -> Node {
        let mut node = json!({
            "metadata": { "name": "a", "labels": { "zone": "1" }, "managedFields": [{ "x": 1 }] },
            "status": {
                "capacity": { "cpu": "4", "memory": "8Gi", "pods": "110" },
                "allocatable": { "cpu": "3900m", "memory": "7Gi", "example.com/fpga": "2" },
                "conditions": [
                    { "type": "MemoryPressure", "status": "False" },
                    { "type": "Ready", "status": "True" },
                ],
            },
        });
        for (path, value) in change.as_object().unwrap() {
            *node.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = value.clone();
        }
        serde_json::from_value(node).unwrap()
    }

    fn tainted(taints: &Value) -> Node {
        let mut node = node(&json!({}));
        node.spec = serde_json::from_value(json!({ "taints": taints })).unwrap();
        node
    }

    fn stands(node: &Node, tolerated: &str) -> Standing {
        let rules = NodeRules { tolerated: tolerated.parse().unwrap() };
        NodeFacts::of(node, &rules).standing
    }

    #[test]
    fn a_node_counts_when_it_is_ready_schedulable_and_real() {
        let cordoned = Node {
            spec: serde_json::from_value(json!({ "unschedulable": true })).unwrap(),
            ..node(&json!({}))
        };
        let table = [
            (node(&json!({})), Standing::Counted),
            (node(&json!({ "/status/conditions/1/status": "False" })), Standing::NotReady),
            (node(&json!({ "/status/conditions/1/status": "Unknown" })), Standing::NotReady),
            (node(&json!({ "/status/conditions": [] })), Standing::NotReady),
            (cordoned, Standing::Cordoned),
            (
                node(&json!({ "/metadata/labels": { "liqo.io/type": "virtual-node" } })),
                Standing::Virtual,
            ),
            (
                node(&json!({ "/metadata/labels": { "type": "virtual-kubelet" } })),
                Standing::Virtual,
            ),
            (node(&json!({ "/metadata/labels": { "type": "large" } })), Standing::Counted),
        ];
        for (node, expected) in table {
            assert_eq!(stands(&node, "none"), expected, "{node:?}");
            assert_eq!(stands(&node, "all"), expected, "{node:?}");
        }
    }

    #[test]
    fn taints_matter_unless_they_are_tolerated_or_only_a_preference() {
        let gpu = json!({ "key": "nvidia.com/gpu", "effect": "NoSchedule" });
        let plane = json!({ "key": "control-plane", "effect": "NoExecute" });
        let maybe = json!({ "key": "old", "effect": "PreferNoSchedule" });
        let table = [
            (json!([gpu]), "none", Standing::Tainted),
            (json!([gpu]), "", Standing::Tainted),
            (json!([gpu]), "all", Standing::Counted),
            (json!([gpu]), "nvidia.com/gpu", Standing::Counted),
            (json!([gpu]), "a, nvidia.com/gpu", Standing::Counted),
            (json!([gpu, plane]), "nvidia.com/gpu", Standing::Tainted),
            (json!([plane]), "nvidia.com/gpu", Standing::Tainted),
            (json!([maybe]), "none", Standing::Counted),
        ];
        for (taints, tolerated, expected) in table {
            assert_eq!(stands(&tainted(&taints), tolerated), expected, "{taints} {tolerated}");
        }
    }

    #[test]
    fn what_it_has_is_read_and_what_cannot_be_read_is_told() {
        let facts = NodeFacts::of(&node(&json!({})), &NodeRules::default());
        assert_eq!(facts.capacity, Resources::new(4000, 8 << 30));
        let allocatable = Resources::new(3900, 7 << 30);
        let fpga = "example.com/fpga".parse().unwrap();
        assert_eq!(facts.allocatable, allocatable.with(fpga, 2).unwrap());
        assert!(facts.problems.is_empty());
        let odd = node(&json!({ "/status/capacity": { "cpu": "many", "memory": 1024 } }));
        let facts = NodeFacts::of(&odd, &NodeRules::default());
        assert_eq!(facts.capacity, Resources::new(0, 1024));
        assert_eq!(facts.problems[0].field, "status.capacity.cpu");
    }
}
