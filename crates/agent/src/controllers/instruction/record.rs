//! The two kinds of instruction, seen as one: what is recorded, and how far it was carried out.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::ResourceExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sublet_core::id::{ClusterId, Generation};
use sublet_core::instruction::{Duty, Side};
use sublet_core::time::Time;
use sublet_crds::condition::{Reason, Type};
use sublet_crds::{
    Duty as Recorded, Invalid, ProviderInstruction, ProviderInstructionSpec,
    ProviderInstructionStatus, RequestedAmounts, ReservationInstruction,
    ReservationInstructionSpec, ReservationInstructionStatus, from_time, to_time,
};

use crate::transport::Order;

/// How far an instruction was carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Standing {
    /// Enforced, or delivered.
    pub(crate) in_force: bool,
    pub(crate) applied: Option<u32>,
    pub(crate) acknowledged: Option<u32>,
    pub(crate) conditions: Vec<Condition>,
}

impl Standing {
    /// Is that said already, with this reason?
    pub(crate) fn says(&self, about: Type, reason: Reason) -> bool {
        let (about, reason) = (about.to_string(), reason.to_string());
        self.conditions.iter().any(|one| one.type_ == about && one.reason == reason)
    }
}

/// An instruction as it was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// What it says; nothing if that makes no sense.
    pub(crate) order: Option<Order>,
    pub(crate) standing: Standing,
    pub(crate) is_deleting: bool,
}

/// An object that records what one side must do.
pub(crate) trait Record:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
    const SIDE: Side;
    /// What is said to be true once it is in force, and once the broker knows.
    const IN_FORCE: Type;
    const KNOWN: Type;

    /// What the object about a reservation is called.
    fn object_name(reservation: &str) -> String;
    /// A new object that says this.
    fn new_of(order: &Order) -> Self;
    /// Lets it say this instead.
    fn record(&mut self, order: &Order);
    fn reservation(&self) -> &str;
    fn order(&self) -> Result<Order, Invalid>;
    fn standing(&self) -> Standing;
    fn set_standing(&mut self, standing: Standing, now: Time);

    fn seen(&self) -> Seen {
        Seen {
            order: self.order().ok(),
            standing: self.standing(),
            is_deleting: self.meta().deletion_timestamp.is_some(),
        }
    }
}

/// The version of an object; numbers that grow, as Kubernetes promises by now.
pub(crate) fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or_default()
}

fn recorded_duty(order: &Order) -> Option<Recorded> {
    // What has no number came from an old broker, whose instructions are all to be kept.
    if order.generation.is_none() && order.duty == Duty::Keep {
        return None;
    }
    Recorded::of(order.duty)
}

fn duty(recorded: Option<Recorded>) -> Duty {
    match recorded {
        None | Some(Recorded::Keep | Recorded::Other) => Duty::Keep,
        Some(Recorded::TakeDown) => Duty::TakeDown,
    }
}

/// What both kinds of spec have in common.
struct Parts<'a> {
    reservation: &'a str,
    peer: (&'static str, &'a str),
    amounts: &'a RequestedAmounts,
    expires_at: Option<&'a sublet_crds::Time>,
    duty: Option<Recorded>,
    generation: Option<u32>,
}

impl Parts<'_> {
    fn order(&self, side: Side) -> Result<Order, Invalid> {
        let (field, peer) = self.peer;
        let peer: Result<ClusterId, sublet_core::id::Error> = peer.parse();
        let expires_at = self.expires_at.map(|time| to_time("spec.expiresAt", time));
        Ok(Order {
            reservation: self.reservation.to_owned(),
            side,
            peer: peer.map_err(|error| Invalid::new(field, error))?,
            duty: duty(self.duty),
            amounts: self.amounts.resources()?,
            expires_at: expires_at.transpose()?,
            generation: self.generation.map(Generation),
        })
    }
}

