//! What leaves a broker: answers and lists.

use std::sync::{Arc, Weak};

use sublet_broker::engine::{Answer, Failure, Settled};
use sublet_core::id::{ClusterId, ReservationId, Revision};
use sublet_core::instruction::{Instruction, Side};
use sublet_core::plan::{Command, Refusal, Reply, Which};
use sublet_core::reservation::{Actor, Phase, Reservation};
use sublet_log::Writer;

use super::reference::Expected;
use super::shadow::{Bond, Version};
use super::{Auditor, amounts};
use crate::message::{Call, Order, Ticket};
use crate::sometimes::Sometimes;

impl Auditor {
    /// A client wrote down that it is about to send this.
    pub(crate) fn sent(&mut self, call: &Arc<Call>) {
        if let Some((requester, key)) = call.key() {
            let bond = (requester.clone(), key.clone());
            let attempts = self.attempts.entry(bond.clone()).or_default();
            attempts.retain(|attempt| attempt.strong_count() > 0);
            attempts.push(Arc::downgrade(call));
            self.refused.remove(&bond);
        }
    }

    /// An answer leaves a broker.
    pub(crate) fn answers(
        &mut self,
        (writer, call): (Writer, &Ticket),
        answer: &Answer,
        durable: Revision,
        sometimes: &mut Sometimes,
    ) {
        let debt = self.pays(writer, call);
        let expected = self.expected.remove(&call.number).map(|(_, expected)| expected);
        match answer {
            Ok(settled) => {
                let revision = settled.revision;
                self.expect(revision <= durable, "I3", || {
                    format!("{:?} was acknowledged before it was durable", call.order)
                });
                self.judge_order(call, revision);
                self.told = self.told.max(revision);
                self.judge_reply(call, settled, expected, sometimes);
            }
            Err(Failure::Refused(refusal)) => {
                if let Some(debt) = debt {
                    self.judge_decided(call, &debt, durable);
                }
                self.judge_refusal(call, refusal, expected, sometimes);
            }
            Err(_) => {}
        }
    }

    /// I14: nobody sees less than what anybody had been told of before they asked.
    pub(super) fn judge_order(&mut self, call: &Ticket, revision: Revision) {
        let floor = call.floor;
        self.expect(revision >= floor, "I14", || {
            format!("{:?} was decided at {revision}, and {floor} had been told of", call.order)
        });
    }

    fn judge_reply(
        &mut self,
        call: &Ticket,
        settled: &Settled,
        expected: Option<Expected>,
        sometimes: &mut Sometimes,
    ) {
        let Reply::Reservation { id, created, .. } = &settled.reply else { return };
        let Some(reservation) = &settled.reservation else {
            return self.fail("I3", format!("{id} was acknowledged and is not there"));
        };
        self.judge_version(*id, settled.revision, reservation);
        if let Some(cluster) = caller(call) {
            let grant = reservation.grant();
            let side = reservation.requester == *cluster
                || grant.is_some_and(|grant| grant.provider == *cluster);
            self.expect(side, "I13", || format!("{cluster} is told about {id}"));
        }
        let Some((requester, key)) = call.key() else { return };
        sometimes.hit(match (created, reservation.phase()) {
            (true, Phase::Pending) => "waited",
            (true, _) => "granted at once",
            (false, _) => "repeat answered with the same reservation",
        });
        let bond = (requester.clone(), key.clone());
        let before = self.acked.get(&bond).copied();
        let same = before.is_none_or(|before| before == *id);
        // An answer that comes after its key was forgotten binds nothing any more.
        if self.lives.contains_key(id) {
            self.acked.insert(bond, *id);
        }
        self.expect(same, "I5", || format!("{key} of {requester} is {before:?} and {id}"));
        let provider = reservation.grant().map(|grant| grant.provider.clone());
        let as_expected = match (&expected, &provider) {
            (Some(Expected::Grant(any)), Some(provider)) => any.contains(provider),
            (Some(Expected::Nobody), provider) => provider.is_none(),
            (Some(Expected::Grant(_)), None) => false,
            (None, _) => true,
        };
        self.expect(!created || as_expected, "I26", || {
            format!("{id} went to {provider:?}, expected {expected:?}")
        });
    }

    /// The answer shows the reservation as the log has it at that revision.
    fn judge_version(&mut self, id: ReservationId, revision: Revision, told: &Reservation) {
        let Some(life) = self.lives.get(&id) else { return };
        let grant = told.grant();
        let version = Version {
            phase: told.phase(),
            provider: grant.map(|grant| grant.provider.clone()),
            amounts: grant.map(|grant| amounts(&grant.amounts)).unwrap_or_default(),
            expires: grant.and_then(|grant| grant.expires_at),
        };
        let before = life.versions.iter().rev().find(|(at, _)| *at < revision);
        let within = life.versions.iter().filter(|(at, _)| *at == revision);
        let matches = before.into_iter().chain(within).any(|(_, known)| *known == version);
        let born = life.born <= revision;
        self.expect(matches && born, "I14", || {
            format!("{id} at {revision} was told as {version:?}")
        });
    }

