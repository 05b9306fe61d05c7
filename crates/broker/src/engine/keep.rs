//! The thread that keeps the log short: folds it into a snapshot beside the engine, and lets go of
//! history that is old and covered. It also notes what it is told of the market.
//!
//! It reads the log like any other reader, so planning and writing never stop for it. A snapshot
//! that cannot be made costs a longer start next time, and is tried again later; one that cannot be
//! written is a disk that fails, which ends the log's right to acknowledge, as any failed write does.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use sublet_core::id::Revision;
use sublet_core::market::Entry;
use sublet_core::time::{Span, Time};
use sublet_log::{Log, snapshot};

use super::note;

/// How often the log is looked at: often enough that little has to be done each time.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// It yields to everybody who answers somebody.
const NICE: i32 = 10;

/// How long the log becomes.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// A snapshot is taken after so many records.
    pub records: u64,
    /// History that a snapshot covers is kept for so long.
    pub history: Span,
}

impl Default for Keeping {
    fn default() -> Self {
        Self { records: 10_000, history: Span::from_secs(7 * 24 * 3600) }
    }
}

/// Keeps the log short, and the market noted, until the other end of `notes` is dropped.
pub(super) fn keep(log: &dyn Log, keeping: Keeping, notes: &Receiver<Vec<Entry>>) {
    #[cfg(target_os = "linux")]
    // Of this thread alone, on Linux. One that may not be nice works all the same.
    rustix::process::nice(NICE).ok();
    let newest = log.snapshot().ok().flatten();
    let mut last = newest.map_or(Revision::default(), |snapshot| snapshot.revision());
    loop {
        match notes.recv_timeout(LOOK_EVERY) {
            Ok(entries) => note::keep(log, entries),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        drop(log.tend());
        // Whatever went wrong is tried again; the engine itself notices a log that is gone.
        if let Ok(Some(newest)) = keep_once(log, keeping, last) {
            last = newest;
        }
    }
}

/// Takes a snapshot if enough has come since the last one; says where it stands.
fn keep_once(
    log: &dyn Log,
    keeping: Keeping,
    last: Revision,
) -> Result<Option<Revision>, snapshot::Error> {
    let head = log.head()?;
    if head.revision.0.saturating_sub(last.0) < keeping.records {
        return Ok(None);
    }
    let newest = snapshot::take(log)?.revision();
    let before = head.time.as_millis().saturating_sub(keeping.history.as_millis());
    log.compact(Time::from_millis(before))?;
    Ok(Some(newest))
}
