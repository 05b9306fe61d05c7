//! After a restore: what was promised since the backup is forgotten, and nobody lends before it has
//! reported what it keeps, or an operator vouched for it.

use std::collections::BTreeMap;

use sublet_core::event::{Event, Note};
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::reservation::{Actor, Ask, Phase, Reason};
use sublet_core::time::Time;
use sublet_log::{Record, Writer};

use super::phase::{counts, is_over};
use super::shadow::Life;
use super::{Amounts, Auditor, Scene, amounts, larger, less, plus};
use crate::sometimes::Sometimes;
use crate::world::Agent;

impl Auditor {
    /// The log was restored to these records: everybody begins again with them, and nothing that
    /// was told since the backup is owed any more.
    pub(crate) fn restored(&mut self, records: &[Record], agents: &[Agent]) {
        let promised = self.what_runs(agents);
        let fresh = Self::new(&self.policy);
        let kept = std::mem::replace(self, fresh);
        self.now_ms = kept.now_ms;
        let mut ignored = Sometimes::default();
        for record in records {
            self.record(record, &[], &mut ignored);
        }
        // What was judged before is not judged again.
        self.violation = kept.violation;
        // What was already being taken down in the backup is not brought back.
        let ends = |id: &ReservationId| {
            self.lives.get(id).is_some_and(|l| l.phase == Phase::Releasing || is_over(l.phase))
        };
        self.promised = promised.into_iter().filter(|(id, _)| !ends(id)).collect();
    }

    /// What clusters keep for others, of what was to be kept.
    fn what_runs(&self, agents: &[Agent]) -> BTreeMap<ReservationId, ClusterId> {
        let runs = |id: &ReservationId, here: &ClusterId| {
            let known = self.lives.get(id).is_some_and(|life| {
                matches!(life.phase, Phase::Reserved | Phase::Active)
                    && life.provider.as_ref() == Some(here)
            });
            known || self.promised.get(id) == Some(here)
        };
        let kept = agents.iter().filter(|agent| !agent.old);
        let kept = kept.flat_map(|agent| agent.slices.keys().map(|id| (*id, agent.name.clone())));
        kept.filter(|(id, here)| runs(id, here)).collect()
    }

    /// I10: once a provider has reported, all that ran there at the restore lives there.
    fn judge_promises(&mut self, cluster: &ClusterId, sometimes: &mut Sometimes) {
        let mut here = self.promised.iter().filter(|(_, provider)| *provider == cluster).peekable();
        if here.peek().is_some() {
            sometimes.hit("what ran at a restore was reported");
        }
        let lost = here.find(|(id, _)| {
            !self.lives.get(id).is_some_and(|life| {
                matches!(life.phase, Phase::Reserved | Phase::Active)
                    && life.provider.as_ref() == Some(cluster)
            })
        });
        let lost = lost.map(|(id, _)| format!("{id} ran on {cluster}: {:?}", self.lives.get(id)));
        if let Some(lost) = lost {
            self.fail("I10", lost);
        }
    }

    /// I10: what ran at the restore ends for a reason that was given since, and not because the backup
    /// did not know that it ran.
    pub(super) fn ends_promise(&mut self, id: ReservationId, reason: Reason) {
        let promised = self.promised.remove(&id);
        let unknown = matches!(reason, Reason::NeverActivated | Reason::WaitOver);
        self.expect(!(unknown && promised.is_some()), "I10", || {
            format!("{id} ran on {promised:?} at the restore and ends as {reason:?}")
        });
    }

    /// Must this cluster report before it lends?
    pub(super) fn awaits(&self, cluster: &ClusterId) -> bool {
        self.reported.as_ref().is_some_and(|reported| !reported.contains_key(cluster))
    }

    /// The log says that it was restored.
    pub(super) fn forgot(&mut self, sometimes: &mut Sometimes) {
        sometimes.hit("restored");
        self.reported = Some(BTreeMap::new());
        self.vouched.clear();
        self.listened = self.time;
        let waits = |id: &&ReservationId| {
            self.lives.get(id).is_some_and(|life| life.phase == Phase::Pending)
        };
        self.doubted = self.live.iter().filter(waits).copied().collect();
    }

    /// A broker can be spoken to from now on.
    pub(super) fn listens(&mut self, now: Time) {
        self.listened = self.listened.max(now);
    }

