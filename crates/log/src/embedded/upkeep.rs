//! Snapshots, compaction and checkpoints, in pieces so small that appends pass in between.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use parking_lot::MutexGuard;
use rusqlite::Connection;
use sublet_core::id::Revision;
use sublet_core::time::Time;

use super::journal::Journal;
use super::writer::{self, Writer};
use super::{DATABASE, Embedded, Error, query, schema};
use crate::{Cause, Head, ReadError, Snapshot, StoreError};

/// How much of a snapshot is written in one commit: appends pass in between.
pub(super) const PART_BYTES: usize = 64 * 1024;
/// How many records are dropped in one commit, for the same reason.
const COMPACT_BATCH: u64 = 256;
/// Where appends come faster than they can be copied, that is not tried for ever.
const COPIES_MAX: u32 = 4;

/// Copies the journal into the database beside the appends.
///
/// Open all the time: where a process has no file descriptors left, that is no failure of the disk.
/// And the file is closed after every connection is: `SQLite` would lose its locks otherwise.
pub(super) struct Copier {
    connection: Connection,
    database: File,
    journal: Arc<Journal>,
}

impl Copier {
    pub(super) fn open(folder: &Path, journal: Arc<Journal>) -> Result<Self, Error> {
        let path = folder.join(DATABASE);
        let connection = schema::open_for_writing(folder)?;
        let database = File::open(&path).map_err(|e| Error::io("open", &path, e))?;
        Ok(Self { connection, database, journal })
    }

    /// Copies what there is, and says whether that was everything. `SQLite` syncs the database only
    /// with the last of it, while an append waits; what is synced here, the append need not.
    fn copy(&self) -> Result<bool, Cause> {
        let all = writer::copy_journal(&self.connection)?;
        self.database.sync_data()?;
        Ok(all)
    }
}

impl Embedded {
    pub(super) fn keep_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let _upkeep = self.upkeep.lock();
        let newest = query::snapshot_mark(&self.reader()).map_err(unavailable)?;
        if newest.map_or(Revision(0), |mark| mark.revision) >= snapshot.revision() {
            return Ok(());
        }
        let stands_on = self.head_at(snapshot.revision()).map_err(unavailable)?;
        if stands_on != Some(snapshot.head()) {
            return Err(StoreError::ForeignSnapshot(snapshot.revision()));
        }
        let first = query::next_part(&self.reader()).map_err(unavailable)?;
        let mut last = first;
        for (part, bytes) in (first..).zip(snapshot.text().as_bytes().chunks(PART_BYTES)) {
            self.pass_on(|writer| writer.put_part(part, bytes)).map_err(StoreError::Fatal)?;
            last = part;
        }
        let mark = schema::SnapshotMark { revision: snapshot.revision(), first, last };
        self.writer().mark_snapshot(mark).map_err(StoreError::Fatal)?;
        self.drop_parts_before(first)
    }

    pub(super) fn drop_history(&self, before: Time) -> Result<(), StoreError> {
        let _upkeep = self.upkeep.lock();
        let mark = query::snapshot_mark(&self.reader()).map_err(unavailable)?;
        let Some(mark) = mark else { return Ok(()) };
        let first = self.position().floor.revision.next();
        let covered = first..=mark.revision;
        let last = query::last_before(&self.reader(), covered, before).map_err(unavailable)?;
        last.map_or(Ok(()), |last| self.drop_records(last.head()))
    }

    /// Copies a journal that has become long into the database beside the appends, and then what came
    /// meanwhile, until little is left; says whether there was something, and all of it was copied.
    pub(super) fn copy_journal(&self) -> Result<bool, StoreError> {
        let _upkeep = self.upkeep.lock();
        let Some(copier) = &self.copier else { return Ok(false) };
        let copier = copier.lock().unwrap_or_else(PoisonError::into_inner);
        let mut any = false;
        for _ in 0..COPIES_MAX {
            let Some(bytes) = copier.journal.wants_copy() else { break };
            let all = copier.copy().map_err(|error| {
                self.writer().fail(&error);
                StoreError::Fatal(error)
            })?;
            if !all {
                // Somebody who looks on holds it up.
                return Ok(false);
            }
            copier.journal.copied(bytes);
            any = true;
        }
        if any {
            copier.journal.end_soon();
        }
        Ok(any)
    }

    /// Writes one piece of many, and lets an append that waits have the writer next. A lock that is
    /// merely let go is taken again before whoever waits for it has woken up, so that an append
    /// would wait for all the pieces.
    fn pass_on<R>(&self, write: impl FnOnce(&mut Writer) -> R) -> R {
        let mut writer = self.writer();
        let written = write(&mut writer);
        MutexGuard::unlock_fair(writer);
        written
    }

    /// Drops what is left of older and unfinished snapshots, a commit for each part.
    fn drop_parts_before(&self, first: i64) -> Result<(), StoreError> {
        loop {
            // The reader is let go before the writer is taken: an append takes them the other way
            // round.
            let part = query::part_before(&self.reader(), first).map_err(unavailable)?;
            let Some(part) = part else { return Ok(()) };
            self.pass_on(|writer| writer.drop_part(part)).map_err(StoreError::Fatal)?;
        }
    }

    fn drop_records(&self, last: Head) -> Result<(), StoreError> {
        let mut floor = self.position().floor.revision.0;
        while floor < last.revision.0 {
            floor = floor.saturating_add(COMPACT_BATCH).min(last.revision.0);
            let gone = self.head_at(Revision(floor)).map_err(unavailable)?;
            let Some(gone) = gone else { return Ok(()) };
            // Readers turn away from what is about to go before it goes.
            self.publish(|position| position.floor = gone);
            self.pass_on(|writer| writer.drop_up_to(gone)).map_err(StoreError::Fatal)?;
        }
        Ok(())
    }
}

fn unavailable(error: ReadError) -> StoreError {
    StoreError::Unavailable(error.into())
}
