//! What is read from the database; nothing is believed that does not check out.

use std::ops::RangeInclusive;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use sublet_core::id::Revision;
use sublet_core::time::Time;

use super::schema::{MARK_SNAPSHOT, SnapshotMark};
use crate::record::Envelope;
use crate::{Cause, Head, ReadError, Record, Snapshot, record};

/// A read ends after this much, so that no reader holds up checkpoints or memory for long.
const READ_BYTES_MAX: usize = 8 * 1024 * 1024;

fn failed(error: rusqlite::Error) -> ReadError {
    ReadError::Unavailable(error.into())
}

/// Row numbers are 63 bits wide; no log comes near.
pub(super) fn row_number(revision: Revision) -> i64 {
    i64::try_from(revision.0).unwrap_or(i64::MAX)
}

/// The text in a column, whatever damage made of it.
pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Cause> {
    match row.get_ref(column)? {
        ValueRef::Text(bytes) => Ok(std::str::from_utf8(bytes)?),
        other => Err(format!("it is {}, not text", other.data_type()).into()),
    }
}

/// Consecutive records of `range`, at most `limit`.
pub(super) fn records(
    connection: &Connection,
    range: RangeInclusive<Revision>,
    limit: usize,
) -> Result<Vec<Record>, ReadError> {
    let query = "SELECT text FROM records WHERE revision BETWEEN ?1 AND ?2 ORDER BY revision";
    let mut query = connection.prepare_cached(query).map_err(failed)?;
    let bounds = params![row_number(*range.start()), row_number(*range.end())];
    let mut rows = query.query(bounds).map_err(failed)?;
    let (mut found, mut bytes): (Vec<Record>, usize) = (Vec::new(), 0);
    while found.len() < limit
        && bytes < READ_BYTES_MAX
        && let Some(row) = rows.next().map_err(failed)?
    {
        let place = found.last().map_or(*range.start(), |last| last.revision().next());
        let corrupt = |cause: Cause| ReadError::corrupt(format!("revision {place}"), cause);
        let text = text(row, 0).map_err(corrupt)?;
        let record = Record::decode(text).map_err(|e| corrupt(e.into()))?;
        if let Some(last) = found.last() {
            last.head().admit(&record).map_err(|e| corrupt(e.into()))?;
        }
        bytes = bytes.saturating_add(record.text().len());
        found.push(record);
    }
    Ok(found)
}

/// What surrounds the record at `revision`, if it is kept.
pub(super) fn envelope(
    connection: &Connection,
    revision: Revision,
) -> Result<Option<Envelope>, ReadError> {
    let corrupt = |cause: Cause| ReadError::corrupt(format!("revision {revision}"), cause);
    let query = "SELECT text FROM records WHERE revision = ?1";
    let mut query = connection.prepare_cached(query).map_err(failed)?;
    let mut rows = query.query([row_number(revision)]).map_err(failed)?;
    let Some(row) = rows.next().map_err(failed)? else {
        return Ok(None);
    };
    let text = text(row, 0).map_err(corrupt)?;
    let envelope = Envelope::open(text).map_err(|e| corrupt(e.into()))?;
    Ok(Some(envelope))
}

/// The last record of `range` that is older than `before`. Broker time never goes back, so it is
/// found by halving.
pub(super) fn last_before(
    connection: &Connection,
    range: RangeInclusive<Revision>,
    before: Time,
) -> Result<Option<Envelope>, ReadError> {
    let (mut low, mut high) = (range.start().0, range.end().0.saturating_add(1));
    let mut last = None;
    while low < high {
        let middle = low + (high - low) / 2;
        match envelope(connection, Revision(middle))? {
            Some(found) if found.time < before => {
                last = Some(found);
                low = middle.saturating_add(1);
            }
            _ => high = middle,
        }
    }
    Ok(last)
}

/// Where the newest snapshot is, if there is one.
pub(super) fn snapshot_mark(connection: &Connection) -> Result<Option<SnapshotMark>, ReadError> {
    let query = "SELECT text FROM marks WHERE mark = ?1";
    let text: String =
        connection.query_row(query, [MARK_SNAPSHOT], |row| row.get(0)).map_err(failed)?;
    let mark =
        SnapshotMark::parse(&text).map_err(|e| ReadError::corrupt("the snapshot mark", e))?;
    Ok((mark != SnapshotMark::NONE).then_some(mark))
}

