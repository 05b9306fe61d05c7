//! The auditor's own reading of the log: plain maps, one entry per reservation, no sums.

use sublet_core::event::{Event, Subject};
use sublet_core::id::{ClusterId, Key, ReservationId, Revision};
use sublet_core::reservation::{Actor, Ask, Confirmation, Hindrance, Phase, Reason};
use sublet_core::time::Time;
use sublet_log::Writer;

use super::phase::{counts, is_over, legal, outcome};
use super::{Amounts, Auditor, Scene, amounts, larger, less, limits, plus};
use crate::sometimes::Sometimes;

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bond {
    Life(ReservationId),
    Tomb(Time),
}

/// What operators decided about a cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub(super) cordoned: bool,
    pub(super) draining: bool,
    pub(super) lost: bool,
    pub(super) cap: Option<Amounts>,
}

/// How a reservation stood after some event, as anybody may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) phase: Phase,
    pub(super) provider: Option<ClusterId>,
    pub(super) amounts: Amounts,
    pub(super) expires: Option<Time>,
}

/// One reservation.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) requester: ClusterId,
    /// What was adopted has none.
    pub(super) key: Option<Key>,
    pub(super) ask: Ask,
    pub(super) priority: i32,
    pub(super) arrival: u64,
    pub(super) born: Revision,
    pub(super) phase: Phase,
    pub(super) provider: Option<ClusterId>,
    pub(super) amounts: Amounts,
    pub(super) held: Amounts,
    pub(super) generation: u32,
    pub(super) acknowledged: u32,
    pub(super) until: Time,
    pub(super) expires: Option<Time>,
    pub(super) activate_by: Option<Time>,
    pub(super) changed: Time,
    pub(super) reason: Option<Reason>,
    pub(super) hindrance: Option<Box<Hindrance>>,
    pub(super) confirmation: Option<Confirmation>,
    /// When its newest instruction was issued.
    pub(super) issued_ms: u64,
    pub(super) versions: Vec<(Revision, Version)>,
}

impl Life {
    pub(super) fn deadline(&self) -> Option<Time> {
        match self.phase {
            Phase::Pending => Some(self.until),
            Phase::Reserved => self.activate_by.into_iter().chain(self.expires).min(),
            Phase::Active => self.expires,
            _ => None,
        }
    }

    pub(super) fn remember(&mut self, revision: Revision) {
        let (phase, provider) = (self.phase, self.provider.clone());
        let version = Version { phase, provider, amounts: self.amounts, expires: self.expires };
        self.versions.push((revision, version));
    }
}

impl Auditor {
    pub(super) fn fold(&mut self, event: &Event, scene: &mut Scene<'_>) {
        match event {
            Event::Requested { .. } => self.requested(event),
            Event::KeyReleased { requester, key } => {
                scene.sometimes.hit("tombstone set");
                let bond = (requester.clone(), key.clone());
                let old = self.keys.insert(bond, Bond::Tomb(self.time));
                self.expect(old.is_none(), "I5", || format!("{key} of {requester} was bound"));
            }
            Event::Forgotten { reservations, tombstones } => {
                scene.sometimes.hit("memory of keys given up");
                self.forgotten(reservations, tombstones);
            }
            Event::Adopted { .. } => self.adopted(event, scene),
            Event::Restored { .. } => self.forgot(scene.sometimes),
            _ => match event.reservation() {
                Some(id) => self.moved(id, event, scene),
                None => self.operated(event, scene.writer, scene.sometimes),
            },
        }
    }

    fn requested(&mut self, event: &Event) {
        let Event::Requested { id, requester, key, ask, until, priority } = event else { return };
        let fair = *priority == ask.priority.min(self.priority_max(requester));
        self.expect(fair, "W2", || format!("{id} has priority {priority}: {ask:?}"));
        self.arrivals += 1;
        let bond = (requester.clone(), key.clone());
        let refused = self.refused.contains(&bond);
        self.expect(!refused, "I4", || format!("{key} of {requester} was refused and exists"));
        let old = self.keys.insert(bond, Bond::Life(*id));
        self.expect(old.is_none(), "I5", || format!("{key} of {requester} twice: {old:?}, {id}"));
        let revoked = self.revoked.contains(requester);
        self.expect(!revoked, "I1", || format!("{requester} is revoked and gets {id}"));
        let mut life = self.newborn(requester, ask.clone());
        (life.key, life.priority, life.until) = (Some(key.clone()), *priority, *until);
        life.remember(self.revision);
        self.live.insert(*id);
        let old = self.lives.insert(*id, life);
        self.expect(old.is_none(), "I6", || format!("{id} exists twice"));
    }

