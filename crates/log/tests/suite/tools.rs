//! Snapshots beside a running engine, fsck, backup, restore and dump.

use std::io::Cursor;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sublet_core::event::{Basis, Event};
use sublet_core::id::Revision;
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::{Span, Time};
use sublet_log::backup::{self, backup};
use sublet_log::embedded::restore::{self, Restorer, restore};
use sublet_log::fsck::{self, Severity};
use sublet_log::snapshot::{load, take};
use sublet_log::{
    AppendError, Body, Embedded, Head, Log, Memory, ReadError, Record, Snapshot, StoreError,
    Writer, dump, embedded,
};

use crate::scene::{
    FOREVER, WRITER, basis, cluster, contents, grow, note, quick_folder, reservation, seal,
};

const RECORDS: u64 = 600;

#[test]
fn snapshots_and_compaction_go_on_beside_appends_and_readers() {
    let folder = quick_folder();
    let log = Embedded::open(folder.path()).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                take(&log).unwrap();
                log.compact(FOREVER).unwrap();
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let loaded = load(&log).unwrap();
                let next = loaded.head.revision.next();
                match log.follow(next, 10, Duration::from_millis(5)) {
                    Ok(_) | Err(ReadError::Compacted { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        // Not so many that the one provider could not report them, however late the last snapshot is.
        grow(&log, RECORDS);
        done.store(true, Ordering::SeqCst);
    });
    let before = contents(&log);
    assert_eq!(before.head.revision, Revision(RECORDS));
    drop(log);
    let log = Embedded::open(folder.path()).unwrap();
    assert_eq!(contents(&log), before);
    assert_eq!(fsck::check(&log).unwrap().findings, []);
}

#[test]
fn an_append_waits_for_one_piece_of_a_snapshot_and_not_for_all_of_it() {
    // On a disk that syncs: a piece has to take its time.
    let folder = tempfile::tempdir().unwrap();
    let log = Embedded::open(folder.path()).unwrap();
    for some in 0..16 {
        let head = log.head().unwrap();
        let now = Time::from_millis(head.time.as_millis() + 1000);
        let requested =
            (0..500).map(|n| reservation(100_000 + some * 500 + n, now).1.into_iter().next());
        log.append(&seal(&head, now, requested.flatten().collect())).unwrap();
    }
    let loaded = load(&log).unwrap();
    let snapshot = Snapshot::of(loaded.head, &loaded.ledger).unwrap();
    let (done, mut appended) = (AtomicBool::new(false), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            log.put_snapshot(&snapshot).unwrap();
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            grow(&log, 1);
            appended += 1;
        }
    });
    // There are some thirty pieces. Were they one, an append would come before it and one with its end;
    // how many come between them is up to a busy machine.
    assert!(appended >= 4, "only {appended} appends came between the pieces");
}

#[test]
fn a_sound_log_has_no_findings_and_the_same_state_with_and_without_its_history() {
    let log = Memory::new();
    grow(&log, 50);
    let whole = fsck::check(&log).unwrap();
    assert_eq!((whole.findings.as_slice(), whole.records), ([].as_slice(), 50));
    take(&log).unwrap();
    grow(&log, 10);
    let whole = fsck::check(&log).unwrap();
    assert_eq!(whole.findings, []);
    let twenty = log.read(Revision(20), 1).unwrap()[0].time();
    assert_eq!(whole.judged_from, Some(Revision(1)));
    for (before, oldest) in [(twenty, 20), (FOREVER, 51)] {
        log.compact(before).unwrap();
        let rest = fsck::check(&log).unwrap();
        assert_eq!(rest.judged_from, Some(Revision(51)), "what the snapshot covers is not judged");
        assert_eq!((rest.findings, rest.oldest), (vec![], Revision(oldest)));
        assert_eq!(rest.state, whole.state);
    }
}

/// A log on which `events` follow a few sound records.
fn with(events: Vec<Event>) -> Memory {
    let log = Memory::new();
    grow(&log, 3);
    let head = log.head().unwrap();
    log.append(&seal(&head, now(&log), events)).unwrap();
    log
}

fn now(log: &Memory) -> Time {
    Time::from_millis(log.head().unwrap().time.as_millis() + 1000)
}

