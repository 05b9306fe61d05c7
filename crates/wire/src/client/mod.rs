//! The client of a broker, or of several that share their log.
//!
//! Every call is safe to repeat: what is not harmless by nature carries a key. So a call is tried
//! again, with growing and random pauses, when the broker cannot be reached, does not answer, or
//! says that it is busy, for as long as [`Options`] let it. When a reservation's fate is not known
//! at the end, its key is released, so that nothing is held that nobody knows of (see
//! [`Client::reserve`]). Credentials that were read from files are read again when those are renewed.
//! [`Instructions`] is the stream of what to do: it comes back by itself, at
//! the place where it was cut.

mod options;
mod credentials;
mod error;
mod pause;
mod tls;
mod pool;
mod transport;
mod call;
mod reserve;
mod cluster_calls;
mod operator_calls;
mod lines;
mod instructions;

use std::sync::Arc;

pub use credentials::Credentials;
pub use error::{CredentialsError, Error};
pub use instructions::{Event, Instructions};
pub use operator_calls::ReservationQuery;
pub use options::{Options, Page};
pub use reserve::random_key;

use transport::Transport;

/// The client of a broker; cheap to clone, all clones share their connections.
#[derive(Clone)]
pub struct Client {
    transport: Arc<Transport>,
}

impl Client {
    /// A client that has not connected yet.
    pub fn new(options: Options) -> Result<Self, Error> {
        Ok(Self { transport: Arc::new(Transport::new(options)?) })
    }

    /// The brokers' addresses, as they were given.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.transport.urls()
    }
}