    fn judge_refusal(
        &mut self,
        call: &Ticket,
        refusal: &Refusal,
        expected: Option<Expected>,
        sometimes: &mut Sometimes,
    ) {
        if let Some(branch) = branch_of(call, refusal) {
            sometimes.hit(branch);
        }
        if *refusal == Refusal::NotFound
            && let Some((requester, id)) = about(call)
        {
            let life = self.lives.get(&id).filter(|life| life.requester == *requester);
            let known = life.is_some_and(|life| life.born <= call.floor);
            self.expect(!known, "I14", || format!("{id} is told to {requester} as not found"));
        }
        let Some((requester, key)) = call.key() else { return };
        if let Refusal::KeyReused(id) = refusal {
            let other = self.lives.get(id).is_some_and(|life| life.requester != *requester);
            self.expect(!other, "I13", || format!("{requester} is told of {id} under {key}"));
        }
        if matches!(refusal, Refusal::KeyReused(_) | Refusal::KeyReleased) {
            return;
        }
        let bond = (requester.clone(), key.clone());
        let exists = match self.keys.get(&bond) {
            Some(Bond::Life(id)) => self.lives.get(id).is_some_and(|life| life.born <= call.floor),
            Some(Bond::Tomb(_)) | None => false,
        };
        self.expect(!exists, "I4", || format!("{key} of {requester} exists and was refused"));
        let missed = matches!(refusal, Refusal::NobodyFits(_) | Refusal::OnlySuspects(_))
            && matches!(expected, Some(Expected::Grant(_)));
        self.expect(!missed, "I26", || format!("{requester} was refused, expected {expected:?}"));
        let others = self.attempts.get(&bond).into_iter().flatten();
        let outstanding: usize = others.map(Weak::strong_count).sum();
        if outstanding <= 1 && !self.keys.contains_key(&bond) {
            self.refused.insert(bond);
        }
    }

    /// A list of instructions leaves a broker.
    pub(crate) fn lists(
        &mut self,
        (writer, call): (Writer, &Ticket),
        revision: Revision,
        list: &[Instruction],
        durable: Revision,
    ) {
        self.pays(writer, call);
        self.judge_order(call, revision);
        self.judge_shown(revision, durable);
        if let Order::List(cluster, _) = &call.order {
            self.judge_instructions(cluster, list);
        }
    }

    pub(super) fn judge_instructions(&mut self, cluster: &ClusterId, list: &[Instruction]) {
        for instruction in list {
            let Some(life) = self.lives.get(&instruction.reservation) else { continue };
            let holds = match instruction.side {
                Side::Provider => life.provider.as_ref() == Some(cluster),
                Side::Requester => life.requester == *cluster,
            };
            let number = instruction.generation.0 <= life.generation;
            let id = instruction.reservation;
            self.expect(holds, "I13", || {
                format!("{cluster} is told of {id}, which is not its own")
            });
            self.expect(number, "I9", || format!("{id} has no {:?}", instruction.generation));
        }
    }
}

/// The cluster that asks.
fn caller(call: &Call) -> Option<&ClusterId> {
    let Order::Command(command) = &call.order else { return None };
    match command {
        Command::Reserve { requester, .. } => Some(requester),
        Command::Activate { by, .. }
        | Command::Fail { by, .. }
        | Command::Acknowledge { by, .. }
        | Command::Release { by: Actor::Cluster(by), .. }
        | Command::Renew { by: Actor::Cluster(by), .. }
        | Command::Resize { by: Actor::Cluster(by), .. } => Some(by),
        _ => None,
    }
}

/// The reservation that a requester asks about.
fn about(call: &Call) -> Option<(&ClusterId, ReservationId)> {
    let Order::Command(command) = &call.order else { return None };
    let id = match command {
        Command::Activate { id, .. }
        | Command::Fail { id, .. }
        | Command::Renew { id, .. }
        | Command::Resize { id, .. }
        | Command::Release { which: Which::Id(id), .. } => *id,
        _ => return None,
    };
    Some((caller(call)?, id))
}

fn branch_of(call: &Call, refusal: &Refusal) -> Option<&'static str> {
    let resize = matches!(&call.order, Order::Command(Command::Resize { .. }));
    Some(match refusal {
        Refusal::NobodyFits(_) if resize => "growth refused",
        Refusal::NobodyFits(_) => "refused because nobody fits",
        Refusal::OnlySuspects(_) => "refused because only suspects fit",
        Refusal::KeyReused(_) => "key reused for another request",
        Refusal::KeyReleased => "tombstone hit",
        Refusal::InUse(_) => "in use",
        Refusal::Revoked => "revoked requester refused",
        _ => return None,
    })
}
