//! Stage 5 of 12 · sequence — one owner plans every command, one after the other.
//!
//! Upstream: the edge turned bytes and a certificate into a command. Downstream: the ledger accounts
//! for it, the decision is made, and the log makes the events durable.
//!
//! [`Engine`] is a plain value: it plans commands against the state that earlier ones produced,
//! collects their events in one open batch, and keeps every answer until the batch it was decided
//! in is durable. A batch is written while the next one is being planned. When another broker took
//! the revision, what was planned is taken back, the other's records are applied, and the same
//! commands are planned again; their callers notice nothing. [`Committer`] is the step towards the
//! log, also a plain value, and [`start`] puts both on threads. The simulator drives the first two
//! without any.

mod work;
mod decided;
mod flight;
mod backlog;
mod retry;
mod step;
mod commit;
mod handle;
mod write;
mod note;
mod watch;
mod history;
mod keep;
mod planner;
mod run;
#[cfg(test)]
mod largest;

pub use commit::{Commit, Committer, Dead};
pub use decided::{Account, Decided, Told};
pub use flight::{Batch, Changes};
pub use handle::{Handle, Revoked, Ticket};
pub use keep::Keeping;
pub use planner::SWEEP_EVERY;
pub use run::{Error, Options, Running, start};
pub use step::{Contradiction, Engine};
pub use watch::{News, Watcher, Watchers};
pub use work::{Answer, Deliver, Failure, Look, Settled, Submitted, Work};
pub use write::{RETRIES_MAX, RETRY_PAUSE};
