//! Asks the broker for capacity: ours as often as it takes, an old one once.

use std::time::Duration;

use kube::ResourceExt;
use sublet_core::reservation::Ask;
use sublet_wire::v1::ReservationRequest;

use super::said::is_asking;
use super::status::Fact;
use super::{Flow, Result, Work, retry};
use crate::controllers::context::Point;
use crate::controllers::queue::Outcome;
use crate::transport::{Error, Refusal};

/// How often an old broker, which knows no waiting, is asked again for a request that waits.
const OLD_WAIT: Duration = Duration::from_secs(15);

impl Work<'_> {
    /// Asks for capacity, and writes down what came of it.
    pub(super) async fn ask(&mut self, ask: &Ask) -> Result<Flow> {
        let Some(key) = self.key() else { return Ok(Flow::Stop(Outcome::Done(None))) };
        if let Some(promise) = self.answer.clone() {
            return self.promised(&Fact::Promise(&promise), &promise).await;
        }
        let mut ask = ask.clone();
        ask.activates = true;
        ask.backends.insert(self.context.peering.backend());
        match self.may_ask().await? {
            Flow::On => {}
            stop @ Flow::Stop(_) => return Ok(stop),
        }
        let answer = self.context.broker.reserve(&key, &ReservationRequest::from(&ask)).await;
        self.context.passed(Point::Answered).await;
        match answer {
            Ok(promise) => {
                self.answer = Some(promise.clone()).filter(|one| one.generation.is_none());
                self.promised(&Fact::Promise(&promise), &promise).await
            }
            Err(Error::Refused(Refusal { reservation: Some(id), .. })) => self.adopt(&id).await,
            Err(Error::Refused(no)) if self.may_wait(&no, &ask) => {
                self.write(&Fact::Waits(&no.message)).await?;
                Ok(Flow::Stop(Outcome::Done(Some(OLD_WAIT))))
            }
            Err(error) if error.is_transient() || matches!(error, Error::Identity(_)) => {
                self.unavailable(&error).await
            }
            Err(error) => self.note(&Fact::Error(&error)).await,
        }
    }

    /// An old broker takes no keys: that it is asked is written down first, and whoever finds that
    /// written and no answer does not ask again.
    async fn may_ask(&mut self) -> Result<Flow> {
        let was_asked = self.request.status.as_ref().is_some_and(is_asking);
        match self.context.broker.takes_keys().await {
            Ok(true) => Ok(Flow::On),
            Ok(false) if was_asked => {
                let why = "it was asked, and the answer was not written down".to_owned();
                self.write(&Fact::Error(&Error::Unknown(why))).await?;
                Ok(Flow::Stop(Outcome::Retry(None)))
            }
            Ok(false) => self.note(&Fact::Asking).await,
            // What is written stays, so that it is known when the broker is there again.
            Err(error) if was_asked => Ok(retry(&error)),
            Err(error) => self.unavailable(&error).await,
        }
    }

    /// The key has a reservation already, from before the request was changed.
    async fn adopt(&mut self, id: &str) -> Result<Flow> {
        match self.context.broker.reservation(id).await {
            // That it was asked for with other amounts is found out by the next look.
            Ok(Some(promise)) => self.promised(&Fact::Adopted(&promise), &promise).await,
            Ok(None) => self.note(&Fact::Forgotten).await,
            Err(error) => self.unavailable(&error).await,
        }
    }

    /// An old broker knows no waiting, so the waiting is done here.
    fn may_wait(&self, no: &Refusal, ask: &Ask) -> bool {
        let created = self.request.creation_timestamp();
        let created =
            created.and_then(|time| sublet_crds::to_time("creationTimestamp", &time).ok());
        let until = created.and_then(|created| created.checked_add(ask.wait?));
        may_fit_later(no) && until.is_some_and(|end| self.context.now() < end)
    }
}

/// Does an old broker say that nothing fits now? Whatever else it refuses, it would refuse again.
pub(super) fn may_fit_later(no: &Refusal) -> bool {
    let is_full = no.message.starts_with("No suitable cluster found");
    no.code.is_none() && no.status == 409 && is_full
}