    fn forgotten(&mut self, reservations: &[ReservationId], tombstones: &[(ClusterId, Key)]) {
        let retention = self.policy.key_retention;
        let now = self.time;
        let kept = |since: Time| since.checked_add(retention).is_none_or(|end| end > now);
        for id in reservations {
            let Some(life) = self.lives.remove(id) else {
                self.fail("I6", format!("{id} is forgotten and was not known"));
                continue;
            };
            let early = !is_over(life.phase) || kept(life.changed);
            self.expect(!early, "I5", || format!("{id} and its key are forgotten too early"));
            self.live.remove(id);
            let Some(key) = life.key else { continue };
            let bond = (life.requester, key);
            self.acked.remove(&bond);
            self.keys.remove(&bond);
        }
        for bond in tombstones {
            let old = self.keys.remove(bond);
            let early = !matches!(old, Some(Bond::Tomb(since)) if !kept(since));
            self.expect(!early, "I5", || format!("tombstone {bond:?} is forgotten too early"));
        }
    }

    fn moved(&mut self, id: ReservationId, event: &Event, scene: &mut Scene<'_>) {
        let Some(mut life) = self.lives.get(&id).cloned() else {
            return self.fail("I6", format!("{id} is not known: {event:?}"));
        };
        let phase = life.phase;
        self.expect(legal(event, phase), "I6", || format!("{id} is {phase}: {event:?}"));
        self.judge_taking(&life, event, scene);
        self.judge_end(id, &life, event, scene);
        let before = if counts(life.phase) { life.held } else { Amounts::default() };
        let number = life.generation;
        self.change(&mut life, event, scene.sometimes);
        if life.generation != number {
            life.issued_ms = self.now_ms;
        }
        life.changed = self.time;
        life.remember(self.revision);
        let after = if counts(life.phase) { life.held } else { Amounts::default() };
        if let Some(provider) = &life.provider {
            let granted = self.granted.entry(provider.clone()).or_default();
            *granted = plus(*granted, less(after, before));
            let returned = self.returned.entry(provider.clone()).or_default();
            *returned = plus(*returned, less(before, after));
        }
        if is_over(life.phase) {
            self.live.remove(&id);
        }
        self.lives.insert(id, life);
    }

    fn change(&mut self, life: &mut Life, event: &Event, sometimes: &mut Sometimes) {
        match event {
            Event::Granted { provider, amounts: granted, expires_at, activate_by, .. } => {
                if life.born < self.revision {
                    sometimes.hit("waiting request granted");
                }
                life.phase = Phase::Reserved;
                life.provider = Some(provider.clone());
                life.amounts = amounts(granted);
                life.held = life.amounts;
                (life.expires, life.activate_by) = (*expires_at, *activate_by);
                life.generation = 1;
            }
            Event::Activated { .. } => {
                sometimes.hit("activated");
                life.phase = Phase::Active;
            }
            Event::Renewed { expires_at, .. } => {
                sometimes.hit("renewed");
                life.expires = *expires_at;
                life.generation += 1;
            }
            Event::Resized { amounts: wanted, .. } => {
                let wanted = amounts(wanted);
                let grows = less(wanted, life.held) != Amounts::default();
                sometimes.hit(if grows { "grew" } else { "shrunk" });
                life.amounts = wanted;
                life.held = larger(life.held, wanted);
                life.generation += 1;
            }
            Event::Acknowledged { generation, .. } => {
                life.acknowledged = generation.0;
                if generation.0 == life.generation && life.phase != Phase::Releasing {
                    if life.held != life.amounts {
                        sometimes.hit("shrink confirmed");
                    }
                    life.held = life.amounts;
                }
            }
            Event::Ending { reason, hindrance, .. } => {
                life.phase = Phase::Releasing;
                life.hindrance.clone_from(hindrance);
                life.reason = Some(*reason);
                life.generation += 1;
            }
            Event::Ended { reason, confirmation, hindrance, .. } => {
                // Of one that was being taken down, it was said before.
                if life.phase != Phase::Releasing {
                    life.hindrance.clone_from(hindrance);
                }
                life.phase = outcome(life.reason.unwrap_or(*reason));
                life.confirmation = Some(*confirmation);
            }
            _ => {}
        }
    }

    fn operated(&mut self, event: &Event, writer: Writer, sometimes: &mut Sometimes) {
        match event {
            Event::Revoked { subject: Subject::Cluster(cluster), .. } => {
                self.revoked.insert(cluster.clone());
            }
            Event::Reinstated { subject: Subject::Cluster(cluster), .. } => {
                self.revoked.remove(cluster);
            }
            _ => {}
        }
        let Some(cluster) = event.cluster() else { return };
        if let Event::Reconciled { note, .. } = event {
            self.reconciled(cluster, note, sometimes);
        }
        if let Event::Lost { note, .. } = event
            && note.by == Actor::Broker
        {
            self.judge_silence(cluster, writer);
        }
        let standing = self.standings.entry(cluster.clone()).or_default();
        match event {
            Event::Cordoned { drain, .. } => {
                sometimes.hit("cordoned");
                (standing.cordoned, standing.draining) = (true, *drain);
            }
            Event::Uncordoned { .. } => (standing.cordoned, standing.draining) = (false, false),
            Event::Capped { limits: cap, .. } => standing.cap = limits(cap),
            Event::Lost { .. } => {
                sometimes.hit("declared lost");
                standing.lost = true;
            }
            Event::Returned { .. } => {
                sometimes.hit("lost and returned");
                standing.lost = false;
            }
            _ => {}
        }
    }
}
