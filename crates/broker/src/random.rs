//! Randomness, from the system, in one place: keys that clients did not choose, the ids of requests,
//! and the name of this process as a writer.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use sublet_core::id::Key;
use sublet_log::Writer;

/// The system gives no randomness.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no randomness: {0}")]
pub struct Error(getrandom::Error);

fn number() -> Result<u128, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Error)?;
    Ok(u128::from_be_bytes(bytes))
}

/// A name for this process as a writer of the log.
pub fn writer() -> Result<Writer, Error> {
    number().map(Writer)
}

/// A text that nobody else has.
pub fn text() -> Result<String, Error> {
    number().map(|number| format!("{number:032x}"))
}

/// Names of requests: a random beginning for this process, and a count. Nothing depends on whether
/// one can be guessed, so the system is asked once and not for every request.
pub struct RequestIds {
    process: String,
    next: AtomicU64,
}

impl RequestIds {
    /// The names that this process gives.
    pub fn new() -> Result<Self, Error> {
        let mut process = text()?;
        process.truncate(16);
        Ok(Self { process, next: AtomicU64::new(0) })
    }

    /// The next one.
    pub fn next(&self) -> String {
        let mut id = String::with_capacity(32);
        id.push_str(&self.process);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // A text takes whatever is written to it.
        write!(id, "{number:016x}").ok();
        id
    }
}

/// A key for a request that came without one: each such request is a new one.
pub fn key() -> Result<Key, Error> {
    let text = text()?;
    // Hexadecimal digits are visible ASCII, so this key is one.
    text.parse().map_err(|_| Error(getrandom::Error::UNEXPECTED))
}
