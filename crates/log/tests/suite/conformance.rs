//! Every home keeps the same contract, and the suite notices homes that do not.

use std::error::Error;
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_core::time::Time;
use sublet_log::conformance::{Failure, NewSite, Site, run};
use sublet_log::embedded::Options;
use sublet_log::faulty::{Fault, Faulty, Plan};
use sublet_log::{
    AppendError, Cause, Embedded, Head, Log, Memory, ReadError, Record, Snapshot, StoreError,
};
use tempfile::TempDir;

use crate::scene::FOREVER;

struct InMemory(Memory);

impl Site for InMemory {
    fn open(&self) -> Result<Box<dyn Log>, Cause> {
        Ok(Box::new(self.0.clone()))
    }
    fn is_shared(&self) -> bool {
        true
    }
}

struct Unsure(Memory, u64);

impl Site for Unsure {
    fn open(&self) -> Result<Box<dyn Log>, Cause> {
        let plan = Plan::seeded(self.1, 400, &[Fault::RequestLost, Fault::AnswerLost]);
        Ok(Box::new(Faulty::new(self.0.clone(), plan)))
    }
    fn is_shared(&self) -> bool {
        true
    }
}

struct InFolder(TempDir, Options);

impl Site for InFolder {
    fn open(&self) -> Result<Box<dyn Log>, Cause> {
        Ok(Box::new(Embedded::open_with(self.0.path(), self.1)?))
    }
    fn is_shared(&self) -> bool {
        false
    }
}

fn passes(new_site: NewSite<'_>) {
    let failures = run(new_site);
    let lines: Vec<_> = failures.iter().map(explain).collect();
    assert!(failures.is_empty(), "{}", lines.join("\n"));
}

fn explain(failure: &Failure) -> String {
    let mut text = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[test]
fn the_memory_home_keeps_the_contract() {
    passes(&|| Ok(Box::new(InMemory(Memory::new()))));
}

#[test]
fn a_home_that_loses_requests_and_answers_keeps_the_contract() {
    for seed in 0..8 {
        passes(&|| Ok(Box::new(Unsure(Memory::new(), seed))));
    }
}

#[test]
fn the_embedded_home_keeps_the_contract() {
    passes(&|| Ok(Box::new(InFolder(tempfile::tempdir()?, Options::default()))));
}

#[test]
fn the_embedded_home_keeps_the_contract_however_short_its_journal_is_kept() {
    for checkpoint_bytes in [0, 8192] {
        let options = Options { checkpoint_bytes, room_bytes: 0, ..Options::default() };
        passes(&|| Ok(Box::new(InFolder(tempfile::tempdir()?, options))));
    }
}

/// A way to break the contract.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bug {
    AcknowledgesWithoutWriting,
    LetsEverybodyWin,
    RefusesARetry,
    SkipsARecord,
    NeverWakes,
    CompactsTooMuch,
    MixesNotes,
    HidesTheHead,
    TendsForEver,
    TendsTooMuch,
}

impl Bug {
    const ALL: [Self; 10] = [
        Self::AcknowledgesWithoutWriting,
        Self::LetsEverybodyWin,
        Self::RefusesARetry,
        Self::SkipsARecord,
        Self::NeverWakes,
        Self::CompactsTooMuch,
        Self::MixesNotes,
        Self::HidesTheHead,
        Self::TendsForEver,
        Self::TendsTooMuch,
    ];
}

/// A home with one of them.
#[derive(Clone)]
struct Broken(Memory, Bug);

impl Log for Broken {
    fn append(&self, record: &Record) -> Result<(), AppendError> {
        let head = self.0.head().unwrap();
        if self.1 == Bug::RefusesARetry && record.revision() <= head.revision {
            return Err(AppendError::Taken { head });
        }
        if self.1 == Bug::AcknowledgesWithoutWriting && record.revision() == Revision(7) {
            return Ok(());
        }
        match self.0.append(record) {
            Err(AppendError::Taken { .. }) if self.1 == Bug::LetsEverybodyWin => Ok(()),
            other => other,
        }
    }
    fn head(&self) -> Result<Head, ReadError> {
        let head = self.0.head()?;
        Ok(if self.1 == Bug::HidesTheHead && head.revision.0 > 8 { Head::default() } else { head })
    }
    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
        let skip = self.1 == Bug::SkipsARecord && from == Revision(4);
        self.0.read(if skip { from.next() } else { from }, limit)
    }
    fn follow(
        &self,
        from: Revision,
        limit: usize,
        up_to: Duration,
    ) -> Result<Vec<Record>, ReadError> {
        let never = self.1 == Bug::NeverWakes;
        self.0.follow(from, limit, if never { Duration::ZERO } else { up_to })
    }
    fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
        self.0.snapshot()
    }
    fn put_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.0.put_snapshot(snapshot)
    }
    fn compact(&self, before: Time) -> Result<(), StoreError> {
        self.0.compact(if self.1 == Bug::CompactsTooMuch { FOREVER } else { before })
    }
    fn tend(&self) -> Result<bool, StoreError> {
        if self.1 == Bug::TendsTooMuch {
            self.0.compact(FOREVER)?;
        }
        Ok(self.1 == Bug::TendsForEver)
    }
    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        self.0.note(if self.1 == Bug::MixesNotes { "x" } else { name })
    }
    fn put_note(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.0.put_note(if self.1 == Bug::MixesNotes { "x" } else { name }, bytes)
    }
}

impl Site for Broken {
    fn open(&self) -> Result<Box<dyn Log>, Cause> {
        Ok(Box::new(self.clone()))
    }
    fn is_shared(&self) -> bool {
        true
    }
}

#[test]
fn the_suite_notices_every_broken_home() {
    for bug in Bug::ALL {
        let failures = run(&|| Ok(Box::new(Broken(Memory::new(), bug))));
        assert!(!failures.is_empty(), "{bug:?} is not noticed");
    }
}
