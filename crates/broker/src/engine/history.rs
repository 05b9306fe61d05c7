//! What the log still has although a snapshot covers it: how much that is, and when it goes.
//!
//! It is kept for people who look back, so it goes when it is old, and before that where there is
//! too much of it: a busy broker must not fill its disk within the time for which history is kept.
//! Only what lies before the newest snapshot is ever let go; the home sees to that too.
//!
//! Records are measured when a snapshot folds them, which reads them anyhow, and counted in
//! stretches, so that nothing has to be read again when it goes. What an earlier process left is
//! measured after a start, a piece at a time.

use std::collections::VecDeque;

use sublet_core::id::Revision;
use sublet_core::time::{Span, Time};
use sublet_log::{Log, ReadError, Record, StoreError};

/// How many records are read at once.
const PIECE: usize = 256;
/// How many pieces are measured before somebody else has a turn.
const PIECES_MAX: usize = 16;
/// A stretch ends where it is longer than this.
const STRETCH_BYTES: u64 = 256 << 10;

/// Consecutive records: the last of them, and how much they are.
#[derive(Debug, Default)]
struct Stretch {
    last: Revision,
    time: Time,
    bytes: u64,
}

/// The records that are kept of those that a snapshot covers.
#[derive(Debug)]
pub(super) struct History {
    /// The first that is not measured.
    next: Revision,
    /// What is measured and was not let go, oldest first; in all, so many bytes.
    stretches: VecDeque<Stretch>,
    bytes: u64,
}

impl History {
    /// Nothing is measured yet.
    pub(super) fn new() -> Self {
        Self { next: Revision(1), stretches: VecDeque::new(), bytes: 0 }
    }

    /// Counts records that follow what is measured, and no others.
    pub(super) fn see(&mut self, records: &[Record]) {
        let (mut open, first) = (Stretch::default(), self.next);
        for record in records.iter().skip_while(|record| record.revision() < first) {
            if record.revision() != self.next {
                break;
            }
            self.next = record.revision().next();
            (open.last, open.time) = (record.revision(), record.time());
            open.bytes = open.bytes.saturating_add(size(record));
            if open.bytes > STRETCH_BYTES {
                self.add(std::mem::take(&mut open));
            }
        }
        if open.bytes > 0 {
            self.add(open);
        }
    }

    fn add(&mut self, stretch: Stretch) {
        self.bytes = self.bytes.saturating_add(stretch.bytes);
        self.stretches.push_back(stretch);
    }

    /// Reads what is not measured up to `covered`; says whether that was all.
    pub(super) fn measure(&mut self, log: &dyn Log, covered: Revision) -> Result<bool, ReadError> {
        for _ in 0..PIECES_MAX {
            if self.next > covered {
                return Ok(true);
            }
            match log.read(self.next, PIECE) {
                Ok(records) => self.see(&records),
                // An earlier process, or another one, has let go of what lies before.
                Err(ReadError::Compacted { oldest }) => self.next = self.next.max(oldest),
                Err(error) => return Err(error),
            }
        }
        Ok(self.next > covered)
    }

    /// Lets go of what is older than `before`, and of the oldest while there are more than `most`
    /// bytes, as far as it is covered. A stretch that is covered in part stays.
    pub(super) fn trim(
        &mut self,
        log: &dyn Log,
        covered: Revision,
        (before, most): (Time, u64),
    ) -> Result<(), StoreError> {
        let (mut before, mut kept, mut gone) = (before, self.bytes, 0);
        for oldest in &self.stretches {
            if oldest.last > covered || oldest.time >= before && kept <= most {
                break;
            }
            // A home drops by time, so what is as old as the last of them goes with it.
            let after = oldest.time.checked_add(Span::from_millis(1)).unwrap_or(oldest.time);
            before = before.max(after);
            kept = kept.saturating_sub(oldest.bytes);
            gone += 1;
        }
        log.compact(before)?;
        self.bytes = kept;
        self.stretches.drain(..gone);
        Ok(())
    }
}

