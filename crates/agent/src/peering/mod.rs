//! Stage 12 of 12 · peer — what really happens in the cluster because of a reservation.
//!
//! Upstream: `act` recorded the order in an object. Downstream: the cluster itself.
//!
//! A backend is level-triggered: it is told what should be, again and again, looks at what is, does
//! the next thing, and says how far it is. It keeps no state of its own that a restart would lose.

mod answer;
pub mod liqo;
pub mod liqoctl;
mod none;
mod why;

use futures_util::future::BoxFuture;
use serde::Serialize;
use sublet_core::advertisement::Backend;
use sublet_core::instruction::Side;
use sublet_crds::condition::Reason;
use sublet_wire::v1::Message;

pub use none::NoPeering;
pub use why::Why;
pub(crate) use why::{NEUTRAL, is_shared, quoted};

use crate::transport::Order;

/// How far it is with a reservation that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The capacity is kept (provider), or usable (requester), in these amounts.
    Ready,
    /// Not yet; asked again soon.
    Pending(Why),
    /// It will not work; the reservation is given up.
    Failed(Why),
}

/// How far it is with a reservation that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing is left of it.
    Gone,
    /// Not yet; asked again soon.
    Pending(Why),
}

/// What changed by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Whatever it was, everything is looked at again.
    Everything,
    /// Something about one reservation.
    One(Side, String),
}

/// Whose the network between the pods of two clusters is. Making it is Liqo's own business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Networking {
    /// There is none: what liqoctl finds of one at the end goes with the peering.
    Disabled,
    /// It is there, or not, and is left as it is.
    Existing,
}

/// Why a cluster does not lend now, although it would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyNot {
    /// For programs.
    pub reason: Reason,
    /// For people, with what to do.
    pub message: String,
}

impl WhyNot {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Why a cluster does not lend now; none if it does.
pub type Unwilling = tokio::sync::watch::Receiver<Option<WhyNot>>;

/// Says whether a reservation is to be left alone, on this side, as of now.
pub type IsLive = dyn Fn(Side, &str) -> bool + Send + Sync;

/// One way of joining two clusters.
pub trait Peering: Send + Sync + 'static {
    /// What it is called in advertisements and requests.
    fn backend(&self) -> Backend;

    /// Brings about what the order says: the link of the two clusters if it is not there, the slice
    /// of this reservation in these amounts. Called again after each change, while it is pending, and
    /// for what is in force already: after a start, after each whole list of the broker's and after
    /// [`changed`](Self::changed). Then it looks whether that is still so, and makes it so again.
    fn establish<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Progress>;

    /// Takes down the slice of this reservation, and the link if it was the last on it. Also called
    /// for what was never established. An order that says `Gone` means that nobody waits for the other
    /// cluster any more: the provider has confirmed, or was given up.
    fn withdraw<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Removal>;

    /// Takes down what nobody wants, of the sides that are named: the broker has just told everything
    /// there is. `is_live` is to be asked just before each removal, never once for all of them:
    /// meanwhile new orders are carried out.
    fn sweep<'a>(&'a self, sides: &'a [Side], is_live: &'a IsLive) -> BoxFuture<'a, ()>;

    /// Waits until something changed by itself, so that it is looked at again. Nothing is lost when
    /// the future is dropped.
    fn changed(&self) -> BoxFuture<'_, Change>;

    /// Takes what another cluster's agent sent through the broker. It must not block: what takes time
    /// is done later, by whoever waits for [`changed`](Self::changed). What is not understood is
    /// dropped, and so is everything where there is nothing to say to each other.
    fn hear(&self, message: Message) {
        drop(message);
    }

    /// Whether what is lent can be kept within its bounds here, and if not, why; where that is not
    /// this backend's business, none.
    fn unwilling(&self) -> Option<Unwilling> {
        None
    }
}
