//! A naive account of what was promised, written from the words of the design and not from the
//! ledger. It believes nobody: it hears the same advertisements, sees the same commands, plans and
//! events, counts everything from zero whenever it is asked, and objects.
//!
//! It shares plain types with the core (names, amounts, events), and no logic. An objection names
//! the invariant of `reference/reliability.md` §3.2 that it is about; W1 and W2 are about waiting: who
//! fits is granted, and nobody who comes later is before.

mod compare;
mod fold;
mod judge;

use std::collections::{BTreeMap, BTreeSet};

use sublet_core::advertisement::{Advertisement, GrantReport};
use sublet_core::event::{Basis, Event, Subject};
use sublet_core::id::{ClusterId, Key, ReservationId};
use sublet_core::ledger::Stamp;
use sublet_core::plan::{Command, Plan, Refusal};
use sublet_core::policy::Policy;
use sublet_core::reservation::Ask;
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::Time;

/// Where a promise stands, in the model's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting,
    Held,
    InUse,
    TakingDown,
    Over,
}

impl Stage {
    fn holds(self) -> bool {
        matches!(self, Self::Held | Self::InUse | Self::TakingDown)
    }
}

/// All that is remembered of one promise.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) requester: ClusterId,
    pub(crate) provider: Option<ClusterId>,
    pub(crate) key: Option<Key>,
    pub(crate) ask: Ask,
    pub(crate) priority: i32,
    pub(crate) asked: u64,
    pub(crate) stage: Stage,
    pub(crate) patience: Time,
    /// It waited already before the last restore.
    doubtful: bool,
    pub(crate) told: Resources,
    pub(crate) held: Resources,
    pub(crate) generation: u32,
    pub(crate) confirmed: u32,
    pub(crate) expires: Option<Time>,
    pub(crate) activate_by: Option<Time>,
    pub(crate) provider_confirms: bool,
    pub(crate) over_at: Time,
    pub(crate) confirmed_gone: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) says: Advertisement,
    pub(crate) at: Time,
    longest_gap: u64,
    /// By this process; otherwise only remembered.
    pub(crate) live: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum KeyUse {
    Reservation(ReservationId),
    Tombstone(Time),
}

/// The judge.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) stories: BTreeMap<ReservationId, Story>,
    pub(crate) heard: BTreeMap<ClusterId, Heard>,
    keys: BTreeMap<(ClusterId, Key), KeyUse>,
    cordoned: BTreeSet<ClusterId>,
    caps: BTreeMap<ClusterId, Limits>,
    lost: BTreeSet<ClusterId>,
    revoked: BTreeSet<ClusterId>,
    restored: bool,
    /// When anybody could be heard first after the last restore.
    pub(crate) heard_from: Time,
    reported: BTreeSet<ClusterId>,
    /// Of these, the ones that did not say it themselves.
    vouched: BTreeSet<ClusterId>,
    asked: u64,
    /// When and under which rules the command is planned that is being looked at.
    at: Stamp,
    policy: Policy,
    /// Double entry: all that was ever taken from a provider, and all that came back.
    taken: BTreeMap<(ClusterId, Kind), i128>,
    returned: BTreeMap<(ClusterId, Kind), i128>,
    pub(crate) objections: Vec<String>,
}

pub(crate) fn amount(resources: &Resources, kind: &Kind) -> i128 {
    i128::from(resources.get(kind))
}

fn kinds<'a>(all: impl IntoIterator<Item = &'a Resources>) -> BTreeSet<Kind> {
    all.into_iter().flat_map(Resources::iter).map(|(kind, _)| kind).collect()
}

