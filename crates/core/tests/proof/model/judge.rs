//! What may happen, and what must be answered.

use super::{
    Basis, ClusterId, Command, Event, KeyUse, Model, Plan, Refusal, ReservationId, Resources,
    Stage, Stamp, Story, amount,
};
use sublet_core::decision::Strategy;
use sublet_core::plan::{EVENTS_MAX, Fill, Reply, Which};
use sublet_core::reservation::{Actor, Ask, Confirmation, Reason};

/// Scores are compared with this tolerance: the core rounds shares down.
const HAIR: f64 = 1e-6;

impl Model {
    /// Is this event legal now?
    pub(super) fn judge_event(&mut self, cause: &Command, event: &Event) {
        let at = self.at;
        self.judge_scope(cause, event);
        match event {
            Event::Requested { id, requester, key, ask, priority, until } => {
                let taken = self.keys.contains_key(&(requester.clone(), key.clone()));
                let new = !self.stories.contains_key(id);
                self.expect(!taken && new, "I5", || format!("{key} of {requester} used twice"));
                let most = self.policy.allowance(requester).priority_max;
                let fair = *priority == ask.priority.min(most) && *until >= at.time;
                self.expect(fair, "I6", || format!("{event:?}"));
            }
            Event::Adopted { id, provider, generation, .. } => {
                let spoke = self.reported.contains(provider) && !self.vouched.contains(provider);
                let silent = self.restored && !spoke;
                let forgotten = self.stories.get(id).is_none_or(|known| match known.stage {
                    Stage::Waiting => true,
                    Stage::Held | Stage::InUse => {
                        known.provider.as_ref() == Some(provider) && known.generation < generation.0
                    }
                    Stage::TakingDown | Stage::Over => false,
                });
                self.expect(silent && forgotten, "I6", || format!("{event:?}"));
            }
            Event::KeyReleased { requester, key } => {
                let taken = self.keys.contains_key(&(requester.clone(), key.clone()));
                self.expect(!taken, "I5", || format!("tombstone on {key} of {requester}"));
            }
            Event::Forgotten { reservations, tombstones } => {
                let keep = self.policy.key_retention;
                for id in reservations {
                    let story = self.stories.get(id).filter(|story| story.stage == Stage::Over);
                    let old = story.is_some_and(|story| at.time.since(story.over_at) >= keep);
                    self.expect(old, "I5", || format!("{id} forgotten too early"));
                }
                for name in tombstones {
                    let old = matches!(self.keys.get(name), Some(KeyUse::Tombstone(set))
                        if at.time.since(*set) >= keep);
                    self.expect(old, "I5", || format!("tombstone {name:?} forgotten too early"));
                }
            }
            Event::Lost { cluster, note } if note.by == Actor::Broker => {
                let heard = self.heard.get(cluster).map_or(self.heard_from, |heard| heard.at);
                let silent = at.time.since(heard.max(self.heard_from));
                let long = self.policy.lost_after.is_some_and(|limit| silent >= limit);
                self.expect(long, "I8", || format!("{cluster} given up after {silent}"));
            }
            _ => {
                let story = event.reservation().map(|id| (id, self.stories.get(&id).cloned()));
                match story {
                    Some((_, Some(story))) => self.judge_life(cause, event, &story),
                    Some((id, None)) => self.object("I6", format!("{id} is not there: {event:?}")),
                    None => {}
                }
            }
        }
    }

    /// A command touches only what it names; an advertisement touches nothing that runs (I10).
    fn judge_scope(&mut self, cause: &Command, event: &Event) {
        let subject = event.reservation();
        let key = |who: &ClusterId, key: &_| match self.keys.get(&(who.clone(), Clone::clone(key)))
        {
            Some(KeyUse::Reservation(id)) => Some(*id),
            _ => None,
        };
        let within = match cause {
            Command::Renew { id, .. }
            | Command::Resize { id, .. }
            | Command::Activate { id, .. }
            | Command::Acknowledge { id, .. }
            | Command::Fail { id, .. }
            | Command::Release { which: Which::Id(id), .. } => subject == Some(*id),
            Command::Release { which: Which::Key(who, name), .. } => subject == key(who, name),
            Command::Advertise(_) => match event {
                Event::Returned { .. } | Event::Reconciled { .. } | Event::Adopted { .. } => true,
                Event::Ended { id, .. } => self.stages(*id) == Some(Stage::TakingDown),
                _ => false,
            },
            Command::DryRun { .. } => false,
            _ => true,
        };
        self.expect(within, "I10", || format!("{cause:?} led to {event:?}"));
    }

    fn stages(&self, id: ReservationId) -> Option<Stage> {
        self.stories.get(&id).map(|story| story.stage)
    }

