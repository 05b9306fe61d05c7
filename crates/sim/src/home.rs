//! The log that all brokers share: records in memory, with a model of what is synced.
//!
//! What is appended is synced, so a power loss takes nothing — unless a disk fails, or a planted bug
//! lies about it. Then the tail that was never synced is gone after the next power loss, as it is
//! with a real disk. Every record that became visible is kept beside it for the auditor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sublet_core::bugs::{Bug, planted};
use sublet_core::event::{Event, Note};
use sublet_core::id::Revision;
use sublet_core::reservation::Actor;
use sublet_core::time::Time;
use sublet_log::{
    AppendError, Body, Head, Log, Memory, ReadError, Record, Snapshot, StoreError, Writer,
};

/// What happens to one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It works.
    #[default]
    Fine,
    /// The log cannot be reached.
    Cut,
    /// It is done, and the caller cannot tell.
    AnswerLost,
    /// The disk fails before anything is written.
    FatalBefore,
    /// The disk fails after it was written.
    FatalAfter,
    /// The disk fails while the record is in the cache only.
    FatalDirty,
}

#[derive(Debug, Default)]
struct Disk {
    log: Memory,
    /// Every record from the first on.
    all: Vec<Record>,
    /// How many of them survive a power loss.
    synced: usize,
    /// A sync failed: what was in the cache then is never written any more.
    stuck: bool,
}

/// The shared log.
#[derive(Clone, Debug, Default)]
pub struct Home(Arc<Mutex<Disk>>);

impl Home {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle whose next call has this fate.
    pub fn handle(&self, fate: Fate) -> Handle {
        Handle { home: self.clone(), fate }
    }

    /// Records that became visible, beginning after so many.
    pub fn since(&self, known: usize) -> Vec<Record> {
        self.disk().all.get(known..).unwrap_or_default().to_vec()
    }

    /// How many records there are.
    pub fn count(&self) -> usize {
        self.disk().all.len()
    }

    /// The last revision that survives a power loss.
    pub fn durable(&self) -> Revision {
        let disk = self.disk();
        Revision(disk.synced as u64)
    }

    /// Whether a sync failed and the log must be opened anew.
    pub fn is_stuck(&self) -> bool {
        self.disk().stuck
    }

    /// The cache is lost; how many records are left.
    pub fn lose_power(&self) -> usize {
        let mut disk = self.disk();
        disk.stuck = false;
        let synced = disk.synced;
        if synced < disk.all.len() {
            disk.all.truncate(synced);
            let log = Memory::new();
            for record in &disk.all {
                // They followed each other before, so they do again.
                drop(log.append(record));
            }
            disk.log = log;
        }
        synced
    }
}

/// As `embedded::restore` makes a log of a backup: its records, and the mark that ends them.
impl Home {
    /// Restores what was there so many records ago, at most all.
    pub fn restore(&self, back: u64, now: Time) -> Result<(), Error> {
        let mut disk = self.disk();
        let kept = disk.synced - usize::try_from(back)?.min(disk.synced - 1);
        disk.all.truncate(kept);
        let log = Memory::new();
        for record in &disk.all {
            log.append(record)?;
        }
        let head = log.head()?;
        let note = Note { by: Actor::Operator("olga".into()), why: "the disk is gone".into() };
        let body = Body::of([Event::Restored { note }])?;
        let mark = Record::seal(&head, Writer(u128::MAX), now.max(head.time), body)?;
        log.append(&mark)?;
        disk.all.push(mark);
        (disk.log, disk.synced, disk.stuck) = (log, kept + 1, false);
        Ok(())
    }
}

/// Why nothing was restored.
type Error = Box<dyn std::error::Error>;

/// One broker's way to the log, for one call.
#[derive(Clone, Debug)]
pub struct Handle {
    home: Home,
    fate: Fate,
}

impl Handle {
    fn memory(&self) -> Result<Memory, ReadError> {
        if self.fate == Fate::Cut {
            return Err(ReadError::Unavailable("cut off".into()));
        }
        Ok(self.home.disk().log.clone())
    }

    fn write(&self, record: &Record) -> Result<(), AppendError> {
        let mut disk = self.home.disk();
        disk.log.append(record)?;
        let count = disk.all.len();
        if record.revision().0 > count as u64 {
            disk.all.push(record.clone());
            let skipped = planted(Bug::SkipsSync) && record.revision().0.is_multiple_of(10);
            if !disk.stuck && !skipped && self.fate != Fate::FatalDirty {
                disk.synced = count + 1;
            }
        }
        Ok(())
    }
}

fn fatal() -> AppendError {
    AppendError::Fatal("the disk failed".into())
}

impl Log for Handle {
    fn append(&self, record: &Record) -> Result<(), AppendError> {
        match self.fate {
            Fate::Fine => self.write(record),
            Fate::Cut => Err(AppendError::Unknown("cut off".into())),
            Fate::AnswerLost => {
                self.write(record)?;
                Err(AppendError::Unknown("the answer was lost".into()))
            }
            Fate::FatalBefore => Err(fatal()),
            Fate::FatalAfter => {
                self.write(record)?;
                Err(fatal())
            }
            Fate::FatalDirty => {
                self.write(record)?;
                self.home.disk().stuck = true;
                Err(fatal())
            }
        }
    }

    fn head(&self) -> Result<Head, ReadError> {
        self.memory()?.head()
    }

    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
        self.memory()?.read(from, limit)
    }

    fn follow(
        &self,
        from: Revision,
        limit: usize,
        _patience: Duration,
    ) -> Result<Vec<Record>, ReadError> {
        self.read(from, limit)
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
        self.memory()?.snapshot()
    }

    fn put_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.home.disk().log.put_snapshot(snapshot)
    }

    fn compact(&self, before: Time) -> Result<(), StoreError> {
        self.home.disk().log.compact(before)
    }

    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        self.memory()?.note(name)
    }

    fn put_note(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.home.disk().log.put_note(name, bytes)
    }
}
