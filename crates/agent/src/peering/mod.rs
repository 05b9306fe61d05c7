//! Stage 12 of 12 · peer — what really happens in the cluster because of a reservation.
//!
//! Upstream: `act` recorded the order in an object. Downstream: the cluster itself.
//!
//! A backend is level-triggered: it is told what should be, again and again, looks at what is, does
//! the next thing, and says how far it is. It keeps no state of its own that a restart would lose.

mod none;

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use sublet_core::advertisement::Backend;
use sublet_core::instruction::Side;

pub use none::NoPeering;

use crate::transport::Order;

/// How far it is with a reservation that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The capacity is kept (provider), or usable (requester), in these amounts.
    Ready,
    /// Not yet; asked again soon.
    Pending(String),
    /// It will not work; the reservation is given up.
    Failed(String),
}

/// How far it is with a reservation that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing is left of it.
    Gone,
    /// Not yet; asked again soon.
    Pending(String),
}

/// One way of joining two clusters.
pub trait Peering: Send + Sync + 'static {
    /// What it is called in advertisements and requests.
    fn backend(&self) -> Backend;

    /// Brings about what the order says: the link of the two clusters if it is not there, the slice
    /// of this reservation in these amounts. Called again after each change, and while it is pending.
    fn establish<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Progress>;

    /// Takes down the slice of this reservation, and the link if it was the last on it. Also called
    /// for what was never established.
    fn withdraw<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Removal>;

    /// Takes down what is none of these, of the sides that are named: the broker has just told
    /// everything there is.
    fn sweep<'a>(&'a self, sides: &'a [Side], live: &'a BTreeSet<String>) -> BoxFuture<'a, ()>;

    /// Waits until something changed by itself, so that everything is looked at again.
    fn changed(&self) -> BoxFuture<'_, ()>;
}
