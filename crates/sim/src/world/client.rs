//! A requester: asks under a key, tries again with the same key at other brokers, gives up only by
//! releasing the key, and uses what it gets.
//!
//! An old one sends no key, so the edge makes one per POST; it neither activates nor releases.

use sublet_broker::engine::{Failure, Settled};
use sublet_core::decision::{Constraint, Match, Strategy};
use sublet_core::id::{ClusterId, Key, ReservationId};
use sublet_core::plan::{Command, Refusal, Reply, Which};
use sublet_core::reservation::{Actor, Ask, Hindrance, Phase};
use sublet_core::resources::Resources;
use sublet_core::time::Span;

use super::agent::{ZONE, fpgas, with_fpgas};
use super::{Task, World};
use crate::dice::Dice;
use crate::message::{Heard, Order, Party, Ticket};

/// After so many attempts without an answer a client changes its plan.
const TRIES_MAX: u32 = 5;
const TIMEOUT_MS: u64 = 2_000;

/// What a requester is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Ask,
    Abandon,
    Activate,
    Use,
    Renew,
    Resize,
    Fail,
    Release,
    Over,
}

/// One need of a cluster, from the first question to the end.
pub(super) struct Request {
    pub(super) cluster: usize,
    pub(super) stage: Stage,
    /// Since when it tries without a definite answer.
    pub(super) since_ms: Option<u64>,
    key: Key,
    ask: Ask,
    old: bool,
    dice: Dice,
    call: u64,
    tries: u32,
    /// Some attempt got no answer, so it may still be on its way.
    unknown: bool,
    id: Option<ReservationId>,
    ends: bool,
    uses: u64,
}

impl Request {
    /// Nothing comes of it any more.
    pub(super) fn forget(&mut self) {
        (self.stage, self.call) = (Stage::Over, 0);
    }
}

impl World {
    /// A cluster needs something.
    pub(super) fn ask(&mut self, mut dice: Dice) {
        let cluster = dice.index(self.agents.len());
        let old = self.agents.get(cluster).is_some_and(|agent| agent.old);
        let ask = self.draw_ask(&mut dice, old);
        self.need(cluster, ask, dice);
    }

    /// A cluster needs many things at once and waits for them: more than one plan tries, so that
    /// they are tried in pieces.
    pub(super) fn crowd(&mut self, dice: &mut Dice) {
        let cluster = dice.index(self.agents.len());
        let count = if self.agents.get(cluster).is_some_and(|agent| agent.old) { 0 } else { 90 };
        for number in 0..dice.between(count / 2, count) {
            let mut dice = dice.fork(number);
            let ask = self.draw_ask(&mut dice, false);
            let wait = Some(Span::from_secs(dice.between(10, 60)));
            self.need(cluster, Ask { wait, ..ask }, dice);
        }
    }

    fn need(&mut self, cluster: usize, ask: Ask, mut dice: Dice) {
        let old = self.agents.get(cluster).is_some_and(|agent| agent.old);
        let uses = dice.below(4);
        // A few reuse a key for something else, which must be refused.
        let mine = self.requests.iter().filter(|request| request.cluster == cluster).count();
        let number = if dice.chance(10) { mine / 2 } else { mine };
        let Some(key) = new_key(number, 0) else { return };
        self.requests.push(Request {
            cluster,
            stage: Stage::Ask,
            since_ms: None,
            key,
            old,
            dice,
            call: 0,
            tries: 0,
            unknown: false,
            id: None,
            ends: ask.duration.is_some(),
            ask,
            uses,
        });
        self.turn(self.requests.len() - 1);
    }

