//! What snapshots, compaction and notes promise.

use sublet_core::id::Revision;
use sublet_core::ledger::Ledger;
use sublet_core::time::Time;

use super::{Case, Site, ensure, fill, read_all, same};
use crate::snapshot::{load, take};
use crate::{Cause, Checksum, Head, Log, NOTE_BYTES_MAX, ReadError, Record, Snapshot, StoreError};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "the newest snapshot is kept, and an older one changes nothing",
        check: newest_snapshot,
    },
    Case {
        name: "a snapshot of another log, or of what is not there yet, is refused",
        check: foreign_snapshot,
    },
    Case {
        name: "a snapshot and the records after it give the same ledger as all records",
        check: snapshot_equals_fold,
    },
    Case {
        name: "compaction drops nothing without a snapshot, and nothing after it",
        check: compaction_is_covered,
    },
    Case {
        name: "compaction drops nothing that is younger than it was told",
        check: compaction_spares_the_young,
    },
    Case {
        name: "a compacted log goes on, loads, and is the same when opened again",
        check: compacted_goes_on,
    },
    Case {
        name: "tending comes to an end, and changes nothing that anybody reads",
        check: tending_changes_nothing,
    },
    Case { name: "a note is kept until it is replaced or removed, up to its limit", check: notes },
    Case { name: "a note that cannot be named or is too large is refused", check: refused_notes },
];

/// Later than every record.
const FOREVER: Time = Time::from_millis(u64::MAX);

fn newest(log: &dyn Log) -> Result<Option<Revision>, Cause> {
    Ok(log.snapshot()?.map(|snapshot| snapshot.revision()))
}

fn newest_snapshot(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    same("snapshot", newest(&*log)?, None)?;
    take(&*log)?;
    same("snapshot of nothing", newest(&*log)?, None)?;
    fill(&*log, 3)?;
    let old = take(&*log)?;
    fill(&*log, 2)?;
    let new = take(&*log)?;
    log.put_snapshot(&old)?;
    same("snapshot", log.snapshot()?, Some(new))?;
    same("snapshot", newest(&*log)?, Some(Revision(5)))
}

fn foreign_snapshot(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let head = fill(&*log, 3)?.last().map(Record::head).unwrap_or_default();
    let checksum = Checksum::of(b"another");
    let ahead = Head { revision: Revision(9), ..head };
    for head in [Head { checksum, ..head }, ahead] {
        let mut ledger = Ledger::default();
        ledger.advance(head.stamp())?;
        let refused = log.put_snapshot(&Snapshot::of(head, &ledger)?);
        let refused = matches!(refused, Err(StoreError::ForeignSnapshot(_)));
        ensure(refused, "a foreign snapshot was taken")?;
    }
    same("snapshot", newest(&*log)?, None)
}

fn snapshot_equals_fold(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    fill(&*log, 5)?;
    let folded = load(&*log)?;
    take(&*log)?;
    same("ledger", load(&*log)?, folded)?;
    fill(&*log, 5)?;
    same("head", load(&*log)?.head, log.head()?)
}

fn compaction_is_covered(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let mut records = fill(&*log, 4)?;
    log.compact(FOREVER)?;
    same("records", read_all(&*log, Revision(1))?, records.clone())?;
    take(&*log)?;
    records = fill(&*log, 3)?;
    log.compact(FOREVER)?;
    same("records", read_all(&*log, Revision(5))?, records)
}

fn compaction_spares_the_young(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let records = fill(&*log, 6)?;
    take(&*log)?;
    let third = records.get(2).map(Record::time).unwrap_or_default();
    log.compact(third)?;
    let kept = records.get(2..).map(<[Record]>::to_vec).unwrap_or_default();
    same("records", read_all(&*log, Revision(3))?, kept)?;
    match log.read(Revision(2), 1) {
        Err(ReadError::Compacted { oldest }) => same("oldest", oldest, Revision(3)),
        other => Err(format!("not told that it is compacted: {other:?}").into()),
    }
}

fn compacted_goes_on(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    fill(&*log, 600)?;
    let before = load(&*log)?;
    take(&*log)?;
    log.compact(FOREVER)?;
    same("head", log.head()?, before.head)?;
    same("ledger", load(&*log)?, before.clone())?;
    same("records", log.read(Revision(601), 5)?, vec![])?;
    let records = fill(&*log, 2)?;
    let after = load(&*log)?;
    drop(log);
    let log = site.open()?;
    same("records", read_all(&*log, Revision(601))?, records)?;
    same("snapshot", newest(&*log)?, Some(Revision(600)))?;
    same("ledger", load(&*log)?, after)?;
    fill(&*log, 1).map(|_| ())
}

/// More often than any home has something to do without anything being written.
const TENDED_MAX: usize = 100;

fn tending_changes_nothing(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let mut records = fill(&*log, 20)?;
    take(&*log)?;
    log.put_note("market", b"x")?;
    let before = load(&*log)?;
    tend(&*log)?;
    same("head", log.head()?, before.head)?;
    same("records", read_all(&*log, Revision(1))?, records.clone())?;
    same("ledger", load(&*log)?, before)?;
    same("note", log.note("market")?, Some(b"x".to_vec()))?;
    // What is written between two of them is no less durable.
    records.extend(fill(&*log, 3)?);
    log.tend()?;
    records.extend(fill(&*log, 3)?);
    tend(&*log)?;
    drop(log);
    let log = site.open()?;
    tend(&*log)?;
    same("records", read_all(&*log, Revision(1))?, records)?;
    same("snapshot", newest(&*log)?, Some(Revision(20)))
}

/// Tends until there is nothing to do.
fn tend(log: &dyn Log) -> Result<(), Cause> {
    for _ in 0..TENDED_MAX {
        if !log.tend()? {
            return Ok(());
        }
    }
    Err(format!("tended {TENDED_MAX} times, and there is still something to do").into())
}

fn notes(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    same("nothing", log.note("market")?, None)?;
    let whole = vec![7; NOTE_BYTES_MAX];
    for bytes in [vec![1], vec![0, 255, 10], whole] {
        log.put_note("market", &bytes)?;
        same("note", log.note("market")?, Some(bytes))?;
    }
    log.put_note("other", b"x")?;
    log.put_note("market", b"")?;
    same("removed", log.note("market")?, None)?;
    log.put_note("market", b"")?;
    same("other", log.note("other")?, Some(b"x".to_vec()))?;
    same("head", log.head()?, Head::default())
}

fn refused_notes(site: &dyn Site) -> Result<(), Cause> {
    let log = site.open()?;
    let too_long = "n".repeat(64);
    for name in ["", "a/b", "..", "A", "a.b", &too_long] {
        let refused = matches!(log.put_note(name, b"x"), Err(StoreError::NoteName(_)));
        ensure(refused, format!("name {name:?} was taken"))?;
        same("note", log.note(name)?, None)?;
    }
    let bytes = vec![0; NOTE_BYTES_MAX + 1];
    let refused = matches!(log.put_note("n", &bytes), Err(StoreError::NoteSize(_)));
    ensure(refused, "a note beyond the limit was taken")
}