/// What happens to it.
impl Model {
    /// Between the shortest and the longest time in which numbers have stopped, a word without one
    /// may be `taken` or not.
    pub(crate) fn hear(&mut self, says: &Advertisement, at: Time, taken: bool) {
        let old = self.heard.get(&says.cluster);
        if let Some(old) = old.filter(|old| old.says.number.is_some() && says.number.is_none()) {
            let stopped = at.since(old.at.max(self.heard_from)).as_millis();
            let longest = old.longest_gap.saturating_mul(3).max(90_000);
            let fair = if taken { stopped >= 90_000 } else { stopped < longest };
            self.expect(fair, "I11", || {
                format!("after {stopped} ms it is heard: {taken}, {says:?}")
            });
            if !taken {
                return;
            }
        }
        let old = self.heard.get(&says.cluster);
        let older = old.and_then(|old| old.says.number).zip(says.number);
        // The same again is a sign of life where it was only remembered.
        let only_remembered = old.is_some_and(|old| !old.live);
        if older.is_some_and(|(known, new)| new < known || new == known && !only_remembered) {
            return;
        }
        let gap = old.map_or(0, |old| at.since(old.at).as_millis().max(old.longest_gap));
        let heard = Heard { says: says.clone(), at, longest_gap: gap, live: true };
        self.heard.insert(says.cluster.clone(), heard);
    }

    /// Looks at one command with what was planned for it, and takes the events in.
    pub(crate) fn observe(
        &mut self,
        at: Stamp,
        command: &Command,
        result: &Result<Plan, Refusal>,
        policy: &Policy,
    ) {
        (self.at, self.policy) = (at, policy.clone());
        self.judge_answer(command, result);
        let events = result.iter().flat_map(|plan| &plan.events);
        for event in events.flat_map(|event| event.steps(at.time)) {
            self.judge_event(command, &event);
            self.fold(at, &event);
        }
    }

    pub(crate) fn object(&mut self, invariant: &str, what: String) {
        self.objections.push(format!("{invariant}: {what}"));
    }

    fn expect(&mut self, holds: bool, invariant: &str, what: impl FnOnce() -> String) {
        if !holds {
            self.object(invariant, what());
        }
    }
}

/// What it counts.
impl Model {
    pub(crate) fn held_on(&self, provider: &ClusterId, kind: &Kind) -> i128 {
        let on = |story: &&Story| story.provider.as_ref() == Some(provider) && story.stage.holds();
        self.stories.values().filter(on).map(|story| amount(&story.held, kind)).sum()
    }

    fn held_for(&self, requester: &ClusterId, kind: &Kind) -> i128 {
        let mine = |story: &&Story| story.requester == *requester && story.stage.holds();
        self.stories.values().filter(mine).map(|story| amount(&story.held, kind)).sum()
    }

    /// Free on a provider, below zero where it has less than it owes: what it can give to pods, less
    /// the pods of its own, less for every grant the larger of what is kept for it and what it uses.
    pub(crate) fn free(&self, provider: &ClusterId, kind: &Kind) -> i128 {
        let Some(heard) = self.heard.get(provider) else { return 0 };
        let reports: BTreeMap<_, &GrantReport> =
            heard.says.grants.iter().flatten().map(|report| (report.id, report)).collect();
        let used: i128 = reports.values().map(|report| amount(&report.used, kind)).sum();
        let own = amount(&heard.says.allocated, kind) - used;
        let lent = self
            .stories
            .iter()
            .filter(|(_, story)| story.stage.holds() && story.provider.as_ref() == Some(provider));
        let lent: BTreeMap<_, _> = lent.map(|(id, story)| (*id, story)).collect();
        let ids: BTreeSet<_> = reports.keys().chain(lent.keys()).collect();
        let grants: i128 = ids
            .into_iter()
            .map(|id| {
                let in_use = reports.get(id).map_or(0, |report| amount(&report.used, kind));
                let kept = match (lent.get(id), reports.get(id)) {
                    // It was told more than is remembered since a restore.
                    (Some(story), Some(report)) if report.generation.0 > story.generation => {
                        amount(&story.held.max(&report.amounts), kind)
                    }
                    (Some(story), _) => amount(&story.held, kind),
                    (None, Some(_)) if self.is_gone(*id, provider) => 0,
                    (None, Some(report)) => amount(&report.amounts, kind),
                    (None, None) => 0,
                };
                kept.max(in_use)
            })
            .sum();
        amount(&heard.says.allocatable, kind) - own - grants
    }

