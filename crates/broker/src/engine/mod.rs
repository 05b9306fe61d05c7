//! Stage 5 of 12 · sequence — one owner plans every command, one after the other.
//!
//! Upstream: the edge turned bytes and a certificate into a command. Downstream: the ledger accounts
//! for it, the decision is made, and the log makes the events durable.
//!
//! [`step::Engine`] is a plain value: it plans commands against the state that earlier ones
//! produced, collects their events in one open batch, and keeps every answer until the batch it was
//! decided in is durable. A batch is written while the next one is being planned. When another
//! broker took the revision, what was planned is taken back, the other's records are applied, and
//! the same commands are planned again; their callers notice nothing. [`commit`] is the step
//! towards the log, also a plain function, and [`run`] puts both on threads. The simulator drives
//! the first two without any.

mod commit;
mod run;
mod step;

pub use commit::{Commit, Committer};
pub use run::{Error, Handle, Options, Running, Ticket, start};
pub use step::{Answer, Batch, Contradiction, Engine, Failure, Look, Settled, Submitted, Work};