    fn judge_life(&mut self, cause: &Command, event: &Event, story: &Story) {
        let at = self.at;
        let runs = matches!(story.stage, Stage::Held | Stage::InUse);
        let legal = match event {
            Event::Granted { provider, amounts, basis, activate_by, .. } => {
                let patient = story.patience > at.time || matches!(cause, Command::Reserve { .. });
                self.judge_taking(provider, story, amounts, basis);
                story.stage == Stage::Waiting
                    && patient
                    && self.is_settled(story)
                    && *amounts == story.ask.resources
                    && activate_by.is_some() == story.ask.activates
                    && self.within_allowance(&story.requester, amounts)
                    && !self.revoked.contains(&story.requester)
            }
            Event::Activated { .. } => story.stage == Stage::Held,
            Event::Renewed { .. } => runs,
            Event::Resized { amounts, basis, .. } => {
                let growth = amounts.minus_floor(&story.held);
                if let Some(provider) = story.provider.clone().filter(|_| !growth.is_zero()) {
                    self.judge_taking(&provider, story, &growth, basis);
                }
                runs
            }
            Event::Acknowledged { generation, .. } => {
                story.stage.holds()
                    && generation.0 > story.confirmed
                    && generation.0 <= story.generation
            }
            Event::Ending { reason, .. } => runs && is_due(at, story, *reason),
            Event::Ended { reason, confirmation, .. } => {
                let safe = self.may_return(story, *confirmation);
                self.expect(safe, "I8", || format!("{event:?} of {story:?}"));
                let due = story.stage == Stage::TakingDown || is_due(at, story, *reason);
                let settled = *reason != Reason::WaitOver || self.is_settled(story);
                story.stage != Stage::Over && due && settled
            }
            _ => true,
        };
        self.expect(legal, "I6", || format!("{event:?} at {at:?} of {story:?}"));
    }

    /// Capacity returns only when the provider confirmed, never will, or is lost (I8).
    fn may_return(&self, story: &Story, confirmation: Confirmation) -> bool {
        let Some(provider) = &story.provider else {
            return confirmation == Confirmation::NothingHeld;
        };
        let now = self.heard.get(provider).map(|heard| heard.says.capabilities.acknowledge);
        match confirmation {
            Confirmation::Confirmed => {
                story.stage == Stage::TakingDown && story.confirmed == story.generation
            }
            Confirmation::Unconfirmed => !now.unwrap_or(story.provider_confirms),
            Confirmation::ProviderLost => self.lost.contains(provider),
            Confirmation::NothingHeld => false,
        }
    }

    /// Was it free, by the advertisement that the basis names, and was the provider open (I1, I12)?
    fn judge_taking(
        &mut self,
        provider: &ClusterId,
        story: &Story,
        more: &Resources,
        basis: &Basis,
    ) {
        let Some(heard) = self.heard.get(provider).cloned() else {
            return self.object("I1", format!("nothing was ever heard of {provider}"));
        };
        let honest = basis.allocatable == heard.says.allocatable
            && basis.allocated == heard.says.allocated
            && basis.number == heard.says.number
            && basis.received_at == heard.at;
        self.expect(honest, "I1", || format!("the basis is not what {provider} said: {basis:?}"));
        let age = self.at.time.since(heard.at).as_millis();
        let fresh = age < basis.suspect_after.as_millis()
            && basis.suspect_after.as_millis() <= heard.longest_gap.saturating_mul(3).max(90_000);
        self.expect(fresh && age < 600_000, "I11", || format!("{provider} was {age} ms old"));
        let closed = self.closed(provider);
        self.expect(closed.is_none(), "I1", || format!("{provider} is {closed:?}"));
        let owes = self.is_overcommitted(provider);
        self.expect(!owes, "I12", || format!("{provider} has less than is held there"));
        self.expect(*provider != story.requester, "I1", || format!("{provider} lends to itself"));
        for (kind, n) in more.iter() {
            let room = self.room(provider, &kind);
            self.expect(i128::from(n) <= room, "I1", || {
                format!("{n} of {kind} taken on {provider} where {room} was free")
            });
        }
    }

    /// Is the answer the right one?
    pub(super) fn judge_answer(&mut self, command: &Command, result: &Result<Plan, Refusal>) {
        let at = self.at;
        let many = result.as_ref().map_or(0, |plan| plan.events.len());
        self.expect(many <= EVENTS_MAX, "I19", || format!("{many} events in one plan"));
        match command {
            Command::Reserve { requester, key, ask, .. } => {
                match self.keys.get(&(requester.clone(), key.clone())).cloned() {
                    Some(bound) => self.judge_repeat(&bound, ask, result),
                    None => self.judge_choice(requester, ask, result),
                }
            }
            Command::Fill(Fill { after, floor, .. }) => {
                let place = |s: &Story| (std::cmp::Reverse(s.priority), s.asked);
                let of = |id: &ReservationId| self.stories.get(id).map(place);
                let filled = match result.as_ref().map(|plan| &plan.reply) {
                    Ok(
                        Reply::Filled { place: found, .. }
                        | Reply::NotYetFilled { place: found, .. },
                    ) => of(&found.2),
                    _ => None,
                };
                let after = after.and_then(|after| of(&after.2));
                let passed = self.stories.iter().find(|(_, s)| {
                    s.stage == Stage::Waiting
                        && s.patience > at.time
                        && self.is_settled(s)
                        && after.is_none_or(|after| place(s) > after)
                        && floor.is_none_or(|floor| s.priority >= floor)
                        && filled.is_none_or(|filled| place(s) < filled)
                        && !self.revoked.contains(&s.requester)
                        && self.fits_somewhere(&s.requester, &s.ask)
                });
                let passed = passed.map(|(id, _)| *id);
                self.expect(passed.is_none(), "W2", || format!("{passed:?} was passed over"));
            }
            _ => {}
        }
    }

