//! Finds the best provider without looking at all of them.
//!
//! (The plain scan for now; the tree replaces it.)

use alloc::collections::BTreeMap;

use super::{Strategy, score};
use crate::advertisement::Cost;
use crate::id::ClusterId;
use crate::resources::Resources;

/// What the index knows of one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What can still be lent.
    pub room: Resources,
    /// What can be given to pods at all: the measure of shares.
    pub allocatable: Resources,
    /// What lending costs.
    pub cost: Option<Cost>,
    /// Nothing but time and the requester forbids to lend.
    pub open: bool,
}

/// The providers, arranged so that the best one is found quickly.
#[derive(Clone, Debug, Default)]
pub struct Index {
    rows: BTreeMap<ClusterId, Row>,
}

impl Index {
    /// Adds a provider, or replaces what is known of it.
    pub fn set(&mut self, cluster: &ClusterId, row: Row) {
        self.rows.insert(cluster.clone(), row);
    }

    /// Removes a provider.
    pub fn remove(&mut self, cluster: &ClusterId) {
        self.rows.remove(cluster);
    }

    /// What is known of one provider.
    pub fn row(&self, cluster: &ClusterId) -> Option<&Row> {
        self.rows.get(cluster)
    }

    /// The best open provider with room for `resources` that `accept` lets pass; ties go to the
    /// smaller name.
    pub fn best(
        &self,
        resources: &Resources,
        strategy: Strategy,
        mut accept: impl FnMut(&ClusterId) -> bool,
    ) -> Option<ClusterId> {
        let mut best: Option<(score::Score, &ClusterId)> = None;
        for (cluster, row) in &self.rows {
            if !row.open || !resources.fits_in(&row.room) || !accept(cluster) {
                continue;
            }
            let score = score::score(strategy, resources, row);
            if best.as_ref().is_none_or(|(top, _)| score > *top) {
                best = Some((score, cluster));
            }
        }
        best.map(|(_, cluster)| cluster.clone())
    }
}
