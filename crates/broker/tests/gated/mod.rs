//! A log that can be held up, to see what happens while the disk is slow.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_core::time::Time;
use sublet_log::{AppendError, Head, Log, Memory, ReadError, Record, Snapshot, StoreError};

/// A log whose appends wait at a gate: shows what happens while the disk is slow.
#[derive(Clone, Default)]
pub(crate) struct Gated {
    pub(crate) home: Memory,
    open: Arc<(Mutex<bool>, Condvar)>,
    pub(crate) reached: Arc<AtomicUsize>,
}

impl Gated {
    pub(crate) fn set(&self, open: bool) {
        *self.open.0.lock().unwrap() = open;
        self.open.1.notify_all();
    }
}

impl Log for Gated {
    fn append(&self, record: &Record) -> Result<(), AppendError> {
        self.reached.fetch_add(1, Ordering::SeqCst);
        let closed = self.open.0.lock().unwrap();
        drop(self.open.1.wait_while(closed, |open| !*open).unwrap());
        self.home.append(record)
    }
    fn head(&self) -> Result<Head, ReadError> {
        self.home.head()
    }
    fn read(&self, from: Revision, limit: usize) -> Result<Vec<Record>, ReadError> {
        self.home.read(from, limit)
    }
    fn follow(&self, from: Revision, n: usize, wait: Duration) -> Result<Vec<Record>, ReadError> {
        self.home.follow(from, n, wait)
    }
    fn snapshot(&self) -> Result<Option<Snapshot>, ReadError> {
        self.home.snapshot()
    }
    fn put_snapshot(&self, snapshot: &Snapshot) -> Result<(), StoreError> {
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
