//! Asking for capacity so that nothing is ever held without anybody knowing.

use bytes::Bytes;
use http::{Method, StatusCode};
use sublet_core::id::Key;

use super::call::{Failed, query, read};
use super::transport::Call;
use super::{Client, Error};
use crate::v1::{Decision, Reservation, ReservationRequest};
use crate::{encode, paths};

impl Client {
    /// Asks for capacity, under a random key if none is given.
    ///
    /// When the outcome is not known at the end, the key is released: a request that is still on
    /// its way then finds its key released and becomes nothing. [`Error::Released`] says that this
    /// was done, [`Error::InDoubt`] that it could not be. Whoever drops this future has to release
    /// the key himself.
    pub async fn reserve(
        &self,
        request: &ReservationRequest,
        key: Option<Key>,
    ) -> Result<Reservation, Error> {
        let key = key.map_or_else(random_key, Ok)?;
        match self.ask(request, &key).await {
            Ok(reservation) => Ok(reservation),
            Err(Failed { error, doubt: false }) => Err(error),
            Err(Failed { error, .. }) => match self.release_by_key(&key).await {
                Ok(_) => Err(Error::Released(error.into())),
                Err(_) => Err(Error::InDoubt { key, source: error.into() }),
            },
        }
    }

    /// Asks for capacity under a key that the caller remembers: it will ask again with the same one
    /// until the outcome is known, so nothing is released.
    pub async fn reserve_under(
        &self,
        request: &ReservationRequest,
        key: &Key,
    ) -> Result<Reservation, Error> {
        self.ask(request, key).await.map_err(|failed| match failed {
            Failed { error, doubt: false } => error,
            Failed { error, .. } => Error::InDoubt { key: key.clone(), source: error.into() },
        })
    }

    async fn ask(&self, request: &ReservationRequest, key: &Key) -> Result<Reservation, Failed> {
        let body = Bytes::from(encode(request));
        let call = Call::new(Method::POST, paths::RESERVATIONS.to_owned());
        let answer = self.transport.call(&Call { body, key: Some(key), ..call }).await?;
        read(&answer).map_err(|error| Failed { error, doubt: true })
    }

    /// What would happen to such a request now.
    pub async fn dry_run(&self, request: &ReservationRequest) -> Result<Decision, Error> {
        let path = query(paths::RESERVATIONS, &[("dryRun", Some("true".to_owned()))]);
        self.post(path, request).await
    }

    /// Ends what was asked for under a key; none when there was nothing yet, and now never will be.
    pub async fn release_by_key(&self, key: &Key) -> Result<Option<Reservation>, Error> {
        let path = query(paths::RESERVATIONS, &[("key", Some(key.to_string()))]);
        let call = Call::new(Method::DELETE, path);
        let answer = self.transport.call(&call).await.map_err(|failed| failed.error)?;
        if answer.status == StatusCode::NO_CONTENT { Ok(None) } else { read(&answer).map(Some) }
    }
}

/// A key that nobody else has: 128 random bits in hex.
pub fn random_key() -> Result<Key, Error> {
    let half = || getrandom::u64().map_err(|_| Error::NoRandomness);
    let text = format!("{:016x}{:016x}", half()?, half()?);
    text.parse().map_err(|_| Error::NoRandomness)
}
