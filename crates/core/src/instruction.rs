//! Stage 10 of 12 · instruct — what each side must do now because of a reservation.
//!
//! Upstream: `log` made the events durable. Downstream: the agents act on it.
//!
//! An instruction is derived, never stored: the reservation is the truth, and the generation in it
//! numbers what both sides are told. Delivered at least once, in any order; the higher generation
//! wins. One that has ended is told as `Gone` to whoever resumes a stream, and is simply absent
//! from a full list.

use serde::{Deserialize, Serialize};

use crate::bugs::{Bug, planted};
use crate::id::{ClusterId, Generation, ReservationId, Revision};
use crate::ledger::Ledger;
use crate::reservation::{Phase, Reservation};
use crate::resources::Resources;
use crate::time::Time;

/// Which part a cluster has in a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Side {
    /// It lends.
    Provider,
    /// It borrows.
    Requester,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Duty {
    /// Keep these amounts for the peer, or use them there.
    Keep,
    /// Take it down; the provider confirms when it is gone.
    TakeDown,
    /// Nothing is left of it.
    Gone,
}

/// What one side must do now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruction {
    /// Because of which reservation.
    pub reservation: ReservationId,
    /// To whom it is given.
    pub side: Side,
    /// The other cluster.
    pub peer: ClusterId,
    /// What.
    pub duty: Duty,
    /// How much.
    pub amounts: Resources,
    /// When it ends by itself.
    pub expires_at: Option<Time>,
    /// Its number.
    pub generation: Generation,
    /// The revision that last changed the reservation: where a stream resumes.
    pub revision: Revision,
}

impl Instruction {
    /// What `cluster` must do now because of this reservation; none while nothing is granted, or
    /// if it has no part in it.
    pub fn of(reservation: &Reservation, cluster: &ClusterId) -> Option<Self> {
        let grant = reservation.grant()?;
        let (side, peer) = if grant.provider == *cluster {
            (Side::Provider, &reservation.requester)
        } else if reservation.requester == *cluster || planted(Bug::Leaks) {
            (Side::Requester, &grant.provider)
        } else {
            return None;
        };
        let duty = match reservation.phase() {
            Phase::Pending | Phase::Reserved | Phase::Active => Duty::Keep,
            Phase::Releasing => Duty::TakeDown,
            Phase::Released | Phase::Failed => Duty::Gone,
        };
        Some(Self {
            reservation: reservation.id,
            side,
            peer: peer.clone(),
            duty,
            amounts: grant.amounts.clone(),
            expires_at: grant.expires_at,
            generation: grant.generation,
            revision: reservation.changed,
        })
    }
}

/// Everything that `cluster` must do now, by last change: a full list.
pub fn current<'a>(
    ledger: &'a Ledger,
    cluster: &'a ClusterId,
) -> impl Iterator<Item = Instruction> + 'a {
    since(ledger, cluster, None).filter(|instruction| instruction.duty != Duty::Gone)
}

/// What changed for `cluster` after a revision, what is gone included: how a stream resumes.
pub fn since<'a>(
    ledger: &'a Ledger,
    cluster: &'a ClusterId,
    after: Option<Revision>,
) -> impl Iterator<Item = Instruction> + 'a {
    let from = after.map_or(Revision(0), Revision::next);
    let account = if planted(Bug::Leaks) {
        ledger.accounts().next().map(|(_, account)| account)
    } else {
        ledger.account(cluster)
    };
    let changes = account.map(|account| &account.changes);
    changes
        .into_iter()
        .flat_map(move |changes| changes.range((from, ReservationId::FIRST)..))
        .filter_map(|(_, id)| Instruction::of(ledger.reservation(*id)?, cluster))
}