    fn draw_ask(&self, dice: &mut Dice, old: bool) -> Ask {
        let pressure = self.setup.pressure;
        let mut resources =
            Resources::new(dice.between(1, 500 * pressure), dice.between(1, 2 * pressure) << 30);
        let target = dice.index(self.agents.len());
        let target = self.agents.get(target).filter(|_| dice.chance(150));
        // At the edge: exactly what one provider has left, or one more.
        if dice.chance(200)
            && let Some(room) = target.and_then(|target| self.audit.room(&target.name))
        {
            resources.cpu = room.cpu.max(1) + dice.below(2);
            resources.memory = room.memory.max(1);
        }
        if dice.chance(80) {
            resources.gpu = dice.between(1, 2);
        }
        let mut extended = dice.fork(2);
        if extended.chance(100) {
            resources = with_fpgas(resources, extended.between(1, 3));
        }
        if dice.chance(4) {
            resources.memory = u64::MAX - dice.below(3);
        }
        let strategy = dice.chance(200).then(|| [Strategy::Binpack, Strategy::Cost][dice.index(2)]);
        let duration = (old || dice.chance(750)).then(|| Span::from_secs(dice.between(3, 240)));
        let wait = (!old && dice.chance(300)).then(|| Span::from_secs(dice.between(2, 60)));
        let priority = i32::try_from(dice.below(3)).unwrap_or(0);
        let target = target.map(|target| target.name.clone());
        let constraints = if old { vec![] } else { draw_constraints(&mut dice.fork(1)) };
        Ask {
            resources,
            constraints,
            priority,
            target,
            strategy,
            duration,
            wait,
            activates: !old,
            ..Ask::default()
        }
    }

    /// A requester does what its stage says.
    pub(super) fn turn(&mut self, at: usize) {
        let count = self.requests.len();
        let brokers = self.setup.brokers;
        let Some(request) = self.requests.get_mut(at) else { return };
        let Some(agent) = self.agents.get(request.cluster) else { return };
        if request.old && request.tries > 0 {
            // The edge invents a key for each POST of an agent that sends none.
            request.key = new_key(count * 8 + at, request.tries).unwrap_or(request.key.clone());
        }
        let Some(command) = command(request, &agent.name) else { return };
        let broker = request.dice.index(brokers);
        let number = self.send(Party::Client(at), Order::Command(command), broker, None);
        if let Some(request) = self.requests.get_mut(at) {
            request.call = number;
            request.since_ms.get_or_insert(self.now);
        }
        self.after(TIMEOUT_MS, Task::Timeout { request: at, call: number });
    }

    pub(super) fn timed_out(&mut self, at: usize, call: u64) {
        if self.requests.get(at).is_some_and(|request| request.call == call) {
            self.unanswered(at, true);
        }
    }

    /// No definite answer: the same again, within bounds.
    fn unanswered(&mut self, at: usize, unknown: bool) {
        let Some(request) = self.requests.get_mut(at) else { return };
        request.unknown |= unknown;
        request.call = 0;
        request.tries += 1;
        let mut pause = request.dice.between(100, 1000) << request.tries.min(4);
        if request.tries >= TRIES_MAX {
            request.tries = 0;
            match request.stage {
                Stage::Ask if request.old => request.stage = Stage::Over,
                Stage::Ask => request.stage = Stage::Abandon,
                Stage::Release | Stage::Abandon => pause = 30_000,
                Stage::Over => {}
                _ => request.stage = Stage::Release,
            }
        }
        self.after(pause, Task::Turn { request: at });
    }

    pub(super) fn client_hears(&mut self, at: usize, call: &Ticket, heard: Heard) {
        let Some(request) = self.requests.get_mut(at) else { return };
        let Heard::Answer(answer) = heard else { return };
        if request.call != call.number {
            return;
        }
        request.call = 0;
        match answer {
            Ok(settled) => {
                request.since_ms = None;
                self.settled(at, &settled);
            }
            Err(Failure::Refused(refusal)) if !matches!(refusal, Refusal::OnlySuspects(_)) => {
                request.since_ms = None;
                self.refused(at, &refusal);
            }
            Err(Failure::Unknown) => self.unanswered(at, true),
            Err(_) => self.unanswered(at, false),
        }
    }

    fn refused(&mut self, at: usize, refusal: &Refusal) {
        let Some(request) = self.requests.get_mut(at) else { return };
        request.tries = 0;
        request.stage = match request.stage {
            Stage::Ask if request.unknown && !request.old && *refusal != Refusal::KeyReleased => {
                // An earlier attempt may still be on its way: nothing may come of it any more.
                Stage::Abandon
            }
            Stage::Resize => Stage::Use,
            Stage::Renew | Stage::Activate => Stage::Release,
            _ => Stage::Over,
        };
        let pause = request.dice.between(50, 2000);
        self.after(pause, Task::Turn { request: at });
    }

