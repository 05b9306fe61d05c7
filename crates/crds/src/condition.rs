//! What is true of an object, as Kubernetes says it: conditions with reasons.
//!
//! Types and reasons are enums here, so that each is spelled once. A condition keeps the time at
//! which its status last changed, not the time of the last look.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sublet_core::time::Time;

use crate::{Obstacle, from_time};

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// An advertisement: the nodes and pods could be read, all of them.
    Measured,
    /// An advertisement: the broker has it.
    Published,
    /// An advertisement: the cluster lends, as far as it depends on what joins clusters.
    Lending,
    /// A request: it makes sense, and the broker was asked.
    Accepted,
    /// A request or a reservation: capacity is held.
    Reserved,
    /// A request, an instruction or a cluster: it can be used now.
    Ready,
    /// A requester's instruction: the clusters are joined.
    Peered,
    /// A provider's instruction: the amounts are kept for the other cluster.
    Enforced,
    /// An instruction: the broker knows that it was carried out.
    Acknowledged,
    /// A cluster: its advertisements stopped.
    Stale,
    /// A cluster: more is held there than it has.
    Overcommitted,
    /// A reservation, written by an old requester: it is in use.
    RequesterActive,
    /// A reservation, written by an old requester: it is no longer needed.
    RequesterReleased,
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Everything was done.
    Done,
    /// The request cannot be understood; the message names the field.
    InvalidSpec,
    /// The broker refused; the message has its explanation.
    Refused,
    /// Nothing fits yet, and the request may wait.
    Waiting,
    /// The broker was not reached, or could not answer; tried again.
    BrokerUnavailable,
    /// There is no broker, by configuration.
    NoBroker,
    /// An advertisement: the broker keeps another agent's, which has a higher number.
    Overtaken,
    /// The broker was asked and has not answered.
    InProgress,
    /// Nodes or pods could not be read.
    MeasuringFailed,
    /// Some amounts could not be read, and are not counted.
    UnreadableAmounts,
    /// There are more kinds of resources than can be told.
    KindsLeftOut,
    /// A cluster does not lend: its Liqo does not enforce quotas. The message says what to do, here and
    /// in the next three.
    NotEnforced,
    /// A cluster does not lend: its Liqo lets pods in that do not say what they take.
    LimitsNotEnforced,
    /// A cluster does not lend: Liqo's webhooks are missing, or can be passed by.
    WebhookMissing,
    /// A cluster does not lend: whether its Liqo enforces anything cannot be seen.
    EnforcementUnknown,
    /// The clusters could not be joined; tried again.
    PeeringFailed,
    /// Clusters are not joined, or do not come apart, because of this.
    Hindered(Obstacle),
    /// The user deleted the request, or the requester gave it back.
    Released,
    /// Its time was over.
    Expired,
    /// The provider, or an operator, took it back.
    Withdrawn,
    /// The provider was given up.
    ProviderLost,
    /// A change of amounts is on its way.
    Resizing,
    /// A cluster: it is heard.
    ClusterActive,
    /// A cluster: it is not heard.
    ClusterStale,
    /// A cluster: by the age of its advertisement.
    AdvertisementAge,
    /// A cluster: by what is held and what it has.
    ResourceCheck,
}

// Both are spelled as they are named.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hindered(obstacle) => obstacle.fmt(f),
            reason => fmt::Debug::fmt(reason, f),
        }
    }
}

impl Reason {
    /// What hinders, if that is what a condition says.
    pub fn obstacle_of(condition: &Condition) -> Option<Obstacle> {
        Obstacle::named(&condition.reason)
    }
}

/// One thing to say of an object.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What.
    pub about: Type,
    /// Whether it is so; `None` where that is not known.
    pub holds: Option<bool>,
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
    /// The `metadata.generation` that it is said of.
    pub generation: Option<i64>,
}

/// Says it, at `now`. True if that changed anything, so that nobody writes what is already written.
pub fn say(conditions: &mut Vec<Condition>, statement: Statement, now: Time) -> bool {
    let Statement { about, holds, reason, message, generation } = statement;
    let status = match holds {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let mut said = Condition {
        type_: about.to_string(),
        status: status.to_owned(),
        reason: reason.to_string(),
        message,
        observed_generation: generation,
        last_transition_time: from_time(now),
    };
    let Some(known) = conditions.iter_mut().find(|known| known.type_ == said.type_) else {
        conditions.push(said);
        return true;
    };
    if known.status == said.status {
        said.last_transition_time = known.last_transition_time.clone();
    }
    let changed = *known != said;
    *known = said;
    changed
}

/// Whether it is said to hold; `None` where nothing, or nothing certain, is said.
pub fn holds(conditions: &[Condition], about: Type) -> Option<bool> {
    let name = about.to_string();
    match conditions.iter().find(|known| known.type_ == name)?.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(holds: bool, message: &str) -> Statement {
        Statement {
            about: Type::Ready,
            holds: Some(holds),
            reason: Reason::Done,
            message: message.to_owned(),
            generation: Some(1),
        }
    }

    #[test]
    fn the_time_is_that_of_the_last_change_of_status() {
        let mut all = Vec::new();
        let at = |all: &[Condition]| all[0].last_transition_time.0.as_second();
        assert!(say(&mut all, ready(false, "no"), Time::from_millis(1000)));
        assert!(say(&mut all, ready(false, "still no"), Time::from_millis(2000)));
        assert_eq!(at(&all), 1);
        assert!(say(&mut all, ready(true, "yes"), Time::from_millis(3000)));
        assert_eq!(at(&all), 3);
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn saying_the_same_again_changes_nothing() {
        let mut all = Vec::new();
        assert!(say(&mut all, ready(true, "yes"), Time::from_millis(1000)));
        assert!(!say(&mut all, ready(true, "yes"), Time::from_millis(2000)));
        assert_eq!(holds(&all, Type::Ready), Some(true));
        assert_eq!(holds(&all, Type::Peered), None);
    }
}