/// The newest snapshot, if there is one; read at one moment, though it may be replaced meanwhile.
pub(super) fn snapshot(connection: &mut Connection) -> Result<Option<Snapshot>, ReadError> {
    // A savepoint, because a reader beside the writer is within a transaction already.
    let moment = connection.savepoint().map_err(failed)?;
    let Some(mark) = snapshot_mark(&moment)? else {
        return Ok(None);
    };
    let corrupt = |cause: Cause| ReadError::corrupt("the snapshot", cause);
    let mut bytes = Vec::new();
    parts(&moment, mark, &mut |part| bytes.extend_from_slice(part)).map_err(corrupt)?;
    let text = String::from_utf8(bytes).map_err(|e| corrupt(e.into()))?;
    let snapshot = Snapshot::decode(text).map_err(|e| corrupt(e.into()))?;
    if snapshot.revision() != mark.revision {
        return Err(corrupt("it is not the one that was marked".into()));
    }
    Ok(Some(snapshot))
}

fn parts(
    connection: &Connection,
    mark: SnapshotMark,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), Cause> {
    let query = "SELECT bytes FROM parts WHERE part BETWEEN ?1 AND ?2 ORDER BY part";
    let mut query = connection.prepare_cached(query)?;
    let mut rows = query.query([mark.first, mark.last])?;
    while let Some(row) = rows.next()? {
        take(row.get_ref(0)?.as_blob()?);
    }
    Ok(())
}

/// The number for the first part of the next snapshot; 0 is nobody's.
pub(super) fn next_part(connection: &Connection) -> Result<i64, ReadError> {
    let query = "SELECT coalesce(max(part), 0) + 1 FROM parts";
    connection.query_row(query, [], |row| row.get(0)).map_err(failed)
}

/// A part of an older or unfinished snapshot.
pub(super) fn part_before(connection: &Connection, part: i64) -> Result<Option<i64>, ReadError> {
    let query = "SELECT part FROM parts WHERE part < ?1 LIMIT 1";
    connection.query_row(query, [part], |row| row.get(0)).optional().map_err(failed)
}

/// What surrounds the last record, if any is kept.
pub(super) fn last(connection: &Connection) -> Result<Option<Envelope>, ReadError> {
    let query = "SELECT max(revision) FROM records";
    let last: Option<i64> = connection.query_row(query, [], |row| row.get(0)).map_err(failed)?;
    match last.and_then(|last| u64::try_from(last).ok()) {
        Some(last) => envelope(connection, Revision(last)),
        None => Ok(None),
    }
}

/// All kept records in order, each handed over with its row number and its envelope.
pub(super) fn each_envelope(
    connection: &Connection,
    take: &mut dyn FnMut(Head, Envelope) -> Result<Head, Cause>,
    floor: Head,
) -> Result<Head, (Revision, EachError)> {
    let mut head = floor;
    let at = |head: Head| move |error: rusqlite::Error| (head.revision.next(), error.into());
    let query = "SELECT revision, text FROM records ORDER BY revision";
    let mut query = connection.prepare(query).map_err(at(head))?;
    let mut rows = query.query([]).map_err(at(head))?;
    while let Some(row) = rows.next().map_err(at(head))? {
        let place = head.revision.next();
        let wrong = |cause: Cause| (place, EachError::Wrong(cause));
        let number: i64 = row.get(0).map_err(at(head))?;
        if number != row_number(place) {
            return Err(wrong(format!("row {number} comes in its place").into()));
        }
        let text = text(row, 1).map_err(wrong)?;
        let envelope = Envelope::open(text).map_err(|e| (place, EachError::Record(e)))?;
        head = take(head, envelope).map_err(wrong)?;
    }
    Ok(head)
}

/// What is wrong with one of all records.
#[derive(Debug)]
pub(super) enum EachError {
    Sqlite(rusqlite::Error),
    Record(record::Error),
    Wrong(Cause),
}

impl From<rusqlite::Error> for EachError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
