//! A new log made from a backup.
//!
//! Restoring goes back in time: promises made since the backup are forgotten. So the restored log
//! ends with a `Restored` event, after which nothing is granted on a provider before it has
//! reported what it really holds.

use std::io::{self, BufRead, Seek};
use std::path::Path;

use sublet_core::event::{Event, Note};
use sublet_core::time::Time;

use super::{Contents, Embedded};
use crate::backup::{self, Lines, verify};
use crate::{Body, Cause, Head, Record, Writer, record};

/// Why a backup was not restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The backup cannot be believed.
    #[error("nothing was restored, and nothing was written")]
    Backup(#[from] backup::Error),
    /// The backup cannot be read a second time.
    #[error("the backup must be a file that can be read twice")]
    Rewind(#[source] io::Error),
    /// The record that ends a restored log cannot be made.
    #[error("the restored log cannot be marked as restored")]
    Mark(#[from] record::Error),
    /// The new log cannot be written.
    #[error("the new log cannot be written: empty the folder before you try again")]
    Write(#[from] super::Error),
}

/// Who restores, when, and why.
#[derive(Clone, Debug)]
pub struct Restorer {
    /// This process.
    pub writer: Writer,
    /// Now; the restored log's own time if that is later.
    pub now: Time,
    /// By whom and why.
    pub note: Note,
}

/// Makes a new embedded log in the empty `folder` from a backup, which is read twice: nothing is
/// written before all of it was verified.
pub fn restore(
    mut reader: impl BufRead + Seek,
    folder: &Path,
    restorer: Restorer,
) -> Result<Head, Error> {
    let (extent, loaded) = verify(&mut reader)?;
    let time = restorer.now.max(loaded.head.time);
    let mark = Body::of([Event::Restored { note: restorer.note }])?;
    let mark = Record::seal(&loaded.head, restorer.writer, time, mark)?;
    drop(loaded);
    reader.rewind().map_err(Error::Rewind)?;
    let mut lines = Lines::new(reader);
    lines.extent()?;
    let snapshot = lines.snapshot(extent)?;
    let head = mark.head();
    let mut records =
        (0..extent.records()).map(|_| lines.record().map_err(Cause::from)).chain([Ok(mark)]);
    let contents = Contents { snapshot, records: Some(&mut records), head };
    Embedded::create_with(folder, contents)?;
    // What was written is read back before anybody relies on it.
    Embedded::open_read_only(folder)?;
    Ok(head)
}