fn size(record: &Record) -> u64 {
    u64::try_from(record.text().len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use sublet_core::event::{Event, Note};
    use sublet_core::reservation::Actor;
    use sublet_log::embedded::Options;
    use sublet_log::snapshot::{load, take, take_seen};
    use sublet_log::{Body, Embedded, Memory, Writer, dump};

    use super::*;

    const AGES: Time = Time::from_millis(0);

    /// A record at `millis` with a word of so many bytes in it.
    fn append(log: &dyn Log, millis: u64, word: usize) -> Record {
        let note = Note { by: Actor::Broker, why: "w".repeat(word) };
        let body = Body::of([Event::ClockConfirmed { note }]).unwrap();
        let head = log.head().unwrap();
        let record = Record::seal(&head, Writer(1), Time::from_millis(millis), body).unwrap();
        log.append(&record).unwrap();
        record
    }

    fn filled(count: u64) -> (Memory, Vec<Record>) {
        let log = Memory::default();
        let word = |n: u64| usize::try_from(n * 37 % 5000).unwrap();
        let records = (1..=count).map(|n| append(&log, n, word(n))).collect();
        (log, records)
    }

    fn sum(records: &[Record]) -> u64 {
        records.iter().map(size).sum()
    }

    /// Keeps what lies before the newest snapshot within the two bounds, in one go.
    fn keep(history: &mut History, log: &dyn Log, bounds: (Time, u64)) {
        let covered = log.snapshot().unwrap().map_or(Revision(0), |newest| newest.revision());
        while !history.measure(log, covered).unwrap() {}
        history.trim(log, covered, bounds).unwrap();
    }

    /// How many records are kept, of these that were written; the newest, and all of them.
    fn kept<'a>(log: &dyn Log, written: &'a [Record]) -> &'a [Record] {
        let records = log.read(dump::oldest(log).unwrap(), usize::MAX).unwrap();
        assert!(written.ends_with(&records), "{} are not the newest", records.len());
        &written[written.len() - records.len()..]
    }

    #[test]
    fn no_more_is_kept_than_there_is_place_for_and_not_much_less() {
        let (log, records) = filled(2000);
        take(&log).unwrap();
        assert!(sum(&records) > 4 << 20);
        let mut history = History::new();
        for most in [u64::MAX, sum(&records), sum(&records) - 1, 3 << 20, 1 << 20, 0] {
            keep(&mut history, &log, (AGES, most));
            let kept = sum(kept(&log, &records));
            assert!(kept <= most, "{kept} of {most}");
            assert_eq!(history.bytes, kept);
            let least = most.min(sum(&records)).saturating_sub(2 * STRETCH_BYTES);
            assert!(kept >= least, "{kept} of {most}");
        }
    }

    #[test]
    fn what_is_old_goes_although_there_is_place_for_it() {
        let (log, records) = filled(600);
        take(&log).unwrap();
        keep(&mut History::new(), &log, (records[300].time(), u64::MAX));
        assert_eq!(kept(&log, &records).len(), 300);
    }

    #[test]
    fn the_newest_snapshot_and_all_after_it_stay_however_much_that_is() {
        let (log, mut records) = filled(300);
        let newest = take(&log).unwrap();
        records.extend((301..=900).map(|n| append(&log, n, 4000)));
        let before = load(&log).unwrap();
        let mut history = History::new();
        // Also where more was measured, because a snapshot of it could not be kept.
        while !history.measure(&log, Revision(900)).unwrap() {}
        history.trim(&log, newest.revision(), (AGES, 0)).unwrap();
        assert!((600..900).contains(&kept(&log, &records).len()));
        assert_eq!(history.bytes, sum(kept(&log, &records)));
        history.trim(&log, newest.revision(), (Time::from_millis(u64::MAX), 0)).unwrap();
        assert_eq!(kept(&log, &records).len(), 600);
        assert_eq!(log.snapshot().unwrap(), Some(newest));
        assert_eq!(load(&log).unwrap(), before);
    }

    #[test]
    fn nothing_goes_before_there_is_a_snapshot() {
        let (log, records) = filled(20);
        keep(&mut History::new(), &log, (Time::from_millis(u64::MAX), 0));
        assert_eq!(kept(&log, &records).len(), 20);
    }

    #[test]
    fn what_a_snapshot_folds_is_measured_by_that_and_what_others_let_go_is_not_missed() {
        let (log, mut records) = filled(1000);
        let mut history = History::new();
        take_seen(&log, &mut |some| history.see(some)).unwrap();
        assert_eq!((history.next, history.bytes), (Revision(1001), sum(&records)));
        // Another process on the same log takes a snapshot, and lets go of much.
        records.extend((1001..=1100).map(|n| append(&log, n, 4000)));
        take(&log).unwrap();
        log.compact(records[1050].time()).unwrap();
        records.extend((1101..=1200).map(|n| append(&log, n, 4000)));
        take_seen(&log, &mut |some| history.see(some)).unwrap();
        keep(&mut history, &log, (AGES, 1 << 20));
        let kept = sum(kept(&log, &records));
        assert!(0 < kept && kept <= history.bytes && history.bytes <= 1 << 20, "{kept}");
    }

    #[test]
    fn a_busy_broker_does_not_fill_its_disk_within_the_time_for_which_history_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        // The journal is not what is measured here.
        let options = Options { checkpoint_bytes: 256 << 10, room_bytes: 0, ..Options::default() };
        let log = Embedded::open_with(folder.path(), options).unwrap();
        let mut history = History::new();
        let (mut written, mut largest) = (0, 0);
        for n in 1..=2000 {
            written += size(&append(&log, n, 8000));
            if n % 50 == 0 {
                take_seen(&log, &mut |some| history.see(some)).unwrap();
                keep(&mut history, &log, (AGES, 1 << 20));
                while log.tend().unwrap() {}
                largest = largest.max(on_disk(folder.path()));
            }
        }
        assert!(written > 15 << 20, "{written}");
        assert!(largest < 6 << 20, "{largest} bytes on the disk for {written} written");
        assert_eq!(load(&log).unwrap().head, log.head().unwrap());
    }

    fn on_disk(folder: &std::path::Path) -> u64 {
        let files = std::fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    }
}
