//! What every handler works with: the engine, the policy, who is shut out, and the bounds.

use std::sync::Arc;

use arc_swap::ArcSwap;
use sublet_core::policy::Policy;

use crate::admission::Admission;
use crate::clock::Machine;
use crate::engine::Handle;
use crate::identity::Caller;
use crate::limits::Limits;
use crate::mail::Mail;
use crate::metrics::Metrics;
use crate::orphans::Orphans;
use crate::random::RequestIds;
use crate::revoked::Shut;
use crate::sparing::Sparing;

/// What every handler works with.
pub struct App {
    /// The way to the ledger.
    pub engine: Handle,
    /// What the operator decided beforehand, as the engine has it.
    pub policy: ArcSwap<Policy>,
    /// Who cares for what callers did not wait for.
    pub orphans: Orphans,
    /// Who was told lately that it asks too often.
    pub(crate) too_often: Sparing<Option<Caller>>,
    /// Who is shut out.
    pub revoked: Shut,
    /// Turns.
    pub admission: Arc<Admission>,
    /// What agents tell each other.
    pub mail: Arc<Mail>,
    /// Bounds.
    pub limits: Limits,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// The clocks.
    pub machine: Machine,
    /// What requests are called whose clients do not say.
    pub request_ids: RequestIds,
}
