//! How patient a client is, and whom it talks to.

use std::time::Duration;

use super::Credentials;
use crate::limits::KEEP_ALIVE;

/// Whom to talk to and how patiently.
#[derive(Clone, Debug)]
pub struct Options {
    /// The brokers, `https://host:port` each; the first that answers is used.
    pub urls: Vec<String>,
    /// What the client shows, and whom it believes.
    pub credentials: Credentials,
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// How long to wait for one answer.
    pub request_timeout: Duration,
    /// How long a call may take in all, with its repeats.
    pub patience: Duration,
    /// How often a call is tried at most.
    pub attempts: u32,
    /// The longest first pause between two tries; each next one may be twice as long.
    pub pause_first: Duration,
    /// The longest pause that is made unasked.
    pub pause_max: Duration,
    /// The longest pause between two tries at all: who has to wait for longer is told so instead.
    pub wait_max: Duration,
    /// How long a stream may be silent before it counts as cut: three of its keep-alives.
    pub silence: Duration,
}

impl Options {
    /// With the usual patience. An agent may wait longer, a person at a terminal less.
    pub fn new(urls: Vec<String>, credentials: Credentials) -> Self {
        Self {
            urls,
            credentials,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(10),
            patience: Duration::from_mins(1),
            attempts: 5,
            pause_first: Duration::from_millis(250),
            pause_max: Duration::from_secs(30),
            wait_max: Duration::from_mins(1),
            silence: Duration::from_millis(KEEP_ALIVE.as_millis()) * 3,
        }
    }
}

/// Which part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// How many at most; none leaves it to the broker.
    pub limit: Option<u32>,
    /// The `next` of the page before.
    pub after: Option<String>,
}
