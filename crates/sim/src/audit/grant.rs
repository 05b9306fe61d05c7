//! What may be taken, and what may come back.

use sublet_core::event::{Basis, Event};
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::reservation::{Actor, Confirmation, Phase, Reason};
use sublet_core::time::Time;
use sublet_log::Writer;

use super::amounts::KINDS;
use super::market::Advert;
use super::phase::counts;
use super::shadow::Life;
use super::waiting::meets;
use super::{Amounts, Auditor, Scene, amounts, exceeds, less, plus};
use crate::world::Agent;

impl Auditor {
    /// I1: capacity is taken only where it is free, and only on a ground that holds.
    pub(super) fn judge_taking(&mut self, life: &Life, event: &Event, scene: &mut Scene<'_>) {
        let (provider, more, basis) = match event {
            Event::Granted { id, provider, amounts: granted, basis, .. } => {
                let doubted = self.held_back_until(*id).is_some_and(|until| until > self.time);
                self.expect(!doubted, "I1", || format!("{id} may be granted elsewhere already"));
                let asked = amounts(&life.ask.resources);
                let exact = amounts(granted) == asked;
                self.expect(exact, "I1", || format!("{granted:?} granted, {asked:?} asked"));
                (provider.clone(), amounts(granted), basis)
            }
            Event::Resized { amounts: wanted, basis, .. } => {
                let more = less(amounts(wanted), life.held);
                let Some(provider) = life.provider.clone() else { return };
                (provider, more, basis)
            }
            _ => return,
        };
        if more == Amounts::default() {
            return;
        }
        let itself = life.requester == provider;
        self.expect(!itself, "I1", || format!("{provider} lends to itself"));
        self.judge_standing(&provider, more);
        self.judge_policy(&life.requester, &provider, more);
        if let Some(advert) = self.judge_ground(&provider, more, basis, scene) {
            let labelled = !matches!(event, Event::Granted { .. }) || meets(&life.ask, &advert);
            self.expect(labelled, "I1", || format!("{provider} lacks labels of {:?}", life.ask));
            if !life.ask.constraints.is_empty() {
                scene.sometimes.hit("granted where a label was asked for");
            }
            self.judge_turn(life, event, (&provider, &advert), scene.sometimes);
        }
        self.judge_truth(&provider, scene.agents);
    }

    fn judge_standing(&mut self, provider: &ClusterId, more: Amounts) {
        let standing = self.standings.get(provider).cloned().unwrap_or_default();
        self.expect(!standing.cordoned, "I1", || format!("{provider} is cordoned"));
        let revoked = self.revoked.contains(provider);
        self.expect(!revoked, "I1", || format!("{provider} is revoked"));
        self.expect(!standing.lost, "I1", || format!("{provider} is lost"));
        let awaits = self.awaits(provider);
        self.expect(!awaits, "I1", || format!("{provider} has not reported since the restore"));
        let total = plus(self.held(provider), more);
        let over = standing.cap.is_some_and(|cap| exceeds(more, total, cap));
        self.expect(!over, "I1", || format!("{provider} lends {total:?}, above its cap"));
    }

    /// What the operator decided beforehand.
    fn judge_policy(&mut self, requester: &ClusterId, provider: &ClusterId, more: Amounts) {
        let permitted = self.permits(requester, provider);
        self.expect(permitted, "I1", || format!("{requester} may not borrow from {provider}"));
        let within = !self.exceeds(requester, more);
        self.expect(within, "I1", || format!("{requester} gets {more:?}, beyond its allowance"));
    }

