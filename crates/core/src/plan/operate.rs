//! What operators decide: each an event in the log, with who and why.

use alloc::{string::String, vec};

use super::{Action, Plan, Refusal, Reply};
use crate::event::{Event, Note};
use crate::reservation::Actor;

/// Long enough for a sentence and a ticket number; the log keeps it for ever.
const TEXT_MAX: usize = 512;

pub(super) fn operate(operator: &str, why: &str, action: &Action) -> Result<Plan, Refusal> {
    if operator.len() > TEXT_MAX || why.len() > TEXT_MAX {
        return Err(Refusal::TextTooLong(TEXT_MAX));
    }
    let note = Note { by: Actor::Operator(String::from(operator)), why: String::from(why) };
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
