//! W1, W2: who waits is granted as soon as something fits, by priority and then by age.
//!
//! The promise is made by the words and judged by them: a broker with nothing left to do
//! leaves nobody waiting for what it could lend, and whoever takes capacity passes only those who
//! could not have used it, or who come after. A smaller request may pass one that still does not
//! fit. Growth of what runs goes with the requests that name no priority.

use std::cmp::Reverse;

use sublet_broker::engine::Engine;
use sublet_core::decision::{Constraint, Match};
use sublet_core::event::Event;
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::policy::{Allowance, Clusters};
use sublet_core::reservation::{Ask, Phase};
use sublet_core::time::Time;
use sublet_log::Writer;

use super::market::Advert;
use super::phase::counts;
use super::shadow::Life;
use super::{Amounts, Auditor, amounts, exceeds, less, limits, plus};
use crate::message::Ticket;
use crate::sometimes::Sometimes;

/// Who is served before whom: the smaller one.
type Rank = (Reverse<i32>, u64);

impl Life {
    fn rank(&self) -> Rank {
        (Reverse(self.priority), self.arrival)
    }
}

impl Auditor {
    /// W1: a broker that has nothing left to do leaves nobody waiting for what it could lend.
    pub(crate) fn idles(
        &mut self,
        writer: Writer,
        engine: &Engine<Ticket>,
        now: Time,
        sometimes: &mut Sometimes,
    ) {
        let current = engine.books().ledger().stamp().revision == self.revision;
        if !engine.is_done() || engine.is_behind() || !current {
            return;
        }
        let now = now.max(self.time);
        let waiting: Vec<_> = self.waiting(now).collect();
        if waiting.is_empty() {
            return;
        }
        sometimes.hit("nothing left to do while somebody waited");
        let mut vain = None;
        for (provider, advert) in self.rooms(writer, now) {
            let left = self.left_by(&provider, advert);
            let mut fitting = waiting.iter();
            let Some((id, life)) =
                fitting.find(|(_, life)| self.fits(life, (&provider, advert), left))
            else {
                continue;
            };
            if self.owes_more_than_it_has(&provider, advert) {
                sometimes.hit("waited where less was than is held");
            } else {
                vain = Some(format!("{id} waits, and {provider} has {left:?}: {life:?}"));
            }
        }
        if let Some(vain) = vain {
            self.fail("W1", vain);
        }
    }

    /// W2: what is taken now could not have been used by anybody who waits and comes before.
    pub(super) fn judge_turn(
        &mut self,
        taker: &Life,
        event: &Event,
        (provider, advert): (&ClusterId, &Advert),
        sometimes: &mut Sometimes,
    ) {
        let rank = match event {
            Event::Granted { .. } => taker.rank(),
            _ => (Reverse(0), u64::MAX),
        };
        let room = self.room_by(provider, advert);
        let before = self.waiting(self.time).filter(|(_, life)| life.rank() < rank);
        let before: Vec<_> = before.collect();
        if !before.is_empty() {
            sometimes.hit("passed one that did not fit");
        }
        let passed = before.into_iter().find(|(_, life)| self.fits(life, (provider, advert), room));
        let passed = passed.map(|(id, life)| {
            format!("{event:?} passes {id}, which fits into {room:?} of {provider}: {life:?}")
        });
        if let Some(passed) = passed {
            self.fail("W2", passed);
        }
    }

    /// Those who wait, whose patience is not over, who are believed, and not held back after a restore.
    fn waiting(&self, now: Time) -> impl Iterator<Item = (ReservationId, &Life)> {
        let live = self.live.iter().filter_map(|id| Some((*id, self.lives.get(id)?)));
        live.filter(move |(id, life)| {
            life.phase == Phase::Pending
                && life.until > now
                && self.held_back_until(*id).is_none_or(|until| until <= now)
                && !self.revoked.contains(&life.requester)
        })
    }

    /// Would this be granted there, with so much room?
    fn fits(&self, life: &Life, (provider, advert): (&ClusterId, &Advert), room: Amounts) -> bool {
        let wanted = amounts(&life.ask.resources);
        life.requester != *provider
            && life.ask.target.as_ref().is_none_or(|target| target == provider)
            && meets(&life.ask, advert)
            && self.permits(&life.requester, provider)
            && !self.exceeds(&life.requester, wanted)
            && less(wanted, room) == Amounts::default()
    }

