//! What is handed to the engine, and what comes back.

use std::sync::Arc;

use sublet_core::books::Books;
use sublet_core::id::Revision;
use sublet_core::plan::{Command, Refusal, Reply};
use sublet_core::reservation::Reservation;
use sublet_core::time::Time;

/// Why there is no answer in the command's own terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Decided, and decided against.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing was done.
    #[error("the broker is too busy: try again in a moment")]
    Overloaded,
    /// Nothing was done, and nothing can be until the broker was restarted.
    #[error("the broker cannot write its log and takes no commands: try again later")]
    Unavailable,
    /// It may or may not have been done.
    #[error("the outcome is not known: ask again with the same key")]
    Unknown,
}

/// The answer to a command that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The position of the state it was decided on, itself included.
    pub revision: Revision,
    /// What to say.
    pub reply: Reply,
    /// The reservation that the reply is about, as it was then.
    pub reservation: Option<Arc<Reservation>>,
}

/// What a caller gets.
pub type Answer = Result<Settled, Failure>;

/// Hands out what was seen, once it is committed.
pub type Deliver = Box<dyn FnOnce() + Send>;

/// Looks at the books; may be called again when another broker was faster.
pub type Look = Box<dyn Fn(&Books, Time) -> Deliver + Send>;

/// What is to be done for a caller.
pub enum Work {
    /// Plan this.
    Command(Command),
    /// Show the committed state.
    Look(Look),
    /// Show much of it: waits with the requests, so that it keeps no heartbeat waiting.
    Survey(Look),
}

impl Work {
    /// Does it wait behind what gives capacity back and keeps it alive?
    pub(super) fn is_ordinary(&self) -> bool {
        match self {
            Self::Command(command) => matches!(
                command,
                Command::Reserve { .. } | Command::Resize { .. } | Command::DryRun { .. }
            ),
            Self::Look(_) => false,
            Self::Survey(_) => true,
        }
    }
}

/// Work, and whom to tell.
pub struct Submitted<T> {
    /// What.
    pub work: Work,
    /// Whom to tell.
    pub ticket: T,
}
