//! Who has which label: so that a request for one that few have is put to those few alone.
//!
//! Labels are no part of the index, which would ask everybody with room in turn. That is quick
//! where many have the label, and where nobody has it, or few who are full, it would be a look at
//! the whole fleet. Between the two lies what is left of that: a label that more than [`FEW`] have,
//! none of them with room, costs as much as there are others with room.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{string::String, vec::Vec};

use super::{Constraint, Match};
use crate::id::ClusterId;

/// So many are looked at one by one.
const FEW: usize = 64;

type Values = BTreeMap<String, BTreeSet<ClusterId>>;

/// The clusters by label and value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(BTreeMap<String, Values>);

impl Labels {
    /// Notes what a cluster says now in place of what it had said.
    pub(crate) fn replace(
        &mut self,
        cluster: &ClusterId,
        old: Option<&BTreeMap<String, String>>,
        new: &BTreeMap<String, String>,
    ) {
        if old == Some(new) {
            return;
        }
        for (label, value) in old.into_iter().flatten() {
            let Some(values) = self.0.get_mut(label) else { continue };
            if let Some(clusters) = values.get_mut(value) {
                clusters.remove(cluster);
                if clusters.is_empty() {
                    values.remove(value);
                }
            }
            if values.is_empty() {
                self.0.remove(label);
            }
        }
        for (label, value) in new {
            let values = self.0.entry(label.clone()).or_default();
            values.entry(value.clone()).or_default().insert(cluster.clone());
        }
    }

    /// All that can meet these constraints, if one of them leaves only few.
    pub(crate) fn few(&self, constraints: &[Constraint]) -> Option<Vec<&ClusterId>> {
        constraints.iter().find_map(|constraint| {
            let values = self.0.get(&constraint.label);
            let some: Vec<_> = match &constraint.is {
                Match::In(some) => {
                    // One that is named twice is looked up once.
                    let some: BTreeSet<_> = some.iter().collect();
                    let values = some.into_iter().filter_map(|value| values?.get(value));
                    values.flatten().take(FEW + 1).collect()
                }
                Match::Exists => {
                    let clusters = values.into_iter().flat_map(Values::values);
                    clusters.flatten().take(FEW + 1).collect()
                }
                Match::NotIn(_) | Match::Absent => return None,
            };
            (some.len() <= FEW).then_some(some)
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn asks(label: &str, is: Match) -> [Constraint; 1] {
        [Constraint { label: label.into(), is }]
    }

    #[test]
    fn only_a_label_that_few_have_names_them() {
        let mut labels = Labels::default();
        let said = |zone: &str| BTreeMap::from([(String::from("zone"), String::from(zone))]);
        let rare: ClusterId = "rare".parse().unwrap();
        labels.replace(&rare, None, &said("b"));
        for number in 0..=FEW {
            labels.replace(&format!("c{number}").parse().unwrap(), None, &said("a"));
        }
        let one_of = |values: &[&str]| Match::In(values.iter().map(|v| (*v).into()).collect());
        assert_eq!(labels.few(&asks("zone", one_of(&["b", "b", "c"]))), Some(alloc::vec![&rare]));
        assert_eq!(labels.few(&asks("zone", one_of(&["c"]))), Some(Vec::new()));
        assert_eq!(labels.few(&asks("rack", Match::Exists)), Some(Vec::new()));
        assert_eq!(labels.few(&asks("zone", one_of(&["a"]))), None);
        assert_eq!(labels.few(&asks("zone", Match::Exists)), None);
        assert_eq!(labels.few(&asks("rack", Match::Absent)), None);
        labels.replace(&rare, Some(&said("b")), &BTreeMap::new());
        assert_eq!(labels.few(&asks("zone", one_of(&["b"]))), Some(Vec::new()));
    }
}