impl Record for ProviderInstruction {
    const SIDE: Side = Side::Provider;
    const IN_FORCE: Type = Type::Enforced;
    const KNOWN: Type = Type::Acknowledged;

    fn object_name(reservation: &str) -> String {
        ProviderInstructionSpec::object_name(reservation)
    }

    fn new_of(order: &Order) -> Self {
        let mut new =
            Self::new(&Self::object_name(&order.reservation), ProviderInstructionSpec::default());
        new.record(order);
        new
    }

    fn record(&mut self, order: &Order) {
        let Order { reservation, peer, amounts, expires_at, .. } = order;
        self.spec = ProviderInstructionSpec {
            duty: recorded_duty(order),
            instruction_generation: order.generation.map(|generation| generation.0),
            ..ProviderInstructionSpec::new(reservation, peer, amounts, *expires_at)
        };
    }

    fn reservation(&self) -> &str {
        &self.spec.reservation_name
    }

    fn order(&self) -> Result<Order, Invalid> {
        let spec = &self.spec;
        let parts = Parts {
            reservation: &spec.reservation_name,
            peer: ("spec.requesterClusterID", &spec.requester_cluster_id),
            amounts: &spec.amounts,
            expires_at: spec.expires_at.as_ref(),
            duty: spec.duty,
            generation: spec.instruction_generation,
        };
        parts.order(Self::SIDE)
    }

    fn standing(&self) -> Standing {
        let status = self.status.clone().unwrap_or_default();
        Standing {
            in_force: status.enforced,
            applied: status.applied_generation,
            acknowledged: status.acknowledged_generation,
            conditions: status.conditions,
        }
    }

    fn set_standing(&mut self, standing: Standing, now: Time) {
        self.status = Some(ProviderInstructionStatus {
            enforced: standing.in_force,
            last_update_time: Some(from_time(now)),
            applied_generation: standing.applied,
            acknowledged_generation: standing.acknowledged,
            conditions: standing.conditions,
        });
    }
}

impl Record for ReservationInstruction {
    const SIDE: Side = Side::Requester;
    const IN_FORCE: Type = Type::Peered;
    const KNOWN: Type = Type::Ready;

    fn object_name(reservation: &str) -> String {
        reservation.to_owned()
    }

    fn new_of(order: &Order) -> Self {
        let mut new = Self::new(&order.reservation, ReservationInstructionSpec::default());
        new.record(order);
        new
    }

    fn record(&mut self, order: &Order) {
        let Order { reservation, peer, amounts, expires_at, .. } = order;
        self.spec = ReservationInstructionSpec {
            duty: recorded_duty(order),
            instruction_generation: order.generation.map(|generation| generation.0),
            ..ReservationInstructionSpec::new(reservation, peer, amounts, *expires_at)
        };
    }

    fn reservation(&self) -> &str {
        &self.spec.reservation_name
    }

    fn order(&self) -> Result<Order, Invalid> {
        let spec = &self.spec;
        let parts = Parts {
            reservation: &spec.reservation_name,
            peer: ("spec.targetClusterID", &spec.target_cluster_id),
            amounts: &spec.amounts,
            expires_at: spec.expires_at.as_ref(),
            duty: spec.duty,
            generation: spec.instruction_generation,
        };
        parts.order(Self::SIDE)
    }

    fn standing(&self) -> Standing {
        let status = self.status.clone().unwrap_or_default();
        Standing {
            in_force: status.delivered,
            applied: status.applied_generation,
            acknowledged: status.acknowledged_generation,
            conditions: status.conditions,
        }
    }

    fn set_standing(&mut self, standing: Standing, now: Time) {
        let known = self.status.take().unwrap_or_default();
        self.status = Some(ReservationInstructionStatus {
            delivered: standing.in_force,
            last_update_time: Some(from_time(now)),
            applied_generation: standing.applied,
            acknowledged_generation: standing.acknowledged,
            conditions: standing.conditions,
            ..known
        });
    }
}
