//! What operators decide: each an event in the log, with who and why.

use alloc::{string::String, vec};

use super::{Action, Plan, Refusal, Reply};
use crate::event::{Event, Note};
use crate::reservation::Actor;

/// Long enough for a sentence and a ticket number; the log keeps it for ever.
const WHY_MAX: usize = 512;
/// Long enough for any name in a certificate; every event of a sweep may carry it.
const NAME_MAX: usize = 128;

/// Refuses a name that would make records too long.
pub(super) fn check_name(by: &Actor) -> Result<(), Refusal> {
    match by {
        Actor::Operator(name) if name.len() > NAME_MAX => Err(Refusal::TextTooLong(NAME_MAX)),
        _ => Ok(()),
    }
}

pub(super) fn operate(operator: &str, why: &str, action: &Action) -> Result<Plan, Refusal> {
    let by = Actor::Operator(String::from(operator));
    check_name(&by)?;
    if why.len() > WHY_MAX {
        return Err(Refusal::TextTooLong(WHY_MAX));
    }
    let note = Note { by, why: String::from(why) };
    let event = match action.clone() {
        Action::Cordon { cluster, drain } => Event::Cordoned { cluster, drain, note },
        Action::Uncordon(cluster) => Event::Uncordoned { cluster, note },
        Action::Cap(cluster, limits) => Event::Capped { cluster, limits, note },
        Action::Revoke(subject) => Event::Revoked { subject, note },
        Action::Reinstate(subject) => Event::Reinstated { subject, note },
        Action::DeclareLost(cluster) => Event::Lost { cluster, note },
        Action::Vouch(cluster) => Event::Reconciled { cluster, note },
        Action::ConfirmClock => Event::ClockConfirmed { note },
    };
    Ok(Plan::new(vec![event], Reply::Done))
}
