//! The thread that plans: takes messages, keeps time, and hands over to disk, callers and watchers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use sublet_core::books::Books;
use sublet_core::event::Event;
use sublet_core::id::ClusterId;
use sublet_core::ledger::Stamp;
use sublet_core::market::Entry;
use sublet_core::plan::Command;
use sublet_core::policy::Policy;
use sublet_core::time::{Span, Time};
use sublet_log::Record;
use sublet_log::snapshot::Loaded;
use tokio::sync::watch;

use super::handle::{Message, Teller};
use super::run::Error;
use super::watch::Watchers;
use super::write::{Desk, Done, soon};
use super::{Account, Answer, Batch, Commit, Engine, Failure, Revoked, Submitted, Work};
use crate::clock::{Clock, Machine, Reading};

/// How often the market is noted: at least so long after the last time, longer where more has to
/// be noted, and in the end at most so long.
const NOTE_AFTER: Duration = Duration::from_secs(1);
const NOTE_EACH: Duration = Duration::from_millis(10);
const NOTE_WITHIN: Duration = Duration::from_secs(30);
/// How often time is looked at when nothing else happens: expiry is due within a second.
pub const SWEEP_EVERY: Duration = Duration::from_millis(200);
/// How long a batch gathers what has come while the disk is idle.
const GATHER: Duration = Duration::from_millis(2);
/// The same where what came during a long write is planned again: what was one batch stays one, or a
/// slow log would write less at once the slower it is.
const GATHER_ANEW: Duration = Duration::from_millis(200);
/// The most messages between two looks at the clock and the disk.
const DRAIN_MAX: usize = 4096;

/// Where the planning thread hands over to.
pub(super) struct Outlets {
    pub(super) desk: Desk,
    pub(super) keeper: SyncSender<Vec<Entry>>,
    pub(super) show_revoked: watch::Sender<Revoked>,
    pub(super) account: Account,
    /// How many bytes were handed to the disk.
    pub(super) written: Arc<AtomicU64>,
}

pub(super) struct Planner {
    engine: Engine<Teller>,
    clock: Clock,
    machine: Machine,
    grace_over: Time,
    swept_at: Duration,
    noted_at: Duration,
    outlets: Outlets,
    watchers: Watchers,
    /// Who was heard and is not noted yet.
    unnoted: BTreeSet<ClusterId>,
    /// Since when there is an open batch.
    open_since: Option<Duration>,
    /// For how long it gathers.
    gather: Duration,
    /// A batch is on its way, and its fate will be told.
    writing: bool,
    /// An operator's word on the clock is in it.
    confirming: bool,
    /// Nothing expires for so long after a start, and after the clock was confirmed.
    grace: Span,
    /// Answers that are durable and about to be told. The disk gets its next batch first: who hears
    /// an answer asks again, and planning that before would leave the disk idle.
    due: Vec<(Teller, Answer)>,
    stopping: bool,
}

impl Planner {
    pub(super) fn new(loaded: Loaded, policy: Arc<Policy>, outlets: Outlets) -> Self {
        let machine = Machine::new();
        let is_known = loaded.ledger.reservations(None).next().is_some();
        let clock = Clock::on(&loaded.ledger, loaded.head.time, machine.read());
        if clock.is_suspended() {
            tracing::warn!(
                last_logged = loaded.head.time.as_millis(),
                "the wall clock is far ahead of the log, so nothing expires: if the clock is right, \
                 say so with `sublet confirm-clock`; if it is wrong, set it and restart"
            );
        }
        let revoked = Arc::new(loaded.ledger.revoked().clone());
        let grace = policy.recovery_grace;
        let books = Books::new(loaded.ledger).listening(clock.now(machine.read()));
        let mut planner = Self {
            engine: Engine::new(books, policy).shared(outlets.desk.is_shared()),
            clock,
            machine,
            grace_over: Time::default(),
            swept_at: Duration::ZERO,
            noted_at: Duration::ZERO,
            outlets,
            watchers: Watchers::default(),
            unnoted: BTreeSet::new(),
            open_since: None,
            gather: GATHER,
            writing: false,
            confirming: false,
            grace,
            due: vec![],
            stopping: false,
        };
        // A new broker has made nobody a promise who would have to come back first.
        if is_known {
            planner.grace_over = planner.grace_from_now();
        }
        planner.show_revoked(revoked);
        planner
    }

