//! Reads everything, believes nothing, writes nothing.
//!
//! Checks that every record is sound and follows the one before it, that the fold is legal, that
//! each grant was justified by the basis it carries, that the ledger's invariants hold, and that
//! the snapshot is what the records say. What it finds are values with stable codes: a tool counts
//! them, a person reads them. A log whose home refuses to open it does not come this far; the
//! refusal is then the finding.
//!
//! Where older records are gone, what the oldest that are kept were decided on is not known: then
//! judging begins at the snapshot, and the report says so.

use sublet_core::event::{Basis, Event};
use sublet_core::id::Revision;
use sublet_core::invariants::{self, Violation};

use crate::dump::oldest;
use crate::snapshot::{Error, Loaded};
use crate::{Checksum, Head, Log, ReadError, Record, Snapshot};

/// Records per read.
const BATCH: usize = 1024;
/// More than anybody reads; whoever has so many has one cause.
const FINDINGS_MAX: usize = 1000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Warning,
    /// Something was promised that should not have been; the log itself is sound.
    Broken,
    /// What is kept cannot be believed.
    Corrupt,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// What kind; never renamed.
    pub code: &'static str,
    /// Where; none when it is about the whole log.
    pub revision: Option<Revision>,
    /// What was found, for people.
    pub found: String,
}

/// What was looked at and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What is wrong; empty when all is well.
    pub findings: Vec<Finding>,
    /// How many records were read.
    pub records: u64,
    /// The first of them.
    pub oldest: Revision,
    /// The first whose events were judged. Those before it were only checked one by one and for
    /// their order: what they were decided on is gone with the records before them. None where
    /// nothing was judged.
    pub judged_from: Option<Revision>,
    /// Where the log stands.
    pub head: Head,
    /// Of the ledger at the head; equal on every sound copy of the same log.
    pub state: Option<Checksum>,
}

impl Report {
    /// The worst of what was found.
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.severity).max()
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        revision: Option<Revision>,
        found: impl ToString,
    ) {
        let (code, found) = match self.findings.len() {
            FINDINGS_MAX => ("too-many-findings", "the rest is not listed".into()),
            _ => (code, found.to_string()),
        };
        if self.findings.len() <= FINDINGS_MAX {
            self.findings.push(Finding { severity, code, revision, found });
        }
    }
}

/// Checks the whole log. An error means that it could not be looked at, not that it is bad.
pub fn check(log: &dyn Log) -> Result<Report, ReadError> {
    let oldest = match oldest(log) {
        // It is there, and is found below.
        Err(ReadError::Corrupt { .. }) => Revision(1),
        known => known?,
    };
    let mut report = Report { oldest, head: log.head()?, ..Report::default() };
    let snapshot = match log.snapshot() {
        Ok(snapshot) => snapshot,
        Err(ReadError::Corrupt { what, source }) => {
            let found = format!("{what}: {source}");
            report.add(Severity::Corrupt, "snapshot-unreadable", None, found);
            None
        }
        Err(error) => return Err(error),
    };
    let mut walk = Walk::new(&mut report, snapshot);
    let mut next = walk.report.oldest;
    while next <= walk.report.head.revision {
        match read_some(log, next) {
            Ok(records) if records.is_empty() => break,
            Ok(records) => {
                for record in &records {
                    walk.visit(record);
                }
                next = records.last().map_or(next, Record::revision).next();
            }
            Err(ReadError::Corrupt { what, source }) => {
                walk.unreadable(next, &format!("{what}: {source}"));
                next = next.next();
            }
            Err(error) => return Err(error),
        }
    }
    walk.finish(next);
    Ok(report)
}

/// A batch, or the one record that can still be read when a later one of the batch cannot.
fn read_some(log: &dyn Log, from: Revision) -> Result<Vec<Record>, ReadError> {
    match log.read(from, BATCH) {
        Err(ReadError::Corrupt { .. }) => log.read(from, 1),
        other => other,
    }
}

/// The way through the records.
struct Walk<'a> {
    report: &'a mut Report,
    snapshot: Option<Snapshot>,
    /// The record before, while the chain can be followed.
    last: Option<Head>,
    /// The fold, while it can be continued.
    fold: Option<Loaded>,
}

