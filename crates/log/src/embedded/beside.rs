//! Looking at a log that another process writes: as it stood at one moment, and again later.
//!
//! `SQLite` shows a reader the same moment for as long as it likes, whatever the writer does
//! meanwhile; the writer is not held up, only its journal grows until the look is over.

use std::path::Path;
use std::sync::{Condvar, Mutex};

use super::writer::Writer;
use super::{Embedded, Error, Position, query, verify};
use crate::ReadError;
use crate::record::Envelope;

impl Embedded {
    /// Opens the log in `folder` only to look at it, also while another process writes it; then
    /// it shows what was there at this moment, until [`Embedded::look_again`].
    pub fn look(folder: &Path) -> Result<Self, Error> {
        match Self::open_read_only(folder) {
            Err(Error::Locked { .. }) => Self::look_beside(folder),
            other => other,
        }
    }

    fn look_beside(folder: &Path) -> Result<Self, Error> {
        let (position, connection) = verify::verify_beside(folder)?;
        Ok(Self {
            folder: folder.into(),
            writer: parking_lot::Mutex::new(Writer::closed("the log was opened only to be read")),
            reader: Mutex::new(connection),
            copier: None,
            position: Mutex::new(position),
            appended: Condvar::new(),
            upkeep: Mutex::new(()),
            lock: None,
        })
    }

    /// Does another process write it? If not, this one keeps others from opening it.
    pub fn is_beside_its_writer(&self) -> bool {
        self.lock.is_none()
    }

    /// Ends a look beside the writer until [`Embedded::look_again`], so that its journal need not grow
    /// meanwhile.
    pub fn rest(&self) -> Result<(), ReadError> {
        let reader = self.reader();
        // None is open if the last one could not be begun, or was ended.
        if !self.is_beside_its_writer() || reader.is_autocommit() {
            return Ok(());
        }
        reader.execute_batch("ROLLBACK").map_err(|e| ReadError::Unavailable(e.into()))
    }

    /// Moves a look beside the writer on to what is there now. Whoever has the folder to itself
    /// sees everything anyway.
    pub fn look_again(&self) -> Result<(), ReadError> {
        if !self.is_beside_its_writer() {
            return Ok(());
        }
        self.rest()?;
        let reader = self.reader();
        let moved = reader.execute_batch("BEGIN");
        moved.map_err(|e| ReadError::Unavailable(e.into()))?;
        let floor = verify::floor(&reader).map_err(|e| ReadError::Unavailable(e.into()))?;
        let floor = floor.map_err(|e| ReadError::corrupt("the mark of the oldest record", e))?;
        let head = query::last(&reader)?.as_ref().map_or(floor, Envelope::head);
        drop(reader);
        self.publish(|position| *position = Position { floor, head });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_was_left_without_a_moment_finds_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let _writer = Embedded::open(folder.path()).unwrap();
        let look = Embedded::look(folder.path()).unwrap();
        assert!(look.is_beside_its_writer());
        look.reader().execute_batch("ROLLBACK").unwrap();
        look.look_again().unwrap();
        look.look_again().unwrap();
    }
}
