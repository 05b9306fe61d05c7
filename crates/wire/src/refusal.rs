//! From the core's refusals to what a client is told: the one place where that is decided.
//!
//! Where the Go broker has a message for the same thing, ours begins with it, because people and
//! scripts look for it. Everything else says what to do next.

use sublet_core::decision::explain::Explanation;
use sublet_core::plan::Refusal;
use sublet_core::policy::Visibility;
use sublet_core::reservation::AskError;

use crate::problem::{Invalid, Problem};
use crate::{Code, v1};

/// After how many seconds asking again makes sense when only overdue clusters could lend: agents
/// advertise every half minute, and one that restarts does so at once.
const OVERDUE_RETRY_SECONDS: u32 = 5;

/// What a client is told of a refusal. An explanation in it must already be as the client may see
/// it (`Explanation::seen_by`).
pub fn problem_of(refusal: &Refusal) -> Problem {
    let mut problem = Problem::new(code(refusal), message(refusal));
    let details = &mut problem.details;
    match refusal {
        Refusal::NobodyFits(why) => details.explanation = Some(why.as_ref().into()),
        Refusal::OnlySuspects(why) => {
            details.explanation = Some(why.as_ref().into());
            details.retry_after = Some(OVERDUE_RETRY_SECONDS);
        }
        Refusal::KeyReused(id) => details.reservation_id = Some(id.to_string()),
        Refusal::Phase(phase) => details.phase = Some(phase.to_string()),
        Refusal::Generation(newest) => details.generation = Some(newest.0),
        Refusal::Ask(error) => return asked(error),
        Refusal::TooLong { what, limit, why } => {
            details.field = Some((*what).to_owned());
            details.limit = Some(limit.to_string());
            details.explanation = why.as_deref().map(Into::into);
        }
        Refusal::TooManyWaiting { most, why } => {
            details.limit = Some(most.to_string());
            details.explanation = Some(why.as_ref().into());
        }
        Refusal::TooManyReservations(most) | Refusal::TooManyKeys { most, .. } => {
            details.limit = Some(most.to_string());
        }
        Refusal::InUse(used) => details.limit = Some(used.to_string()),
        Refusal::TextTooLong(most) => {
            details.field = Some("why".to_owned());
            details.limit = Some(most.to_string());
        }
        Refusal::KeyReleased | Refusal::NotFound | Refusal::ProviderIsOld | Refusal::Revoked => {}
    }
    problem
}

/// The same to somebody who may see no more than this of an explanation.
pub fn problem_seen_by(refusal: &Refusal, visibility: Visibility) -> Problem {
    let seen = |why: &Explanation| Box::new(why.seen_by(visibility));
    let (why, cut) = match refusal {
        Refusal::NobodyFits(why) => (why, Refusal::NobodyFits(seen(why))),
        Refusal::OnlySuspects(why) => (why, Refusal::OnlySuspects(seen(why))),
        Refusal::TooManyWaiting { most, why } => {
            (why, Refusal::TooManyWaiting { most: *most, why: seen(why) })
        }
        Refusal::TooLong { what, limit, why: Some(why) } => {
            (why, Refusal::TooLong { what, limit: *limit, why: Some(seen(why)) })
        }
        whole => return problem_of(whole),
    };
    let mut problem = problem_of(&cut);
    problem.details.explanation = Some(v1::Explanation::seen_by(why, visibility));
    problem
}

fn code(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::NobodyFits(_) => Code::NoSuitableCluster,
        Refusal::OnlySuspects(_) => Code::ProvidersOverdue,
        Refusal::KeyReused(_) => Code::KeyReused,
        Refusal::KeyReleased => Code::KeyReleased,
        Refusal::NotFound => Code::NoSuchReservation,
        Refusal::Phase(_) => Code::WrongPhase,
        Refusal::Generation(_) => Code::UnknownGeneration,
        Refusal::Ask(_) | Refusal::TextTooLong(_) => Code::InvalidField,
        Refusal::TooLong { .. } => Code::TooLong,
        Refusal::TooManyReservations(_) => Code::TooManyReservations,
        Refusal::TooManyKeys { .. } => Code::TooManyKeys,
        Refusal::TooManyWaiting { .. } => Code::TooManyWaiting,
        Refusal::InUse(_) => Code::InUse,
        Refusal::ProviderIsOld => Code::ProviderTooOld,
        Refusal::Revoked => Code::CertificateRevoked,
    }
}

fn message(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NobodyFits(why) => format!("No suitable cluster found: {}", nobody(why)),
        Refusal::TooLong { what: "duration", .. } => format!("Invalid duration: {refusal}"),
        other => other.to_string(),
    }
}

/// The two cases that the Go broker tells apart, in its words, and then ours.
fn nobody(why: &Explanation) -> String {
    match why {
        Explanation::Refused(refused) if refused.clusters == 0 => {
            "no clusters available".to_owned()
        }
        why => {
            let why = v1::explanation_text(why);
            format!("no suitable cluster found for requested resources: {why}")
        }
    }
}

fn asked(error: &AskError) -> Problem {
    let invalid = match error {
        AskError::Nothing(_) => {
            let said = "Requested CPU and memory must be greater than zero";
            Invalid::said("requestedResources", said.to_owned())
        }
        AskError::NoTime => Invalid::said("duration", format!("Invalid duration: {error}")),
        AskError::TooLong("duration") => {
            Invalid::said("duration", format!("Invalid duration: {error}"))
        }
        AskError::TooLong(field) => Invalid::field((*field).to_owned(), error),
        AskError::Kinds => Invalid::field("requestedResources".to_owned(), error),
        AskError::Constraints | AskError::Constraint => {
            Invalid::field("constraints".to_owned(), error)
        }
    };
    invalid.into()
}

impl v1::Explanation {
    /// What a client is told beside a grant.
    pub fn of(why: Option<&Explanation>) -> Option<Self> {
        why.map(Self::from)
    }
}
