//! The link of a pair: what two clusters need of each other before the first slice, shared by all of
//! them.

use std::fmt;

use futures_util::future::BoxFuture;
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;

/// How it is with the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Slices can be made.
    Ready,
    /// Not yet; asked again soon, and after [`Links::changed`].
    Pending(String),
    /// It will not work as it is.
    Failed(Trouble),
}

/// Why there is no link, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Why, in one word.
    pub reason: &'static str,
    /// What happened, and what to do.
    pub message: String,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

/// The links of this cluster.
pub trait Links: Send + Sync {
    /// Brings the link about, or looks whether it is still there. Level-triggered and idempotent;
    /// sends what is due. `side` is what this cluster is in it.
    fn ensure<'a>(&'a self, side: Side, peer: &'a ClusterId) -> BoxFuture<'a, LinkState>;

    /// The last reservation on it went: from now on it is idle.
    fn unused<'a>(&'a self, side: Side, peer: &'a ClusterId) -> BoxFuture<'a, ()>;

    /// Waits until a link changed by itself. Nothing is lost when the future is dropped.
    fn changed(&self) -> BoxFuture<'_, ()>;
}
