//! A provider's agent, and the cluster under it.
//!
//! What it has carried out is durable: slices with their generation, and the generations of what it
//! took down. It confirms only after the effect, and a crash may come between any two of them. What
//! it was told and has not done is forgotten in a crash and told again.

use std::collections::{BTreeMap, BTreeSet};

use sublet_broker::engine::Failure;
use sublet_broker::stream::Cursor;
use sublet_core::advertisement::{Advertisement, Capabilities, Cost, GrantReport, Number};
use sublet_core::id::{ClusterId, Generation, ReservationId, Revision};
use sublet_core::instruction::{Duty, Instruction, Side};
use sublet_core::plan::Command;
use sublet_core::resources::Resources;

use super::{Task, World};
use crate::dice::Dice;
use crate::message::{Extent, Heard, Order, Party, Ticket};

/// The label that some clusters have and some requests ask for.
pub(super) const ZONE: &str = "zone";

/// The extended resource that some clusters have and some requests ask for.
pub(crate) const FPGA: &str = "example.com/fpga";

/// The same with so many of it.
pub(super) fn with_fpgas(resources: Resources, count: u64) -> Resources {
    FPGA.parse().ok().and_then(|kind| resources.clone().with(kind, count).ok()).unwrap_or(resources)
}

/// How many of it there are.
pub(super) fn fpgas(resources: &Resources) -> u64 {
    resources.extended_iter().map(|(_, count)| count).sum()
}

/// What a cluster really keeps for another.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The instruction that was carried out.
    pub generation: Generation,
    /// For whom.
    pub requester: ClusterId,
    /// How much.
    pub amounts: Resources,
    /// What pods take of it.
    pub used: Resources,
}

/// A cluster and its agent.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: ClusterId,
    /// Whether its agent is an old one.
    pub old: bool,
    /// What all its nodes have.
    pub(super) base: Resources,
    /// What its nodes have now.
    pub has: Resources,
    /// What its own pods take.
    pub own: Resources,
    /// What it says of itself beside amounts.
    pub labels: BTreeMap<String, String>,
    /// What lending costs there, if it says so.
    cost: Option<Cost>,
    /// What it keeps for others.
    pub slices: BTreeMap<ReservationId, Slice>,
    /// What it took down, and on which instruction.
    gone: BTreeMap<ReservationId, Generation>,
    /// What it was told and no full list has left out since: nothing else is carried out.
    recorded: BTreeSet<ReservationId>,
    pub(super) life: u64,
    pub(super) up: bool,
    sequence: u64,
    interval_ms: u64,
    confirmed: BTreeMap<ReservationId, Generation>,
    cursor: Option<Revision>,
    lists: u64,
    awaited: u64,
    /// The stream that is listened to, and up to where it was read.
    pub(super) stream: u64,
    pub(super) read: Option<Cursor>,
    /// When the last part of a stream arrives that is on its way.
    pub(super) arrives_ms: u64,
    pub(super) dice: Dice,
}

impl Agent {
    pub(super) fn new(name: ClusterId, old: bool, mut dice: Dice) -> Self {
        let mut base = Resources::new(dice.between(4, 16) * 1000, dice.between(8, 64) << 30);
        base.gpu = if dice.chance(400) { dice.between(1, 4) } else { 0 };
        let mut extended = dice.fork(3);
        if extended.chance(400) {
            base = with_fpgas(base, extended.between(1, 6));
        }
        let own = Resources::new(dice.below(base.cpu / 2), dice.below(base.memory / 2));
        Self {
            name,
            old,
            has: base.clone(),
            base,
            own,
            labels: draw_labels(&mut dice.fork(1)),
            cost: draw_cost(&mut dice.fork(2)),
            slices: BTreeMap::new(),
            gone: BTreeMap::new(),
            recorded: BTreeSet::new(),
            life: 0,
            up: false,
            sequence: 0,
            interval_ms: dice.between(8_000, 30_000),
            confirmed: BTreeMap::new(),
            cursor: None,
            lists: 0,
            awaited: 0,
            stream: 0,
            read: None,
            arrives_ms: 0,
            dice,
        }
    }

    /// What was taken down may have to be put up again: the broker has forgotten that it ended.
    pub(super) fn forget_ends(&mut self) {
        self.gone.clear();
    }

    /// What pods inside grants take.
    pub fn used(&self) -> Resources {
        let sum = |sum: Resources, slice: &Slice| sum.checked_add(&slice.used).unwrap_or(sum);
        self.slices.values().fold(Resources::default(), sum)
    }