    /// Everybody who waits was tried since something changed: nobody is left who fits (W1).
    pub(crate) fn judge_rest(&mut self, at: Stamp) {
        self.at = at;
        let vain = self.stories.iter().find(|(_, story)| {
            story.stage == Stage::Waiting
                && story.patience > at.time
                && self.is_settled(story)
                && !self.revoked.contains(&story.requester)
                && self.fits_somewhere(&story.requester, &story.ask)
        });
        let vain = vain.map(|(id, _)| *id);
        self.expect(vain.is_none(), "W1", || format!("{vain:?} waits in vain"));
    }

    fn judge_repeat(&mut self, bound: &KeyUse, ask: &Ask, result: &Result<Plan, Refusal>) {
        let right = match (bound, result) {
            (KeyUse::Tombstone(_), Err(Refusal::KeyReleased)) => true,
            (KeyUse::Reservation(id), result) => {
                let same = self.stories.get(id).is_some_and(|story| story.ask == *ask);
                match result {
                    Ok(Plan { events, reply: Reply::Reservation { id: told, created, .. } }) => {
                        same && told == id && !created && events.is_empty()
                    }
                    Err(Refusal::KeyReused(told)) => !same && told == id,
                    _ => false,
                }
            }
            _ => false,
        };
        self.expect(right, "I5", || format!("{bound:?} was answered with {result:?}"));
    }

    /// A refusal has a ground, and a grant goes to the best (I26).
    fn judge_choice(&mut self, requester: &ClusterId, ask: &Ask, result: &Result<Plan, Refusal>) {
        let chosen = result.iter().flat_map(|plan| &plan.events).find_map(|event| match event {
            Event::Reserved { provider, .. } => Some(provider.clone()),
            _ => None,
        });
        let nobody = matches!(result, Err(Refusal::NobodyFits(_) | Refusal::OnlySuspects(_)));
        let asked = |event: &Event| matches!(event, Event::Requested { .. });
        let waits =
            chosen.is_none() && result.as_ref().is_ok_and(|plan| plan.events.iter().any(asked));
        if nobody || waits {
            let fits = self.fits_somewhere(requester, ask);
            self.expect(!fits, "I26", || format!("{ask:?} of {requester} fits: {result:?}"));
        }
        if let Some(chosen) = chosen
            && ask.strategy.unwrap_or(self.policy.strategy) == Strategy::Headroom
        {
            let score = self.headroom(&chosen, &ask.resources);
            let better = self.heard.keys().find(|other| {
                self.certainly_fits(other, requester, &ask.resources)
                    && ask.target.is_none()
                    && self.headroom(other, &ask.resources) > score + HAIR
            });
            let better = better.cloned();
            self.expect(better.is_none(), "I26", || format!("{better:?} is better than {chosen}"));
        }
    }

    fn fits_somewhere(&self, who: &ClusterId, ask: &Ask) -> bool {
        let plain = ask.target.is_none() && ask.constraints.is_empty() && ask.backends.is_empty();
        plain
            && self.within_allowance(who, &ask.resources)
            && self.heard.keys().any(|p| self.certainly_fits(p, who, &ask.resources))
    }

    #[expect(clippy::cast_precision_loss, reason = "compared with a tolerance")]
    fn headroom(&self, provider: &ClusterId, asked: &Resources) -> f64 {
        let Some(heard) = self.heard.get(provider) else { return 0.0 };
        let share = |(kind, n): (_, u64)| {
            let left = self.room(provider, &kind) - i128::from(n);
            left as f64 / amount(&heard.says.allocatable, &kind) as f64
        };
        asked.iter().map(share).sum::<f64>() / asked.iter().count() as f64
    }
}

/// Does the clock allow this reason?
fn is_due(at: Stamp, story: &Story, reason: Reason) -> bool {
    let passed = |time: Option<_>| time.is_some_and(|time| time <= at.time);
    match reason {
        Reason::Expired => passed(story.expires),
        Reason::NeverActivated => story.stage == Stage::Held && passed(story.activate_by),
        Reason::WaitOver => story.stage == Stage::Waiting && story.patience <= at.time,
        _ => true,
    }
}
