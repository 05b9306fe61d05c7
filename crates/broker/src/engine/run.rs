//! The engine on threads: one plans, one writes, and a handle for everybody else.
//!
//! The planning thread never waits for the disk: it plans the next batch while the writing thread
//! has one. The queue is bounded; a full one is an answer (`Overloaded`), not a wait. A caller that
//! gives up loses nothing: its command is done all the same, and its key finds the answer. When
//! either thread ends for a reason that was not asked for, the other ends too, everybody who waits
//! is told, and [`Running::join`] says why, so that the process can stop with it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sublet_core::books::Books;
use sublet_core::event::Event;
use sublet_core::policy::Policy;
use sublet_core::time::{Span, Time};
use sublet_log::snapshot::Loaded;
use sublet_log::{Log, Record, Writer};

use super::commit::Dead;
use super::handle::{Message, Teller};
use super::keep::{Keeping, keep};
use super::step::Contradiction;
use super::write::{RETRIES_MAX, write};
use super::{Answer, Batch, Commit, Committer, Engine, Failure, Handle, Submitted};
use crate::clock::{Clock, Machine};

/// How often time is looked at when nothing else happens: expiry is due within a second.
const SWEEP_EVERY: Duration = Duration::from_millis(200);
/// Room in the queue for what is not work: policies, what became of batches, the end.
const CONTROL_MAX: usize = 16;
/// The most messages between two looks at the clock and the disk.
const DRAIN_MAX: usize = 4096;

/// How an engine is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most work that was taken in and is not answered yet.
    pub queue_max: usize,
    /// Random for each process.
    pub writer: Writer,
    /// How often to look for what other brokers wrote; none where there can be no other.
    pub follow_every: Option<Duration>,
    /// How long the log becomes.
    pub keeping: Keeping,
}

impl Options {
    /// For a broker that has its log to itself.
    pub fn alone(writer: Writer) -> Self {
        Self { queue_max: 16_384, writer, follow_every: None, keeping: Keeping::default() }
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
    /// Dropped to end the keeping thread.
    keep_going: SyncSender<()>,
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
        drop(threads.keep_going);
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
    let (inbox, messages) = sync_channel(options.queue_max.saturating_add(CONTROL_MAX));
    // One batch is on its way at a time, so neither side ever waits to hand over.
    let (batches, to_write) = sync_channel(1);
    let (keep_going, stop) = sync_channel(0);
    let planner = Planner::new(loaded, policy, options.follow_every.is_some(), batches);
    let (back, follow_every, shared) = (inbox.clone(), options.follow_every, Arc::clone(&log));
    let writing = spawn("sublet-write", move || {
        write(shared.as_ref(), committer, follow_every, &to_write, &back);
    })?;
    let keeping = options.keeping;
    let keeping = spawn("sublet-keep", move || keep(log.as_ref(), keeping, &stop))?;
    let planning = spawn("sublet-plan", move || planner.run(&messages))?;
    let threads = Threads { planning, writing, keeping, keep_going };
    Ok(Running { handle: Handle::new(inbox, options.queue_max), threads: Some(threads) })
}

fn spawn<R: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> R + Send + 'static,
) -> Result<JoinHandle<R>, Error> {
    thread::Builder::new().name(name.into()).spawn(body).map_err(Error::Thread)
}

struct Planner {
    engine: Engine<Teller>,
    clock: Clock,
    machine: Machine,
    grace_over: Time,
    swept_at: Duration,
    batches: SyncSender<Batch>,
    /// A batch is on its way, and its fate will be told.
    writing: bool,
    /// An operator's word on the clock is in it.
    confirming: bool,
    /// Nothing expires for so long after a start, and after the clock was confirmed.
    grace: Span,
    /// What others wrote while one was on its way: it will come back as overtaken.
    followed: Vec<Record>,
    /// Answers that are durable and about to be told. The disk gets its next batch first: who hears
    /// an answer asks again, and planning that before would leave the disk idle.
    due: Vec<(Teller, Answer)>,
    stopping: bool,
}

impl Planner {
    fn new(loaded: Loaded, policy: Arc<Policy>, shared: bool, batches: SyncSender<Batch>) -> Self {
        let machine = Machine::new();
        // Where nothing can expire, a clock that is far ahead can do no harm.
        let anything_due = loaded.ledger.next_deadline().is_some();
        let logged = if anything_due { loaded.head.time } else { Time::default() };
        let mut clock = Clock::start(logged, machine.read());
        clock.saw(loaded.head.time, machine.read());
        let grace = policy.recovery_grace;
        let mut planner = Self {
            engine: Engine::new(Books::new(loaded.ledger), policy).shared(shared),
            clock,
            machine,
            grace_over: Time::default(),
            swept_at: Duration::ZERO,
            batches,
            writing: false,
            confirming: false,
            grace,
            followed: vec![],
            due: vec![],
            stopping: false,
        };
        planner.grace_over = planner.grace_from_now();
        planner
    }

