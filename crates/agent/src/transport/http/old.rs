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

/// What an old broker lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) orders: Vec<Order>,
    /// Whether there was something in it that is not understood: then these are not all.
    pub(super) is_unread: bool,
}

/// The orders in what an old broker lists. One that is not understood does not stop the others.
pub(super) fn listed(told: &[Reservation]) -> Listed {
    let mut listed = Listed::default();
    for told in told {
        match Order::of_old(told) {
            Ok(order) => listed.orders.extend(order),
            Err(error) => {
                warn!(reservation = %told.id, %error, "an instruction is not understood");
                listed.is_unread = true;
            }
        }
    }
    listed
}

/// Hands on what came with the answer to an advertisement.
pub(super) fn hand_on(told: &[Reservation], to: &watch::Sender<Vec<Order>>) {
    if !told.is_empty() {
        // That it is all is not said, so nothing follows from what is missing.
        to.send_replace(listed(told).orders);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_that_is_not_understood_does_not_stop_the_others_and_is_told() {
        let entry = |id: &str, phase: &str| {
            let mut told = Reservation { id: id.to_owned(), ..Reservation::default() };
            told.requester_id = "turin".to_owned();
            told.status.phase = phase.to_owned();
            told.requested_resources.cpu = "1".to_owned();
            told.requested_resources.memory = "1Gi".to_owned();
            told
        };
        let good = [entry("rsv-a", "Reserved"), entry("rsv-b", "Released")];
        let whole = listed(&good);
        assert_eq!((whole.orders.len(), whole.is_unread), (1, false));
        let mut bad = entry("rsv-c", "Active");
        bad.requested_resources.cpu = "much".to_owned();
        let [first, second] = good;
        let partial = listed(&[bad, first, second]);
        assert_eq!(partial, Listed { is_unread: true, ..whole });
    }
}
