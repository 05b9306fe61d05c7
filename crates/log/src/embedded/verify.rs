//! Everything that is checked before a folder is believed, without writing anything.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::query::{self, EachError};
use super::{DATABASE, Error, JOURNAL, Position, SCRATCH, head, schema};
use crate::{Admission, Cause, Head, ReadError, Snapshot};

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Verifies the whole store and says where it stands.
pub(super) fn verify(folder: &Path) -> Result<Position, Error> {
    let noted = noted_head(folder)?;
    let traces = Traces::before(folder);
    let connection = schema::open_for_reading(folder);
    let verdict = connection.and_then(|mut connection| judge(&mut connection, folder, noted));
    if verdict.is_err() {
        traces.remove_new();
    }
    verdict
}

/// The same beside the process that writes the store: at one moment, to which the connection stays
/// bound, and without removing anything, because nothing there is ours.
pub(super) fn verify_beside(folder: &Path) -> Result<(Position, Connection), Error> {
    // Before the moment, so that the note is never ahead of what is seen.
    let noted = noted_head(folder)?;
    let mut connection = schema::open_for_reading(folder)?;
    let begun = connection.execute_batch("BEGIN");
    begun.map_err(|e| Error::sqlite("read", &folder.join(DATABASE), e))?;
    let position = judge(&mut connection, folder, noted)?;
    Ok((position, connection))
}

/// The files that must be there are there; what the head's note says.
fn noted_head(folder: &Path) -> Result<Head, Error> {
    let database = folder.join(DATABASE);
    let noted = head::read(folder)?;
    let there = database.try_exists();
    if !there.map_err(|e| Error::io("look for", &database, e))? {
        let because = noted.map_or_else(
            || "there is a journal of it, or there are notes of its broker".into(),
            |noted| format!("revision {} was acknowledged", noted.revision),
        );
        return Err(missing(folder, DATABASE, because));
    }
    let noted = noted.ok_or_else(|| missing(folder, head::HEAD, "there is a database".into()))?;
    check_magic(&database)?;
    Ok(noted)
}

/// Looks at the file before `SQLite` does, which takes an empty one for new and deletes the journal
/// beside it.
fn check_magic(database: &Path) -> Result<(), Error> {
    let mut magic = [0; MAGIC.len()];
    let file = File::open(database).map_err(|e| Error::io("open", database, e))?;
    let read = file.take(magic.len() as u64).read(&mut magic);
    read.map_err(|e| Error::io("read", database, e))?;
    if magic == *MAGIC {
        return Ok(());
    }
    Err(Error::corrupt(database.display().to_string(), "it does not begin as a database does"))
}

fn missing(folder: &Path, file: &'static str, because: String) -> Error {
    Error::MissingFile { folder: folder.into(), file, because }
}

fn judge(connection: &mut Connection, folder: &Path, noted: Head) -> Result<Position, Error> {
    let sqlite = |e| Error::sqlite("read", &folder.join(DATABASE), e);
    check_format(connection, folder)?;
    check_tables(connection, folder)?;
    let health: String = schema::pragma(connection, "quick_check").map_err(sqlite)?;
    if health != "ok" {
        return Err(Error::corrupt(folder.join(DATABASE).display().to_string(), health));
    }
    let floor = floor(connection).map_err(sqlite)??;
    let snapshot = read_snapshot(connection)?;
    let head = check_chain(connection, folder, floor, noted, snapshot.as_ref())?;
    if noted.revision > head.revision {
        return Err(Error::HeadBehind {
            folder: folder.into(),
            noted: noted.revision,
            found: head.revision,
        });
    }
    Ok(Position { floor, head })
}

fn check_format(connection: &Connection, folder: &Path) -> Result<(), Error> {
    let path = folder.join(DATABASE);
    let read = |name| schema::pragma::<i32>(connection, name);
    let sqlite = |e| Error::sqlite("read", &path, e);
    let application = read("application_id").map_err(sqlite)?;
    if application != schema::APPLICATION_ID {
        let why = format!("application id {application:#x} is not that of a sublet log");
        return Err(Error::corrupt(path.display().to_string(), why));
    }
    let journal: String = schema::pragma(connection, "journal_mode").map_err(sqlite)?;
    if journal != "wal" {
        let why = format!("its journal is {journal}, not wal");
        return Err(Error::corrupt(path.display().to_string(), why));
    }
    let format = read("user_version").map_err(sqlite)?;
    if format == schema::FORMAT {
        return Ok(());
    }
    let what = path.display().to_string();
    match u64::try_from(format) {
        Ok(found) if format > schema::FORMAT => Err(Error::LaterFormat { what, found }),
        _ => Err(Error::corrupt(what, format!("its format is {format}"))),
    }
}

