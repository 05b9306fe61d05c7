//! What can go wrong with a log, sorted by what the caller must do next.

use sublet_core::id::Revision;

use crate::{Checksum, Head, NOTE_BYTES_MAX, NOTE_NAME_MAX};

/// What a home says happened, for people: nobody decides on it.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why an append was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Another record stands there, or this one did and was compacted away since.
    #[error("the revision is taken, the log is at {}: read on from there and plan again", .head.revision)]
    Taken {
        /// Where the log is now.
        head: Head,
    },
    /// It cannot follow what is there; nothing was written.
    #[error("the record was refused and nothing was written")]
    Refused(#[from] Refusal),
    /// It may or may not be there.
    #[error("whether the record was written is not known: append the same one again, or read back")]
    Unknown(#[source] Cause),
    /// It may or may not be there, and this handle acknowledges nothing any more.
    #[error(
        "the log can no longer be written: nothing is acknowledged until it was opened again and \
         read back; restart the broker once the cause is gone"
    )]
    Fatal(#[source] Cause),
}

/// Why a record cannot be the next one, whoever appends it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Records are missing before it.
    #[error("revision {found} cannot follow revision {head}: append what is between them first")]
    Gap {
        /// Where the log is.
        head: Revision,
        /// What was offered.
        found: Revision,
    },
    /// It was made after another record than the one that is there.
    #[error(
        "revision {revision} follows a record with checksum {found}, but the one before it has \
         {expected}: the chain is broken; compare with a backup or another replica"
    )]
    Chain {
        /// Which.
        revision: Revision,
        /// The checksum of the record before it.
        expected: Checksum,
        /// What it names.
        found: Checksum,
    },
    /// Broker time goes back.
    #[error("revision {revision} is older than the record before it: use a later broker time")]
    Backwards {
        /// Which.
        revision: Revision,
    },
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no longer kept.
    #[error("records before revision {oldest} are no longer kept: begin with the snapshot")]
    Compacted {
        /// The first revision that can be read.
        oldest: Revision,
    },
    /// What is kept is not what was written.
    #[error("{what} cannot be believed: check the log with fsck, and restore it from a backup")]
    Corrupt {
        /// What it is about, with its place.
        what: String,
        /// What is wrong with it.
        #[source]
        source: Cause,
    },
    /// It cannot be reached now.
    #[error("the log cannot be read now: try again")]
    Unavailable(#[source] Cause),
}

impl ReadError {
    /// Damage, said about `what`.
    pub fn corrupt(what: impl Into<String>, source: impl Into<Cause>) -> Self {
        Self::Corrupt { what: what.into(), source: source.into() }
    }
}

/// Why a snapshot, a note or a compaction was not stored; the records are as they were.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A snapshot of something that is not in this log.
    #[error("the snapshot of revision {0} does not belong to this log: take a new one")]
    ForeignSnapshot(Revision),
    /// Not a name for a note.
    #[error("note name {0:?} is not 1 to {NOTE_NAME_MAX} characters of a-z, 0-9 and '-'")]
    NoteName(String),
    /// Too large for a note.
    #[error("a note of {0} bytes is larger than {NOTE_BYTES_MAX}: split it")]
    NoteSize(usize),
    /// It did not work this time.
    #[error("it could not be stored now: try again")]
    Unavailable(#[source] Cause),
    /// The handle is as after [`AppendError::Fatal`].
    #[error("the log can no longer be written: restart the broker once the cause is gone")]
    Fatal(#[source] Cause),
}
