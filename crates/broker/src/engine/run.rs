//! The engine on threads: one plans, one writes, and a handle for everybody else.
//!
//! The planning thread plans the next batch while the writing thread has one; what is not
//! much it writes itself on a quick log, without a change of threads. The queue is bounded; a full one is an
//! answer (`Overloaded`), not a wait. A caller that gives up loses nothing: its command is done all
//! the same, and its key finds the answer. When either thread ends for a reason that was not asked
//! for, the other ends too, everybody who waits is told, and [`Running::join`] says why, so that the
//! process can stop with it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sublet_core::policy::Policy;
use sublet_log::snapshot::Loaded;
use sublet_log::{Log, Writer};
use tokio::sync::watch;

use super::commit::Dead;
use super::keep::{Keeping, keep};
use super::note;
use super::planner::{Outlets, Planner};
use super::step::Contradiction;
use super::write::{Desk, RETRIES_MAX, write};
use super::{Account, Committer, Handle, Revoked};

/// Room in the queue for what is not work: policies, what became of batches, the end.
const CONTROL_MAX: usize = 16;

/// How an engine is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most work that was taken in and is not answered yet, of either kind: requests and lists,
    /// and everything else.
    pub queue_max: usize,
    /// Random for each process.
    pub writer: Writer,
    /// How often to look for what other brokers wrote; none where there can be no other.
    pub follow_every: Option<Duration>,
    /// How long the log becomes.
    pub keeping: Keeping,
    /// Who keeps account of what was decided without a call.
    pub account: Account,
}

impl Options {
    /// For a broker that has its log to itself.
    pub fn alone(writer: Writer) -> Self {
        Self {
            queue_max: 8192,
            writer,
            follow_every: None,
            keeping: Keeping::default(),
            account: Account::default(),
        }
    }
}

/// Why an engine ended although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log cannot be written.
    #[error("the log cannot be written; nothing is acknowledged until the broker is restarted")]
    Log(#[from] Dead),
    /// The log does not answer.
    #[error(
        "the log did not answer {RETRIES_MAX} times; whether the last batch is there is unknown"
    )]
    Silent(#[source] sublet_log::Cause),
    /// The books and the log contradict each other.
    #[error("books and log contradict each other; check the log with fsck and report this")]
    Contradiction(#[from] Contradiction),
    /// A thread panicked.
    #[error("a thread of the engine panicked")]
    Panicked,
    /// No thread to run on.
    #[error("no thread could be started")]
    Thread(#[source] std::io::Error),
}

/// A running engine; whoever has it owns its threads, and they end with it.
pub struct Running {
    handle: Handle,
    threads: Option<Threads>,
}

struct Threads {
    planning: JoinHandle<Result<(), Error>>,
    writing: JoinHandle<()>,
    keeping: JoinHandle<()>,
}

impl Running {
    /// The way in.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Finishes what was taken in, and ends.
    pub fn stop(mut self) -> Result<(), Error> {
        self.handle.stop();
        self.end()
    }

    /// Waits until the engine ends by itself, and says why.
    pub fn join(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        let Some(threads) = self.threads.take() else { return Ok(()) };
        let result = threads.planning.join().unwrap_or(Err(Error::Panicked));
        threads.writing.join().map_err(|_| Error::Panicked)?;
        threads.keeping.join().map_err(|_| Error::Panicked)?;
        result
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
        // Whoever wants to know how it ended calls `stop` or `join`.
        drop(self.end());
    }
}

/// Starts an engine on a log that was read up to `loaded`.
pub fn start(
    log: Arc<dyn Log>,
    loaded: Loaded,
    policy: Arc<Policy>,
    options: &Options,
) -> Result<Running, Error> {
    let committer = Committer::new(options.writer, loaded.head);
    let (inbox, messages) =
        sync_channel(options.queue_max.saturating_mul(2).saturating_add(CONTROL_MAX));
    // One batch is on its way at a time, so neither side ever waits to hand over.
    let (jobs, to_do) = sync_channel(1);
    let desk = Desk::new(Arc::clone(&log), committer, jobs, options.follow_every);
    let (keeper, notes) = sync_channel(1);
    let (show_revoked, revoked) = watch::channel(Revoked::default());
    let written = Arc::new(AtomicU64::new(0));
    let account = options.account.clone();
    let outlets = Outlets { desk, keeper, show_revoked, account, written: Arc::clone(&written) };
    let mut planner = Planner::new(loaded, policy, outlets);
    planner.remember(note::load(log.as_ref()));
    let (back, shared) = (inbox.clone(), Arc::clone(&log));
    let writing = spawn("sublet-write", move || write(shared.as_ref(), &to_do, &back))?;
    let keeping = options.keeping;
    let keeping = spawn("sublet-keep", move || keep(log.as_ref(), keeping, &written, &notes))?;
    let planning = spawn("sublet-plan", move || planner.run(messages))?;
    let threads = Threads { planning, writing, keeping };
    Ok(Running { handle: Handle::new(inbox, revoked, options.queue_max), threads: Some(threads) })
}

fn spawn<R: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>, Error> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(Error::Thread)
}