fn codes(log: &dyn Log) -> Vec<&'static str> {
    let report = fsck::check(log).unwrap();
    report.findings.iter().map(|finding| finding.code).collect()
}

/// A grant after `before`, with its basis edited.
fn grant(before: Vec<Event>, edit: impl FnOnce(&mut Basis)) -> Memory {
    let (_, [requested, mut granted]) = reservation(77, Time::from_millis(4000));
    if let Event::Granted { basis, .. } = &mut granted {
        edit(basis);
    }
    with([before, vec![requested, granted]].concat())
}

#[test]
fn fsck_judges_every_grant_by_its_basis() {
    let (lender, note) = (cluster(2), note("test"));
    assert_eq!(codes(&grant(vec![], |_| {})), [""; 0]);
    let little = |basis: &mut Basis| basis.allocatable = Resources::new(800, 1 << 50);
    assert_eq!(codes(&grant(vec![], little)), ["takes-more-than-free"]);
    let taken = |basis: &mut Basis| basis.allocated = Resources::new(999_950, 0);
    assert_eq!(codes(&grant(vec![], taken)), ["takes-more-than-free"]);
    let old = |basis: &mut Basis| basis.suspect_after = Span::from_millis(1000);
    assert_eq!(codes(&grant(vec![], old)), ["advertisement-too-old"]);
    let future = |basis: &mut Basis| basis.received_at = FOREVER;
    assert_eq!(codes(&grant(vec![], future)), ["basis-from-the-future"]);
    let cordoned = Event::Cordoned { cluster: lender.clone(), drain: false, note: note.clone() };
    assert_eq!(codes(&grant(vec![cordoned], |_| {})), ["provider-cordoned"]);
    let lost = Event::Lost { cluster: lender.clone(), note: note.clone() };
    assert_eq!(codes(&grant(vec![lost], |_| {})), ["provider-lost"]);
    let restored = Event::Restored { note: note.clone() };
    assert_eq!(codes(&grant(vec![restored], |_| {})), ["provider-must-report"]);
    let limits = Limits([(Kind::Cpu, 300)].into());
    let capped = Event::Capped { cluster: lender, limits, note };
    assert_eq!(codes(&grant(vec![capped], |_| {})), ["above-cap"]);
}

#[test]
fn fsck_judges_a_resize_by_its_growth() {
    let (id, [requested, granted]) = reservation(78, Time::from_millis(4000));
    let resize = |cpu, basis| Event::Resized { id, amounts: Resources::new(cpu, 1), basis };
    let log = |resized| with(vec![requested.clone(), granted.clone(), resized]);
    assert_eq!(codes(&log(resize(5000, basis(Time::from_millis(4000))))), [""; 0]);
    let full = Basis { allocatable: Resources::new(1, 1), ..basis(Time::from_millis(4000)) };
    assert_eq!(codes(&log(resize(5000, full.clone()))), ["takes-more-than-free"]);
    assert_eq!(codes(&log(resize(1, full))), [""; 0], "a shrink takes nothing");
    let short = Basis { allocatable: Resources::new(9000, 0), ..basis(Time::from_millis(4000)) };
    let found = codes(&log(resize(5000, short.clone())));
    assert_eq!(found, ["provider-overcommitted"], "there is cpu, and less memory than is held");
    assert_eq!(codes(&log(resize(1, short))), [""; 0]);
}

#[test]
fn fsck_finds_what_is_sound_but_impossible() {
    let (id, [requested, granted]) = reservation(79, Time::from_millis(4000));
    assert_eq!(codes(&with(vec![Event::Activated { id }])), ["replay-illegal"]);
    let twice = vec![requested.clone(), granted.clone(), granted.clone()];
    assert_eq!(codes(&with(twice)), ["replay-illegal"]);
    let mut selfish = granted;
    if let Event::Granted { provider, .. } = &mut selfish {
        *provider = cluster(1);
    }
    let log = with(vec![requested, selfish]);
    // The judge finds it, and the ledger refuses it.
    assert_eq!(codes(&log), ["lends-to-itself", "replay-illegal"]);
}

/// A log that serves what it is told to, sound or not.
#[derive(Default)]
struct Tampered {
    records: Vec<Record>,
    snapshot: Option<Snapshot>,
    /// These cannot be read.
    bad: Vec<Revision>,
    bad_snapshot: bool,
    /// Where it says that it stands, if not at the last record.
    head: Option<Head>,
}

