//! A broker's process: the real engine, committer and clock, driven as its threads drive them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sublet_broker::clock::{Clock, Reading};
use sublet_broker::engine::{
    Answer, Committer, Contradiction, Engine, SWEEP_EVERY, Submitted, Work,
};
use sublet_broker::stream::{Part, is_too_early};
use sublet_core::books::Books;
use sublet_core::bugs::{Bug, planted};
use sublet_core::instruction;
use sublet_core::ledger::{self, Ledger};
use sublet_core::market::Entry;
use sublet_core::time::Time;
use sublet_log::{Log, Writer, snapshot};

use super::stream::Streams;
use super::{EPOCH_MS, Task, World};
use crate::dice::Dice;
use crate::home::Fate;
use crate::message::{Extent, Heard, Order, Ticket};

type Mailbox = Arc<Mutex<Vec<(Ticket, Heard)>>>;
type Look = Box<dyn Fn(&Ledger, Time) -> Heard + Send>;

/// A machine on which a broker runs, again and again.
pub(super) struct Broker {
    pub(super) process: Option<Process>,
    pub(super) life: u64,
    pub(super) wall_skew_ms: i64,
    pub(super) cut_until: u64,
    pub(super) paused_until: u64,
    market: Vec<Entry>,
    pub(super) dice: Dice,
}

/// One life of a broker.
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact of the process")]
pub(super) struct Process {
    pub(super) engine: Engine<Ticket>,
    pub(super) clock: Clock,
    pub(super) committer: Committer,
    pub(super) writer: Writer,
    grace_over: Time,
    swept_ms: u64,
    born_ms: u64,
    pub(super) inbox: Vec<Ticket>,
    mailbox: Mailbox,
    pub(super) streams: Streams,
    woken: bool,
    /// The committer is on its way with a batch, or to look for others' records.
    pub(super) away: bool,
    pub(super) retries: u32,
    /// Since when nothing hindered it, in broker time.
    pub(super) healthy_since: Time,
    woken_ms: u64,
    /// The same in virtual time, for whom only the disk and the process itself count.
    pub(super) free_since_ms: u64,
    /// The batch on its way takes long.
    pub(super) slow: bool,
    /// An operator's word on the clock is in it.
    pub(super) confirming: bool,
    /// A record may be there although nobody said so.
    pub(super) answer_lost: bool,
}

impl Broker {
    pub(super) fn new(dice: Dice) -> Self {
        Self {
            process: None,
            life: 0,
            wall_skew_ms: 0,
            cut_until: 0,
            paused_until: 0,
            market: vec![],
            dice,
        }
    }

    /// What it had noted is gone with its log.
    pub(super) fn forget_market(&mut self) {
        self.market.clear();
    }

    pub(super) fn reading(&self, now_ms: u64) -> Reading {
        let born = self.process.as_ref().map_or(now_ms, |process| process.born_ms);
        let wall = (EPOCH_MS + now_ms).saturating_add_signed(self.wall_skew_ms);
        let monotonic = Duration::from_millis(now_ms.saturating_sub(born));
        Reading { wall: Time::from_millis(wall), monotonic }
    }
}

impl World {
    pub(super) fn boot(&mut self, at: usize, life: u64) {
        let Some(broker) = self.brokers.get_mut(at).filter(|broker| broker.life == life) else {
            return;
        };
        broker.process = None;
        if self.home.is_stuck() {
            // A log whose sync failed is opened anew, and what was never written is gone.
            self.known = self.home.lose_power();
            self.audit.truncated(&self.home.since(0));
        }
        let log = self.home.handle(Fate::Fine);
        let loaded = match snapshot::load(&log) {
            Ok(loaded) => loaded,
            Err(error) => return self.fail("I20", format!("the log cannot be loaded: {error}")),
        };
        if log.snapshot().is_ok_and(|snapshot| snapshot.is_some()) {
            self.sometimes.hit("restart from a snapshot");
        }
        let reading = broker.reading(self.now);
        let clock = Clock::on(&loaded.ledger, loaded.head.time, reading);
        if clock.is_suspended() {
            self.sometimes.hit("clock suspended");
        }
        let now = clock.now(reading);
        let mut books = Books::new(loaded.ledger).listening(now);
        if self.setup.remembers {
            broker.market.iter().cloned().for_each(|entry| books.remember(entry, now));
        }
        let writer = Writer((u128::from(life) << 8) + at as u128 + 1);
        let grace = self.setup.policy.recovery_grace;
        let grace_over = now.checked_add(grace).unwrap_or(now);
        self.audit.booted(writer, grace_over, &books, now);
        broker.process = Some(Process {
            engine: Engine::new(books, Arc::clone(&self.setup.policy))
                .shared(self.setup.brokers > 1),
            clock,
            committer: Committer::new(writer, loaded.head),
            writer,
            grace_over,
            swept_ms: 0,
            born_ms: self.now,
            inbox: vec![],
            mailbox: Mailbox::default(),
            streams: Streams::default(),
            woken: false,
            away: false,
            retries: 0,
            healthy_since: grace_over,
            woken_ms: self.now,
            free_since_ms: self.now,
            slow: false,
            confirming: false,
            answer_lost: false,
        });
        self.trace.say(self.now, format_args!("broker {at} starts, life {life}"));
        self.after(1, Task::Tick { broker: at, life });
    }

