//! The way to the log: a thread that waits for it, so that planning need not.
//!
//! Only one batch is on its way at a time, and the [`Committer`] travels with it: whoever has it may
//! write. While the log is quick, the planning thread writes what is not much itself: to wake another
//! thread and be woken by it takes as long as the disk does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use sublet_log::{Log, Record};

use super::handle::Message;
use super::run::Error;
use super::{Batch, Commit, Committer};
use crate::clock::Machine;

/// How often the same record is offered again when the log does not answer.
pub const RETRIES_MAX: u32 = 20;
/// How often a queue is looked at before the thread falls asleep: some 20 µs. It does not yield
/// meanwhile: on a busy machine that would give the processor away for milliseconds.
const LOOKS: u32 = 500;
/// The pause between two offers.
pub const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// A log that took less than this the last time is quick.
const QUICK: Duration = Duration::from_millis(1);
/// Of more events than these it is worth while to plan the next ones meanwhile.
const FEW: usize = 64;

/// What the writing thread is to do.
pub(super) enum Job {
    Write(Batch),
    /// Find out what became of the batch before.
    Settle,
    /// Look for what others wrote.
    Follow,
}

/// What came of it.
pub(super) enum Done {
    Written(Commit),
    Followed(Vec<Record>),
}

/// The planning thread's side.
pub(super) struct Desk {
    log: Arc<dyn Log>,
    /// Here while nothing is on its way.
    committer: Option<Committer>,
    jobs: SyncSender<(Committer, Job)>,
    follow_every: Option<Duration>,
    handed_at: Duration,
    /// How long the log took the last time.
    took: Duration,
}

impl Desk {
    pub(super) fn new(
        log: Arc<dyn Log>,
        committer: Committer,
        jobs: SyncSender<(Committer, Job)>,
        follow_every: Option<Duration>,
    ) -> Self {
        let (handed_at, took) = (Duration::ZERO, Duration::MAX);
        Self { log, committer: Some(committer), jobs, follow_every, handed_at, took }
    }

    /// Do others write to the same log?
    pub(super) fn is_shared(&self) -> bool {
        self.follow_every.is_some()
    }

    /// Is nothing on its way?
    pub(super) fn is_free(&self) -> bool {
        self.committer.is_some()
    }

    /// Would this be written at once, with the planning thread waiting for it?
    pub(super) fn is_quick(&self, batch: &Batch) -> bool {
        // One that others write too is on another machine, and may fall silent at any time.
        !self.is_shared() && self.took < QUICK && batch.body.events().len() <= FEW
    }

    /// Writes a batch. What became of it is known now, or will be told.
    pub(super) fn write(
        &mut self,
        batch: Batch,
        machine: &Machine,
    ) -> Result<Option<Commit>, Error> {
        if !self.is_quick(&batch) {
            return self.hand_over(Job::Write(batch), machine).map(|()| None);
        }
        let Some(committer) = &mut self.committer else { return Err(Error::Panicked) };
        let began = machine.read().monotonic;
        let commit = committer.commit(self.log.as_ref(), batch);
        self.took = machine.read().monotonic.saturating_sub(began);
        if matches!(commit, Commit::Unknown(_)) {
            return self.hand_over(Job::Settle, machine).map(|()| None);
        }
        Ok(Some(commit))
    }

    /// Looks for what others wrote, now and then.
    pub(super) fn follow_if_due(&mut self, machine: &Machine) -> Result<(), Error> {
        let Some(every) = self.follow_every else { return Ok(()) };
        let passed = machine.read().monotonic.saturating_sub(self.handed_at);
        if passed < every || !self.is_free() {
            return Ok(());
        }
        self.hand_over(Job::Follow, machine)
    }

    /// How long nothing may be done.
    pub(super) fn patience(&self, most: Duration) -> Duration {
        self.follow_every.map_or(most, |every| every.min(most))
    }

    /// The writing thread is done.
    pub(super) fn take_back(&mut self, committer: Committer, machine: &Machine) {
        self.committer = Some(committer);
        self.took = machine.read().monotonic.saturating_sub(self.handed_at);
    }

    fn hand_over(&mut self, job: Job, machine: &Machine) -> Result<(), Error> {
        // The writing thread only goes before us when it panics.
        let committer = self.committer.take().ok_or(Error::Panicked)?;
        self.handed_at = machine.read().monotonic;
        self.jobs.send((committer, job)).map_err(|_| Error::Panicked)
    }
}

/// Does job after job.
pub(super) fn write(log: &dyn Log, jobs: &Receiver<(Committer, Job)>, back: &SyncSender<Message>) {
    let _farewell = Farewell(back);
    loop {
        let next = soon(jobs).map_or_else(|| jobs.recv(), Ok);
        let Ok((mut committer, job)) = next else { return };
        let done = match job {
            Job::Write(batch) => {
                let commit = committer.commit(log, batch);
                Done::Written(settle(log, &mut committer, commit))
            }
            Job::Settle => {
                let commit = committer.retry(log);
                Done::Written(settle(log, &mut committer, commit))
            }
            // A log that cannot be read now is noticed by whoever writes next.
            Job::Follow => Done::Followed(committer.catch_up(log).unwrap_or_default()),
        };
        if back.send(Message::Done(committer, done)).is_err() {
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

fn settle(log: &dyn Log, committer: &mut Committer, mut commit: Commit) -> Commit {
    for _ in 0..RETRIES_MAX {
        if !matches!(commit, Commit::Unknown(_)) {
            break;
        }
        thread::sleep(RETRY_PAUSE);
        commit = committer.retry(log);
    }
    commit
}
