//! Stage 11 of 12 · act — requests become reservations, and instructions become deeds.
//!
//! Upstream: the broker's instructions, and the users' requests. Downstream: `peer` joins clusters.
//!
//! One loop sees to all objects. It watches the requests and the two kinds of instruction, listens to
//! the broker, and looks at whatever changed, a bounded number of things at a time and never at one
//! thing twice at a time. What to do next about a thing is a pure function of what is there and what
//! the broker said (`request/next.rs`, `instruction/next.rs`); a round of work takes such steps until
//! there is none. So the loop can be dropped anywhere, and begun again anywhere.

mod context;
mod counts;
mod desk;
mod instruction;
mod lanes;
mod notice;
mod queue;
mod request;
mod shelf;
mod source;
mod store;
mod wanted;

pub use context::{Clock, Contact, Context, Hook, Point};
pub use desk::run;
pub(crate) use instruction::Record;
pub(crate) use notice::{Notice, cut};
pub(crate) use queue::{Outcome, Queue, due};
