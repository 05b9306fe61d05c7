//! Stage 9 of 12 · commit — decided events become durable, and their order final.
//!
//! Upstream: `engine` plans a batch of events. Downstream: `instruction` says what both sides must
//! do; every replica and every audit folds the same records into the same ledger.
//!
//! The log is the truth and the ledger is its fold. Whoever appends is the leader: safety is
//! compare-and-append alone, so two brokers that both believe to lead cannot both succeed. This
//! crate owns what a record is, the homes it can live in ([`memory`], `embedded`; Kubernetes and
//! etcd plug in behind the same trait), the [`conformance`] suite that holds all homes to one
//! contract, and what operators do with a log: [`fsck`], [`backup`], [`dump`].
//!
//! The interface blocks. Callers with a runtime give it a thread, which is what an fsync needs
//! anyway. Modules are listed in reading order.

pub mod frame;
pub mod record;
pub mod error;
pub mod snapshot;
pub mod memory;
pub mod faulty;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod dump;
pub mod fsck;
pub mod backup;
pub mod conformance;

use std::time::Duration;

use sublet_core::id::Revision;
use sublet_core::ledger::Stamp;
use sublet_core::time::Time;

#[cfg(feature = "embedded")]
pub use embedded::Embedded;
pub use error::{AppendError, Cause, ReadError, Refusal, StoreError};
pub use frame::Checksum;
pub use memory::Memory;
pub use record::{Body, Envelope, Record, Writer};
pub use snapshot::Snapshot;

/// What a note may weigh: a Kubernetes object holds it, base64 included.
pub const NOTE_BYTES_MAX: usize = 512 * 1024;
/// How long the name of a note may be: a DNS label, so that it can name a Kubernetes object.
pub const NOTE_NAME_MAX: usize = 63;

/// Linearizable compare-and-append: each next revision has exactly one winner, and what `append`
/// returned `Ok` for is durable and is never lost, changed or moved.
///
/// An append may succeed although its caller saw an error. Such a caller appends *the same* record
/// again, which is harmless, or reads back; it never appends another one at that revision before it
/// knows. All handles on one log see the same records.
pub trait Log: Send + Sync {
    /// Makes `record` durable as the next one.
    ///
    /// A record that is there already, byte for byte, is `Ok` again as long as it is kept.
    fn append(&self, record: &Record) -> Result<(), AppendError>;

    /// The last record's position.
    fn head(&self) -> Result<Head, ReadError>;

    /// Records in order, beginning with `from`: at least one if there is one, at most `limit`;
    /// fewer than that says nothing about the head. Beyond the head there are none.
    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError>;

    /// Like [`Log::read`], but waits until there is one; none when `patience` is over before.
    fn follow(
        &self,
        from: Revision,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<Record>, ReadError>;

    /// The newest snapshot.
    fn snapshot(&self) -> Result<Option<Snapshot>, ReadError>;

    /// Keeps `snapshot`; one that is not newer than what is kept, or of the empty log, changes
    /// nothing. Appends go on meanwhile.
    fn put_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError>;

    /// Drops records that the newest snapshot covers and that are older than `before`.
    fn compact(&self, before: Time) -> Result<(), StoreError>;

    /// Does what would make an append late if it had to do it itself, and says whether there was
    /// anything to do. Called every now and then by somebody who is in no hurry.
    fn tend(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// A soft note, if it was kept: a hint of an earlier life, never a promise.
    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError>;

    /// Keeps a soft note in place of the last one; an empty one removes it.
    fn put_note(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError>;
}

/// The position of the last record: what the next one must follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Its revision; 0 when the log is empty.
    pub revision: Revision,
    /// Its checksum.
    pub checksum: Checksum,
    /// Its broker time.
    pub time: Time,
}

/// What a record that is offered to the log is to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The next one.
    Next,
    /// It would stand where a record stands already: the same one, or another's.
    Behind,
}

impl Head {
    /// The same position as the ledger has it.
    pub fn stamp(&self) -> Stamp {
        Stamp { revision: self.revision, time: self.time }
    }

    /// Judges a record that is to follow: every home asks this before it writes.
    pub fn admit(&self, record: &Record) -> Result<Admission, Refusal> {
        self.admit_envelope(record.envelope())
    }

    /// The same, of a record whose events nobody has parsed.
    pub fn admit_envelope(&self, next: &Envelope) -> Result<Admission, Refusal> {
        let revision = next.revision;
        if revision <= self.revision {
            return Ok(Admission::Behind);
        }
        if revision != self.revision.next() {
            let head = self.revision;
            return Err(Refusal::Gap { head, found: revision });
        }
        if next.previous != self.checksum {
            return Err(Refusal::Chain { revision, expected: self.checksum, found: next.previous });
        }
        if next.time < self.time {
            return Err(Refusal::Backwards { revision });
        }
        Ok(Admission::Next)
    }
}

/// Checks a note before a home keeps it.
pub fn check_note(name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || name.len() > NOTE_NAME_MAX || !name.bytes().all(plain) {
        return Err(StoreError::NoteName(name.chars().take(64).collect()));
    }
    if bytes.len() > NOTE_BYTES_MAX {
        return Err(StoreError::NoteSize(bytes.len()));
    }
    Ok(())
}
