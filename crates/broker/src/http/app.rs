//! What every handler works with: the engine, the policy, who is shut out, and the bounds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use sublet_core::id::ClusterId;
use sublet_core::policy::Policy;

use crate::admission::Admission;
use crate::clock::Machine;
use crate::engine::Handle;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::random::RequestIds;
use crate::revoked::Shut;

/// What every handler works with.
pub struct App {
    /// The way to the ledger.
    pub engine: Handle,
    /// What the operator decided beforehand, as the engine has it.
    pub policy: ArcSwap<Policy>,
    /// Who is shut out.
    pub revoked: Shut,
    /// Turns.
    pub admission: Arc<Admission>,
    /// Bounds.
    pub limits: Limits,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// The clocks.
    pub machine: Machine,
    /// What agents call themselves.
    pub names: Names,
    /// What requests are called whose clients do not say.
    pub request_ids: RequestIds,
}

/// What agents call themselves beside their id: a Go agent sends it and reads it back. It decides
/// nothing, so it is kept here and not in the books, and is empty after a restart until it is sent
/// again.
#[derive(Default)]
pub struct Names(Mutex<HashMap<ClusterId, Arc<str>>>);

impl Names {
    /// What is longer is cut: Kubernetes has no longer names.
    const LENGTH_MAX: usize = 253;

    /// Takes a name.
    pub fn learn(&self, cluster: &ClusterId, name: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.get(cluster).is_none_or(|known| **known != *name) {
            let name: String = name.chars().take(Self::LENGTH_MAX).collect();
            names.insert(cluster.clone(), name.into());
        }
    }

    /// The name, or nothing.
    pub fn of(&self, cluster: &ClusterId) -> Arc<str> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(cluster).map(Arc::clone).unwrap_or_default()
    }
}
