//! The engine on threads: one plans, one writes, and a handle for everybody else.
//!
//! The planning thread never waits for the disk: it plans the next batch while the writing thread
//! has one. The queue is bounded; a full one is an answer (`Overloaded`), not a wait. A caller that
//! gives up loses nothing: its command is done all the same, and its key finds the answer. When
//! either thread ends for a reason that was not asked for, the other ends too, everybody who waits
//! is told, and [`Running::join`] says why, so that the process can stop with it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sublet_core::books::Books;
use sublet_core::plan::{Action, Command};
use sublet_core::policy::Policy;
use sublet_core::time::Time;
use sublet_log::snapshot::Loaded;
use sublet_log::{Log, Record, Writer};
use tokio::sync::oneshot;

use super::commit::Dead;
use super::step::Contradiction;
use super::{Answer, Batch, Commit, Committer, Engine, Failure, Look, Submitted, Work};
use crate::clock::{Clock, Machine};

/// How often time is looked at when nothing else happens: expiry is due within a second.
const SWEEP_EVERY: Duration = Duration::from_millis(200);
/// How often the same record is offered again when the log does not answer.
const RETRIES_MAX: u32 = 20;
/// The pause between two offers.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// How an engine is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The most work that waits to be planned.
    pub queue_max: usize,
    /// Random for each process.
    pub writer: Writer,
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

/// How a caller is told.
type Teller = oneshot::Sender<Answer>;

enum Message {
    Work(Submitted<Teller>),
    Policy(Arc<Policy>),
    Written(Commit),
    Stop,
}

/// The way in: cheap to clone, safe to drop.
#[derive(Clone)]
pub struct Handle {
    inbox: SyncSender<Message>,
}

/// An answer that will come.
pub struct Ticket(oneshot::Receiver<Answer>);

impl Ticket {
    /// Waits for the answer on a thread of one's own.
    pub fn wait(self) -> Answer {
        // A teller that was dropped is an engine that ended: what became of it is not known.
        self.0.blocking_recv().unwrap_or(Err(Failure::Unknown))
    }

    /// Waits for the answer in a task.
    pub async fn answer(self) -> Answer {
        self.0.await.unwrap_or(Err(Failure::Unknown))
    }
}

impl Handle {
    /// Hands a command in.
    pub fn submit(&self, command: Command) -> Result<Ticket, Failure> {
        let (teller, ticket) = oneshot::channel();
        self.send(Message::Work(Submitted { work: Work::Command(command), ticket: teller }))?;
        Ok(Ticket(ticket))
    }

    /// Shows committed state to `look`, which says what to keep of it.
    pub fn look<R: Send + 'static>(
        &self,
        look: impl Fn(&Books, Time) -> R + Send + 'static,
    ) -> Result<oneshot::Receiver<R>, Failure> {
        let (teller, answer) = oneshot::channel();
        // It may be called again when another broker was faster; whoever was told is told once.
        let teller = Arc::new(std::sync::Mutex::new(Some(teller)));
        let look: Look = Box::new(move |books, now| {
            let (seen, teller) = (look(books, now), Arc::clone(&teller));
            Box::new(move || {
                let teller = teller.lock().map(|mut teller| teller.take());
                if let Ok(Some(teller)) = teller {
                    // A caller that gave up is no concern of ours.
                    drop(teller.send(seen));
                }
            })
        });
        let (ticket, _) = oneshot::channel();
        self.send(Message::Work(Submitted { work: Work::Look(look), ticket }))?;
        Ok(answer)
    }

    /// Replaces the policy.
    pub fn set_policy(&self, policy: Arc<Policy>) -> Result<(), Failure> {
        self.send(Message::Policy(policy))
    }

    fn send(&self, message: Message) -> Result<(), Failure> {
        self.inbox.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => Failure::Overloaded,
            TrySendError::Disconnected(_) => Failure::Unavailable,
        })
    }
}

/// A running engine; whoever has it owns its threads.
pub struct Running {
    handle: Handle,
    planning: JoinHandle<Result<(), Error>>,
    writing: JoinHandle<()>,
}

impl Running {
    /// The way in.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Finishes what was taken in, and ends.
    pub fn stop(self) -> Result<(), Error> {
        // An engine that has ended by itself needs no telling.
        drop(self.handle.inbox.send(Message::Stop));
        self.join()
    }

    /// Waits until the engine ends by itself, and says why.
    pub fn join(self) -> Result<(), Error> {
        drop(self.handle);
        let result = self.planning.join().unwrap_or(Err(Error::Panicked));
        self.writing.join().map_err(|_| Error::Panicked)?;
        result
    }
}

