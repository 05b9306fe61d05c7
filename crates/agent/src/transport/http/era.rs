//! Whether the broker is ours or an old one, found out once.

use std::sync::atomic::{AtomicU8, Ordering};

use sublet_core::id::ReservationId;
use sublet_wire::client::{self, Client};

use crate::transport::Error;

const UNKNOWN: u8 = 0;
const OURS: u8 = 1;
const OLD: u8 = 2;

/// What is known of the broker's age. A guess that turns out wrong costs a repeated question.
#[derive(Default)]
pub(super) struct Era(AtomicU8);

impl Era {
    pub(super) fn is_ours(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OURS
    }

    pub(super) fn is_known_old(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OLD
    }

    pub(super) fn set(&self, is_old: bool) {
        self.0.store(if is_old { OLD } else { OURS }, Ordering::Relaxed);
    }

    /// As far as is known; asked if it is not.
    pub(super) async fn is_old(&self, client: &Client) -> Result<bool, Error> {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => self.ask(client).await,
            known => Ok(known == OLD),
        }
    }

    /// Asks for a reservation that cannot be there: ours says so with a code, the Go program has no
    /// such route. So has many a proxy, in the same words: an old broker is one that lists
    /// instructions all the same.
    pub(super) async fn ask(&self, client: &Client) -> Result<bool, Error> {
        let is_old = match client.reservation(ReservationId::FIRST).await {
            Ok(_) => false,
            Err(client::Error::Problem { status: 404, problem }) if problem.code().is_some() => {
                false
            }
            Err(client::Error::Problem { status: 404, .. }) => {
                client.provider_instructions().await?;
                true
            }
            Err(error) => return Err(error.into()),
        };
        self.set(is_old);
        Ok(is_old)
    }

    /// An error, as the broker that is known says it.
    pub(super) fn judge(&self, error: client::Error) -> Error {
        if self.is_known_old() { Error::of_old(error) } else { error.into() }
    }
}
