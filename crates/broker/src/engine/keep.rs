//! The thread that keeps the log short: folds it into a snapshot beside the engine, and lets go of
//! history that is covered and old, or too much. It also notes what it is told of the market.
//!
//! It reads the log like any other reader, so planning and writing never stop for it. A snapshot
//! that cannot be made costs a longer start next time; that is logged, and tried again, ever less
//! often while it goes on failing. One that cannot be written is a disk that fails, which ends the
//! log's right to acknowledge, as any failed write does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_core::market::Entry;
use sublet_core::time::{Span, Time};
use sublet_log::{Log, Snapshot, snapshot};

use super::history::History;
use super::note;
use crate::clock::Machine;
use crate::reload::chain;

/// How often the log is looked at, and how soon again where there was something to do: often enough
/// that little has to be done each time, because the disk is busy with it.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LOOK_SOON: Duration = Duration::from_millis(10);
/// It yields to everybody who answers somebody.
const NICE: i32 = 10;
/// The pauses after a snapshot that failed, the first and the longest.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(5);

/// How many records are read at once.
const READ_LIMIT: usize = 256;

/// How long the log becomes.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// A snapshot is taken after so many records.
    pub records: u64,
    /// Or after so many bytes that were there at its start or that this broker wrote; in either case
    /// not before as many bytes were written as the last snapshot has, so that snapshots are never
    /// more than half of what is written.
    pub bytes: u64,
    /// History that a snapshot covers is kept for so long.
    pub history: Span,
    /// And no more of it than so many bytes.
    pub history_bytes: u64,
}

impl Default for Keeping {
    fn default() -> Self {
        let (history, history_bytes) = (Span::from_secs(7 * 24 * 3600), 1 << 30);
        Self { records: 10_000, bytes: 128 << 20, history, history_bytes }
    }
}

/// Keeps the log short, and the market noted, until the other end of `notes` is dropped. Of
/// `written`, others keep count.
pub(super) fn keep(
    log: &dyn Log,
    keeping: Keeping,
    written: &AtomicU64,
    notes: &Receiver<Vec<Entry>>,
) {
    #[cfg(target_os = "linux")]
    // Of this thread alone, on Linux. One that may not be nice works all the same.
    rustix::process::nice(NICE).ok();
    let (machine, mut keeper) = (Machine::new(), Keeper::new(log, keeping));
    let mut pause = LOOK_EVERY;
    loop {
        match notes.recv_timeout(pause) {
            Ok(entries) => note::keep(log, entries),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        // A log that is gone is noticed by whoever writes next.
        let busy = log.tend().unwrap_or(false);
        let more = keeper.look(machine.read().monotonic, written.load(Ordering::Relaxed));
        pause = if busy || more { LOOK_SOON } else { (pause * 2).min(LOOK_EVERY) };
    }
}

/// What is known of the last snapshot and of the tries since.
struct Keeper<'a> {
    log: &'a dyn Log,
    keeping: Keeping,
    /// Where it stands, and how many bytes had been written by then.
    last: (Revision, u64),
    /// How many bytes it has.
    size: u64,
    /// How many bytes an earlier process had written after it.
    before: u64,
    /// What it covers, and whether some of that may have to go.
    history: History,
    untrimmed: bool,
    failures: u32,
    /// Nothing is tried before.
    pause_until: Duration,
}

impl<'a> Keeper<'a> {
    fn new(log: &'a dyn Log, keeping: Keeping) -> Self {
        let newest = log.snapshot().ok().flatten();
        let size = newest.as_ref().map_or(0, size_of);
        let last = newest.map_or(Revision::default(), |snapshot| snapshot.revision());
        let (before, pause_until) = (bytes_after(log, last), Duration::ZERO);
        let (history, untrimmed) = (History::new(), last > Revision::default());
        let last = (last, 0);
        Self { log, keeping, last, size, before, history, untrimmed, failures: 0, pause_until }
    }

    /// Takes a snapshot if it is time for one, and lets go of history; says whether there is more
    /// of that to look at.
    fn look(&mut self, now: Duration, written: u64) -> bool {
        if now < self.pause_until {
            return false;
        }
        match self.keep_short(written) {
            Ok(()) => {
                if std::mem::take(&mut self.failures) > 0 {
                    tracing::info!(revision = %self.last.0, "the log is kept short again");
                }
                self.untrimmed
            }
            Err(error) => {
                let pause = pause_after(self.failures);
                (self.failures, self.pause_until) = (self.failures.saturating_add(1), now + pause);
                tracing::warn!(
                    error = chain(&error),
                    failures = self.failures,
                    again_in_s = pause.as_secs(),
                    "the log was not folded into a snapshot, or its history not shortened: it \
                     grows, and a start takes longer"
                );
                false
            }
        }
    }

