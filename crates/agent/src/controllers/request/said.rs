//! What the status of a request says, for those who go by it: pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sublet_crds::condition::{Reason, Type};
use sublet_crds::{Obstacle, ResourceRequestStatus};

use super::status::{MESSAGE_MAX, UNRELEASED};
use crate::controllers::instruction::Standing;
use crate::controllers::notice::cut;

/// What is said to be in the way.
pub(crate) fn hindrance(status: &ResourceRequestStatus) -> Option<(Obstacle, &str)> {
    let ready = condition(status, Type::Ready)?;
    Some((Reason::obstacle_of(ready)?, &ready.message))
}

/// Is nothing known because the broker is not heard?
pub(crate) fn is_unheard(status: &ResourceRequestStatus) -> bool {
    let unheard = Reason::BrokerUnavailable.to_string();
    condition(status, Type::Ready).is_some_and(|one| one.reason == unheard)
}

/// What an instruction says to be in the way; as much of it as the schema takes.
pub(crate) fn hindrance_of(standing: &Standing) -> Option<(Obstacle, String)> {
    let name = Type::Peered.to_string();
    let said = standing.conditions.iter().find(|one| one.type_ == name)?;
    Some((Reason::obstacle_of(said)?, cut(&said.message, MESSAGE_MAX)))
}

pub(super) fn ready_message(status: &ResourceRequestStatus) -> Option<&str> {
    Some(&condition(status, Type::Ready)?.message)
}

pub(super) fn says_unreleased(status: &ResourceRequestStatus) -> bool {
    ready_message(status).is_some_and(|message| message.starts_with(UNRELEASED))
}

fn condition(status: &ResourceRequestStatus, about: Type) -> Option<&Condition> {
    let name = about.to_string();
    status.conditions.iter().find(|one| one.type_ == name)
}

/// Was an old broker asked, and its answer never written down?
pub(crate) fn is_asking(status: &ResourceRequestStatus) -> bool {
    let in_progress = Reason::InProgress.to_string();
    condition(status, Type::Accepted).is_some_and(|one| one.reason == in_progress)
}

/// Was something said of this spec that stays said?
pub(crate) fn is_answered(status: &ResourceRequestStatus, generation: Option<i64>) -> bool {
    is_said(status, generation, Reason::InvalidSpec) || is_refused(status, generation)
}

/// Was a change, or a renewal, of this spec refused?
pub(crate) fn is_refused(status: &ResourceRequestStatus, generation: Option<i64>) -> bool {
    is_said(status, generation, Reason::Refused)
}

/// Could the broker not be asked for a change, or a renewal, of this spec?
pub(crate) fn is_unmade(status: &ResourceRequestStatus, generation: Option<i64>) -> bool {
    is_said(status, generation, Reason::BrokerUnavailable)
}

/// Is this why the spec as it is was not accepted?
fn is_said(status: &ResourceRequestStatus, generation: Option<i64>, why: Reason) -> bool {
    let why = why.to_string();
    condition(status, Type::Accepted).is_some_and(|one| {
        one.status == "False" && one.reason == why && one.observed_generation == generation
    })
}
