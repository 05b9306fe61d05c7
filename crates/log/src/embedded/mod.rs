//! The default home: one `SQLite` file in a folder of its own, for one process at a time.
//!
//! | file | what it is |
//! |---|---|
//! | `sublet.db`, `sublet.db-wal` | the records, the newest snapshot, and `SQLite`'s journal of both |
//! | `sublet.db-shm` | `SQLite`'s scratch; made anew at every start |
//! | `head` | the last acknowledged position, noted after each commit |
//! | `lock` | held by the process that uses the folder |
//! | `notes/` | soft notes |
//!
//! **Appended means fsynced**: the journal is synced before `append` returns. After any write or
//! sync that failed, the kernel may have dropped what it could not write and would call the next
//! sync a success; so the handle acknowledges nothing more until the folder is opened again and
//! everything in it was read back.
//!
//! **Why `head`.** `SQLite` ends its journal at the first frame that does not check out, silently:
//! one flipped bit there would shorten the log. The head is noted beside it, so a log that comes
//! back shorter than what was acknowledged is refused. The note is not synced with each commit: a
//! killed process loses nothing of it, but a power loss may take it back to what was synced last
//! (at the first append of a process, and at each checkpoint, every 32 MiB or so). From there on, and
//! only after a power loss, a damaged end of the journal cannot be told from one that was never
//! written. Everything before it is still guarded by the chain of checksums.
//!
//! **Opening writes nothing**, the lock apart, until everything was verified. A store that is
//! refused is left as it was found, byte for byte, so that it can be looked at, copied and restored.

mod error;
mod lock;
mod note;
mod head;
mod schema;
mod create;
mod verify;
mod query;
mod room;
mod journal;
mod writer;
mod upkeep;
pub mod restore;
mod beside;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use parking_lot as fair;
use rusqlite::Connection;
use sublet_core::id::Revision;
use sublet_core::time::Time;

pub use error::Error;

use create::Contents;

use crate::record::Envelope;
use crate::{
    Admission, AppendError, Head, Log, ReadError, Record, Snapshot, StoreError, check_note,
};
use lock::Lock;
use upkeep::Copier;
use writer::Writer;

/// The database.
const DATABASE: &str = "sublet.db";
/// `SQLite`'s journal of it.
const JOURNAL: &str = "sublet.db-wal";
/// `SQLite`'s scratch beside it.
const SCRATCH: &str = "sublet.db-shm";

/// How a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// When the journal has become so long, it is copied into the database beside the appends, and a
    /// later one ends the checkpoint. Each copy makes appends wait for its syncs, a small one as much as a
    /// large one: so much that this is rare.
    pub checkpoint_bytes: usize,
    /// An append copies it itself when it has become so long: nobody tends the log.
    pub overdue_bytes: usize,
    /// The journal is made so long at the start, so that it need not grow: somewhat more than it has
    /// when a checkpoint is ended.
    pub room_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        let (checkpoint_bytes, overdue_bytes) = (32 * 1024 * 1024, 128 * 1024 * 1024);
        Self { checkpoint_bytes, overdue_bytes, room_bytes: checkpoint_bytes + 2 * 1024 * 1024 }
    }
}

/// A handle on the log in one folder.
pub struct Embedded {
    folder: PathBuf,
    /// Not one of the standard library's: whoever has much to write has to pass it on.
    writer: fair::Mutex<Writer>,
    reader: Mutex<Connection>,
    copier: Option<Mutex<Copier>>,
    position: Mutex<Position>,
    appended: Condvar,
    /// One snapshot, compaction or checkpoint at a time; never held together with an append.
    upkeep: Mutex<()>,
    /// Last, so that it is let go when everything else is closed; none beside the process that
    /// has it.
    lock: Option<Lock>,
}

/// What is kept, as it was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Position {
    /// The record before the first one that is kept.
    floor: Head,
    /// The last one.
    head: Head,
}

