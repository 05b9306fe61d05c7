//! A log in memory: for tests, for the simulator, and as the plainest reading of the contract.
//!
//! Clones share one log, as two brokers share one API server. It is as durable as its process.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_core::time::Time;

use crate::{
    Admission, AppendError, Head, Log, ReadError, Record, Snapshot, StoreError, check_note,
};

/// A handle on a log in memory.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    appended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The record before the first one that is kept.
    floor: Head,
    /// The kept records; the first has revision `floor + 1`.
    records: Vec<Record>,
    snapshot: Option<Snapshot>,
    notes: BTreeMap<String, Vec<u8>>,
}

impl State {
    fn head(&self) -> Head {
        self.records.last().map_or(self.floor, Record::head)
    }

    /// The head as it was at `revision`, if that is still known.
    fn head_at(&self, revision: Revision) -> Option<Head> {
        if revision == self.floor.revision {
            return Some(self.floor);
        }
        self.index(revision).and_then(|at| self.records.get(at)).map(Record::head)
    }

    fn index(&self, revision: Revision) -> Option<usize> {
        let above = revision.0.checked_sub(self.floor.revision.0)?;
        usize::try_from(above.checked_sub(1)?).ok()
    }

    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
        let from = from.max(Revision(1));
        let oldest = self.floor.revision.next();
        let start = self.index(from).ok_or(ReadError::Compacted { oldest })?;
        Ok(self.records.iter().skip(start).take(limit).cloned().collect())
    }
}

impl Memory {
    /// A new and empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// A panic elsewhere cannot leave the state half changed, so a poisoned lock is still good.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log for Memory {
    fn append(&self, record: &Record) -> Result<(), AppendError> {
        let mut state = self.state();
        let head = state.head();
        if head.admit(record)? == Admission::Behind {
            return match state.head_at(record.revision()) {
                Some(kept) if kept == record.head() => Ok(()),
                _ => Err(AppendError::Taken { head }),
            };
        }
        state.records.push(record.clone());
        drop(state);
        self.0.appended.notify_all();
        Ok(())
    }

    fn head(&self) -> Result<Head, ReadError> {
        Ok(self.state().head())
    }

    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
        self.state().read(from, limit)
    }

    fn follow(
        &self,
        from: Revision,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<Record>, ReadError> {
        let nothing_yet = |state: &mut State| state.head().revision < from;
        let waited = self.0.appended.wait_timeout_while(self.state(), patience, nothing_yet);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.read(from, limit)
    }

    fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
        Ok(self.state().snapshot.clone())
    }

    fn put_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut state = self.state();
        let newest = state.snapshot.as_ref().map(Snapshot::revision);
        if newest.unwrap_or_default() >= snapshot.revision() {
            return Ok(());
        }
        if state.head_at(snapshot.revision()) != Some(snapshot.head()) {
            return Err(StoreError::ForeignSnapshot(snapshot.revision()));
        }
        state.snapshot = Some(snapshot.clone());
        Ok(())
    }

    fn compact(&self, before: Time) -> Result<(), StoreError> {
        let mut state = self.state();
        let Some(covered) = state.snapshot.as_ref().map(Snapshot::revision) else {
            return Ok(());
        };
        let goes = |r: &Record| r.revision() <= covered && r.time() < before;
        let count = state.records.iter().take_while(|r| goes(r)).count();
        let last = state.records.drain(..count).next_back();
        state.floor = last.as_ref().map_or(state.floor, Record::head);
        Ok(())
    }

    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(self.state().notes.get(name).cloned())
    }

    fn put_note(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        check_note(name, bytes)?;
        let notes = &mut self.state().notes;
        if bytes.is_empty() {
            notes.remove(name);
        } else {
            notes.insert(name.into(), bytes.into());
        }
        Ok(())
    }
}