    fn keep_short(&mut self, written: u64) -> Result<(), snapshot::Error> {
        if let Some(newest) = self.fold(written)? {
            (self.last, self.size) = ((newest.revision(), written), size_of(&newest));
            (self.before, self.untrimmed) = (0, true);
        }
        if self.untrimmed {
            self.untrimmed = !self.trim()?;
        }
        Ok(())
    }

    /// Lets go of history, as soon as it is measured; says whether it came to that.
    fn trim(&mut self) -> Result<bool, snapshot::Error> {
        let Self { log, keeping, last: (covered, _), .. } = *self;
        if !self.history.measure(log, covered)? {
            return Ok(false);
        }
        let now = log.head()?.time.as_millis();
        let before = Time::from_millis(now.saturating_sub(keeping.history.as_millis()));
        self.history.trim(log, covered, (before, keeping.history_bytes))?;
        Ok(true)
    }

    /// Takes a snapshot if enough has come since the last one.
    fn fold(&mut self, written: u64) -> Result<Option<Snapshot>, snapshot::Error> {
        let (log, keeping, (last, bytes)) = (self.log, self.keeping, self.last);
        let records = log.head()?.revision.0.saturating_sub(last.0);
        let bytes = self.before.saturating_add(written.saturating_sub(bytes));
        let enough = records >= keeping.records || bytes >= keeping.bytes;
        if !enough || bytes < self.size {
            return Ok(None);
        }
        snapshot::take_seen(log, &mut |records| self.history.see(records)).map(Some)
    }
}

fn size_of(snapshot: &Snapshot) -> u64 {
    u64::try_from(snapshot.text().len()).unwrap_or(u64::MAX)
}

/// How many bytes the records after a snapshot have: a broker that is restarted again and again must
/// not begin to count anew each time. A log that cannot be read now is noticed by whoever writes next.
fn bytes_after(log: &dyn Log, last: Revision) -> u64 {
    let (mut bytes, mut from) = (0_u64, last.next());
    while let Ok(records) = log.read(from, READ_LIMIT)
        && let Some(newest) = records.last()
    {
        from = newest.revision().next();
        let sizes = records.iter().map(|record| record.text().len());
        bytes = sizes.fold(bytes, |sum, size| sum.saturating_add(size as u64));
    }
    bytes
}