    /// What a broker could lend beyond doubt: where it heard somebody lately who is open.
    fn rooms(&self, writer: Writer, now: Time) -> Vec<(ClusterId, &Advert)> {
        let fresh = self.policy.silence.suspect_min.min(self.policy.silence.stale_after);
        let mine = self.ears.iter().filter(|((by, _), ear)| *by == writer && ear.heard);
        let rooms = mine.filter_map(|((_, cluster), ear)| {
            let (heard_at, advert) = ear.newest?;
            let open = now.since(heard_at) < fresh && self.is_open(cluster);
            let advert = self.adverts.get(advert).filter(|_| open)?;
            Some((cluster.clone(), advert))
        });
        rooms.collect()
    }

    /// Nothing that operators decided forbids to lend there.
    pub(super) fn is_open(&self, provider: &ClusterId) -> bool {
        let standing = self.standings.get(provider);
        let known = !self.revoked.contains(provider) && !self.awaits(provider);
        known && standing.is_none_or(|one| !one.cordoned && !one.lost)
    }

    /// What can be lent by an advertisement: nothing at all where less is than is held.
    pub(super) fn room_by(&self, provider: &ClusterId, advert: &Advert) -> Amounts {
        if self.owes_more_than_it_has(provider, advert) {
            return Amounts::default();
        }
        self.left_by(provider, advert)
    }

    /// What is left of what an advertisement said, under the cap.
    pub(super) fn left_by(&self, provider: &ClusterId, advert: &Advert) -> Amounts {
        let room = less(advert.allocatable, self.taken(provider, advert).0);
        let cap = self.standings.get(provider).and_then(|standing| standing.cap);
        cap.map_or(room, |cap| {
            let under = less(cap, self.held(provider));
            std::array::from_fn(|d| room[d].min(under[d]))
        })
    }
}

/// Does a cluster's advertisement have the labels that are asked for? As Kubernetes' selectors do.
pub(super) fn meets(ask: &Ask, advert: &Advert) -> bool {
    ask.constraints.iter().all(|Constraint { label, is }| {
        let value = advert.labels.get(label);
        let among = |values: &[String]| values.iter().any(|one| Some(one) == value);
        match is {
            Match::In(values) => among(values),
            Match::NotIn(values) => !among(values),
            Match::Exists => value.is_some(),
            Match::Absent => value.is_none(),
        }
    })
}

/// What the operator's policy says, read anew.
impl Auditor {
    /// May one borrow from the other? The first line that names both decides.
    pub(super) fn permits(&self, requester: &ClusterId, provider: &ClusterId) -> bool {
        let names = |clusters: &Clusters, cluster: &ClusterId| match clusters {
            Clusters::Any => true,
            Clusters::These(these) => these.contains(cluster),
        };
        let mut rules = self.policy.lending.iter();
        let rule = rules.find(|r| names(&r.requesters, requester) && names(&r.providers, provider));
        rule.is_none_or(|rule| rule.allow)
    }

    /// Would a requester have more than it may, with so much more?
    pub(super) fn exceeds(&self, requester: &ClusterId, more: Amounts) -> bool {
        let limit = limits(&self.allowance(requester).held);
        limit.is_some_and(|limit| exceeds(more, plus(self.borrowed(requester), more), limit))
    }

    /// The priority that a requester has at most.
    pub(super) fn priority_max(&self, requester: &ClusterId) -> i32 {
        self.allowance(requester).priority_max
    }

    fn allowance(&self, requester: &ClusterId) -> &Allowance {
        self.policy.requesters.get(requester).unwrap_or(&self.policy.allowance)
    }

    /// What is held for a requester, from zero.
    pub(super) fn borrowed(&self, requester: &ClusterId) -> Amounts {
        let lives = self.live.iter().filter_map(|id| self.lives.get(id));
        let theirs = lives.filter(|life| counts(life.phase) && life.requester == *requester);
        theirs.fold(Amounts::default(), |sum, life| plus(sum, life.held))
    }
}
