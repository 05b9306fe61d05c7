//! One thing that the broker wants done, read once.

use sublet_core::id::{self, ClusterId, Generation};
use sublet_core::instruction::{Duty, Side};
use sublet_core::quantity::Round;
use sublet_core::reservation::Phase;
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_wire::v1::{Instruction, Reservation};
use sublet_wire::{Invalid, Timestamp};

/// The longest name that an object about a reservation can have, with what is appended to it.
const ID_MAX: usize = 244;

/// What one side must do now because of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Because of which; the name of an object, so as Kubernetes wants names. An old broker's are
    /// not as ours.
    pub reservation: String,
    /// What this cluster is in it.
    pub side: Side,
    /// The other cluster.
    pub peer: ClusterId,
    /// What.
    pub duty: Duty,
    /// How much.
    pub amounts: Resources,
    /// When it ends by itself, by the broker's clock.
    pub expires_at: Option<Time>,
    /// Its number; an old broker has none.
    pub generation: Option<Generation>,
}

/// Why something that a broker said is not understood.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// A name that no object can have.
    #[error("{0:?} cannot be the name of a reservation")]
    Name(String),
    /// A name that no cluster can have.
    #[error("{name:?} cannot be the name of a cluster")]
    Cluster {
        /// Which.
        name: String,
        /// Why.
        source: id::Error,
    },
    /// Amounts that are none.
    #[error("the amounts are not understood")]
    Amounts(#[from] Invalid),
    /// A side, a duty or a phase that this version does not know.
    #[error("this version does not know {0:?}")]
    Word(String),
}

impl TryFrom<&Instruction> for Order {
    type Error = Unreadable;

    fn try_from(told: &Instruction) -> Result<Self, Unreadable> {
        let word = |word: &String| Unreadable::Word(word.clone());
        Ok(Self {
            reservation: name(&told.reservation_id)?,
            side: told.side().ok_or_else(|| word(&told.side))?,
            peer: cluster(&told.peer_id)?,
            duty: told.duty().ok_or_else(|| word(&told.duty))?,
            amounts: told.resources.resources("resources", Round::Up)?,
            expires_at: told.expires_at.map(Timestamp::time),
            generation: Some(Generation(told.generation)),
        })
    }
}

impl Order {
    /// What an old broker tells a provider: nothing if it is none of its business any more.
    pub(super) fn of_old(told: &Reservation) -> Result<Option<Self>, Unreadable> {
        if !matches!(told.phase(), Some(Phase::Reserved | Phase::Active)) {
            return Ok(None);
        }
        Ok(Some(Self {
            reservation: name(&told.id)?,
            side: Side::Provider,
            peer: cluster(&told.requester_id)?,
            duty: Duty::Keep,
            amounts: told.requested_resources.resources("requestedResources", Round::Up)?,
            expires_at: told.status.expires_at.map(Timestamp::time),
            generation: None,
        }))
    }
}

/// A name of an object: a DNS-1123 subdomain.
pub(super) fn name(text: &str) -> Result<String, Unreadable> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(|b| plain(*b))
            && bytes.last().is_some_and(|b| plain(*b))
            && bytes.iter().all(|b| plain(*b) || *b == b'-')
    };
    let fits = text.len() <= ID_MAX && text.split('.').all(part);
    if fits { Ok(text.to_owned()) } else { Err(Unreadable::Name(text.to_owned())) }
}

pub(super) fn cluster(name: &str) -> Result<ClusterId, Unreadable> {
    name.parse().map_err(|source| Unreadable::Cluster { name: name.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sublet_wire::v1::{Quantities, Status};

    fn told() -> Instruction {
        Instruction {
            reservation_id: "rsv-a".into(),
            side: "Provider".into(),
            peer_id: "rome".into(),
            duty: "Keep".into(),
            resources: Quantities {
                cpu: "500m".into(),
                memory: "1Gi".into(),
                ..Quantities::default()
            },
            generation: 3,
            ..Instruction::default()
        }
    }

    #[test]
    fn an_instruction_is_read_or_refused_as_a_whole() {
        let order = Order::try_from(&told()).unwrap();
        assert_eq!(order.amounts, Resources::new(500, 1 << 30));
        assert_eq!((order.side, order.duty), (Side::Provider, Duty::Keep));
        let bad = [
            Instruction { reservation_id: "../x".into(), ..told() },
            Instruction { side: "Friend".into(), ..told() },
            Instruction { duty: "Dance".into(), ..told() },
            Instruction { peer_id: "Rome!".into(), ..told() },
            Instruction { resources: Quantities::default(), ..told() },
        ];
        assert!(bad.iter().all(|told| Order::try_from(told).is_err()));
    }

    #[test]
    fn an_old_brokers_reservation_is_an_order_while_it_is_kept() {
        let kept = |phase: &str| {
            let told = Reservation {
                id: "rsv-c1-1794780677613".into(),
                requester_id: "c1".into(),
                target_cluster_id: "c2".into(),
                requested_resources: told().resources,
                status: Status { phase: phase.into(), ..Status::default() },
                ..Reservation::default()
            };
            Order::of_old(&told).unwrap()
        };
        assert_eq!(kept("Reserved").unwrap().generation, None);
        assert!(kept("Active").is_some());
        assert!(kept("Released").is_none() && kept("").is_none());
    }

    #[test]
    fn names_are_as_kubernetes_wants_them() {
        for good in ["rsv-a", "a.b", "0"] {
            assert!(name(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a..b", "-a", "a-", "a/b", &"a".repeat(245)] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