    fn settled(&mut self, at: usize, settled: &Settled) {
        let Some(request) = self.requests.get_mut(at) else { return };
        request.tries = 0;
        if let (Reply::Reservation { id, .. }, Some(reservation)) =
            (&settled.reply, &settled.reservation)
        {
            request.id = Some(*id);
            request.ends = reservation.grant().is_some_and(|grant| grant.expires_at.is_some());
            match reservation.phase() {
                Phase::Pending if request.stage == Stage::Ask => {
                    let pause = request.dice.between(1000, 5000);
                    return self.after(pause, Task::Turn { request: at });
                }
                Phase::Releasing | Phase::Released | Phase::Failed => request.stage = Stage::Over,
                _ => {}
            }
        }
        request.stage = next_stage(request);
        if request.stage == Stage::Use {
            request.uses = request.uses.saturating_sub(1);
            request.stage = after_use(request);
        }
        let pause = request.dice.between(50, 8000);
        self.after(pause, Task::Turn { request: at });
    }
}

/// Some must go to a place, or must not.
fn draw_constraints(dice: &mut Dice) -> Vec<Constraint> {
    let zone = vec![["north", "south"][dice.index(2)].to_owned()];
    let is = match dice.below(32) {
        0 | 1 => Match::In(zone),
        2 => Match::NotIn(zone),
        3 => Match::Exists,
        4 => Match::Absent,
        _ => return vec![],
    };
    vec![Constraint { label: ZONE.into(), is }]
}

fn next_stage(request: &mut Request) -> Stage {
    match request.stage {
        Stage::Ask if request.old => Stage::Over,
        Stage::Ask => match request.dice.below(100) {
            0..72 => Stage::Activate,
            72..80 => Stage::Fail,
            80..90 => Stage::Release,
            _ => Stage::Over,
        },
        Stage::Activate | Stage::Renew | Stage::Resize | Stage::Use => Stage::Use,
        Stage::Abandon | Stage::Fail | Stage::Release | Stage::Over => Stage::Over,
    }
}

fn after_use(request: &mut Request) -> Stage {
    if request.uses > 0 {
        return if request.dice.chance(450) { Stage::Renew } else { Stage::Resize };
    }
    match request.dice.below(100) {
        0..70 => Stage::Release,
        70..85 => Stage::Abandon,
        _ if request.ends => Stage::Over,
        _ => Stage::Release,
    }
}

fn new_key(number: usize, attempt: u32) -> Option<Key> {
    format!("k{number}-{attempt}").parse().ok()
}

/// What a requester sends in its stage.
fn command(request: &mut Request, cluster: &ClusterId) -> Option<Command> {
    let by = Actor::Cluster(cluster.clone());
    let key = request.key.clone();
    let id = request.id;
    Some(match request.stage {
        Stage::Over | Stage::Use => return None,
        Stage::Ask => Command::Reserve {
            requester: cluster.clone(),
            key,
            ask: request.ask.clone(),
            explain: false,
        },
        Stage::Abandon => Command::Release { by, which: Which::Key(cluster.clone(), key) },
        Stage::Activate => Command::Activate { by: cluster.clone(), id: id? },
        Stage::Fail => Command::Fail {
            by: cluster.clone(),
            id: id?,
            why: Hindrance::new("NoLiqo", "simulated"),
        },
        Stage::Release => Command::Release { by, which: Which::Id(id?) },
        Stage::Renew => {
            let duration = request.dice.chance(800).then(|| request.dice.between(3, 200));
            Command::Renew { by, id: id?, duration: duration.map(Span::from_secs) }
        }
        Stage::Resize => {
            let mut resources = request.ask.resources.clone();
            let factor = request.dice.between(2, 16);
            resources.cpu = (resources.cpu.saturating_mul(factor) / 8).max(1);
            resources.memory = (resources.memory / 8).saturating_mul(factor).max(1);
            if request.dice.chance(100) {
                let count = fpgas(&resources) + request.dice.below(2);
                resources = with_fpgas(resources, count.saturating_sub(request.dice.below(2)));
            }
            if request.dice.chance(10) {
                resources.cpu = u64::MAX;
            }
            Command::Resize { by, id: id?, resources }
        }
    })
}
