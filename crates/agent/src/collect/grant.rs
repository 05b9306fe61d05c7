//! One grant: what is kept here for another cluster.

use sublet_core::id::{ClusterId, Generation};
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_crds::{Invalid, ProviderInstruction, to_time};

use super::guest::Guest;

/// What is kept here for another cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The reservation, and the name of its slice. An old broker's are not as ours.
    pub reservation: Box<str>,
    /// For whom.
    pub requester: ClusterId,
    /// The instruction that was carried out last; none before the first one was.
    pub carried_out: Option<Generation>,
    /// How much.
    pub amounts: Resources,
    /// When it ends by itself.
    pub expires_at: Option<Time>,
}

impl Grant {
    /// The grant that an instruction is about.
    pub fn of(instruction: &ProviderInstruction) -> Result<Self, Invalid> {
        let spec = &instruction.spec;
        let status = instruction.status.as_ref();
        // An old broker does not number its instructions: what is enforced was carried out.
        let unnumbered = status.is_some_and(|status| status.enforced).then_some(0);
        let carried_out = status.and_then(|status| status.applied_generation).or(unnumbered);
        let expires_at = spec.expires_at.as_ref().map(|time| to_time("spec.expiresAt", time));
        Ok(Self {
            reservation: spec.reservation_name.as_str().into(),
            requester: spec.requester()?,
            carried_out: carried_out.map(Generation),
            amounts: spec.amounts.resources()?,
            expires_at: expires_at.transpose()?,
        })
    }

    /// How pods inside of it may be marked.
    pub(super) fn guests(&self) -> [Guest; 2] {
        Guest::in_slice(&self.reservation, self.requester.as_str())
    }
}