impl Log for Tampered {
    fn append(&self, _: &Record) -> Result<(), AppendError> {
        Err(AppendError::Fatal("read only".into()))
    }
    fn head(&self) -> Result<Head, ReadError> {
        Ok(self.head.or(self.records.last().map(Record::head)).unwrap_or_default())
    }
    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
        let later = self.records.iter().filter(|record| record.revision() >= from);
        let some: Vec<_> = later.take(limit).cloned().collect();
        let bad = some.iter().find(|record| self.bad.contains(&record.revision()));
        bad.map_or(Ok(some.clone()), |bad| Err(corrupt(&format!("revision {}", bad.revision()))))
    }
    fn follow(&self, from: Revision, limit: usize, _: Duration) -> Result<Vec<Record>, ReadError> {
        self.read(from, limit)
    }
    fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
        if self.bad_snapshot { Err(corrupt("the snapshot")) } else { Ok(self.snapshot.clone()) }
    }
    fn put_snapshot(&self, _: &Snapshot) -> Result<(), StoreError> {
        Ok(())
    }
    fn compact(&self, _: Time) -> Result<(), StoreError> {
        Ok(())
    }
    fn note(&self, _: &str) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(None)
    }
    fn put_note(&self, _: &str, _: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn fsck_finds_gaps_swaps_and_foreign_snapshots() {
    let log = Memory::new();
    let records = grow(&log, 6);
    let tampered = |records: Vec<Record>, snapshot| {
        let log = Tampered { records, snapshot, ..Tampered::default() };
        let report = fsck::check(&log).unwrap();
        assert_eq!(report.severity(), Some(Severity::Corrupt));
        codes(&log)
    };
    let mut gap = records.clone();
    gap.remove(2);
    assert_eq!(tampered(gap, None)[0], "chain-broken");
    // The same revision, rewritten: every checksum is right, but the next record names another.
    let mut rewritten = records.clone();
    rewritten[2] = seal(&records[1].head(), records[2].time(), vec![]);
    assert_eq!(tampered(rewritten, None)[0], "chain-broken");
    // A snapshot of the right revision with a ledger that nobody decided.
    let head = records[3].head();
    let mut empty = sublet_core::ledger::Ledger::default();
    empty.advance(head.stamp()).unwrap();
    let differs = Snapshot::of(head, &empty).unwrap();
    assert_eq!(tampered(records.clone(), Some(differs)), ["snapshot-differs"]);
    let elsewhere = Head { revision: Revision(99), ..head };
    empty.advance(elsewhere.stamp()).unwrap();
    let foreign = Snapshot::of(elsewhere, &empty).unwrap();
    assert_eq!(tampered(records, Some(foreign)), ["snapshot-foreign"]);
}

fn corrupt(what: &str) -> ReadError {
    ReadError::Corrupt { what: what.to_owned(), source: "a flipped bit".into() }
}

#[test]
fn fsck_finds_what_cannot_be_read_and_reads_on() {
    let records = grow(&Memory::new(), 6);
    let found = |log: Tampered| {
        let report = fsck::check(&log).unwrap();
        assert_eq!(report.severity(), Some(Severity::Corrupt));
        let found = report.findings.iter().map(|finding| (finding.code, finding.revision));
        (report.records, found.collect::<Vec<_>>())
    };
    let sound = || Tampered { records: records.clone(), ..Tampered::default() };
    for bad in [Revision(1), Revision(3), Revision(6)] {
        let log = Tampered { bad: vec![bad], ..sound() };
        assert_eq!(found(log), (5, vec![("record-unreadable", Some(bad))]));
    }
    let log = Tampered { bad_snapshot: true, ..sound() };
    assert_eq!(found(log), (6, vec![("snapshot-unreadable", None)]));
    let head = Head { revision: Revision(8), ..records[5].head() };
    let log = Tampered { head: Some(head), ..sound() };
    assert_eq!(found(log), (6, vec![("records-missing", Some(Revision(7)))]));
}

fn restorer() -> Restorer {
    Restorer { writer: Writer(9), now: Time::from_millis(5), note: note("disk died") }
}

#[test]
fn a_backup_restores_the_same_ledger_which_then_waits_for_its_providers() {
    let folder = quick_folder();
    for snapshot in [false, true] {
        let log = Memory::new();
        grow(&log, 30);
        if snapshot {
            take(&log).unwrap();
            log.compact(FOREVER).unwrap();
            grow(&log, 10);
        }
        let mut copy = Vec::new();
        let extent = backup(&log, &mut copy).unwrap();
        assert_eq!(extent.head, log.head().unwrap());
        let (_, verified) = backup::verify(copy.as_slice()).unwrap();
        let mut expected = load(&log).unwrap();
        assert_eq!(verified, expected);

        let target = folder.path().join(format!("restored-{snapshot}"));
        let head = restore(Cursor::new(&copy), &target, restorer()).unwrap();
        let restored = Embedded::open(&target).unwrap();
        assert_eq!(restored.head().unwrap(), head);
        let loaded = load(&restored).unwrap();
        assert!(loaded.ledger.awaits_report(&cluster(2)));
        let mark = restored.read(head.revision, 1).unwrap().remove(0);
        assert!(matches!(mark.events(), [Event::Restored { .. }]));
        expected.apply(&mark).unwrap();
        assert_eq!(loaded, expected);
        assert_eq!(fsck::check(&restored).unwrap().findings, []);
        grow(&restored, 0);
        let again = restore(Cursor::new(&copy), &target, restorer());
        assert!(matches!(again, Err(restore::Error::Write(embedded::Error::NotEmpty(_)))));
    }
}

#[test]
fn a_damaged_backup_is_refused_and_nothing_is_written() {
    let log = Memory::new();
    grow(&log, 4);
    take(&log).unwrap();
    grow(&log, 3);
    let mut copy = Vec::new();
    backup(&log, &mut copy).unwrap();
    let folder = quick_folder();
    let target = folder.path().join("new");
    let refused = |bytes: &[u8]| {
        assert!(restore(Cursor::new(bytes), &target, restorer()).is_err());
        assert!(!target.exists());
    };
    for at in (0..copy.len()).step_by(17) {
        let mut damaged = copy.clone();
        damaged[at] ^= 1 << (at % 8);
        refused(&damaged);
        refused(&copy[..at]);
    }
    refused(&[copy.as_slice(), b"\n"].concat());
    let lines: Vec<_> = copy.split_inclusive(|byte| *byte == b'\n').collect();
    for missing in 0..lines.len() {
        let mut rest = lines.clone();
        rest.remove(missing);
        refused(&rest.concat());
        rest.insert(missing, lines[(missing + 1) % lines.len()]);
        refused(&rest.concat());
    }
}

#[test]
fn a_restore_that_was_cut_off_is_not_taken_for_an_empty_log() {
    let log = Memory::new();
    grow(&log, 4);
    let mut copy = Vec::new();
    backup(&log, &mut copy).unwrap();
    let folder = quick_folder();
    let target = folder.path().join("new");
    restore(Cursor::new(&copy), &target, restorer()).unwrap();
    // What is there just before the database gets its name.
    std::fs::rename(target.join("sublet.db"), target.join("sublet.db.new")).unwrap();
    let refused = Embedded::open(&target);
    assert!(matches!(refused, Err(embedded::Error::MissingFile { .. })), "{refused:?}");
}

#[test]
fn a_dump_has_one_line_per_event() {
    let log = Memory::new();
    grow(&log, 2);
    let head = log.head().unwrap();
    let empty = Record::seal(&head, WRITER, head.time, Body::default()).unwrap();
    log.append(&empty).unwrap();
    let mut out = Vec::new();
    assert_eq!(dump::dump(&log, Revision(0), &mut out).unwrap(), 3);
    let text = String::from_utf8(out).unwrap();
    let events: usize = contents(&log).records.iter().map(|r| r.events().len()).sum();
    assert_eq!(text.lines().count(), events + 1);
    let first = text.lines().next().unwrap();
    let start = "1 1970-01-01T00:00:01.000Z 00000000 {\"requested\":{\"id\":\"rsv-";
    assert!(first.starts_with(start), "{first}");
    assert!(text.lines().last().unwrap().ends_with(" -"));
}
