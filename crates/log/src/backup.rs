//! A copy of the log as one stream of lines, made while it runs.
//!
//! ```text
//! {"format":1,"snapshot":40,"revision":57,"time":…,"record":…,"checksum":…}   what it holds
//! {"format":1,"revision":40,…,"ledger":{…},"checksum":…}                      the snapshot, if any
//! {"format":1,"revision":41,…,"events":[…],"checksum":…}                      each record after it
//! {"format":1,"records":17,"content":…,"checksum":…}                          of all bytes above
//! ```
//!
//! It is consistent at the revision that was the head when it began. It holds no certificate's key.
//! `embedded::restore` makes a log of it again.

use std::io::{self, BufRead, Read, Write};

use sha2::{Digest, Sha256};
use sublet_core::id::Revision;
use sublet_core::time::Time;

use crate::frame::{self, Checksum};
use crate::snapshot::{self, Loaded};
use crate::{Cause, Head, Log, ReadError, Record, Snapshot};

/// Records per read.
const BATCH: usize = 256;
/// More than ten million reservations take; a line beyond it is not a backup.
const LINE_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;

/// Why a backup was not made, or not believed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log cannot be read.
    #[error("the log cannot be read; if it was compacted meanwhile, begin again")]
    Read(#[from] ReadError),
    /// The stream cannot be read or written.
    #[error("the backup cannot be read or written")]
    Stream(#[from] io::Error),
    /// It ends too early.
    #[error("the backup is torn: it ends before its last line; use another one")]
    Torn,
    /// Bytes changed.
    #[error(
        "the backup is damaged: the sum of its content is not the one it ends with; use another one"
    )]
    Content,
    /// A line cannot be believed.
    #[error("line {line} of the backup cannot be believed: use another one")]
    Line {
        /// Which, counted from 1.
        line: u64,
        /// What is wrong with it.
        #[source]
        source: Cause,
    },
    /// It does not hold what its first line says.
    #[error("the backup does not hold what its first line says: use another one")]
    Incomplete,
}

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The revision of its snapshot; 0 when it begins with the first record.
    pub snapshot: Revision,
    /// Its last record.
    pub head: Head,
}

impl Extent {
    /// How many records it holds.
    pub fn records(&self) -> u64 {
        self.head.revision.0.saturating_sub(self.snapshot.0)
    }

    fn text(&self) -> String {
        let (snapshot, revision, record) = (self.snapshot, self.head.revision, self.head.checksum);
        let (begin, millis) = (frame::begin(), self.head.time.as_millis());
        let fields = format!(
            "{begin},\"snapshot\":{snapshot},\"revision\":{revision},\"time\":{millis},\
             \"record\":\"{record}\""
        );
        frame::end(fields).0
    }

    fn parse(text: &str) -> Result<Self, frame::Error> {
        let (mut fields, _) = frame::open(text)?;
        let snapshot = Revision(fields.number("snapshot")?);
        let revision = Revision(fields.number("revision")?);
        let time = Time::from_millis(fields.number("time")?);
        let checksum = fields.checksum("record")?;
        Ok(Self { snapshot, head: Head { revision, checksum, time } })
    }
}

fn last_line(records: u64, content: Checksum) -> String {
    let begin = frame::begin();
    frame::end(format!("{begin},\"records\":{records},\"content\":\"{content}\"")).0
}

/// Writes a copy of the log as it is now.
pub fn backup(log: &dyn Log, out: &mut dyn Write) -> Result<Extent, Error> {
    let snapshot = log.snapshot()?;
    let from = snapshot.as_ref().map_or(Revision(0), Snapshot::revision);
    let extent = Extent { snapshot: from, head: log.head()? };
    let mut content = Sha256::new();
    let mut put = |line: &str| {
        content.update(line);
        content.update(b"\n");
        out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n"))
    };
    put(&extent.text())?;
    if let Some(snapshot) = snapshot {
        put(snapshot.text())?;
    }
    let (mut next, mut count) = (from.next(), 0);
    while next <= extent.head.revision {
        let records = log.read(next, BATCH)?;
        if records.is_empty() {
            return Err(Error::Incomplete);
        }
        for record in records.iter().take_while(|r| r.revision() <= extent.head.revision) {
            put(record.text())?;
            next = record.revision().next();
            count += 1;
        }
    }
    let last = last_line(count, Checksum::from_digest(content));
    writeln!(out, "{last}")?;
    out.flush()?;
    Ok(extent)
}

/// The lines of a backup, summed up as they pass.
pub(crate) struct Lines<R> {
    reader: R,
    content: Sha256,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, content: Sha256::new(), number: 0 }
    }

    /// The next line, and the sum of everything before it.
    fn next(&mut self) -> Result<(String, Checksum), Error> {
        let before = Checksum::from_digest(self.content.clone());
        let mut line = String::new();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
        self.number += 1;
        read.map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => self.wrong(e),
            _ => e.into(),
        })?;
        self.content.update(&line);
        match line.pop() {
            Some('\n') => Ok((line, before)),
            _ => Err(Error::Torn),
        }
    }

    fn wrong(&self, source: impl Into<Cause>) -> Error {
        Error::Line { line: self.number, source: source.into() }
    }

    pub(crate) fn extent(&mut self) -> Result<Extent, Error> {
        let (line, _) = self.next()?;
        Extent::parse(&line).map_err(|e| self.wrong(e))
    }

    pub(crate) fn snapshot(&mut self, extent: Extent) -> Result<Option<Snapshot>, Error> {
        if extent.snapshot == Revision(0) {
            return Ok(None);
        }
        let (line, _) = self.next()?;
        let snapshot = Snapshot::decode(line).map_err(|e| self.wrong(e))?;
        let expected = snapshot.revision() == extent.snapshot;
        if expected { Ok(Some(snapshot)) } else { Err(Error::Incomplete) }
    }

    pub(crate) fn record(&mut self) -> Result<Record, Error> {
        let (line, _) = self.next()?;
        Record::decode(line).map_err(|e| self.wrong(e))
    }
}

/// Reads a whole backup and gives the ledger that it leads to.
pub fn verify(reader: impl BufRead) -> Result<(Extent, Loaded), Error> {
    let mut lines = Lines::new(reader);
    let extent = lines.extent()?;
    let mut loaded = Loaded::default();
    if let Some(snapshot) = lines.snapshot(extent)? {
        let ledger = snapshot.ledger().map_err(|e: snapshot::Error| lines.wrong(e))?;
        loaded = Loaded { ledger, head: snapshot.head() };
    }
    while loaded.head.revision < extent.head.revision {
        let record = lines.record()?;
        loaded.apply(&record).map_err(|e| lines.wrong(e))?;
    }
    let (last, content) = lines.next()?;
    if last != last_line(extent.records(), content) {
        return Err(Error::Content);
    }
    if loaded.head != extent.head || !lines.reader.fill_buf()?.is_empty() {
        return Err(Error::Incomplete);
    }
    Ok((extent, loaded))
}
