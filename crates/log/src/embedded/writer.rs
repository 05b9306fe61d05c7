//! The one connection that writes, and the latch that ends its right to acknowledge.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use super::head::{HeadFile, position_text};
use super::journal::Journal;
use super::query::row_number;
use super::schema::{self, MARK_FLOOR, MARK_SNAPSHOT, SnapshotMark};
use super::{Error, Options, room};
use crate::{Cause, Head, Record};

/// The connection, while it may be used.
pub(super) struct Writer {
    state: Result<Open, String>,
}

struct Open {
    connection: Connection,
    head: HeadFile,
    options: Options,
    journal: Arc<Journal>,
    /// An append makes a checkpoint all by itself when the journal has become so long.
    overdue_at: usize,
    /// Whether the noted head was synced since the store was opened.
    head_synced: bool,
}

impl Writer {
    pub(super) fn open(folder: &Path, options: Options) -> Result<(Self, Arc<Journal>), Error> {
        let bytes = room::make_ready(folder, options.room_bytes);
        let bytes = bytes.map_err(|e| Error::io("sync", folder, e))?;
        let journal = Arc::new(Journal::new(options, bytes));
        let state = Open {
            connection: schema::open_for_writing(folder)?,
            head: HeadFile::open(folder)?,
            options,
            journal: Arc::clone(&journal),
            overdue_at: options.overdue_bytes,
            head_synced: false,
        };
        Ok((Self { state: Ok(state) }, journal))
    }

    pub(super) fn closed(why: &str) -> Self {
        Self { state: Err(why.into()) }
    }

    /// Refuses when nothing may be acknowledged any more.
    pub(super) fn check(&self) -> Result<(), Cause> {
        self.state.as_ref().map(|_| ()).map_err(|why| why.clone().into())
    }

    /// Appends and notes the new head; both are done, or nothing is acknowledged any more.
    pub(super) fn append(&mut self, record: &Record) -> Result<(), Cause> {
        self.attempt(record.text().len(), |open| {
            let insert = "INSERT INTO records (revision, text) VALUES (?1, ?2)";
            let row = params![row_number(record.revision()), record.text()];
            open.connection.prepare_cached(insert)?.execute(row)?;
            open.head.write(record.head())?;
            if !open.head_synced {
                open.head.sync()?;
                open.head_synced = true;
            }
            Ok(())
        })
    }

    pub(super) fn put_part(&mut self, part: i64, bytes: &[u8]) -> Result<(), Cause> {
        self.attempt(bytes.len(), |open| {
            let insert = "INSERT INTO parts (part, bytes) VALUES (?1, ?2)";
            open.connection.prepare_cached(insert)?.execute(params![part, bytes])?;
            Ok(())
        })
    }

    pub(super) fn drop_part(&mut self, part: i64) -> Result<(), Cause> {
        self.attempt(0, |open| {
            let delete = "DELETE FROM parts WHERE part = ?1";
            open.connection.prepare_cached(delete)?.execute([part])?;
            Ok(())
        })
    }

    pub(super) fn mark_snapshot(&mut self, mark: SnapshotMark) -> Result<(), Cause> {
        self.attempt(0, |open| set_mark(&open.connection, MARK_SNAPSHOT, mark.text()))
    }

    /// Drops the records up to `floor`, and says so in the same commit.
    pub(super) fn drop_up_to(&mut self, floor: Head) -> Result<(), Cause> {
        self.attempt(0, |open| {
            let transaction = open.connection.transaction()?;
            let delete = "DELETE FROM records WHERE revision <= ?1";
            transaction.execute(delete, [row_number(floor.revision)])?;
            set_mark(&transaction, MARK_FLOOR, position_text(floor))?;
            Ok(transaction.commit()?)
        })
    }

    /// What was done beside the appends failed: nothing is acknowledged any more.
    pub(super) fn fail(&mut self, error: &Cause) {
        if let Ok(open) = &self.state {
            open.journal.fail();
            self.state = Err(failed(error));
        }
    }

    /// Runs one commit. The writer is taken out while it runs, so whatever goes wrong, a panic
    /// too, leaves it latched.
    fn attempt(
        &mut self,
        bytes: usize,
        commit: impl FnOnce(&mut Open) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        self.check()?;
        let unfinished = Err("an earlier write did not end".to_owned());
        let mut open = std::mem::replace(&mut self.state, unfinished)?;
        let done = open.checkpoint_if_due().and_then(|()| commit(&mut open));
        if let Err(error) = done {
            open.journal.fail();
            self.state = Err(failed(&error));
            return Err(error);
        }
        open.journal.add(bytes);
        self.state = Ok(open);
        Ok(())
    }
}

fn failed(error: &Cause) -> String {
    format!("an earlier write failed: {error}")
}

impl Open {
    /// Done before a commit and not after it, so that its failure never hides behind a success.
    fn checkpoint_if_due(&mut self) -> Result<(), Cause> {
        if !self.journal.take_end() && self.journal.bytes() < self.overdue_at {
            return Ok(());
        }
        self.checkpoint().map(drop)
    }

    /// Says whether all of it could be copied.
    fn checkpoint(&mut self) -> Result<bool, Cause> {
        let copied = copy_journal(&self.connection)?;
        self.head.sync()?;
        if copied {
            self.journal.clear();
        }
        // Where somebody holds it up, not every append tries again.
        self.overdue_at = self.journal.bytes().saturating_add(self.options.overdue_bytes);
        Ok(copied)
    }
}

/// Copies what is in the journal into the database, and says whether that was everything. A reader
/// may hold it up; then the journal grows until it has gone.
pub(super) fn copy_journal(connection: &Connection) -> Result<bool, Cause> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (busy, in_journal, copied): (i64, i64, i64) =
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], read)?;
    // Busy: somebody else is copying, and nothing was done.
    Ok(busy == 0 && copied >= in_journal)
}

fn set_mark(connection: &Connection, mark: i64, text: String) -> Result<(), Cause> {
    let update = "UPDATE marks SET text = ?2 WHERE mark = ?1";
    let changed = connection.prepare_cached(update)?.execute(params![mark, text])?;
    if changed == 1 { Ok(()) } else { Err(format!("mark {mark} is missing").into()) }
}