fn check_tables(connection: &Connection, folder: &Path) -> Result<(), Error> {
    let path = folder.join(DATABASE);
    let read = || {
        let mut query = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY rowid")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<Vec<(String, String)>>>()
    };
    let tables = read().map_err(|e| Error::sqlite("read", &path, e))?;
    let ours = schema::TABLES.map(|(name, sql)| (name.into(), sql.into()));
    if tables != ours {
        let why = "its tables are not those of a sublet log";
        return Err(Error::corrupt(path.display().to_string(), why));
    }
    Ok(())
}

/// The record before the first one that is kept.
pub(super) fn floor(connection: &Connection) -> rusqlite::Result<Result<Head, Error>> {
    let query = "SELECT text FROM marks WHERE mark = ?1";
    let text: String = connection.query_row(query, [schema::MARK_FLOOR], |row| row.get(0))?;
    let floor = head::parse_position(&text);
    Ok(floor.map_err(|e| Error::frame("the mark of the oldest record", e)))
}

fn read_snapshot(connection: &mut Connection) -> Result<Option<Snapshot>, Error> {
    query::snapshot(connection).map_err(|error| match error {
        ReadError::Corrupt { what, source } => match source.downcast() {
            Ok(snapshot) => Error::snapshot(*snapshot),
            Err(source) => Error::corrupt(what, source),
        },
        other => Error::corrupt("the snapshot", other),
    })
}

/// Follows the chain from the oldest record to the newest, past the snapshot and the noted head.
fn check_chain(
    connection: &Connection,
    folder: &Path,
    floor: Head,
    noted: Head,
    snapshot: Option<&Snapshot>,
) -> Result<Head, Error> {
    let landmarks = [
        Some(("the noted head", noted)),
        snapshot.map(|snapshot| ("the snapshot", snapshot.head())),
    ];
    let check = |head: Head| -> Result<Head, Cause> {
        for (name, landmark) in landmarks.into_iter().flatten() {
            if landmark.revision == head.revision && landmark != head {
                return Err(format!("{name} stands on another record").into());
            }
        }
        Ok(head)
    };
    let mut next =
        |head: Head, envelope: crate::record::Envelope| match head.admit_envelope(&envelope)? {
            Admission::Next => check(envelope.head()),
            Admission::Behind => Err("it repeats an earlier one".into()),
        };
    let damaged = |place| format!("revision {place}");
    check(floor).map_err(|e| Error::corrupt(damaged(floor.revision), e))?;
    let chain = query::each_envelope(connection, &mut next, floor);
    let head = chain.map_err(|(place, error)| match error {
        EachError::Sqlite(error) => Error::sqlite("read", &folder.join(DATABASE), error),
        EachError::Record(error) => Error::record(damaged(place), error),
        EachError::Wrong(cause) => Error::corrupt(damaged(place), cause),
    })?;
    let covered = snapshot.map_or(Head::default().revision, Snapshot::revision);
    if covered < floor.revision || covered > head.revision.max(floor.revision) {
        let why = format!(
            "it stands on revision {covered}, but the records are {} to {}",
            floor.revision.next(),
            head.revision
        );
        return Err(Error::corrupt("the snapshot", why));
    }
    Ok(head)
}

/// What `SQLite` may leave behind although it only read; removed when the store is refused.
struct Traces {
    journal: Option<PathBuf>,
    scratch: Option<PathBuf>,
}

impl Traces {
    fn before(folder: &Path) -> Self {
        let absent = |name: &str| Some(folder.join(name)).filter(|path| !path.exists());
        Self { journal: absent(JOURNAL), scratch: absent(SCRATCH) }
    }

    /// A journal that was not there before is empty, and a scratch file is never data; failing to
    /// remove them harms nothing.
    fn remove_new(self) {
        for path in self.journal.into_iter().chain(self.scratch) {
            drop(std::fs::remove_file(path));
        }
    }
}