    fn advertisement(&mut self) -> Advertisement {
        self.sequence += 1;
        let allocated = self.own.checked_add(&self.used()).unwrap_or_default();
        let plain = Advertisement::plain(self.name.clone(), self.has.clone(), allocated);
        if self.old {
            return plain;
        }
        let mut plain = plain;
        if self.dice.chance(5) {
            // What a broken collector says; numbers from outside have no bounds.
            plain.allocated.memory = u64::MAX - 1;
        }
        let report = |(id, slice): (&ReservationId, &Slice)| GrantReport {
            id: *id,
            generation: slice.generation,
            requester: slice.requester.clone(),
            amounts: slice.amounts.clone(),
            used: slice.used.clone(),
            remaining: None,
        };
        Advertisement {
            number: Some(Number { incarnation: self.life, sequence: self.sequence }),
            labels: self.labels.clone(),
            cost: self.cost.clone(),
            grants: Some(self.slices.iter().map(report).collect()),
            capabilities: Capabilities { acknowledge: true, activate: true, ..plain.capabilities },
            ..plain
        }
    }

    /// Is there something to do, or only to confirm?
    fn has_done(&self, instruction: &Instruction) -> bool {
        let kept = self.slices.get(&instruction.reservation).map(|slice| slice.generation);
        let gone = self.gone.get(&instruction.reservation).copied();
        match instruction.duty {
            Duty::Keep => kept.max(gone).is_some_and(|done| done >= instruction.generation),
            Duty::TakeDown | Duty::Gone => gone.is_some_and(|done| done >= instruction.generation),
        }
    }

    /// Carries an instruction out.
    fn carry_out(&mut self, instruction: &Instruction) {
        let Instruction { reservation: id, generation, .. } = *instruction;
        if self.has_done(instruction) {
            return;
        }
        if instruction.duty == Duty::Keep {
            let used = self.slices.get(&id).map(|slice| slice.used.clone()).unwrap_or_default();
            let amounts = instruction.amounts.clone();
            let used = used.min(&amounts);
            let requester = instruction.peer.clone();
            self.slices.insert(id, Slice { generation, requester, amounts, used });
        } else {
            self.slices.remove(&id);
            self.gone.insert(id, generation);
        }
    }
}

/// Some clusters say where they are.
pub(super) fn draw_labels(dice: &mut Dice) -> BTreeMap<String, String> {
    let zone = ["north", "south"].get(dice.index(3));
    zone.map(|zone| (ZONE.into(), (*zone).into())).into_iter().collect()
}

/// Few prices, so that some are equal.
fn draw_cost(dice: &mut Dice) -> Option<Cost> {
    let currency = ["EUR", "EUR", "USD"].get(dice.index(4))?;
    let (cpu_micros, memory_micros) = (dice.between(1, 3) * 1000, dice.between(1, 2) * 100);
    Some(Cost { cpu_micros, memory_micros, currency: (*currency).into() })
}

impl World {
    pub(super) fn boot_agent(&mut self, at: usize, life: u64) {
        let Some(agent) = self.agents.get_mut(at).filter(|agent| agent.life == life) else {
            return;
        };
        agent.up = true;
        agent.sequence = 0;
        agent.cursor = None;
        (agent.stream, agent.read) = (0, None);
        agent.confirmed.clear();
        let jitter = agent.dice.below(500);
        self.after(jitter, Task::Publish { agent: at, life });
        self.after(jitter + 200, Task::List { agent: at, life });
    }

    pub(super) fn kill_agent(&mut self, at: usize, down_ms: u64) {
        let Some(agent) = self.agents.get_mut(at) else { return };
        agent.up = false;
        agent.life += 1;
        let life = agent.life;
        self.after(down_ms, Task::BootAgent { agent: at, life });
    }

    pub(super) fn publish(&mut self, at: usize, life: u64) {
        let brokers = self.setup.brokers;
        let Some(agent) = self.agents.get_mut(at).filter(|agent| agent.life == life) else {
            return;
        };
        let advertisement = agent.advertisement();
        let own = agent.own.clone();
        // Each broker keeps a market of its own, so each is told in turn.
        let broker = usize::try_from(agent.sequence).unwrap_or(0) % brokers;
        let pause = agent.interval_ms / brokers as u64 + agent.dice.below(2000);
        let advert = self.audit.publishes(&advertisement, own);
        let order = Order::Command(Command::Advertise(Box::new(advertisement)));
        self.send(Party::Agent(at), order, broker, Some(advert));
        self.after(pause, Task::Publish { agent: at, life });
    }

    pub(super) fn list(&mut self, at: usize, life: u64) {
        let brokers = self.setup.brokers;
        let Some(agent) = self.agents.get_mut(at).filter(|agent| agent.life == life) else {
            return;
        };
        if self.setup.streams && !agent.old {
            let pause = agent.dice.between(800, 4000);
            self.watch(at);
            return self.after(pause, Task::List { agent: at, life });
        }
        agent.lists += 1;
        let full = agent.old || agent.cursor.is_none() || agent.lists.is_multiple_of(16);
        let after = if full { None } else { agent.cursor };
        let (broker, pause) = (agent.dice.index(brokers), agent.dice.between(800, 4000));
        let name = agent.name.clone();
        let number = self.send(Party::Agent(at), Order::List(name, after), broker, None);
        if let Some(agent) = self.agents.get_mut(at) {
            // Only the answer to the newest question is listened to.
            agent.awaited = number;
        }
        self.after(pause, Task::List { agent: at, life });
    }

