//! The last acknowledged position, noted beside the database.
//!
//! Two lines of fixed length, written in turn, so that one of them is whole whenever a write of the
//! other was cut off. Each carries its own checksum.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sublet_core::id::Revision;
use sublet_core::time::Time;

use super::Error;
use crate::Head;
use crate::frame::{self, Checksum};

pub(super) const HEAD: &str = "head";
const SLOT_BYTES: usize = 192;
const SLOTS: u64 = 2;

/// The open file.
pub(super) struct HeadFile(File);

impl HeadFile {
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(HEAD);
        let file = OpenOptions::new().write(true).open(&path);
        file.map(Self).map_err(|e| Error::io("open", &path, e))
    }

    /// Notes `head` over the older of the two lines.
    pub(super) fn write(&self, head: Head) -> io::Result<()> {
        let slot = head.revision.0 % SLOTS;
        self.0.write_all_at(&line(head), slot * SLOT_BYTES as u64)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Makes the file, whole or not at all.
pub(super) fn create(folder: &Path, head: Head) -> io::Result<()> {
    let draft = folder.join("head.new");
    let file = File::create(&draft)?;
    file.write_all_at(&[line(head), line(head)].concat(), 0)?;
    file.sync_all()?;
    std::fs::rename(&draft, folder.join(HEAD))?;
    File::open(folder)?.sync_all()
}

/// What was noted last; none when there is no such file.
pub(super) fn read(folder: &Path) -> Result<Option<Head>, Error> {
    let path = folder.join(HEAD);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", &path, error)),
    };
    let slots: Vec<_> = bytes.chunks(SLOT_BYTES).map(parse).collect();
    let newest = slots.iter().flatten().max_by_key(|head| head.revision);
    if let Some(newest) = newest {
        return Ok(Some(*newest));
    }
    let mut errors = slots.into_iter().filter_map(Result::err);
    let error = errors.next().unwrap_or(frame::Error::Torn);
    Err(Error::frame(path.display().to_string(), error))
}

fn line(head: Head) -> Vec<u8> {
    let mut line = position_text(head).into_bytes();
    line.resize(SLOT_BYTES - 1, b' ');
    line.push(b'\n');
    line
}

fn parse(slot: &[u8]) -> Result<Head, frame::Error> {
    let line = slot.strip_suffix(b"\n").ok_or(frame::Error::Torn)?;
    let text = std::str::from_utf8(line).map_err(|_| frame::Error::Torn)?;
    parse_position(text.trim_end_matches(' '))
}

/// A position as framed text; the longest is well below one line of the file.
pub(super) fn position_text(head: Head) -> String {
    let opening = frame::begin();
    let (revision, millis) = (head.revision, head.time.as_millis());
    let record = head.checksum;
    let fields =
        format!("{opening},\"revision\":{revision},\"time\":{millis},\"record\":\"{record}\"");
    frame::end(fields).0
}

pub(super) fn parse_position(text: &str) -> Result<Head, frame::Error> {
    let (mut fields, _) = frame::open(text)?;
    let revision = Revision(fields.number("revision")?);
    let time = Time::from_millis(fields.number("time")?);
    let checksum: Checksum = fields.checksum("record")?;
    Ok(Head { revision, checksum, time })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(revision: u64) -> Head {
        Head {
            revision: Revision(revision),
            checksum: Checksum::of(&revision.to_be_bytes()),
            time: Time::from_millis(u64::MAX),
        }
    }

    #[test]
    fn the_longest_position_fits_its_line() {
        assert_eq!(line(head(u64::MAX)).len(), SLOT_BYTES);
        assert_eq!(parse(&line(head(u64::MAX))).unwrap(), head(u64::MAX));
    }

    #[test]
    fn a_torn_line_leaves_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), head(6)).unwrap();
        let file = HeadFile::open(folder.path()).unwrap();
        file.write(head(7)).unwrap();
        file.write(head(8)).unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(head(8)));
        file.0.write_all_at(b"###", 100).unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(head(7)));
        file.0.write_all_at(b"###", 300).unwrap();
        assert!(matches!(read(folder.path()), Err(Error::Corrupt { .. })));
    }
}