    /// Takes what an earlier process had noted of the market.
    pub(super) fn remember(&mut self, entries: Vec<Entry>) {
        let now = self.now();
        for entry in entries {
            self.engine.remember(entry, now);
        }
    }

    fn grace_from_now(&self) -> Time {
        let now = self.now();
        now.checked_add(self.grace).unwrap_or(now)
    }

    pub(super) fn run(mut self, messages: Receiver<Message>) -> Result<(), Error> {
        let result = self.plan_until_stopped(&messages);
        self.tell_due();
        tell(self.engine.halt());
        // Nobody waits for what the keeping thread still has to do, neither for an answer nor to
        // hear that this is the end.
        messages.try_iter().for_each(turn_away);
        drop(messages);
        let entries = self.unnoted_entries();
        let Outlets { keeper, show_revoked, .. } = self.outlets;
        drop(show_revoked);
        // The last chance: the keeping thread ends when it has this.
        drop(keeper.send(entries));
        result
    }

    fn plan_until_stopped(&mut self, messages: &Receiver<Message>) -> Result<(), Error> {
        let mut work = Vec::new();
        loop {
            if !self.engine.is_behind() {
                // While the disk writes, somebody who was just told is about to ask again.
                let soon = if self.writing { soon(messages) } else { None };
                let patience = self.outlets.desk.patience(SWEEP_EVERY);
                let next = soon.map_or_else(|| messages.recv_timeout(patience), Ok);
                match next {
                    Ok(message) => self.take(message, &mut work)?,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
            for message in messages.try_iter().take(DRAIN_MAX) {
                self.take(message, &mut work)?;
            }
            if self.engine.will_look_at_much() {
                self.tell_due();
            }
            let reading = self.machine.read();
            self.plan_anew_if_late(reading)?;
            self.engine.step(work.drain(..), self.clock.now(reading))?;
            self.sweep_if_due(reading)?;
            self.note_if_due(reading.monotonic);
            self.write_if_idle(reading.monotonic)?;
            self.outlets.desk.follow_if_due(&self.machine)?;
            self.tell_due();
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
            message @ Message::Work(_) if self.stopping => turn_away(message),
            Message::Work(submitted) => {
                self.unnoted.extend(advertiser(&submitted.work).cloned());
                work.push(submitted);
            }
            Message::Watch(watcher) => {
                self.watchers.add(watcher);
                self.engine.watch(true);
            }
            Message::Policy(policy) => self.engine.set_policy(policy),
            Message::Stop => self.stopping = true,
            Message::WriterGone => return Err(Error::Panicked),
            Message::Done(committer, done) => {
                self.outlets.desk.take_back(committer, &self.machine);
                match done {
                    Done::Written(commit) => self.written(commit)?,
                    Done::Followed(records) if records.is_empty() => {}
                    Done::Followed(records) => self.overtaken(&records)?,
                }
            }
        }
        Ok(())
    }

    fn written(&mut self, commit: Commit) -> Result<(), Error> {
        self.writing = false;
        match commit {
            Commit::Done { then } => {
                if std::mem::take(&mut self.confirming) {
                    self.set_clock(Clock::confirm);
                }
                self.due.extend(self.engine.committed());
                if !then.is_empty() {
                    self.overtaken(&then)?;
                }
                Ok(())
            }
            Commit::Overtaken(records) => self.overtaken(&records),
            Commit::Unknown(cause) => Err(Error::Silent(cause)),
            Commit::Dead(dead) => Err(dead.into()),
        }
    }

    fn overtaken(&mut self, records: &[Record]) -> Result<(), Error> {
        self.engine.overtaken(records)?;
        if let Some(last) = records.last() {
            self.set_clock(|clock, reading| clock.saw(last.time(), reading));
        }
        Ok(())
    }

    /// Once the wall clock is believed again, holders have time to renew before anything expires.
    fn set_clock(&mut self, set: impl FnOnce(&mut Clock, Reading)) {
        let suspended = self.clock.is_suspended();
        set(&mut self.clock, self.machine.read());
        if suspended && !self.clock.is_suspended() {
            tracing::info!("the wall clock was confirmed: what is due expires again");
            self.grace_over = self.grace_from_now();
        }
    }

    /// After a long write, what was planned meanwhile is planned as of now.
    fn plan_anew_if_late(&mut self, reading: Reading) -> Result<(), Error> {
        if self.outlets.desk.is_free() && self.engine.plan_anew(self.clock.now(reading))? {
            (self.open_since, self.gather) = (None, GATHER_ANEW);
        }
        Ok(())
    }

    fn sweep_if_due(&mut self, reading: Reading) -> Result<(), Error> {
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

    fn note_if_due(&mut self, now: Duration) {
        let many = u32::try_from(self.unnoted.len()).unwrap_or(u32::MAX);
        let pause = NOTE_AFTER.saturating_add(NOTE_EACH.saturating_mul(many)).min(NOTE_WITHIN);
        if self.unnoted.is_empty() || now.saturating_sub(self.noted_at) < pause {
            return;
        }
        self.noted_at = now;
        let entries = self.unnoted_entries();
        // A keeper that is busy with a snapshot gets them next time.
        if self.outlets.keeper.try_send(entries).is_ok() {
            self.unnoted.clear();
        }
    }

    fn unnoted_entries(&self) -> Vec<Entry> {
        let market = self.engine.books().market();
        self.unnoted.iter().filter_map(|cluster| market.entry(cluster).cloned()).collect()
    }

    /// Tells the answers that are due. What was committed is shown first: a revocation that is
    /// answered holds.
    fn tell_due(&mut self) {
        self.tell_watchers();
        tell(self.due.drain(..));
    }

    fn tell_watchers(&mut self) {
        let changes = self.engine.changes();
        if let Some(revoked) = changes.revoked {
            self.show_revoked(revoked);
        }
        let Stamp { revision, time } = changes.at;
        self.watchers.tell(revision, time, &changes.reservations);
        self.outlets.account.tell(changes.decided);
        self.engine.watch(!self.watchers.is_empty());
    }

    /// Lets everybody see who is not believed any more, as far as that is durable.
    fn show_revoked(&self, revoked: Revoked) {
        // Where nobody looks, nobody needs to be told.
        self.outlets.show_revoked.send_replace(revoked);
    }

    /// Hands the open batch to an idle disk, unless more goes into it first.
    fn write_if_idle(&mut self, stepped_at: Duration) -> Result<(), Error> {
        let since = *self.open_since.get_or_insert(stepped_at);
        let is_young = || self.machine.read().monotonic.saturating_sub(since) < self.gather;
        if self.engine.gathers() && is_young() || !self.outlets.desk.is_free() {
            return Ok(());
        }
        (self.open_since, self.gather) = (None, GATHER);
        let (batch, answers) = self.engine.close();
        self.due.extend(answers);
        let Some(batch) = batch else { return Ok(()) };
        self.writing = true;
        self.confirming = confirms_clock(&batch);
        let bytes = u64::try_from(batch.body.size()).unwrap_or(u64::MAX);
        self.outlets.written.fetch_add(bytes, Ordering::Relaxed);
        if self.outlets.desk.is_quick(&batch) {
            // Nobody who has an answer waits for the disk with us.
            self.tell_due();
        }
        let commit = self.outlets.desk.write(batch, &self.machine)?;
        commit.map_or(Ok(()), |commit| self.written(commit))
    }
}

/// Who advertises with this, if it is an advertisement.
fn advertiser(work: &Work) -> Option<&ClusterId> {
    match work {
        Work::Command(Command::Advertise(advertisement)) => Some(&advertisement.cluster),
        _ => None,
    }
}

/// A wall clock that was confirmed is believed when that is durable.
fn confirms_clock(batch: &Batch) -> bool {
    batch.body.events().iter().any(|event| matches!(event, Event::ClockConfirmed { .. }))
}

/// Nothing was done for it.
fn turn_away(message: Message) {
    if let Message::Work(submitted) = message {
        submitted.ticket.tell(Err(Failure::Unavailable));
    }
}

fn tell(answers: impl IntoIterator<Item = (Teller, Answer)>) {
    for (teller, answer) in answers {
        teller.tell(answer);
    }
}