    pub(super) fn agent_hears(&mut self, at: usize, call: &Ticket, heard: Heard) {
        let Some(agent) = self.agents.get_mut(at).filter(|agent| agent.up) else { return };
        match (&call.order, heard) {
            (Order::List(_, after), Heard::List(revision, list, extent))
                if agent.awaited == call.number =>
            {
                // The batch in the making may change more under its revision, as with streams.
                let cursor = Revision(revision.0.saturating_sub(1));
                // What an old agent is told is all that there is, to it.
                let whole = extent == Extent::Whole || agent.old;
                agent.cursor = (whole || after.is_some()).then_some(cursor);
                if whole {
                    self.audit.delivers_all(&agent.name, &list);
                    self.take_down_absent(at, &list);
                } else {
                    self.audit.delivers(&agent.name, &list);
                }
                self.told(at, list);
            }
            (Order::Watch(..), Heard::Part(part)) if agent.stream == call.number => {
                // The broker would tell all once it has the report; here the agent asks again.
                agent.read = (!part.early).then_some(part.cursor);
                if part.early {
                    agent.stream = 0;
                }
                self.audit.streams(&agent.name, agent.life, &part);
                if part.whole {
                    self.audit.delivers_all(&agent.name, &part.instructions);
                    self.take_down_absent(at, &part.instructions);
                } else {
                    self.audit.delivers(&agent.name, &part.instructions);
                }
                self.told(at, part.instructions);
            }
            (
                Order::Command(Command::Acknowledge { id, generation, .. }),
                Heard::Answer(Ok(_) | Err(Failure::Refused(_))),
            ) => {
                // A refusal too is an answer: nobody waits for this confirmation.
                let newest = agent.confirmed.entry(*id).or_default();
                *newest = (*newest).max(*generation);
            }
            _ => {}
        }
    }

    /// What a full list does not name is over.
    fn take_down_absent(&mut self, at: usize, list: &[Instruction]) {
        let Some(agent) = self.agents.get_mut(at) else { return };
        let listed = |id| list.iter().any(|i| i.reservation == id && i.side == Side::Provider);
        // Also what it was about to do.
        agent.recorded.retain(|id| listed(*id));
        let absent: Vec<_> = agent.slices.keys().copied().filter(|id| !listed(*id)).collect();
        for id in absent {
            if let Some(slice) = agent.slices.remove(&id) {
                agent.gone.insert(id, slice.generation);
            }
        }
    }

    fn told(&mut self, at: usize, list: Vec<Instruction>) {
        let Some(agent) = self.agents.get_mut(at) else { return };
        let life = agent.life;
        let mut tasks = Vec::new();
        for instruction in list.into_iter().filter(|i| i.side == Side::Provider) {
            let (id, generation) = (instruction.reservation, instruction.generation);
            if agent.old && instruction.duty == Duty::TakeDown {
                continue;
            }
            agent.recorded.insert(id);
            let late = agent.dice.chance(20);
            let delay = agent.dice.between(5, if late { 15_000 } else { 400 });
            if !agent.has_done(&instruction) {
                let instruction = Box::new(instruction);
                tasks.push((delay, Task::Effect { agent: at, life, instruction }));
            } else if agent.confirmed.get(&id) < Some(&generation) {
                tasks.push((delay, Task::Confirm { agent: at, life, id, generation }));
            }
        }
        for (delay, task) in tasks {
            self.after(delay, task);
        }
    }

    pub(super) fn effect(&mut self, at: usize, life: u64, instruction: &Instruction) {
        let Some(agent) = self.agents.get_mut(at).filter(|agent| agent.life == life) else {
            return;
        };
        if !agent.recorded.contains(&instruction.reservation) {
            return;
        }
        agent.carry_out(instruction);
        let name = agent.name.clone();
        self.trace.say(self.now, format_args!("{name} carried out {instruction:?}"));
        let (id, generation) = (instruction.reservation, instruction.generation);
        let Some(agent) = self.agents.get_mut(at) else { return };
        let delay = agent.dice.below(50);
        self.after(delay, Task::Confirm { agent: at, life, id, generation });
    }

    pub(super) fn confirm(
        &mut self,
        at: usize,
        life: u64,
        id: ReservationId,
        generation: Generation,
    ) {
        let brokers = self.setup.brokers;
        let Some(agent) = self.agents.get_mut(at).filter(|a| a.life == life && !a.old) else {
            return;
        };
        if agent.confirmed.get(&id) >= Some(&generation) {
            return;
        }
        let (by, broker) = (agent.name.clone(), agent.dice.index(brokers));
        // Said again until somebody answers.
        let pause = agent.dice.between(2000, 6000);
        self.after(pause, Task::Confirm { agent: at, life, id, generation });
        let order = Order::Command(Command::Acknowledge { by, id, generation });
        self.send(Party::Agent(at), order, broker, None);
    }
}
