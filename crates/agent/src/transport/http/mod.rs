//! The broker over HTTPS, ours or an old one.

mod era;
mod feed;
mod old;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sublet_core::id::{Generation, Key, ReservationId};
use sublet_wire::Code;
use sublet_wire::client::{self, Client, Options};
use sublet_wire::v1::{
    Advertisement, Failed, Message, Number, Renewal, Reservation, ReservationRequest, Resizing,
};
use tokio::sync::watch;

use self::era::Era;
use self::feed::HttpFeed;
use crate::advertise::Audience;

use super::{Answer, Broker, Error, Feed, Order, Promise, Unreadable};

/// The broker over HTTPS.
#[derive(Clone)]
pub struct Http {
    shared: Arc<Shared>,
}

struct Shared {
    /// Each address is tried; a single one twice.
    client: Client,
    /// One address, and nothing is sent twice: old brokers would reserve twice.
    once: Client,
    era: Era,
    /// What an old broker said in answer to the last advertisement.
    piggy_back: watch::Sender<Vec<Order>>,
    /// How often an old broker is asked what to do; never, if none.
    poll_every: Option<Duration>,
}

/// Between the two tries of a call.
const WAIT_MAX: Duration = Duration::from_secs(1);

impl Http {
    /// A way that was not gone yet. `poll_every` is how often an old broker is asked what to do.
    pub fn new(options: Options, poll_every: Option<Duration>) -> Result<Self, client::Error> {
        let urls = options.urls.iter().take(1).cloned().collect();
        // A connection that broke is no reason to fail. Else whoever asks tries again himself, as late as
        // the broker wants: nobody's place is held meanwhile.
        let options = Options { attempts: 2, wait_max: WAIT_MAX, ..options };
        let once = Client::new(Options { urls, attempts: 1, ..options.clone() })?;
        let client = Client::new(options)?;
        let (piggy_back, _) = watch::channel(Vec::new());
        let era = Era::default();
        Ok(Self { shared: Arc::new(Shared { client, once, era, piggy_back, poll_every }) })
    }

    fn client(&self) -> &Client {
        &self.shared.client
    }

    /// What a broker that knows reservations by their ids says of this one; none if it has no such
    /// one, or is an old one.
    async fn about<F>(&self, id: &str, ask: impl FnOnce(ReservationId) -> F) -> Asked
    where
        F: Future<Output = Result<Reservation, client::Error>>,
    {
        // An old broker's ids are not as ours.
        let Ok(id) = id.parse() else { return Ok(None) };
        match ask(id).await.map_err(|error| self.shared.era.judge(error)) {
            Ok(told) => read(&told).map(Some),
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

type Asked = Result<Option<Promise>, Error>;

/// A reservation that came back. What is not understood may be by the next version of the broker.
fn read(told: &Reservation) -> Result<Promise, Error> {
    Promise::try_from(told).map_err(|error| not_understood(&error))
}

fn not_understood(error: &Unreadable) -> Error {
    Error::Transient { why: format!("its answer is not understood: {error}"), retry_after: None }
}

impl Broker for Http {
    fn ping(&self) -> Answer<'_, ()> {
        async { Ok(self.shared.once.health().await?) }.boxed()
    }

    fn audience(&self) -> Audience {
        if self.shared.era.is_known_old() { Audience::OldBroker } else { Audience::Broker }
    }

    fn publish<'a>(&'a self, word: &'a Advertisement) -> Answer<'a, Option<Number>> {
        async {
            let answer = self.client().advertise(word).await?;
            if !self.shared.era.is_ours() {
                old::hand_on(&answer.provider_instructions, &self.shared.piggy_back);
            }
            Ok(answer.advertisement.number)
        }
        .boxed()
    }

    fn takes_keys(&self) -> Answer<'_, bool> {
        async { Ok(!self.shared.era.is_old(self.client()).await?) }.boxed()
    }

    fn reserve<'a>(&'a self, key: &'a Key, what: &'a ReservationRequest) -> Answer<'a, Promise> {
        async {
            if self.shared.era.is_old(self.client()).await? {
                return old::reserve(&self.shared.once, key, what).await;
            }
            read(&self.client().reserve_under(what, key).await?)
        }
        .boxed()
    }

    fn reservation<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Promise>> {
        self.about(id, |id| self.client().reservation(id)).boxed()
    }

    fn release_key<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Promise>> {
        async {
            let era = &self.shared.era;
            match self.client().release_by_key(key).await.map_err(|error| era.judge(error)) {
                Ok(told) => told.as_ref().map(read).transpose(),
                Err(error) if error.is_absence() => Ok(None),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn release<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Promise>> {
        self.about(id, |id| self.client().release(id)).boxed()
    }

    fn renew<'a>(&'a self, id: &'a str, how: &'a Renewal) -> Answer<'a, Option<Promise>> {
        self.about(id, |id| self.client().renew(id, how)).boxed()
    }

    fn resize<'a>(&'a self, id: &'a str, to: &'a Resizing) -> Answer<'a, Option<Promise>> {
        self.about(id, |id| self.client().resize(id, to)).boxed()
    }

    fn activate<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Promise>> {
        self.about(id, |id| self.client().activate(id)).boxed()
    }

    fn acknowledge<'a>(&'a self, id: &'a str, done: Generation) -> Answer<'a, ()> {
        let ask = move |id| self.client().acknowledge(id, done);
        async move { self.about(id, ask).await.map(drop) }.boxed()
    }

    fn fail<'a>(&'a self, id: &'a str, why: &'a Failed) -> Answer<'a, ()> {
        async move { self.about(id, |id| self.client().fail(id, why)).await.map(drop) }.boxed()
    }

    fn send<'a>(&'a self, message: &'a Message) -> Answer<'a, ()> {
        async {
            let era = &self.shared.era;
            if era.is_old(self.client()).await? {
                return Err(Error::NoMessages);
            }
            match self.client().send_message(message).await.map_err(|error| era.judge(error)) {
                // Ours, of a version before this route was.
                Err(Error::Refused(no)) if no.code == Some(Code::NoSuchRoute) => {
                    Err(Error::NoMessages)
                }
                sent => sent,
            }
        }
        .boxed()
    }

    fn feed(&self) -> Box<dyn Feed> {
        Box::new(HttpFeed::new(Arc::clone(&self.shared)))
    }
}