/// Starts an engine on a log that was read up to `loaded`.
pub fn start(
    log: Arc<dyn Log>,
    loaded: Loaded,
    policy: Arc<Policy>,
    options: &Options,
) -> Result<Running, Error> {
    let machine = Machine::new();
    let clock = Clock::start(loaded.head.time, machine.read());
    let committer = Committer::new(options.writer, loaded.head);
    let (inbox, messages) = sync_channel(options.queue_max);
    // One batch is on its way at a time, so neither side ever waits to hand over.
    let (batches, to_write) = sync_channel(1);
    let back = inbox.clone();
    let writing = thread::Builder::new()
        .name("sublet-write".into())
        .spawn(move || write(log.as_ref(), committer, &to_write, &back))
        .map_err(Error::Thread)?;
    let grace_over = clock.now(machine.read()).checked_add(policy.recovery_grace);
    let planner = Planner {
        engine: Engine::new(Books::new(loaded.ledger), policy),
        clock,
        machine,
        grace_over: grace_over.unwrap_or_default(),
        swept_at: Duration::ZERO,
        batches,
        stopping: false,
    };
    let planning = thread::Builder::new()
        .name("sublet-plan".into())
        .spawn(move || planner.run(&messages))
        .map_err(Error::Thread)?;
    Ok(Running { handle: Handle { inbox }, planning, writing })
}

fn write(
    log: &dyn Log,
    mut committer: Committer,
    batches: &Receiver<Batch>,
    back: &SyncSender<Message>,
) {
    while let Ok(batch) = batches.recv() {
        let mut commit = committer.commit(log, batch);
        for _ in 0..RETRIES_MAX {
            if !matches!(commit, Commit::Unknown(_)) {
                break;
            }
            thread::sleep(RETRY_PAUSE);
            commit = committer.retry(log);
        }
        if back.send(Message::Written(commit)).is_err() {
            return;
        }
    }
}

struct Planner {
    engine: Engine<Teller>,
    clock: Clock,
    machine: Machine,
    grace_over: Time,
    swept_at: Duration,
    batches: SyncSender<Batch>,
    stopping: bool,
}

impl Planner {
    fn run(mut self, messages: &Receiver<Message>) -> Result<(), Error> {
        let result = self.plan_until_stopped(messages);
        tell(self.engine.halt());
        result
    }

    fn plan_until_stopped(&mut self, messages: &Receiver<Message>) -> Result<(), Error> {
        loop {
            let mut work = Vec::new();
            match messages.recv_timeout(SWEEP_EVERY) {
                Ok(message) => self.take(message, &mut work)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            for message in messages.try_iter() {
                self.take(message, &mut work)?;
            }
            let confirms_clock = work.iter().any(confirms_clock);
            self.engine.step(work, self.now())?;
            if confirms_clock {
                self.clock.confirm(self.machine.read());
            }
            self.sweep_if_due()?;
            self.write_if_idle()?;
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
            Message::Work(submitted) => work.push(submitted),
            Message::Policy(policy) => self.engine.set_policy(policy),
            Message::Stop => self.stopping = true,
            Message::Written(Commit::Done { then }) => {
                tell(self.engine.committed());
                self.overtaken(&then)?;
            }
            Message::Written(Commit::Overtaken(records)) => self.overtaken(&records)?,
            Message::Written(Commit::Unknown(cause)) => return Err(Error::Silent(cause)),
            Message::Written(Commit::Dead(dead)) => return Err(dead.into()),
        }
        Ok(())
    }

    fn overtaken(&mut self, records: &[Record]) -> Result<(), Error> {
        if let Some(last) = records.last() {
            self.engine.overtaken(records)?;
            self.clock.saw(last.time(), self.machine.read());
        }
        Ok(())
    }

    fn sweep_if_due(&mut self) -> Result<(), Error> {
        let reading = self.machine.read();
        let now = self.clock.now(reading);
        let early = reading.monotonic.saturating_sub(self.swept_at) < SWEEP_EVERY;
        if !early && !self.clock.is_suspended() && now >= self.grace_over {
            self.swept_at = reading.monotonic;
            self.engine.sweep(now)?;
        }
        Ok(())
    }

    fn write_if_idle(&mut self) -> Result<(), Error> {
        let (batch, answers) = self.engine.close();
        tell(answers);
        match batch.map(|batch| self.batches.send(batch)) {
            Some(Err(_)) => Err(Error::Panicked),
            _ => Ok(()),
        }
    }
}

fn confirms_clock(submitted: &Submitted<Teller>) -> bool {
    let Work::Command(Command::Operate { action, .. }) = &submitted.work else { return false };
    *action == Action::ConfirmClock
}

fn tell(answers: Vec<(Teller, Answer)>) {
    for (teller, answer) in answers {
        // A caller that gave up loses nothing: its key finds the answer.
        drop(teller.send(answer));
    }
}
