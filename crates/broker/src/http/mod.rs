//! Stage 4 of 12 · admit — bytes and a certificate become a command, and its outcome an answer.
//!
//! Upstream: `wire` says what bytes mean. Downstream: `engine` sequences commands.
//!
//! Every request goes the same way, in `dispatch`: who is it, which route, may it, is it its turn,
//! read the body, answer, count. The routes are the wire's table, who may is the table of
//! [`crate::authorize`], and what answers them is a file per resource here. Statuses are chosen by
//! the wire's codes and nowhere else.

mod app;
mod call;
mod audited;
mod head;
mod believe;
mod body;
mod dispatch;
mod reply;
mod advertisements;
mod reservations;
mod lists;
mod instructions;
mod messages;
mod watch;
mod clusters;
mod operator;
mod secure;

pub use app::App;
pub(crate) use audited::Audited;
pub use dispatch::router;
pub(crate) use secure::believed;
