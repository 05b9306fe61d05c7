//! The whole system on one thread: brokers on one log, agents, requesters, operators, and time.
//!
//! A queue ordered by virtual time and then by arrival decides what happens next; nothing else
//! does. An operation is one message that a broker or a cluster takes in, or one step of the
//! script. The auditor watches everything and ends the run at the first violation.

mod agent;
mod broker;
mod commit;
mod client;
mod fault;
mod heal;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;

use sublet_broker::engine::{Batch, Commit};
use sublet_core::id::{ClusterId, Generation, ReservationId};
use sublet_core::instruction::Instruction;
use sublet_core::plan::Command;
use sublet_log::Record;

use crate::audit::{Auditor, Violation};
use crate::dice::Dice;
use crate::home::Home;
use crate::message::{Call, Heard, Order, Party, Ticket};
use crate::script::Script;
use crate::setup::Setup;
use crate::sometimes::Sometimes;
use crate::trace::Trace;

pub(crate) use agent::FPGA;
pub use agent::{Agent, Slice};
use broker::Broker;
use client::Request;

/// When virtual time begins, in Unix milliseconds.
const EPOCH_MS: u64 = 1_700_000_000_000;

/// Something that will happen.
enum Task {
    ToBroker { broker: usize, call: Ticket },
    ToParty { call: Ticket, heard: Heard },
    Boot { broker: usize, life: u64 },
    Tick { broker: usize, life: u64 },
    Wake { broker: usize, life: u64 },
    Append { broker: usize, life: u64, batch: Option<Batch> },
    Follow { broker: usize, life: u64 },
    Followed { broker: usize, life: u64, records: Vec<Record> },
    Written { broker: usize, life: u64, commit: Commit },
    BootAgent { agent: usize, life: u64 },
    Publish { agent: usize, life: u64 },
    List { agent: usize, life: u64 },
    Effect { agent: usize, life: u64, instruction: Box<Instruction> },
    Confirm { agent: usize, life: u64, id: ReservationId, generation: Generation },
    Turn { request: usize },
    Timeout { request: usize, call: u64 },
    Operate { command: Box<Command>, tries: u32 },
}

/// How a run ended.
pub struct Outcome {
    /// What must hold and did not.
    pub violation: Option<Violation>,
    /// How many operations it took.
    pub ops: u64,
    /// Of the whole history.
    pub hash: u64,
    /// The last lines of the history, if they were kept.
    pub lines: Vec<String>,
    /// What was reached.
    pub sometimes: Sometimes,
    /// Which steps of the script were taken.
    pub steps: Vec<crate::script::Step>,
}

/// The whole system.
pub struct World {
    setup: Setup,
    now: u64,
    queue: BTreeMap<(u64, u64), Task>,
    queued: u64,
    ops: u64,
    calls: u64,
    home: Home,
    known: usize,
    brokers: Vec<Broker>,
    agents: Vec<Agent>,
    requests: Vec<Request>,
    audit: Auditor,
    sometimes: Sometimes,
    trace: Trace,
    net: Dice,
    disk: Dice,
    /// Until when an agent cannot reach a broker.
    cuts: BTreeMap<(usize, usize), u64>,
    healing: bool,
}

impl World {
    /// A world at its beginning.
    pub fn new(setup: Setup, keep_lines: bool) -> Self {
        let dice = Dice::new(setup.seed);
        let names: Vec<ClusterId> =
            (1..=setup.old.len()).filter_map(|n| format!("c{n}").parse().ok()).collect();
        let agents = names.iter().zip(&setup.old).enumerate();
        let agents = agents
            .map(|(at, (name, old))| Agent::new(name.clone(), *old, dice.fork(100 + at as u64)))
            .collect();
        let brokers =
            (0..setup.brokers).map(|at| Broker::new(dice.fork(200 + at as u64))).collect();
        Self {
            audit: Auditor::new(&setup.policy),
            now: 0,
            queue: BTreeMap::new(),
            queued: 0,
            ops: 0,
            calls: 0,
            home: Home::default(),
            known: 0,
            brokers,
            agents,
            requests: Vec::new(),
            sometimes: Sometimes::default(),
            trace: Trace::new(keep_lines),
            net: dice.fork(3),
            disk: dice.fork(4),
            cuts: BTreeMap::new(),
            healing: false,
            setup,
        }
    }

