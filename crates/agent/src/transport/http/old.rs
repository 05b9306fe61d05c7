//! What is different with an old broker.

use sublet_core::id::Key;
use sublet_wire::client::{self, Client};
use sublet_wire::v1::{Reservation, ReservationRequest};
use tokio::sync::watch;
use tracing::warn;

use crate::transport::{Error, Order, Promise};

/// Asks once: an old broker takes no keys, so asking twice may reserve twice.
pub(super) async fn reserve(
    once: &Client,
    key: &Key,
    what: &ReservationRequest,
) -> Result<Promise, Error> {
    match once.reserve_under(what, key).await {
        // It is reserved now, whatever it says.
        Ok(told) => Promise::try_from(&told).map_err(|error| Error::Unknown(error.to_string())),
        Err(client::Error::InDoubt { source, .. }) => Err(Error::Unknown(source.to_string())),
        Err(error) => Err(Error::of_old(error)),
    }
}

/// The orders in what an old broker lists. One that is not understood does not stop the others.
pub(super) fn orders(told: &[Reservation]) -> Vec<Order> {
    let read = |told| match Order::of_old(told) {
        Ok(order) => order,
        Err(error) => {
            warn!(reservation = %told.id, %error, "an instruction is not understood");
            None
        }
    };
    told.iter().filter_map(read).collect()
}

/// Hands on what came with the answer to an advertisement.
pub(super) fn hand_on(told: &[Reservation], to: &watch::Sender<Vec<Order>>) {
    if !told.is_empty() {
        to.send_replace(orders(told));
    }
}