impl Embedded {
    /// Opens the log in `folder`, and makes an empty one where there is none.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_with(folder, Options::default())
    }

    /// Opens the log in `folder` as [`Embedded::open`] does, kept in this way.
    pub fn open_with(folder: &Path, options: Options) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io("create the folder", folder, e))?;
        let lock = Lock::take(folder)?;
        if create::is_fresh(folder)? {
            create::create(folder, Contents::default())?;
        }
        Self::start(folder, lock, Some(options))
    }

    /// Opens the log in `folder` only to look at it: appends are refused.
    pub fn open_read_only(folder: &Path) -> Result<Self, Error> {
        let lock = Lock::take(folder)?;
        Self::start(folder, lock, None)
    }

    /// Makes a log with these contents in `folder`, which must be empty.
    fn create_with(folder: &Path, contents: Contents<'_>) -> Result<(), Error> {
        std::fs::create_dir_all(folder).map_err(|e| Error::io("create the folder", folder, e))?;
        create::check_empty(folder)?;
        let _lock = Lock::take(folder)?;
        create::create(folder, contents)
    }

    fn start(folder: &Path, lock: Lock, options: Option<Options>) -> Result<Self, Error> {
        let position = verify::verify(folder)?;
        let (writer, copier) = match options {
            Some(options) => {
                let (writer, journal) = Writer::open(folder, options)?;
                (writer, Some(Mutex::new(Copier::open(folder, journal)?)))
            }
            None => (Writer::closed("the log was opened only to be read"), None),
        };
        Ok(Self {
            folder: folder.into(),
            writer: fair::Mutex::new(writer),
            reader: Mutex::new(schema::open_for_reading(folder)?),
            copier,
            position: Mutex::new(position),
            appended: Condvar::new(),
            upkeep: Mutex::new(()),
            lock: Some(lock),
        })
    }

    /// The folder it lives in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A writer that panicked has latched itself, so its lock is taken as it is.
    fn writer(&self) -> fair::MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn position(&self) -> MutexGuard<'_, Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, change: impl FnOnce(&mut Position)) {
        change(&mut self.position());
        self.appended.notify_all();
    }

    /// What stands at `revision`, if it is still kept.
    fn head_at(&self, revision: Revision) -> Result<Option<Head>, ReadError> {
        let floor = self.position().floor;
        if revision == floor.revision {
            return Ok(Some(floor));
        }
        let envelope: Option<Envelope> = query::envelope(&self.reader(), revision)?;
        Ok(envelope.map(|envelope| envelope.head()))
    }
}

impl Log for Embedded {
    fn append(&self, record: &Record) -> Result<(), AppendError> {
        let mut writer = self.writer();
        writer.check().map_err(AppendError::Fatal)?;
        let head = self.position().head;
        if head.admit(record)? == Admission::Behind {
            let kept = self.head_at(record.revision());
            return match kept.map_err(|e| AppendError::Unknown(e.into()))? {
                Some(kept) if kept == record.head() => Ok(()),
                _ => Err(AppendError::Taken { head }),
            };
        }
        writer.append(record).map_err(AppendError::Fatal)?;
        self.publish(|position| position.head = record.head());
        Ok(())
    }

    fn head(&self) -> Result<Head, ReadError> {
        Ok(self.position().head)
    }

    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
        let from = from.max(Revision(1));
        let Position { floor, head } = *self.position();
        if from <= floor.revision {
            let oldest = floor.revision.next();
            return Err(ReadError::Compacted { oldest });
        }
        if from > head.revision || limit == 0 {
            return Ok(Vec::new());
        }
        let records = query::records(&self.reader(), from..=head.revision, limit)?;
        if records.first().is_some_and(|r| r.revision() == from) {
            return Ok(records);
        }
        let oldest = self.position().floor.revision.next();
        if oldest > from {
            return Err(ReadError::Compacted { oldest });
        }
        Err(ReadError::corrupt(format!("revision {from}"), "it is missing"))
    }

    fn follow(
        &self,
        from: Revision,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<Record>, ReadError> {
        let nothing_yet = |position: &mut Position| position.head.revision < from;
        let waited = self.appended.wait_timeout_while(self.position(), patience, nothing_yet);
        drop(waited);
        self.read(from, limit)
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
        query::snapshot(&mut self.reader())
    }

    fn put_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.keep_snapshot(snapshot)
    }

    fn compact(&self, before: Time) -> Result<(), StoreError> {
        self.drop_history(before)
    }

    fn tend(&self) -> Result<bool, StoreError> {
        self.copy_journal()
    }

    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(note::read(&self.folder, name))
    }

    fn put_note(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        check_note(name, bytes)?;
        note::write(&self.folder, name, bytes).map_err(|e| StoreError::Unavailable(e.into()))
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embedded({})", self.folder.display())
    }
}