    /// The process is gone; what it had not written is too.
    pub(super) fn kill(&mut self, at: usize, down_ms: u64) {
        let Some(broker) = self.brokers.get_mut(at) else { return };
        if let Some(process) = broker.process.take() {
            self.audit.died(process.writer);
            let market = process.engine.books().market();
            let noted = market.entries().map(|(_, entry)| entry.clone().to_be_noted());
            broker.market = noted.collect();
        }
        broker.life += 1;
        let life = broker.life;
        self.trace.say(self.now, format_args!("broker {at} dies"));
        self.after(down_ms, Task::Boot { broker: at, life });
    }

    pub(super) fn arrive(&mut self, at: usize, call: Ticket) {
        self.ops += 1;
        let Some(broker) = self.brokers.get_mut(at) else { return };
        let life = broker.life;
        let Some(process) = &mut broker.process else { return };
        process.inbox.push(call);
        if !process.woken {
            process.woken = true;
            let delay = broker.dice.below(4);
            self.after(delay, Task::Wake { broker: at, life });
        }
    }

    pub(super) fn tick(&mut self, at: usize, life: u64) {
        if self.brokers.get(at).is_none_or(|broker| broker.life != life) {
            return;
        }
        self.after(millis(SWEEP_EVERY), Task::Tick { broker: at, life });
        self.follow(at);
        self.wake(at, life);
    }

    pub(super) fn wake(&mut self, at: usize, life: u64) {
        let now = self.now;
        let Some(broker) = self.brokers.get_mut(at).filter(|broker| broker.life == life) else {
            return;
        };
        if broker.paused_until > now {
            let rest = broker.paused_until - now;
            self.after(rest, Task::Wake { broker: at, life });
            return;
        }
        let reading = broker.reading(now);
        let Some(process) = &mut broker.process else { return };
        process.woken = false;
        let calls = std::mem::take(&mut process.inbox);
        let time = process.clock.now(reading);
        self.audit.takes_in(process.writer, &process.engine, &calls, time);
        let before = self.audit.before_adverts(&process.engine, &calls);
        for call in &calls {
            process.streams.open(call, &mut process.engine);
        }
        let result = if process.away { Ok(false) } else { process.engine.plan_anew(time) };
        if matches!(result, Ok(true)) {
            self.sometimes.hit("planned again after a long write");
            self.audit.replans(process.writer);
            self.audit.replanned(process.writer, &process.engine);
        }
        let mailbox = &process.mailbox;
        let work = calls.into_iter().map(|call| submitted(call, mailbox));
        let mut result = result.and_then(|_| process.engine.step(work, time));
        while result.is_ok() && process.engine.is_behind() && !process.engine.is_planned() {
            result = process.engine.step([], time);
        }
        if let Some(before) = before {
            self.audit.after_adverts(&before, process.engine.books());
        }
        if now >= process.swept_ms + millis(SWEEP_EVERY) {
            process.swept_ms = now;
            let grace = time < process.grace_over && !planted(Bug::NoGrace);
            let expire = !process.clock.is_suspended() && !grace;
            if !expire {
                self.sometimes.hit("swept without expiring");
            }
            result = result.and_then(|()| process.engine.sweep(time, expire));
        }
        // Who waits is tried in pieces; anything may come in between two of them.
        while result.is_ok() && process.engine.is_behind() && broker.dice.chance(700) {
            result = process.engine.step([], time);
        }
        process.woken = process.engine.is_behind();
        let again = process.woken;
        if let Err(contradiction) = result {
            let (invariant, why) = (named(&contradiction), format!("{contradiction:?}"));
            return self.fail(invariant, format!("the engine contradicts itself: {why}"));
        }
        self.audit.stepped(process.writer, &process.engine, time, &mut self.sometimes);
        if again {
            self.after(1, Task::Wake { broker: at, life });
        }
        self.check_health(at, time);
        self.close(at, time);
        if let Some(process) = self.brokers.get(at).and_then(|broker| broker.process.as_ref()) {
            self.audit.idles(process.writer, &process.engine, time, &mut self.sometimes);
        }
        self.tell_watchers(at);
    }