    fn judge_ground(
        &mut self,
        provider: &ClusterId,
        more: Amounts,
        basis: &Basis,
        scene: &mut Scene<'_>,
    ) -> Option<Advert> {
        let writer = scene.writer;
        let known = self.graces.contains_key(&writer);
        let Some(advert) = self.ground(provider, basis, writer) else {
            // A broker that wrote this before a truncation is judged no more.
            self.expect(!known, "I11", || {
                format!("{provider}: {basis:?} is not the newest that {writer:?} had heard")
            });
            return None;
        };
        let age = self.time.since(basis.received_at);
        let fresh = age < basis.suspect_after && age < self.policy.silence.stale_after;
        self.expect(fresh, "I1", || format!("{provider} was silent for {age:?}"));
        let (taken, ghosts) = self.taken(provider, &advert);
        if ghosts {
            scene.sometimes.hit("ghost counted");
        }
        let (total, has) = (plus(taken, more), advert.allocatable);
        let over = exceeds(more, total, has);
        self.expect(!over, "I1", || {
            format!("{provider} has {has:?}, and {total:?} is taken with {more:?}")
        });
        let owes = self.owes_more_than_it_has(provider, &advert);
        self.expect(!owes, "I12", || {
            format!("{provider} has {has:?}, and {more:?} is taken on top of {taken:?}")
        });
        if more[KINDS - 1] > 0 {
            scene.sometimes.hit("an extended resource granted");
        }
        Some(advert)
    }

    /// The advertisement that a basis stands on: the newest that its writer had heard when the batch
    /// was opened, or one that came later.
    fn ground(&self, provider: &ClusterId, basis: &Basis, writer: Writer) -> Option<Advert> {
        let ear = self.ears.get(&(writer, provider.clone())).filter(|ear| ear.heard)?;
        let opened = ear.lately.iter().filter(|(at, _)| *at < self.time).count();
        let candidates = ear.lately.iter().skip(opened.saturating_sub(1));
        let adverts = candidates.filter_map(|(at, advert)| Some((*at, self.adverts.get(*advert)?)));
        let same = |(at, advert): &(Time, &Advert)| {
            advert.number == basis.number
                && advert.allocatable == amounts(&basis.allocatable)
                && advert.allocated == amounts(&basis.allocated)
                && (*at).min(self.time) == basis.received_at
        };
        adverts.rev().find(same).map(|(_, advert)| advert.clone())
    }

    /// No slice of a live reservation is larger than what is held for it.
    fn judge_truth(&mut self, provider: &ClusterId, agents: &[Agent]) {
        let Some(agent) = agents.iter().find(|agent| agent.name == *provider) else { return };
        for (id, slice) in &agent.slices {
            let Some(life) = self.lives.get(id) else { continue };
            let kept = amounts(&slice.amounts);
            let beyond = counts(life.phase) && less(kept, life.held) != Amounts::default();
            let (held, confirmed) = (life.held, life.confirmation == Some(Confirmation::Confirmed));
            self.expect(!beyond, "I1", || format!("{provider} keeps {kept:?} for {id}: {held:?}"));
            self.expect(!confirmed, "I8", || format!("{provider} still keeps {id}"));
        }
    }

    /// I7, I8, I9: an end has a reason that holds, and capacity comes back only when safe.
    pub(super) fn judge_end(
        &mut self,
        id: ReservationId,
        life: &Life,
        event: &Event,
        scene: &mut Scene<'_>,
    ) {
        let provider = life.provider.as_ref();
        let agent = scene.agents.iter().find(|agent| Some(&agent.name) == provider);
        match event {
            Event::Acknowledged { generation, .. } => {
                let expected = generation.0 <= life.generation && generation.0 > life.acknowledged;
                self.expect(expected, "I9", || format!("{id}: {generation:?} was not awaited"));
            }
            Event::Ending { reason, by, .. } => {
                self.judge_reason(id, life, (*reason, by), scene);
            }
            Event::Ended { reason, by, confirmation, .. } => {
                if life.phase != Phase::Releasing {
                    self.judge_reason(id, life, (*reason, by), scene);
                }
                let lost = provider.and_then(|p| self.standings.get(p)).is_some_and(|s| s.lost);
                let keeps = agent.is_some_and(|agent| agent.slices.contains_key(&id));
                let old = agent.is_none_or(|agent| agent.old);
                let safe = match confirmation {
                    Confirmation::NothingHeld => life.phase == Phase::Pending,
                    Confirmation::ProviderLost => lost,
                    Confirmation::Unconfirmed => old,
                    Confirmation::Confirmed => {
                        life.phase == Phase::Releasing
                            && life.acknowledged == life.generation
                            && !keeps
                    }
                };
                self.expect(safe, "I8", || format!("{id} ended {confirmation:?} from {life:?}"));
                scene.sometimes.hit(match confirmation {
                    Confirmation::Confirmed => "confirmed by provider",
                    Confirmation::Unconfirmed => "unconfirmed end on an old provider",
                    _ => "released",
                });
            }
            _ => {}
        }
    }

