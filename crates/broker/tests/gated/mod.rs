//! A log that can be held up, to see what happens while the disk is slow.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_core::time::Time;
use sublet_log::{AppendError, Head, Log, Memory, ReadError, Record, Snapshot, StoreError};

/// A log whose appends wait at a gate: shows what happens while the disk is slow.
#[derive(Clone, Default)]
pub(crate) struct Gated {
    pub(crate) home: Memory,
    /// How many more may pass.
    open: Arc<(Mutex<usize>, Condvar)>,
    reached: Arc<Mutex<Vec<String>>>,
}

impl Gated {
    /// From now on so many may pass, and no more.
    pub(crate) fn admit(&self, many: usize) {
        *self.open.0.lock().unwrap() = many;
        self.open.1.notify_all();
    }

    /// The threads that came to the gate with a record, in their order.
    pub(crate) fn reached(&self) -> Vec<String> {
        self.reached.lock().unwrap().clone()
    }
}

impl Log for Gated {
    fn append(&self, record: &Record) -> Result<(), AppendError> {
        let by = thread::current().name().unwrap_or_default().to_owned();
        self.reached.lock().unwrap().push(by);
        let shut = self.open.0.lock().unwrap();
        *self.open.1.wait_while(shut, |open| *open == 0).unwrap() -= 1;
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
