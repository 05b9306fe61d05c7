//! The thread that waits for the disk, so that planning need not.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use sublet_log::Log;

use super::handle::Message;
use super::{Batch, Commit, Committer};

/// How often the same record is offered again when the log does not answer.
pub(super) const RETRIES_MAX: u32 = 20;
/// How often a queue is looked at before the thread falls asleep: some 20 µs. It does not yield
/// meanwhile: on a busy machine that would give the processor away for milliseconds.
const LOOKS: u32 = 500;
/// The pause between two offers.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Writes batch after batch; in between, looks for what others wrote.
pub(super) fn write(
    log: &dyn Log,
    mut committer: Committer,
    follow_every: Option<Duration>,
    batches: &Receiver<Batch>,
    back: &SyncSender<Message>,
) {
    let _farewell = Farewell(back);
    loop {
        let next = match (soon(batches), follow_every) {
            (Some(batch), _) => Ok(batch),
            (None, None) => batches.recv().map_err(|_| RecvTimeoutError::Disconnected),
            (None, Some(pause)) => batches.recv_timeout(pause),
        };
        let news = match next {
            Ok(batch) => Message::Written(write_one(log, &mut committer, batch)),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => match committer.catch_up(log) {
                Ok(records) if !records.is_empty() => Message::Followed(records),
                // A log that cannot be read now is noticed by whoever writes next.
                _ => continue,
            },
        };
        if back.send(news).is_err() {
            return;
        }
    }
}

/// What comes next, if it comes at once, as it does under load: to fall asleep and to be woken would
/// take longer.
pub(super) fn soon<T>(queue: &Receiver<T>) -> Option<T> {
    for _ in 0..LOOKS {
        if let Ok(next) = queue.try_recv() {
            return Some(next);
        }
        std::hint::spin_loop();
    }
    None
}

/// Tells the planning thread when this one ends, however it does: it would wait for ever.
struct Farewell<'a>(&'a SyncSender<Message>);

impl Drop for Farewell<'_> {
    fn drop(&mut self) {
        // Usually the planning thread has ended before.
        drop(self.0.send(Message::WriterGone));
    }
}

fn write_one(log: &dyn Log, committer: &mut Committer, batch: Batch) -> Commit {
    let mut commit = committer.commit(log, batch);
    for _ in 0..RETRIES_MAX {
        if !matches!(commit, Commit::Unknown(_)) {
            break;
        }
        thread::sleep(RETRY_PAUSE);
        commit = committer.retry(log);
    }
    commit
}
