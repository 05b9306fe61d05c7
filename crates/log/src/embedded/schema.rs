//! The tables, and how a connection to them is set up.
//!
//! No index, no trigger, no default: what is not there cannot disagree with the data. Every text
//! carries its own checksum, because `SQLite` does not check its pages.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use sublet_core::id::Revision;

use super::{DATABASE, Error};
use crate::frame;

/// `Subl`, so that `file` and people recognise it.
pub(super) const APPLICATION_ID: i32 = 0x5375_626c;
/// The format of the tables.
pub(super) const FORMAT: i32 = 1;

/// The tables, word for word as the database keeps them: anything else is not ours.
pub(super) const TABLES: [(&str, &str); 3] = [
    ("records", "CREATE TABLE records (revision INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"),
    ("parts", "CREATE TABLE parts (part INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT"),
    ("marks", "CREATE TABLE marks (mark INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT"),
];

/// The record before the first one that is kept.
pub(super) const MARK_FLOOR: i64 = 1;
/// Which parts are the newest snapshot.
pub(super) const MARK_SNAPSHOT: i64 = 2;

/// Where the newest snapshot is; part numbers begin at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SnapshotMark {
    /// The revision it stands on.
    pub(super) revision: Revision,
    /// Its first part.
    pub(super) first: i64,
    /// Its last part.
    pub(super) last: i64,
}

impl SnapshotMark {
    /// What is written when there is no snapshot, so that a mark that is gone is noticed.
    pub(super) const NONE: Self = Self { revision: Revision(0), first: 0, last: 0 };

    pub(super) fn text(self) -> String {
        let Self { revision, first, last } = self;
        let opening = frame::begin();
        let fields = format!("{opening},\"revision\":{revision},\"first\":{first},\"last\":{last}");
        frame::end(fields).0
    }

    pub(super) fn parse(text: &str) -> Result<Self, frame::Error> {
        let (mut fields, _) = frame::open(text)?;
        let revision = Revision(fields.number("revision")?);
        let mut part = |name| {
            let number = i64::try_from(fields.number(name)?);
            number.map_err(|_| frame::Error::Malformed(format!("its {name} is out of range")))
        };
        Ok(Self { revision, first: part("first")?, last: part("last")? })
    }
}

pub(super) fn open_for_writing(folder: &Path) -> Result<Connection, Error> {
    let path = folder.join(DATABASE);
    let setup = || {
        let connection = open(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // Checkpoints are made by hand, because those that `SQLite` makes hide their errors.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
        Ok(connection)
    };
    let connection = setup().map_err(|e| Error::sqlite("open", &path, e))?;
    let synchronous: i64 =
        pragma(&connection, "synchronous").map_err(|e| Error::sqlite("open", &path, e))?;
    let journal: String =
        pragma(&connection, "journal_mode").map_err(|e| Error::sqlite("open", &path, e))?;
    if synchronous != 2 || journal != "wal" {
        return Err(Error::corrupt(
            path.display().to_string(),
            format!("the journal is {journal} with synchronous={synchronous}, not wal with 2"),
        ));
    }
    Ok(connection)
}

pub(super) fn open_for_reading(folder: &Path) -> Result<Connection, Error> {
    let path = folder.join(DATABASE);
    open(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|e| Error::sqlite("open", &path, e))
}

/// A connection whose closing writes nothing: no checkpoint, and the journal stays.
fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok(connection)
}

pub(super) fn pragma<T: rusqlite::types::FromSql>(
    connection: &Connection,
    name: &str,
) -> rusqlite::Result<T> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}