    fn is_gone(&self, id: ReservationId, provider: &ClusterId) -> bool {
        let story = self.stories.get(&id).filter(|s| s.provider.as_ref() == Some(provider));
        story.is_some_and(|story| story.stage == Stage::Over && story.confirmed_gone)
    }

    /// What may still be lent, under the cap, never below zero.
    pub(crate) fn room(&self, provider: &ClusterId, kind: &Kind) -> i128 {
        let cap = self.caps.get(provider).and_then(|cap| cap.0.get(kind));
        let under = cap.map_or(i128::MAX, |cap| i128::from(*cap) - self.held_on(provider, kind));
        self.free(provider, kind).min(under).max(0)
    }

    /// Has it less than it owes, of something that is held there?
    pub(crate) fn is_overcommitted(&self, provider: &ClusterId) -> bool {
        let Some(heard) = self.heard.get(provider) else { return false };
        let lent = kinds(self.stories.values().map(|story| &story.held));
        // Where nothing is reported, everything that runs there may run in what is held.
        let is_short = |kind, held: i128| {
            if heard.says.grants.is_some() {
                return self.free(provider, kind) < 0;
            }
            let says = |all| amount(all, kind);
            held.max(says(&heard.says.allocated)) > says(&heard.says.allocatable)
        };
        let held = lent.iter().map(|kind| (kind, self.held_on(provider, kind)));
        held.into_iter().any(|(kind, held)| held > 0 && is_short(kind, held))
    }

    /// May anything at all be lent there? Says why not.
    fn closed(&self, provider: &ClusterId) -> Option<&'static str> {
        let heard = self.heard.get(provider)?;
        match () {
            () if !heard.live => Some("not heard since the start"),
            () if !heard.says.lending => Some("does not lend"),
            () if self.cordoned.contains(provider) => Some("cordoned"),
            () if self.lost.contains(provider) => Some("lost"),
            () if self.revoked.contains(provider) => Some("revoked"),
            () if self.restored && !self.reported.contains(provider) => Some("must report"),
            () => None,
        }
    }

    /// Could `more` be lent there beyond doubt? (Between the shortest and the longest silence that
    /// the design allows, a cluster may count as fresh or not.)
    fn certainly_fits(
        &self,
        provider: &ClusterId,
        requester: &ClusterId,
        more: &Resources,
    ) -> bool {
        let (policy, now) = (&self.policy, self.at.time);
        let Some(heard) = self.heard.get(provider) else { return false };
        provider != requester
            && self.closed(provider).is_none()
            && !self.is_overcommitted(provider)
            && now.since(heard.at) < policy.silence.suspect_min.min(policy.silence.stale_after)
            && policy.allows(requester, provider)
            && more.iter().all(|(kind, n)| i128::from(n) <= self.room(provider, &kind))
    }

    /// May it be granted and given up, or may it have been granted before the restore? Who has it
    /// would have said so in the time after which it counts as inactive.
    fn is_settled(&self, story: &Story) -> bool {
        !story.doubtful || self.at.time.since(self.heard_from) >= self.policy.silence.stale_after
    }

    /// Is it held back, as far as was known when the last command was planned?
    pub(crate) fn is_doubtful(&self, id: ReservationId) -> bool {
        self.stories.get(&id).is_some_and(|story| !self.is_settled(story))
    }

    fn within_allowance(&self, requester: &ClusterId, more: &Resources) -> bool {
        let limits = &self.policy.allowance(requester).held;
        let total = |kind: &Kind| self.held_for(requester, kind) + amount(more, kind);
        let fits = |kind: &Kind| total(kind) <= i128::from(u64::MAX);
        limits.0.iter().all(|(kind, limit)| total(kind) <= i128::from(*limit))
            && more.iter().all(|(kind, _)| fits(&kind))
    }
}
