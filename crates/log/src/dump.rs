//! The log for people: one line per event.
//!
//! ```text
//! 17 2026-11-16T00:51:29.004Z 9f3c01d2 {"activated":{"id":"rsv-…"}}
//! ```

use std::io::{self, Write};

use jiff::Timestamp;
use sublet_core::id::Revision;
use sublet_core::time::Time;

use crate::{Log, ReadError, Record};

/// Records per read.
const BATCH: usize = 256;

/// Why the log could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("the log cannot be read")]
    Read(#[from] ReadError),
    /// An event cannot be printed.
    #[error("an event of revision {0} cannot be printed")]
    Event(Revision, #[source] serde_json::Error),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Write(#[from] io::Error),
}

/// Prints every record that is kept, from `from` on, and says how many there were.
pub fn dump(log: &dyn Log, from: Revision, out: &mut dyn Write) -> Result<u64, Error> {
    let mut next = from.max(oldest(log)?);
    let mut count: u64 = 0;
    loop {
        let records = log.read(next, BATCH)?;
        let Some(last) = records.last() else {
            return Ok(count);
        };
        next = last.revision().next();
        for record in &records {
            print(record, out)?;
            count = count.saturating_add(1);
        }
    }
}

/// The first revision that can be read.
pub fn oldest(log: &dyn Log) -> Result<Revision, ReadError> {
    match log.read(Revision(1), 1) {
        Ok(_) => Ok(Revision(1)),
        Err(ReadError::Compacted { oldest }) => Ok(oldest),
        Err(error) => Err(error),
    }
}

/// Prints one record.
pub fn print(record: &Record, out: &mut dyn Write) -> Result<(), Error> {
    let (revision, writer) = (record.revision(), record.writer().short());
    let time = instant(record.time());
    if record.events().is_empty() {
        writeln!(out, "{revision} {time} {writer} -")?;
    }
    for event in record.events() {
        let event = serde_json::to_string(event).map_err(|e| Error::Event(revision, e))?;
        writeln!(out, "{revision} {time} {writer} {event}")?;
    }
    Ok(())
}

/// Broker time as people write it; beyond the calendar, as it is.
fn instant(time: Time) -> String {
    let millis = time.as_millis();
    let known = i64::try_from(millis).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    known.map_or_else(|| format!("{millis}ms"), |time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broker_time_is_printed_as_people_write_it() {
        assert_eq!(instant(Time::from_millis(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(instant(Time::from_millis(1_794_790_289_004)), "2026-11-16T00:51:29.004Z");
        assert_eq!(instant(Time::from_millis(u64::MAX)), "18446744073709551615ms");
    }
}
