//! Stage 3 of 12 · carry — the way to the broker and back, behind one trait.
//!
//! Upstream: `advertise` has something to say, `act` something to ask. Downstream: the broker admits
//! it; what it wants done comes back as [`News`].
//!
//! Everything that comes in is read here, once, into types that cannot be wrong. What an old broker
//! does not offer is degraded here too, so that nobody else has to know: it has no stream, so its
//! list is polled; it hears of no acknowledgement, and capacity cannot be given back to it.

mod error;
mod order;
mod promise;
mod http;
mod none;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sublet_core::id::{Generation, Key};
use sublet_core::instruction::Side;
use sublet_wire::v1::{
    Advertisement, Failed, Message, Number, Renewal, ReservationRequest, Resizing,
};

use crate::advertise::Audience;

pub use error::{Error, Refusal};
pub use http::Http;
pub use none::Local;
pub use order::{Order, Unreadable};
pub use promise::Promise;

/// What comes of a call.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// The way to a broker. Every call is safe to repeat, except [`reserve`](Self::reserve) at an old
/// broker, whose error then says that the outcome is not known.
pub trait Broker: Send + Sync + 'static {
    /// Is a broker there? Answers at once and is not repeated.
    fn ping(&self) -> Answer<'_, ()>;

    /// Which broker listens, as far as is known.
    fn audience(&self) -> Audience {
        Audience::Broker
    }

    /// Says what the cluster has. Answers with the number of what the broker keeps, if that has one: a
    /// higher one than this word's means that it is not this word. What an old broker wants done in
    /// return goes to the feed.
    fn publish<'a>(&'a self, word: &'a Advertisement) -> Answer<'a, Option<Number>>;

    /// Is it harmless to ask twice under one key? At an old broker it is not: it reserves twice.
    fn takes_keys(&self) -> Answer<'_, bool> {
        std::future::ready(Ok(true)).boxed()
    }

    /// Asks for capacity under a key; asking again answers with what became of it.
    fn reserve<'a>(&'a self, key: &'a Key, what: &'a ReservationRequest) -> Answer<'a, Promise>;

    /// A reservation as it is now; none if the broker knows nothing of it, or cannot say.
    fn reservation<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Promise>>;

    /// Ends whatever was, or will be, asked for under a key; none if nothing is left of it, or the
    /// broker cannot do that.
    fn release_key<'a>(&'a self, key: &'a Key) -> Answer<'a, Option<Promise>>;

    /// Ends a reservation; none if the broker knows nothing of it, or cannot do that.
    fn release<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Promise>>;

    /// Lets a reservation run on; none if the broker cannot do that.
    fn renew<'a>(&'a self, id: &'a str, how: &'a Renewal) -> Answer<'a, Option<Promise>>;

    /// Changes the amounts of a reservation; none if the broker cannot do that.
    fn resize<'a>(&'a self, id: &'a str, to: &'a Resizing) -> Answer<'a, Option<Promise>>;

    /// Confirms as the requester that the capacity is usable; none if the broker does not want to
    /// know.
    fn activate<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Promise>>;

    /// Confirms as the provider that an instruction was carried out, if the broker wants to know.
    fn acknowledge<'a>(&'a self, id: &'a str, done: Generation) -> Answer<'a, ()>;

    /// Says as either side that the clusters cannot be joined, if the broker wants to know.
    fn fail<'a>(&'a self, id: &'a str, why: &'a Failed) -> Answer<'a, ()>;

    /// Has something brought to another cluster's agent, softly: it may get lost, so whoever wants an
    /// answer sends it again. An old broker cannot do that ([`Error::NoMessages`]).
    fn send<'a>(&'a self, message: &'a Message) -> Answer<'a, ()>;

    /// What is to be done, from the beginning: a whole list first, then what changes.
    fn feed(&self) -> Box<dyn Feed>;
}

/// What a broker wants done, as it comes. It resumes by itself and never ends.
pub trait Feed: Send {
    /// What happens next. Nothing is lost when the future is dropped.
    fn next(&mut self) -> BoxFuture<'_, News>;
}

/// What a feed says.
#[derive(Debug)]
pub enum News {
    /// The broker is reached, for the first time or again: time to advertise.
    Connected,
    /// A whole list follows, until [`Synced`](Self::Synced).
    Reset(Reach),
    /// Something to do.
    Order(Order),
    /// Something that this version does not understand: a list that it is in is not whole.
    Unread,
    /// Something that another cluster's agent sent. Who that was is not certain before its content
    /// was opened.
    Message(Message),
    /// The list is complete, or nothing is new.
    Synced,
    /// The broker is out of reach; it is tried again by itself.
    Interrupted(Error),
}

/// What a whole list is the whole of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// What the cluster lends and what it borrows.
    Both,
    /// What it lends: an old broker says nothing to borrowers.
    Lent,
    /// Nothing: an old broker is not asked for its list, and mentions new loans in passing.
    Nothing,
}

impl Reach {
    /// What this cluster is in what the list is the whole of.
    pub fn sides(self) -> &'static [Side] {
        match self {
            Self::Both => &[Side::Provider, Side::Requester],
            Self::Lent => &[Side::Provider],
            Self::Nothing => &[],
        }
    }
}
