//! The ledger at one revision, so that a start need not fold the whole history.
//!
//! `{"format":1,"revision":…,"time":…,"record":…,"ledger":{…},"checksum":…}`, where `record` is the
//! checksum of the record it stands on: the chain goes on from there although the records before
//! may be gone. It is made by whoever reads the log beside the engine, from the last snapshot and
//! the records since, so the engine never stops for it.

use sublet_core::id::Revision;
use sublet_core::ledger::{self, Ledger};
use sublet_core::time::Time;

use crate::frame;
use crate::{Admission, Head, Log, ReadError, Record, Refusal, StoreError};

/// Records per read while folding: enough to be fast, little to hold.
const FOLD_BATCH: usize = 1024;
/// How often a fold starts again because a newer snapshot took away what it was reading.
const LOAD_ATTEMPTS: usize = 8;

/// Why a snapshot cannot be believed, or made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text cannot be believed.
    #[error("the snapshot cannot be believed")]
    Frame(#[from] frame::Error),
    /// The ledger in it is not one of this version.
    #[error("the ledger in the snapshot of revision {0} is not understood")]
    Ledger(Revision, #[source] serde_json::Error),
    /// The ledger stands elsewhere than the snapshot says.
    #[error("the ledger stands at revision {ledger}, the snapshot at {snapshot}: fold them again")]
    Position {
        /// Where the ledger is.
        ledger: Revision,
        /// Where the snapshot is.
        snapshot: Revision,
    },
    /// The log cannot be read.
    #[error("the log cannot be read")]
    Read(#[from] ReadError),
    /// A record does not follow the one before it.
    #[error("a record does not follow the one before it: restore the log from a backup")]
    Chain(#[from] Refusal),
    /// A record is sound, but what it says is not possible.
    #[error(
        "revision {0} does not fit the ledger it was written for: check the log with fsck, and \
         report this"
    )]
    Replay(Revision, #[source] ledger::Error),
    /// The snapshot could not be stored.
    #[error("the snapshot could not be stored")]
    Store(#[from] StoreError),
}

/// The ledger at one revision, as text: whoever only moves it need not parse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    head: Head,
    text: String,
    /// Where in `text` the ledger is.
    ledger_at: usize,
    ledger_end: usize,
}

impl Snapshot {
    /// Of `ledger`, which has folded everything up to `head`.
    pub fn of(head: Head, ledger: &Ledger) -> Result<Self, Error> {
        let (revision, record) = (head.revision, head.checksum);
        check_position(head, ledger)?;
        let body = serde_json::to_string(ledger).map_err(|e| Error::Ledger(revision, e))?;
        let opening = frame::begin();
        let millis = head.time.as_millis();
        let opening = format!(
            "{opening},\"revision\":{revision},\"time\":{millis},\"record\":\"{record}\",\"ledger\":"
        );
        let (ledger_at, ledger_end) = (opening.len(), opening.len() + body.len());
        let (text, _) = frame::end(opening + &body);
        Ok(Self { head, text, ledger_at, ledger_end })
    }

    /// Reads a snapshot back; the ledger inside is parsed by [`Snapshot::ledger`].
    pub fn decode(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let (mut fields, _) = frame::open(&text)?;
        let head = Head {
            revision: Revision(fields.number("revision")?),
            time: Time::from_millis(fields.number("time")?),
            checksum: fields.checksum("record")?,
        };
        let ledger = fields.last("ledger")?;
        let ledger_at = ledger.as_ptr().addr() - text.as_ptr().addr();
        let ledger_end = ledger_at + ledger.len();
        Ok(Self { head, text, ledger_at, ledger_end })
    }

    /// The one line that is kept, without a line end.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The record it stands on.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The revision it stands on.
    pub fn revision(&self) -> Revision {
        self.head.revision
    }

    /// The ledger, checked to stand where the snapshot says.
    pub fn ledger(&self) -> Result<Ledger, Error> {
        let revision = self.head.revision;
        let body = self.text.get(self.ledger_at..self.ledger_end);
        let ledger: Ledger = serde_json::from_str(body.unwrap_or_default())
            .map_err(|e| Error::Ledger(revision, e))?;
        check_position(self.head, &ledger)?;
        Ok(ledger)
    }
}

fn check_position(head: Head, ledger: &Ledger) -> Result<(), Error> {
    if ledger.stamp() == head.stamp() {
        return Ok(());
    }
    Err(Error::Position { ledger: ledger.stamp().revision, snapshot: head.revision })
}

/// A ledger, and where in the log it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The fold of everything up to `head`.
    pub ledger: Ledger,
    /// The last record in it.
    pub head: Head,
}

impl Loaded {
    /// Folds the next record, and refuses one that does not follow.
    pub fn apply(&mut self, record: &Record) -> Result<(), Error> {
        let refused = self.head.admit(record)?;
        if refused == Admission::Behind {
            let (head, found) = (self.head.revision, record.revision());
            return Err(Refusal::Gap { head, found }.into());
        }
        let stamp = record.head().stamp();
        let replay = |error| Error::Replay(stamp.revision, error);
        for event in record.events() {
            self.ledger.apply(stamp, event).map_err(replay)?;
        }
        self.ledger.advance(stamp).map_err(replay)?;
        self.head = record.head();
        Ok(())
    }

    /// Folds everything that the log has beyond this.
    pub fn catch_up(&mut self, log: &dyn Log) -> Result<(), Error> {
        self.catch_up_seen(log, &mut |_| {})
    }

    /// The same, seen by somebody who need not read it again.
    fn catch_up_seen(&mut self, log: &dyn Log, seen: Seen<'_>) -> Result<(), Error> {
        loop {
            let records = log.read(self.head.revision.next(), FOLD_BATCH)?;
            if records.is_empty() {
                return Ok(());
            }
            for record in &records {
                self.apply(record)?;
            }
            seen(&records);
        }
    }
}

/// Is shown what is folded, some records at a time.
pub type Seen<'a> = &'a mut dyn FnMut(&[Record]);

/// The newest snapshot and everything after it.
pub fn load(log: &dyn Log) -> Result<Loaded, Error> {
    load_seen(log, &mut |_| {})
}

fn load_seen(log: &dyn Log, seen: Seen<'_>) -> Result<Loaded, Error> {
    let mut last = None;
    for _ in 0..LOAD_ATTEMPTS {
        let mut loaded = begin(log)?;
        match loaded.catch_up_seen(log, seen) {
            // A newer snapshot came, and the records that we were about to read went.
            Err(Error::Read(error @ ReadError::Compacted { .. })) => last = Some(error),
            Err(error) => return Err(error),
            Ok(()) => return Ok(loaded),
        }
    }
    let nothing = || ReadError::Unavailable("no attempt was made".into());
    Err(Error::Read(last.unwrap_or_else(nothing)))
}

fn begin(log: &dyn Log) -> Result<Loaded, Error> {
    Ok(match log.snapshot()? {
        Some(snapshot) => Loaded { ledger: snapshot.ledger()?, head: snapshot.head() },
        None => Loaded::default(),
    })
}

/// Folds what came since the last snapshot and stores the result as the newest one.
pub fn take(log: &dyn Log) -> Result<Snapshot, Error> {
    take_seen(log, &mut |_| {})
}

/// The same, and shows what it folds: where it has to begin again, some of that twice.
pub fn take_seen(log: &dyn Log, seen: Seen<'_>) -> Result<Snapshot, Error> {
    let loaded = load_seen(log, seen)?;
    let snapshot = Snapshot::of(loaded.head, &loaded.ledger)?;
    log.put_snapshot(&snapshot)?;
    Ok(snapshot)
}