    /// Once the wall clock is believed again, holders have time to renew before anything expires.
    pub(super) fn set_clock(&mut self, at: usize, set: impl FnOnce(&mut Clock, Reading)) {
        let grace = self.setup.policy.recovery_grace;
        let Some(broker) = self.brokers.get_mut(at) else { return };
        let reading = broker.reading(self.now);
        let Some(process) = &mut broker.process else { return };
        let (suspended, before) = (process.clock.is_suspended(), process.clock.now(reading));
        set(&mut process.clock, reading);
        let now = process.clock.now(reading);
        if suspended && !process.clock.is_suspended() {
            self.sometimes.hit("clock confirmed");
            process.grace_over = now.checked_add(grace).unwrap_or(now);
            self.audit.spares(process.writer, process.grace_over);
            process.healthy_since = process.healthy_since.max(process.grace_over);
        }
        if now.since(before).as_millis() > millis(SWEEP_EVERY) {
            // Its time is far ahead of what it was: much becomes due at once.
            process.healthy_since = process.healthy_since.max(now);
        }
    }

    /// Expiry is owed only by a broker that nothing has hindered for a while.
    fn check_health(&mut self, at: usize, time: Time) {
        let Some(broker) = self.brokers.get_mut(at) else { return };
        let cut = broker.cut_until > self.now;
        let Some(process) = &mut broker.process else { return };
        let slept = self.now > process.woken_ms + 3 * millis(SWEEP_EVERY);
        process.woken_ms = self.now;
        let hindered = cut || slept || process.slow || process.retries > 0;
        if hindered {
            process.free_since_ms = self.now;
        }
        if hindered || process.clock.is_suspended() {
            process.healthy_since = process.healthy_since.max(time);
        }
        self.audit.expects_answers(process.writer, process.free_since_ms);
        let bound_ms = if self.setup.brokers > 1 { 3000 } else { 1100 };
        self.audit.expects_expiry(process.healthy_since, time, bound_ms);
    }

    /// Answers leave the broker.
    pub(super) fn answer(&mut self, at: usize, answers: Vec<(Ticket, Answer)>) {
        let Some(process) = self.brokers.get(at).and_then(|b| b.process.as_ref()) else { return };
        let seen =
            std::mem::take(&mut *process.mailbox.lock().unwrap_or_else(PoisonError::into_inner));
        let (writer, durable) = (process.writer, self.home.durable());
        for (call, answer) in answers {
            self.audit.answers((writer, &call), &answer, durable, &mut self.sometimes);
            self.reply(at, call, Heard::Answer(answer));
        }
        for (call, heard) in seen {
            match heard {
                Heard::Part(part) => self.begin_stream(at, &call, part),
                Heard::List(revision, list, extent) => {
                    self.audit.lists((writer, &call), revision, &list, durable);
                    self.reply(at, call, Heard::List(revision, list, extent));
                }
                Heard::Answer(_) => {}
            }
        }
    }

    fn reply(&mut self, at: usize, call: Ticket, heard: Heard) {
        self.trace.say(
            self.now,
            format_args!("broker {at} → {:?} {}: {heard:?}", call.from, call.number),
        );
        for delay in self.fate_of_message(call.from, at) {
            let (call, heard) = (Arc::clone(&call), heard.clone());
            self.after(delay, Task::ToParty { call, heard });
        }
    }
}

/// As virtual time counts.
pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Which invariant the engine's own last check stood for.
fn named(contradiction: &Contradiction) -> &'static str {
    match contradiction {
        Contradiction::Unjustified(found) if found.rule == "returns-unconfirmed" => "I8",
        Contradiction::Unjustified(_) => "I1",
        Contradiction::Ledger(ledger::Error::KeyTaken(..)) => "I5",
        Contradiction::Ledger(ledger::Error::Illegal { .. }) => "I6",
        _ => "I2",
    }
}

fn submitted(call: Ticket, mailbox: &Mailbox) -> Submitted<Ticket> {
    let look = |look: Look| {
        let (call, mailbox) = (Arc::clone(&call), Arc::clone(mailbox));
        Work::Look(Box::new(move |books, now| {
            let (call, seen) = (Arc::clone(&call), look(books.ledger(), now));
            let mailbox = Arc::clone(&mailbox);
            Box::new(move || {
                let mut mailbox = mailbox.lock().unwrap_or_else(PoisonError::into_inner);
                mailbox.push((call, seen));
            })
        }))
    };
    let work = match call.order.clone() {
        Order::Command(command) => Work::Command(command),
        Order::List(cluster, after) => look(Box::new(move |ledger, _| {
            let list = match after {
                Some(after) => instruction::since(ledger, &cluster, Some(after)).collect(),
                None => instruction::current(ledger, &cluster).collect(),
            };
            let whole = after.is_none() && !is_too_early(ledger, &cluster);
            let extent = if whole { Extent::Whole } else { Extent::Part };
            Heard::List(ledger.stamp().revision, list, extent)
        })),
        Order::Watch(cluster, after) => {
            look(Box::new(move |ledger, now| Heard::Part(Part::look(ledger, &cluster, after, now))))
        }
    };
    Submitted { work, ticket: call }
}
