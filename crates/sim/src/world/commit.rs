//! Between a broker and the log: appends, their fates, and what others wrote.

use sublet_broker::clock::Clock;
use sublet_broker::engine::{Batch, Commit, RETRIES_MAX, RETRY_PAUSE};
use sublet_core::event::Event;
use sublet_core::time::Time;
use sublet_log::Record;

use super::broker::millis;
use super::{Task, World};
use crate::home::Fate;

impl World {
    /// Sends the committer to look for what others wrote, as is done between two batches: while it
    /// is away nothing is handed to the disk, and planning goes on.
    pub(super) fn follow(&mut self, at: usize) {
        let (several, now) = (self.brokers.len() > 1, self.now);
        let Some(broker) = self.brokers.get_mut(at) else { return };
        let wants = several && broker.paused_until <= now && broker.dice.chance(800);
        let (life, delay) = (broker.life, broker.dice.below(4));
        let Some(process) = broker.process.as_mut().filter(|p| wants && !p.away) else { return };
        process.away = true;
        self.after(delay, Task::Follow { broker: at, life });
    }

    /// The moment in which the committer reads on. A log that cannot be read now is noticed by
    /// whoever writes next.
    pub(super) fn read_on(&mut self, at: usize, life: u64) {
        let now = self.now;
        let Some(broker) = self.brokers.get_mut(at).filter(|broker| broker.life == life) else {
            return;
        };
        let fate = if broker.cut_until > now { Fate::Cut } else { Fate::Fine };
        let Some(process) = &mut broker.process else { return };
        let records = process.committer.catch_up(&self.home.handle(fate)).unwrap_or_default();
        let delay = broker.dice.below(4);
        self.after(delay, Task::Followed { broker: at, life, records });
    }

    /// Hands the open batch to an idle disk.
    pub(super) fn close(&mut self, at: usize, time: Time) {
        let Some(broker) = self.brokers.get_mut(at) else { return };
        let life = broker.life;
        let Some(process) = &mut broker.process else { return };
        if process.away {
            return;
        }
        let (batch, answers) = process.engine.close();
        if let Some(batch) = batch {
            self.audit.hands_over(batch.stamp.time, time);
            process.away = true;
            let confirms = |event: &Event| matches!(event, Event::ClockConfirmed { .. });
            process.confirming = batch.body.events().iter().any(confirms);
            let slow = !self.healing && self.disk.chance(self.setup.disk.slow);
            let delay = if slow { self.disk.between(500, 6000) } else { self.disk.between(1, 5) };
            process.slow = slow;
            self.after(delay, Task::Append { broker: at, life, batch: Some(batch) });
        }
        self.answer(at, answers);
    }

    /// The moment in which a record reaches the log, or does not.
    pub(super) fn append(&mut self, at: usize, life: u64, batch: Option<Batch>) {
        let fate = self.fate_of_append(at);
        let Some(broker) = self.brokers.get_mut(at).filter(|broker| broker.life == life) else {
            return;
        };
        let log = self.home.handle(fate);
        let Some(process) = &mut broker.process else { return };
        let commit = match batch {
            Some(batch) => process.committer.commit(&log, batch),
            None => process.committer.retry(&log),
        };
        process.answer_lost |= fate == Fate::AnswerLost && matches!(commit, Commit::Unknown(_));
        if process.answer_lost && matches!(commit, Commit::Done { .. }) {
            process.answer_lost = false;
            self.sometimes.hit("own batch recognised after a lost answer");
        }
        if matches!(commit, Commit::Unknown(_)) && process.retries < RETRIES_MAX {
            process.retries += 1;
            self.trace.say(self.now, format_args!("broker {at} does not know, {fate:?}"));
            let pause = millis(RETRY_PAUSE);
            return self.after(pause, Task::Append { broker: at, life, batch: None });
        }
        let delay = broker.dice.below(4);
        self.trace.say(self.now, format_args!("broker {at} appended, {fate:?}: {commit:?}"));
        self.after(delay, Task::Written { broker: at, life, commit });
    }