    /// Until when one that waits is held back, because it may have been granted since the backup:
    /// whoever has it and has not said so by then is inactive.
    pub(super) fn held_back_until(&self, id: ReservationId) -> Option<Time> {
        self.doubted
            .contains(&id)
            .then_some(self.listened)?
            .checked_add(self.policy.silence.stale_after)
    }

    /// A cluster may lend again: it has reported, or somebody vouched for it, who need not be right.
    pub(super) fn reconciled(
        &mut self,
        cluster: &ClusterId,
        note: &Note,
        sometimes: &mut Sometimes,
    ) {
        if matches!(note.by, Actor::Cluster(_)) {
            self.vouched.remove(cluster);
            self.judge_promises(cluster, sometimes);
        } else if self.awaits(cluster) {
            self.vouched.insert(cluster.clone());
        }
        if let Some(reported) = &mut self.reported {
            reported.entry(cluster.clone()).or_insert(self.time);
        }
    }

    /// When something could end for its time: not before its provider has reported.
    pub(super) fn due(&self, id: ReservationId, life: &Life) -> Option<Time> {
        let deadline = life.deadline()?;
        if life.phase == Phase::Pending {
            return Some(self.held_back_until(id).map_or(deadline, |until| until.max(deadline)));
        }
        let (Some(provider), Some(reported)) = (&life.provider, &self.reported) else {
            return Some(deadline);
        };
        reported.get(provider).map(|at| deadline.max(*at))
    }

    /// I10: only what a provider reports after a restore is adopted, as it reported it.
    pub(super) fn adopted(&mut self, event: &Event, scene: &mut Scene<'_>) {
        let Event::Adopted { id, requester, provider, amounts: taken, generation, expires_at } =
            event
        else {
            return;
        };
        scene.sometimes.hit("adopted after a restore");
        let kept = amounts(taken);
        let reported = self.has_reported(scene.writer, provider, (*id, kept));
        self.expect(reported, "I10", || format!("{id} is adopted, and {provider} has it not"));
        let awaits = self.awaits(provider) || self.vouched.contains(provider);
        self.expect(awaits, "I10", || format!("{id} is adopted on {provider} out of nothing"));
        let old = self.lives.get(id).cloned();
        let foreign = old.as_ref().is_some_and(|life| {
            let runs = matches!(life.phase, Phase::Pending | Phase::Reserved | Phase::Active);
            let here = life.provider.as_ref().is_none_or(|known| known == provider);
            !(runs && here && life.requester == *requester && life.generation < generation.0)
        });
        self.expect(!foreign, "I6", || format!("{id} is adopted over {old:?}"));
        let ask = Ask { resources: taken.clone(), ..Ask::default() };
        let mut life = old.unwrap_or_else(|| self.newborn(requester, ask));
        let before = if counts(life.phase) { life.held } else { Amounts::default() };
        life.held = larger(before, kept);
        (life.amounts, life.phase) = (kept, Phase::Active);
        (life.provider, life.expires) = (Some(provider.clone()), *expires_at);
        (life.generation, life.acknowledged) = (generation.0, 0);
        (life.activate_by, life.changed) = (None, self.time);
        life.issued_ms = self.now_ms;
        life.remember(self.revision);
        let granted = self.granted.entry(provider.clone()).or_default();
        *granted = plus(*granted, less(life.held, before));
        self.live.insert(*id);
        self.lives.insert(*id, life);
    }

    fn has_reported(
        &self,
        writer: Writer,
        provider: &ClusterId,
        (id, kept): (ReservationId, Amounts),
    ) -> bool {
        let ear = self.ears.get(&(writer, provider.clone()));
        let heard = ear.into_iter().flat_map(|ear| &ear.lately);
        let mut adverts = heard.filter_map(|(_, at)| self.adverts.get(*at));
        adverts
            .any(|advert| advert.grants.iter().any(|(one, as_is, _)| (*one, *as_is) == (id, kept)))
    }

    /// A reservation at its beginning, which has no key and has not been granted.
    pub(super) fn newborn(&self, requester: &ClusterId, ask: Ask) -> Life {
        Life {
            requester: requester.clone(),
            key: None,
            ask,
            priority: 0,
            arrival: self.arrivals,
            born: self.revision,
            phase: Phase::Pending,
            provider: None,
            amounts: Amounts::default(),
            held: Amounts::default(),
            generation: 0,
            acknowledged: 0,
            until: self.time,
            expires: None,
            activate_by: None,
            changed: self.time,
            reason: None,
            hindrance: None,
            confirmation: None,
            issued_ms: self.now_ms,
            versions: Vec::new(),
        }
    }
}
