//! The link of a pair: what two clusters need of each other before the first slice, shared by all of
//! them.
//!
//! Three things pass from one to the other through the broker, in letters that are signed by both
//! agents: the provider's nonce, the requester's offer of who it is to be there, and how it gets in.
//! Everything else is Liqo's own objects, and they are the state: this module looks at what there is,
//! does the next thing (`borrow` and `lend` decide, `act` does), and can be cut between any two.
//! What it keeps in memory is what was said; all of that is said again.
//!
//! A link that nobody needs is kept for a while, and then taken down in the order that leaves nobody
//! with slices that cannot be removed: the requester's identity, then the provider's tenant, then the
//! rest, by whoever has made it or has had Liqo make it. The two directions of a pair share one
//! namespace in each cluster, which goes when both are gone.

mod trouble;
mod keys;
mod request;
mod seen;
mod step;
mod talk;
mod memory;
mod borrow;
mod lend;
mod next;
mod pins;
mod ground;
mod observe;
mod act;
mod stranded;
mod letters;
mod caution;
mod round;
mod board;
mod changes;
mod pace;
mod keeper;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_wire::v1::Message;

pub(super) use ground::is_ours;
pub use keeper::{Keeper, Settings};
pub use trouble::{LIQO_WORDS, Reason, Trouble, of_event};

use crate::peering::Why;
use crate::transport::{self, Broker};

/// How it is with the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Slices can be made.
    Ready,
    /// Not yet; asked again soon, and after [`Links::changed`].
    Pending(Why),
    /// It will not work as it is.
    Failed(Trouble),
}

/// The links of this cluster.
pub trait Links: Send + Sync {
    /// Brings the link about, or looks whether it is still there. Level-triggered and idempotent;
    /// sends what is due. `side` is what this cluster is in it.
    fn ensure<'a>(&'a self, side: Side, peer: &'a ClusterId) -> BoxFuture<'a, LinkState>;

    /// The last reservation on it went: from now on it is idle.
    fn unused<'a>(&'a self, side: Side, peer: &'a ClusterId) -> BoxFuture<'a, ()>;

    /// The broker has told everything there is: whoever needs a link asks for it in a moment.
    fn listed(&self) {}

    /// Takes what another cluster's agent sent through the broker, and does not wait.
    fn hear(&self, message: Message);

    /// Waits until a link changed by itself. Nothing is lost when the future is dropped.
    fn changed(&self) -> BoxFuture<'_, ()>;
}

/// The way of letters to other clusters.
pub trait Post: Send + Sync + 'static {
    /// Sends a letter. It may get lost all the same.
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), transport::Error>>;
}

impl Post for Arc<dyn Broker> {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), transport::Error>> {
        self.as_ref().send(message)
    }
}

/// Called with the name of each step that was taken; the work goes on when the future ends.
pub type Hook = Arc<dyn Fn(&'static str) -> BoxFuture<'static, ()> + Send + Sync>;

/// Why a look or a step came to nothing.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// The API server did not do it.
    #[error("the API server: {0}")]
    Kube(#[from] kube::Error),
    /// It cannot work.
    #[error("{0}")]
    Trouble(Trouble),
    /// It took too long.
    #[error("the API server did not answer in {} s", .0.as_secs())]
    Late(Duration),
}
