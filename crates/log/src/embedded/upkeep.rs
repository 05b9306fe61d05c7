//! Snapshots, compaction and checkpoints, in pieces so small that appends pass in between.

use std::sync::PoisonError;

use parking_lot::MutexGuard;
use sublet_core::id::Revision;
use sublet_core::time::Time;

use super::writer::{self, Writer};
use super::{Embedded, query, schema};
use crate::{Cause, Head, ReadError, Snapshot, StoreError};

/// How much of a snapshot is written in one commit: appends pass in between.
pub(super) const PART_BYTES: usize = 64 * 1024;
/// How many records are dropped in one commit, for the same reason.
const COMPACT_BATCH: u64 = 256;
/// Of a checkpoint, what is left to copy while appends wait: so much that they hardly notice. Where
/// they come faster than they can be copied, it is not tried for ever.
const LITTLE_BYTES: usize = 128 * 1024;
const COPIES_MAX: u32 = 4;

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

    /// Copies the journal into the database beside the appends, which only wait for the last bit.
    pub(super) fn copy_journal(&self) -> Result<bool, StoreError> {
        let _upkeep = self.upkeep.lock();
        if !self.writer().wants_checkpoint() {
            return Ok(false);
        }
        let begun = self.copy_beside();
        self.writer().end_checkpoint(begun).map_err(StoreError::Fatal)
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

    /// Copies while appends go on, until little has come meanwhile.
    fn copy_beside(&self) -> Result<(), Cause> {
        let Some(copier) = &self.copier else { return Ok(()) };
        let copier = copier.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..COPIES_MAX {
            let before = self.writer().journal_bytes();
            let all = writer::copy_journal(&copier)?;
            let since = self.writer().journal_bytes().saturating_sub(before);
            if !all || since <= LITTLE_BYTES {
                break;
            }
        }
        Ok(())
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