    fn judge_reason(
        &mut self,
        id: ReservationId,
        life: &Life,
        (reason, by): (Reason, &Actor),
        scene: &mut Scene<'_>,
    ) {
        let now = self.time;
        let past = |time: Option<Time>| time.is_some_and(|time| time <= now);
        let standing = life.provider.as_ref().and_then(|p| self.standings.get(p)).cloned();
        let standing = standing.unwrap_or_default();
        let provider = life.provider.clone().map(Actor::Cluster);
        let requester = Actor::Cluster(life.requester.clone());
        let (branch, holds) = match reason {
            Reason::Expired => ("expired", past(life.expires)),
            Reason::NeverActivated => {
                ("never activated", life.phase == Phase::Reserved && past(life.activate_by))
            }
            Reason::WaitOver => {
                ("wait was over", life.phase == Phase::Pending && life.until <= now)
            }
            Reason::Drained => ("drained", standing.draining),
            Reason::ProviderLost => ("declared lost", standing.lost),
            Reason::PeeringFailed => {
                ("peering failed", *by == requester || Some(by) == provider.as_ref())
            }
            Reason::ReleasedByRequester => ("released", *by == requester),
            Reason::WithdrawnByProvider => ("released", Some(by) == provider.as_ref()),
            Reason::ReleasedByOperator => ("released", matches!(by, Actor::Operator(_))),
        };
        scene.sometimes.hit(branch);
        self.ends_promise(id, reason);
        self.expect(holds, "I7", || format!("{id} ends as {reason:?} at {now:?}: {life:?}"));
        let timed = matches!(reason, Reason::Expired | Reason::NeverActivated | Reason::WaitOver);
        // A record has the time at which its batch was opened; what counts is when it was swept.
        let swept = self.clocks.get(&scene.writer).copied().unwrap_or(now);
        let grace = self.graces.get(&scene.writer).is_some_and(|over| swept < *over);
        self.expect(!(timed && grace), "I7", || format!("{id} ends {reason:?} within the grace"));
        let doubted = life.phase == Phase::Pending
            && self.held_back_until(id).is_some_and(|until| until > now);
        let awaits = life.provider.as_ref().is_some_and(|provider| self.awaits(provider));
        self.expect(!(timed && (awaits || doubted)), "I7", || {
            format!("{id} ends {reason:?} unreported")
        });
    }

    /// A provider is given up for silence only after the time that the operator set.
    pub(super) fn judge_silence(&mut self, cluster: &ClusterId, writer: Writer) {
        // What it heard while the record was being written came too late for it.
        let ear = self.ears.get(&(writer, cluster.clone()));
        let known = ear.into_iter().flat_map(|ear| ear.lately.iter().chain(&ear.newest));
        let heard = known.map(|(at, _)| *at).filter(|at| *at <= self.time).max();
        // The time in which it did not run is nobody's silence.
        let heard = heard.max(self.born.get(&writer).copied());
        let silent = heard.map(|at| self.time.since(at));
        let limit = self.policy.lost_after;
        let holds = limit.is_some() && silent.is_none_or(|silent| Some(silent) >= limit);
        self.expect(holds, "I8", || format!("{cluster} given up after {silent:?}"));
    }
}