    fn fate_of_append(&mut self, at: usize) -> Fate {
        let cut = self.brokers.get(at).is_some_and(|broker| broker.cut_until > self.now);
        if cut {
            return Fate::Cut;
        }
        if self.healing {
            return Fate::Fine;
        }
        let disk = self.setup.disk;
        if self.disk.chance(disk.fatal) {
            let dirty = if self.setup.brokers == 1 { 3 } else { 2 };
            return [Fate::FatalBefore, Fate::FatalAfter, Fate::FatalDirty][self.disk.index(dirty)];
        }
        match self.disk.below(1000) {
            roll if roll < disk.request_lost => Fate::Cut,
            roll if roll < disk.request_lost + disk.answer_lost => Fate::AnswerLost,
            _ => Fate::Fine,
        }
    }

    pub(super) fn followed(&mut self, at: usize, life: u64, records: Vec<Record>) {
        let now = self.now;
        let Some(broker) = self.brokers.get_mut(at).filter(|broker| broker.life == life) else {
            return;
        };
        if broker.paused_until > now {
            let rest = broker.paused_until - now;
            return self.after(rest, Task::Followed { broker: at, life, records });
        }
        let Some(process) = &mut broker.process else { return };
        process.away = false;
        if !records.is_empty() {
            let planned = !process.engine.is_done();
            self.sometimes.hit("others' records followed");
            if planned {
                self.sometimes.hit("planned while others' records were read");
            }
            self.overtaken(at, &records);
        }
        self.wake(at, life);
    }

    pub(super) fn written(&mut self, at: usize, life: u64, commit: Commit) {
        let now = self.now;
        let Some(broker) = self.brokers.get_mut(at).filter(|broker| broker.life == life) else {
            return;
        };
        if broker.paused_until > now {
            let rest = broker.paused_until - now;
            return self.after(rest, Task::Written { broker: at, life, commit });
        }
        let Some(process) = &mut broker.process else { return };
        process.away = false;
        process.retries = 0;
        process.slow = false;
        if !process.engine.is_done() {
            self.sometimes.hit("batch planned while one was written");
        }
        match commit {
            Commit::Done { then } => {
                let answers = process.engine.committed();
                if std::mem::take(&mut process.confirming) {
                    self.set_clock(at, Clock::confirm);
                }
                self.answer(at, answers);
                if !then.is_empty() {
                    self.overtaken(at, &then);
                }
            }
            Commit::Overtaken(records) => {
                self.sometimes.hit("overtaken and planned again");
                self.overtaken(at, &records);
            }
            Commit::Unknown(_) => self.halt(at, "log was silent for too long"),
            Commit::Dead(_) => self.halt(at, "disk failed"),
        }
        self.wake(at, life);
    }

    /// The engine stops; somebody restarts the process.
    fn halt(&mut self, at: usize, why: &'static str) {
        self.sometimes.hit(why);
        let Some(broker) = self.brokers.get_mut(at) else { return };
        let pause = broker.dice.between(100, 5000);
        let answers = broker.process.as_mut().map(|process| process.engine.halt());
        self.answer(at, answers.unwrap_or_default());
        self.kill(at, pause);
    }

    fn overtaken(&mut self, at: usize, records: &[Record]) {
        let Some(broker) = self.brokers.get_mut(at) else { return };
        let Some(process) = &mut broker.process else { return };
        self.audit.replans(process.writer);
        if let Err(contradiction) = process.engine.overtaken(records) {
            return self.fail("I2", format!("others' records do not fit: {contradiction}"));
        }
        self.audit.replanned(process.writer, &process.engine);
        if let Some(last) = records.last() {
            self.set_clock(at, |clock, reading| clock.saw(last.time(), reading));
        }
    }
}
