//! The auditor's own reading of phases: which moves there are, what counts, and how things end.
//!
//! It repeats what the issue and the design say, on purpose: a judge that asked the core would
//! agree with its mistakes.

use sublet_core::event::Event;
use sublet_core::reservation::{Phase, Reason};

/// Capacity is taken from its provider: until the provider has confirmed that it is gone.
pub(super) fn counts(phase: Phase) -> bool {
    match phase {
        Phase::Reserved | Phase::Active | Phase::Releasing => true,
        Phase::Pending | Phase::Released | Phase::Failed => false,
    }
}

/// Nothing moves any more.
pub(super) fn is_over(phase: Phase) -> bool {
    match phase {
        Phase::Released | Phase::Failed => true,
        Phase::Pending | Phase::Reserved | Phase::Active | Phase::Releasing => false,
    }
}

/// What an end for this reason is called: in order, or not as the requester was promised.
pub(super) fn outcome(reason: Reason) -> Phase {
    match reason {
        // Somebody who may say so wanted it, or its time was over.
        Reason::ReleasedByRequester
        | Reason::ReleasedByOperator
        | Reason::Expired
        | Reason::Drained => Phase::Released,
        // The requester did not get what it was promised, or never used it.
        Reason::WithdrawnByProvider
        | Reason::ProviderLost
        | Reason::PeeringFailed
        | Reason::NeverActivated
        | Reason::WaitOver => Phase::Failed,
    }
}

/// The auditor's own table of moves.
pub(super) fn legal(event: &Event, phase: Phase) -> bool {
    let running = matches!(phase, Phase::Reserved | Phase::Active);
    match event {
        Event::Granted { .. } => phase == Phase::Pending,
        Event::Activated { .. } => phase == Phase::Reserved,
        Event::Renewed { .. } | Event::Resized { .. } | Event::Ending { .. } => running,
        Event::Acknowledged { .. } => running || phase == Phase::Releasing,
        Event::Ended { .. } => running || phase == Phase::Releasing || phase == Phase::Pending,
        _ => true,
    }
}