    fn grace_from_now(&self) -> Time {
        let now = self.now();
        now.checked_add(self.grace).unwrap_or(now)
    }

    fn run(mut self, messages: &Receiver<Message>) -> Result<(), Error> {
        let result = self.plan_until_stopped(messages);
        tell(self.due.drain(..));
        tell(self.engine.halt());
        result
    }

    fn plan_until_stopped(&mut self, messages: &Receiver<Message>) -> Result<(), Error> {
        loop {
            let mut work = Vec::new();
            if !self.engine.is_behind() {
                match messages.recv_timeout(SWEEP_EVERY) {
                    Ok(message) => self.take(message, &mut work)?,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
            for message in messages.try_iter().take(DRAIN_MAX) {
                self.take(message, &mut work)?;
            }
            self.engine.step(work, self.now())?;
            self.sweep_if_due()?;
            self.write_if_idle()?;
            tell(self.due.drain(..));
            if self.stopping && self.engine.is_done() {
                return Ok(());
            }
        }
    }

    fn now(&self) -> Time {
        self.clock.now(self.machine.read())
    }

    fn take(&mut self, message: Message, work: &mut Vec<Submitted<Teller>>) -> Result<(), Error> {
        match message {
            Message::Work(submitted) if self.stopping => {
                submitted.ticket.tell(Err(Failure::Unavailable));
            }
            Message::Work(submitted) => work.push(submitted),
            Message::Policy(policy) => self.engine.set_policy(policy),
            Message::Stop => self.stopping = true,
            Message::WriterGone => return Err(Error::Panicked),
            Message::Followed(records) if self.writing => self.followed.extend(records),
            Message::Followed(records) => self.overtaken(&records)?,
            Message::Written(commit) => {
                self.writing = false;
                self.written(commit)?;
            }
        }
        Ok(())
    }

    fn written(&mut self, commit: Commit) -> Result<(), Error> {
        match commit {
            Commit::Done { then } => {
                if std::mem::take(&mut self.confirming) {
                    self.clock.confirm(self.machine.read());
                    self.grace_over = self.grace_from_now();
                }
                self.due.extend(self.engine.committed());
                if !then.is_empty() {
                    self.overtaken(&then)?;
                }
                Ok(())
            }
            Commit::Overtaken(records) => {
                let mut all = std::mem::take(&mut self.followed);
                all.extend(records);
                self.overtaken(&all)
            }
            Commit::Unknown(cause) => Err(Error::Silent(cause)),
            Commit::Dead(dead) => Err(dead.into()),
        }
    }

    fn overtaken(&mut self, records: &[Record]) -> Result<(), Error> {
        self.engine.overtaken(records)?;
        if let Some(last) = records.last() {
            self.clock.saw(last.time(), self.machine.read());
        }
        Ok(())
    }

    fn sweep_if_due(&mut self) -> Result<(), Error> {
        let reading = self.machine.read();
        let now = self.clock.now(reading);
        let early = reading.monotonic.saturating_sub(self.swept_at) < SWEEP_EVERY;
        if !early {
            self.swept_at = reading.monotonic;
            // What operators asked for goes on while nothing expires.
            let expire = !self.clock.is_suspended() && now >= self.grace_over;
            self.engine.sweep(now, expire)?;
        }
        Ok(())
    }

    fn write_if_idle(&mut self) -> Result<(), Error> {
        let (batch, answers) = self.engine.close();
        self.due.extend(answers);
        let Some(batch) = batch else { return Ok(()) };
        self.writing = true;
        self.confirming = confirms_clock(&batch);
        // The writing thread only goes before us when it panics.
        self.batches.send(batch).map_err(|_| Error::Panicked)
    }
}

/// A wall clock that was confirmed is believed when that is durable.
fn confirms_clock(batch: &Batch) -> bool {
    batch.body.events().iter().any(|event| matches!(event, Event::ClockConfirmed { .. }))
}

fn tell(answers: impl IntoIterator<Item = (Teller, Answer)>) {
    for (teller, answer) in answers {
        teller.tell(answer);
    }
}
