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
        Actor::Operator(name) if written(name) > NAME_MAX => Err(Refusal::TextTooLong(NAME_MAX)),
        _ => Ok(()),
    }
}

/// How long it is in a record, where some characters are written as several.
fn written(text: &str) -> usize {
    let length = |byte| match byte {
        b'"' | b'\\' => 2_usize,
        0..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(length).fold(0, usize::saturating_add)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_counts_as_it_is_written_into_records() {
        let check = |name: String| check_name(&Actor::Operator(name));
        assert_eq!(check("n".repeat(NAME_MAX)), Ok(()));
        for (name, times) in [("n", NAME_MAX + 1), ("\"", 65), ("\u{1}", 22), ("ä", 65)] {
            let refused = Err(Refusal::TextTooLong(NAME_MAX));
            assert_eq!(check(name.repeat(times)), refused, "{name:?}");
        }
    }
}
