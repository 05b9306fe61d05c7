//! A reservation as the broker shows it to its requester, read once.

use sublet_core::id::{ClusterId, Generation};
use sublet_core::instruction::{Duty, Side};
use sublet_core::quantity::Round;
use sublet_core::reservation::Phase;
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_crds::Obstacle;
use sublet_wire::Timestamp;
use sublet_wire::v1::Reservation;

use super::order::{Order, Unreadable, cluster, name};

/// A reservation as its requester sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Its name, and that of its instruction.
    pub id: String,
    /// Who lends; nobody while it waits.
    pub provider: Option<ClusterId>,
    /// How much.
    pub amounts: Resources,
    /// Where it stands.
    pub phase: Phase,
    /// For people: where it stands, and why it waits.
    pub message: String,
    /// Why it ends, as the wire names it.
    pub reason: Option<String>,
    /// What kept the clusters apart, if the broker was told, and this version knows it.
    pub obstacle: Option<Obstacle>,
    /// Since when it is held.
    pub reserved_at: Option<Time>,
    /// When it ends by itself.
    pub expires_at: Option<Time>,
    /// The number of its instructions; an old broker has none.
    pub generation: Option<Generation>,
}

impl TryFrom<&Reservation> for Promise {
    type Error = Unreadable;

    fn try_from(told: &Reservation) -> Result<Self, Unreadable> {
        let status = &told.status;
        let phase = told.phase().ok_or_else(|| Unreadable::Word(status.phase.clone()))?;
        // Of a grant the reasons are nobody's worry.
        let why = told.explanation.as_ref().filter(|_| phase == Phase::Pending);
        let message = match why {
            Some(why) => format!("{}: {}", status.message, why.text),
            None => status.message.clone(),
        };
        let target = Some(told.target_cluster_id.as_str()).filter(|target| !target.is_empty());
        Ok(Self {
            id: name(&told.id)?,
            provider: target.map(cluster).transpose()?,
            amounts: told.requested_resources.resources("requestedResources", Round::Up)?,
            phase,
            message,
            reason: status.reason.clone(),
            obstacle: status.obstacle.as_deref().and_then(Obstacle::named),
            reserved_at: status.reserved_at.map(Timestamp::time),
            expires_at: status.expires_at.map(Timestamp::time),
            generation: told.generation.map(Generation),
        })
    }
}

impl Promise {
    /// What the requester must do because of it; nothing while nothing is granted.
    pub fn order(&self) -> Option<Order> {
        let duty = match self.phase {
            Phase::Pending => return None,
            Phase::Reserved | Phase::Active => Duty::Keep,
            Phase::Releasing => Duty::TakeDown,
            Phase::Released | Phase::Failed => Duty::Gone,
        };
        Some(Order {
            reservation: self.id.clone(),
            side: Side::Requester,
            peer: self.provider.clone()?,
            duty,
            amounts: self.amounts.clone(),
            expires_at: self.expires_at,
            generation: self.generation,
        })
    }
}