/// Twice as long after each failure that follows another.
fn pause_after(failures: u32) -> Duration {
    PAUSE_MIN.saturating_mul(2_u32.saturating_pow(failures)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use sublet_core::event::{Event, Note};
    use sublet_core::reservation::Actor;
    use sublet_log::{AppendError, Body, Head, Memory, ReadError, Record, StoreError, Writer};

    use super::*;

    /// A log that cannot keep a snapshot for a while.
    #[derive(Default)]
    struct Stubborn {
        home: Memory,
        tries: AtomicU32,
        refuses: u32,
    }

    impl Log for Stubborn {
        fn append(&self, record: &Record) -> Result<(), AppendError> {
            self.home.append(record)
        }
        fn head(&self) -> Result<Head, ReadError> {
            self.home.head()
        }
        fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
            self.home.read(from, limit)
        }
        fn follow(
            &self,
            from: Revision,
            n: usize,
            wait: Duration,
        ) -> Result<Vec<Record>, ReadError> {
            self.home.follow(from, n, wait)
        }
        fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
            self.home.snapshot()
        }
        fn put_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
            if self.tries.fetch_add(1, Ordering::SeqCst) < self.refuses {
                return Err(StoreError::Unavailable("no room".into()));
            }
            self.home.put_snapshot(snapshot)
        }
        fn compact(&self, before: Time) -> Result<(), StoreError> {
            self.home.compact(before)
        }
        fn note(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
            self.home.note(name)
        }
        fn put_note(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
            self.home.put_note(name, bytes)
        }
    }

    fn with_a_record(refuses: u32) -> Stubborn {
        let log = Stubborn { refuses, ..Stubborn::default() };
        let note = Note { by: Actor::Broker, why: String::new() };
        let body = Body::of([Event::ClockConfirmed { note }]).unwrap();
        let record = Record::seal(&Head::default(), Writer(1), Time::from_millis(1), body).unwrap();
        log.append(&record).unwrap();
        log
    }

    #[test]
    fn a_snapshot_that_fails_is_tried_again_ever_less_often() {
        let log = with_a_record(u32::MAX);
        let mut keeper = Keeper::new(&log, Keeping { records: 1, ..Keeping::default() });
        let tried = (0..3600).filter(|second| {
            let before = log.tries.load(Ordering::SeqCst);
            keeper.look(Duration::from_secs(*second), 0);
            log.tries.load(Ordering::SeqCst) > before
        });
        let tried: Vec<_> = tried.collect();
        assert_eq!(tried[..6], [0, 1, 3, 7, 15, 31]);
        assert!(tried.windows(2).all(|pair| pair[1] - pair[0] <= PAUSE_MAX.as_secs()), "{tried:?}");
        assert!(tried.len() < 24, "{tried:?}");
    }

    #[test]
    fn after_a_failure_the_next_snapshot_counts_from_where_it_stands() {
        let log = with_a_record(2);
        let mut keeper = Keeper::new(&log, Keeping { records: 1, ..Keeping::default() });
        for second in 0..10 {
            keeper.look(Duration::from_secs(second), 0);
        }
        assert_eq!((log.tries.load(Ordering::SeqCst), keeper.failures), (3, 0));
        assert_eq!(log.snapshot().unwrap().unwrap().revision(), Revision(1));
    }

    #[test]
    fn few_large_records_are_folded_too() {
        let log = with_a_record(0);
        let there = bytes_after(&log, Revision(0));
        assert!((1..1000).contains(&there));
        let mut keeper = Keeper::new(&log, Keeping { bytes: 1000, ..Keeping::default() });
        keeper.look(Duration::ZERO, 999 - there);
        assert_eq!(log.snapshot().unwrap(), None);
        keeper.look(Duration::ZERO, 1000 - there);
        keeper.look(Duration::ZERO, 1999 - there);
        assert_eq!(log.tries.load(Ordering::SeqCst), 1);
        keeper.look(Duration::ZERO, 2000 - there);
        assert_eq!(log.tries.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn as_much_is_written_between_two_snapshots_as_the_first_of_them_has() {
        let log = with_a_record(0);
        let keeping = Keeping { records: 1, ..Keeping::default() };
        let mut keeper = Keeper::new(&log, keeping);
        keeper.look(Duration::ZERO, 0);
        let size = size_of(&log.snapshot().unwrap().unwrap());
        let note = Note { by: Actor::Broker, why: String::new() };
        let body = Body::of([Event::ClockConfirmed { note }]).unwrap();
        let (head, now) = (log.head().unwrap(), Time::from_millis(2));
        log.append(&Record::seal(&head, Writer(1), now, body).unwrap()).unwrap();
        let tries = |keeper: &mut Keeper<'_>, written| {
            keeper.look(Duration::ZERO, written);
            log.tries.load(Ordering::SeqCst)
        };
        assert_eq!([size - 1, size].map(|written| tries(&mut keeper, written)), [1, 2]);
        let mut after_a_start = Keeper::new(&log, keeping);
        assert_eq!(tries(&mut after_a_start, 0), 2, "it begins with what there is");
    }

    #[test]
    fn history_goes_after_a_snapshot_and_after_a_start_with_a_smaller_bound() {
        let log = with_a_record(0);
        let looks = |history_bytes, records| {
            let keeping = Keeping { records, history_bytes, ..Keeping::default() };
            let mut keeper = Keeper::new(&log, keeping);
            while keeper.look(Duration::ZERO, 0) {}
            sublet_log::dump::oldest(&log).unwrap()
        };
        assert_eq!(looks(u64::MAX, 1), Revision(1), "there is place for it");
        assert!(log.snapshot().unwrap().is_some());
        assert_eq!(looks(u64::MAX, u64::MAX), Revision(1));
        assert_eq!(looks(0, u64::MAX), Revision(2), "no new snapshot was needed");
    }

    #[test]
    fn what_an_earlier_process_wrote_counts() {
        let log = with_a_record(0);
        let bytes = bytes_after(&log, Revision(0));
        // One that never writes enough itself.
        Keeper::new(&log, Keeping { bytes: bytes + 1, ..Keeping::default() })
            .look(Duration::ZERO, 0);
        assert_eq!(log.snapshot().unwrap(), None);
        Keeper::new(&log, Keeping { bytes, ..Keeping::default() }).look(Duration::ZERO, 0);
        assert_eq!(log.snapshot().unwrap().unwrap().revision(), Revision(1));
        assert_eq!(bytes_after(&log, Revision(1)), 0);
    }
}
