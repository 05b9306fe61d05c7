//! What a cluster's agent asks and says.

use http::Method;
use sublet_core::id::{ClusterId, Generation, ReservationId};

use super::call::at;
use super::transport::Call;
use super::{Client, Error, Instructions};
use crate::paths;
use crate::v1::{
    Acknowledgement, Advertisement, AdvertisementResponse, Cursor, Explanation, Failed, Message,
    Renewal, Reservation, Resizing,
};

impl Client {
    /// Is a broker there?
    pub async fn health(&self) -> Result<(), Error> {
        let call = Call::new(Method::GET, paths::HEALTH.to_owned());
        self.transport.call(&call).await.map(drop).map_err(|failed| failed.error)
    }

    /// Says what a cluster has.
    pub async fn advertise(&self, word: &Advertisement) -> Result<AdvertisementResponse, Error> {
        self.post(paths::ADVERTISEMENTS.to_owned(), word).await
    }

    /// What a cluster said of itself.
    pub async fn advertisement(&self, cluster: &ClusterId) -> Result<Advertisement, Error> {
        self.get(at(paths::ADVERTISEMENT, cluster)).await
    }

    /// What a provider must hold, as the Go agents poll it.
    pub async fn provider_instructions(&self) -> Result<Vec<Reservation>, Error> {
        self.get(paths::INSTRUCTIONS.to_owned()).await
    }

    /// Everything that either side must do, as a stream; after a cursor, only what is new.
    pub fn instructions(&self, after: Option<Cursor>) -> Instructions {
        Instructions::new(self.transport.clone(), after)
    }

    /// Has something brought to another cluster's agent; it may get lost.
    pub async fn send_message(&self, message: &Message) -> Result<(), Error> {
        self.tell(paths::MESSAGES.to_owned(), message).await
    }

    /// One reservation.
    pub async fn reservation(&self, id: ReservationId) -> Result<Reservation, Error> {
        self.get(at(paths::RESERVATION, id)).await
    }

    /// Ends a reservation.
    pub async fn release(&self, id: ReservationId) -> Result<Reservation, Error> {
        self.answered(&Call::new(Method::DELETE, at(paths::RESERVATION, id))).await
    }

    /// Why a reservation is where it is, or why it waits.
    pub async fn explain(&self, id: ReservationId) -> Result<Explanation, Error> {
        self.get(at(paths::EXPLAIN, id)).await
    }

    /// Lets a reservation run for so long from now.
    pub async fn renew(&self, id: ReservationId, how: &Renewal) -> Result<Reservation, Error> {
        self.post(at(paths::RENEW, id), how).await
    }

    /// Changes the amounts of a reservation.
    pub async fn resize(&self, id: ReservationId, to: &Resizing) -> Result<Reservation, Error> {
        self.post(at(paths::RESIZE, id), to).await
    }

    /// Confirms as the requester that the capacity is usable.
    pub async fn activate(&self, id: ReservationId) -> Result<Reservation, Error> {
        self.answered(&Call::new(Method::POST, at(paths::ACTIVATE, id))).await
    }

    /// Confirms as the provider that an instruction was carried out.
    pub async fn acknowledge(
        &self,
        id: ReservationId,
        generation: Generation,
    ) -> Result<Reservation, Error> {
        let done = Acknowledgement { generation: generation.0 };
        self.post(at(paths::ACKNOWLEDGE, id), &done).await
    }

    /// Says that the clusters cannot be joined.
    pub async fn fail(&self, id: ReservationId, why: &Failed) -> Result<Reservation, Error> {
        self.post(at(paths::FAIL, id), why).await
    }
}
