//! A new store appears whole or not at all.
//!
//! The database is built under another name and renamed last. The head is noted before that, so a
//! store whose making was cut off is seen as one with a missing file, never as a shorter log; only
//! one that never held anything is made again.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rusqlite::{Connection, params};

use super::head::{self, position_text};
use super::lock::LOCK;
use super::schema::{self, SnapshotMark};
use super::upkeep::PART_BYTES;
use super::{DATABASE, Error, JOURNAL, note};
use crate::{Cause, Head, Record, Snapshot};

const DRAFT: &str = "sublet.db.new";
/// Where the header of a `SQLite` file says how it is to be written and read.
const JOURNAL_MODE_AT: usize = 18;
const JOURNAL_MODE_WAL: [u8; 2] = [2, 2];

/// What a new store begins with.
#[derive(Default)]
pub(super) struct Contents<'a> {
    /// The snapshot it begins with.
    pub(super) snapshot: Option<Snapshot>,
    /// The records after it.
    pub(super) records: Option<Records<'a>>,
    /// The last record.
    pub(super) head: Head,
}

/// A stream of records, read while they are written.
pub(super) type Records<'a> = &'a mut dyn Iterator<Item = Result<Record, Cause>>;

/// Is there nothing here yet, not even the rest of something?
pub(super) fn is_fresh(folder: &Path) -> Result<bool, Error> {
    let exists = |name: &str| {
        let path = folder.join(name);
        path.try_exists().map_err(|e| Error::io("look for", &path, e))
    };
    // Notes are only ever written beside a log.
    if exists(DATABASE)? || exists(JOURNAL)? || exists(note::FOLDER)? {
        return Ok(false);
    }
    // A head at revision 0 is all that is left when the making of an empty store was cut off.
    let noted = head::read(folder)?;
    Ok(noted.is_none_or(|noted| noted == Head::default()))
}

/// A restore never mixes with what is there.
pub(super) fn check_empty(folder: &Path) -> Result<(), Error> {
    let io = |e| Error::io("list", folder, e);
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let name = entry.map_err(io)?.file_name();
        if name != LOCK && name != "lost+found" {
            return Err(Error::NotEmpty(folder.into()));
        }
    }
    Ok(())
}

pub(super) fn create(folder: &Path, contents: Contents<'_>) -> Result<(), Error> {
    let draft = folder.join(DRAFT);
    if let Err(error) = std::fs::remove_file(&draft)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(Error::io("remove", &draft, error));
    }
    let noted = head::create(folder, contents.head);
    noted.map_err(|e| Error::io("write the head in", folder, e))?;
    build(&draft, contents).map_err(|source| Error::Io {
        doing: "build",
        path: draft.clone(),
        source,
    })?;
    settle(folder, &draft).map_err(|e| Error::io("put in place", &draft, e))
}

fn settle(folder: &Path, draft: &Path) -> io::Result<()> {
    File::open(draft)?.sync_all()?;
    std::fs::rename(draft, folder.join(DATABASE))?;
    File::open(folder)?.sync_all()
}

fn build(draft: &Path, contents: Contents<'_>) -> Result<(), Cause> {
    let mut connection = Connection::open(draft)?;
    // One file, synced whole before it gets its name, needs no journal while it is built.
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", schema::FORMAT)?;
    let transaction = connection.transaction()?;
    for (_, table) in schema::TABLES {
        transaction.execute(table, [])?;
    }
    fill(&transaction, contents)?;
    transaction.commit()?;
    let journal: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    connection.close().map_err(|(_, error)| error)?;
    check_journal_mode(draft, &journal)
}

/// Looks into the file itself: `SQLite` answers `wal` even when it could not write that down.
fn check_journal_mode(draft: &Path, answer: &str) -> Result<(), Cause> {
    let mut header = [0; JOURNAL_MODE_AT + JOURNAL_MODE_WAL.len()];
    File::open(draft)?.read_exact(&mut header)?;
    if answer == "wal" && header.ends_with(&JOURNAL_MODE_WAL) {
        Ok(())
    } else {
        Err(format!("its journal could not be set up; it is {answer}").into())
    }
}

fn fill(connection: &Connection, contents: Contents<'_>) -> Result<(), Cause> {
    let mut mark = SnapshotMark::NONE;
    let mut floor = Head::default();
    if let Some(snapshot) = &contents.snapshot {
        floor = snapshot.head();
        mark.revision = floor.revision;
        mark.first = 1;
        for (part, bytes) in (1i64..).zip(snapshot.text().as_bytes().chunks(PART_BYTES)) {
            connection.execute("INSERT INTO parts VALUES (?1, ?2)", params![part, bytes])?;
            mark.last = part;
        }
    }
    let mut put = connection.prepare("INSERT INTO records VALUES (?1, ?2)")?;
    let mut head = floor;
    for record in contents.records.into_iter().flatten() {
        let record = record?;
        put.execute(params![i64::try_from(record.revision().0)?, record.text()])?;
        head = record.head();
    }
    if head != contents.head {
        return Err("the records do not end where they should".into());
    }
    let mut put = connection.prepare("INSERT INTO marks VALUES (?1, ?2)")?;
    put.execute(params![schema::MARK_FLOOR, position_text(floor)])?;
    put.execute(params![schema::MARK_SNAPSHOT, mark.text()])?;
    Ok(())
}