impl<'a> Walk<'a> {
    fn new(report: &'a mut Report, snapshot: Option<Snapshot>) -> Self {
        let whole = report.oldest == Revision(1);
        let last = whole.then(Head::default);
        let fold = whole.then(Loaded::default);
        let mut walk = Self { report, snapshot, last, fold };
        // When all older records are gone, the snapshot is where the chain begins.
        if let Some(stands_on) = walk.snapshot.as_ref().map(Snapshot::head)
            && stands_on.revision.next() == walk.report.oldest
        {
            walk.last = Some(stands_on);
            walk.meet_snapshot(stands_on);
        }
        walk
    }

    fn visit(&mut self, record: &Record) {
        self.report.records = self.report.records.saturating_add(1);
        let at = Some(record.revision());
        let follows = self.last.map(|last| last.admit(record));
        if let Some(Err(why)) = follows {
            self.report.add(Severity::Corrupt, "chain-broken", at, why);
        }
        self.last = Some(record.head());
        if let Some(mut fold) = self.fold.take()
            && self.replay(&mut fold, record)
        {
            self.fold = Some(fold);
        }
        self.meet_snapshot(record.head());
    }

    /// Judges and applies the events one by one; false when the fold cannot go on.
    fn replay(&mut self, fold: &mut Loaded, record: &Record) -> bool {
        let at = Some(record.revision());
        self.report.judged_from = self.report.judged_from.or(at);
        let stamp = record.head().stamp();
        for event in record.events() {
            if let Some(Violation { rule, found }) = invariants::judge(&fold.ledger, stamp, event) {
                self.report.add(Severity::Broken, rule, at, found);
            }
            if let Some(basis) = basis(event)
                && basis.received_at > record.time()
            {
                let found = format!("{event:?}");
                self.report.add(Severity::Warning, "basis-from-the-future", at, found);
            }
            if let Err(why) = fold.ledger.apply(stamp, event) {
                let found = format!("{why}: {event:?}");
                self.report.add(Severity::Corrupt, "replay-illegal", at, found);
                return false;
            }
        }
        fold.head = record.head();
        match fold.ledger.advance(stamp) {
            Ok(()) => true,
            Err(why) => {
                self.report.add(Severity::Corrupt, "replay-illegal", at, why);
                false
            }
        }
    }

    /// At the snapshot's revision it must equal the fold; without a fold, it is where one begins.
    fn meet_snapshot(&mut self, head: Head) {
        let here = |snapshot: &Snapshot| snapshot.revision() == head.revision;
        let Some(snapshot) = self.snapshot.take_if(|snapshot| here(snapshot)) else {
            return;
        };
        let at = Some(head.revision);
        if snapshot.head() != head {
            self.report.add(Severity::Corrupt, "snapshot-foreign", at, "it has another record");
        }
        match (snapshot.ledger(), &self.fold) {
            (Err(why), _) => self.report.add(Severity::Corrupt, "snapshot-unreadable", at, why),
            (Ok(ledger), Some(fold)) if ledger != fold.ledger => {
                let found = "the ledger in it is not what the records say";
                self.report.add(Severity::Corrupt, "snapshot-differs", at, found);
            }
            (Ok(ledger), None) => self.fold = Some(Loaded { ledger, head }),
            (Ok(_), Some(_)) => {}
        }
    }

    fn unreadable(&mut self, revision: Revision, found: &str) {
        self.report.add(Severity::Corrupt, "record-unreadable", Some(revision), found);
        (self.last, self.fold) = (None, None);
    }

    fn finish(self, next: Revision) {
        let head = self.report.head;
        if next <= head.revision {
            let found = format!("the records end before the head at revision {}", head.revision);
            self.report.add(Severity::Corrupt, "records-missing", Some(next), found);
        }
        if let Some(snapshot) = &self.snapshot {
            let at = Some(snapshot.revision());
            let found = "no record that is kept is the one it stands on";
            self.report.add(Severity::Corrupt, "snapshot-foreign", at, found);
        }
        let Some(fold) = self.fold else { return };
        for Violation { rule, found } in invariants::check(&fold.ledger) {
            self.report.add(Severity::Corrupt, rule, None, found);
        }
        self.report.state = state(&fold).ok();
    }
}

fn basis(event: &Event) -> Option<&Basis> {
    match event {
        Event::Reserved { basis, .. }
        | Event::Granted { basis, .. }
        | Event::Resized { basis, .. } => Some(basis),
        _ => None,
    }
}

/// A checksum of the ledger alone: equal where the same records were folded, however.
pub fn state(loaded: &Loaded) -> Result<Checksum, Error> {
    let snapshot = Snapshot::of(loaded.head, &loaded.ledger)?;
    Ok(Checksum::of(snapshot.text().as_bytes()))
}