    /// Plays a script until so many operations are done, then lets everything heal.
    pub fn run(mut self, script: Script, ops_max: u64) -> Outcome {
        for broker in 0..self.brokers.len() {
            self.after(0, Task::Boot { broker, life: 0 });
        }
        for agent in 0..self.agents.len() {
            self.after(10, Task::BootAgent { agent, life: 0 });
        }
        let mut steps = Vec::new();
        for step in script {
            self.run_until(step.at_ms + 1000, ops_max);
            if self.audit.violation().is_some() || self.ops >= ops_max {
                break;
            }
            steps.push(step);
            self.ops += 1;
            self.act(step);
            self.look_at_log();
        }
        if self.ops < ops_max {
            // A shortened script has ended; what it set in motion goes on for a while.
            self.run_until(self.now + 60_000, ops_max);
        }
        if self.audit.violation().is_none() {
            self.heal();
        }
        Outcome {
            violation: self.audit.violation().cloned(),
            ops: self.ops,
            hash: self.trace.hash(),
            lines: self.trace.lines().to_vec(),
            sometimes: self.sometimes,
            steps,
        }
    }

    fn run_until(&mut self, end_ms: u64, ops_max: u64) {
        while self.audit.violation().is_none() && self.ops < ops_max {
            let Some(entry) = self.queue.first_entry() else { break };
            if entry.key().0 > end_ms {
                break;
            }
            self.now = entry.key().0;
            self.audit.at(self.now);
            let task = entry.remove();
            self.dispatch(task);
            self.look_at_log();
        }
        self.now = self.now.max(end_ms);
        self.audit.at(self.now);
    }

    fn after(&mut self, delay_ms: u64, task: Task) {
        self.queued += 1;
        self.queue.insert((self.now + delay_ms, self.queued), task);
    }

    fn dispatch(&mut self, task: Task) {
        match task {
            Task::ToBroker { broker, call } => self.arrive(broker, call),
            Task::ToParty { call, heard } => self.hear(&call, heard),
            Task::Boot { broker, life } => self.boot(broker, life),
            Task::Tick { broker, life } => self.tick(broker, life),
            Task::Wake { broker, life } => self.wake(broker, life),
            Task::Append { broker, life, batch } => self.append(broker, life, batch),
            Task::Follow { broker, life } => self.read_on(broker, life),
            Task::Followed { broker, life, records } => self.followed(broker, life, records),
            Task::Written { broker, life, commit } => self.written(broker, life, commit),
            Task::BootAgent { agent, life } => self.boot_agent(agent, life),
            Task::Publish { agent, life } => self.publish(agent, life),
            Task::List { agent, life } => self.list(agent, life),
            Task::Effect { agent, life, instruction } => self.effect(agent, life, &instruction),
            Task::Confirm { agent, life, id, generation } => {
                self.confirm(agent, life, id, generation);
            }
            Task::Turn { request } => self.turn(request),
            Task::Timeout { request, call } => self.timed_out(request, call),
            Task::Operate { command, tries } => self.operate(*command, tries),
        }
    }

    /// Shows every new record to the auditor.
    fn look_at_log(&mut self) {
        if self.home.count() == self.known {
            return;
        }
        for record in self.home.since(self.known) {
            self.known += 1;
            self.trace.mix(record.text().as_bytes());
            self.trace.say(self.now, format_args!("log {}", record.text()));
            self.audit.record(&record, &self.agents, &mut self.sometimes);
        }
    }

    /// Sends a request to a broker, through whatever lies between.
    fn send(&mut self, from: Party, order: Order, broker: usize, advert: Option<usize>) -> u64 {
        self.calls += 1;
        let call = Call { number: self.calls, from, order, floor: self.audit.told(), advert };
        let call = Arc::new(call);
        self.audit.sent(&call);
        self.trace.say(self.now, format_args!("{from:?} → broker {broker}: {:?}", call.order));
        for delay in self.fate_of_message(from, broker) {
            self.after(delay, Task::ToBroker { broker, call: Arc::clone(&call) });
        }
        self.calls
    }

    /// The delays of all copies of a message that arrive.
    fn fate_of_message(&mut self, party: Party, broker: usize) -> Vec<u64> {
        let net = if self.healing { crate::setup::Net::default() } else { self.setup.net };
        let cluster = match party {
            Party::Agent(agent) => Some(agent),
            Party::Client(request) => self.requests.get(request).map(|request| request.cluster),
            Party::Operator => None,
        };
        let cut = cluster.and_then(|cluster| self.cuts.get(&(cluster, broker)));
        if cut.is_some_and(|until| *until > self.now) || self.net.chance(net.drop) {
            return vec![];
        }
        let copies = if self.net.chance(net.double) { 2 } else { 1 };
        let mut delay = || {
            let slow = self.net.chance(net.slow);
            self.net.between(1, if slow { 20_000 } else { 30 })
        };
        (0..copies).map(|_| delay()).collect()
    }

    /// Something reached a cluster.
    fn hear(&mut self, call: &Ticket, heard: Heard) {
        self.ops += 1;
        self.trace.number(call.number);
        match call.from {
            Party::Agent(agent) => self.agent_hears(agent, call, heard),
            Party::Client(request) => self.client_hears(request, call, heard),
            Party::Operator => {}
        }
    }

    fn fail(&mut self, invariant: &'static str, found: String) {
        self.audit.fail(invariant, found);
    }
}
