//! The smallest changes that would have been granted, beside how many clusters each filter refused.
//!
//! Small is what changes the request least: the largest part of any amount that is missing counts,
//! then the sum of the parts, then the name.
//!
//! A refusal is explained on the thread that plans, so not every cluster is looked at:
//!
//! - What stands against a cluster whoever asks, how it can be joined and when it was heard is in
//!   its note in the index; to count the notes takes a few nanoseconds for each.
//! - Those with room are few after a refusal: the index knows where they are, and each is looked at.
//!   Who is neither among them nor refused by its note is too full.
//! - Rules and labels must be looked up for each cluster. Where the policy has rules on the requester
//!   or the request has constraints, those without room are looked at by name.
//!
//! At most [`super::LOOKS_MAX`] are looked at. So the counts are exact, unless there are more to look
//! at than that: then they say "at least", and beside them stands how many were left out. The
//! nearest clusters are found through the index with bounds; one that only a single reason stands
//! against is searched among those that were looked at.

use alloc::collections::BTreeMap;

use super::{LIFTS_MAX, Lift, NEAREST_MAX, Nearest, Refused};
use crate::decision::filter::{self, Filter, Known, Question};
use crate::decision::score::share;
use crate::id::ClusterId;
use crate::resources::{Kind, Resources};

/// Which lifts are told first: what the requester can do, what comes by itself, what operators and
/// owners can do.
const LIFTS: [Filter; 12] = [
    Filter::Target,
    Filter::Labels,
    Filter::Backend,
    Filter::Suspect,
    Filter::Stale,
    Filter::AwaitingReport,
    Filter::NotLending,
    Filter::Cordoned,
    Filter::Crowded,
    Filter::Policy,
    Filter::Revoked,
    Filter::Lost,
];

/// Clusters that are looked at in search of the nearest: rules or labels may stand against many.
const TRIES_MAX: usize = 64;

pub(super) fn explain(question: Question<'_>) -> Refused {
    let Question { books, requester, ask, policy, .. } = question;
    let excess = filter::allowance_excess(books, requester, ask, policy);
    let clusters = u64::try_from(books.index().len()).unwrap_or(u64::MAX);
    let told = Refused { asked: ask.resources.clone(), clusters, ..Refused::default() };
    let (lifts, shrunk) = (BTreeMap::new(), BTreeMap::new());
    let mut tally = Tally { question, excess, told, lifts, shrunk };
    match &ask.target {
        Some(target) => tally.count_all_but(target),
        None => tally.count_all(),
    }
    // Where somebody fits, only the allowance is in the way, and it says itself what is enough.
    if tally.told.fitting == 0 {
        tally.find_nearest();
    }
    tally.finish()
}

/// What is known so far.
pub(super) struct Tally<'a> {
    pub(super) question: Question<'a>,
    excess: Option<Resources>,
    pub(super) told: Refused,
    lifts: BTreeMap<Filter, Lift>,
    /// What clusters with less than is held on them would need, the smallest part of all that they
    /// would have then first.
    shrunk: BTreeMap<(u64, &'a ClusterId), Resources>,
}

impl<'a> Tally<'a> {
    /// The first reason against a cluster; if it is the only one, lifting it may be proposed.
    pub(super) fn look(&mut self, known: Known<'a>) -> Option<Filter> {
        let mut reasons = self.question.reasons(known);
        let (first, second) = (reasons.next()?, reasons.next());
        match (first, second) {
            (Filter::Overcommitted, None) => self.shrunk(known),
            // With more there, it has room too.
            (Filter::Overcommitted, Some(Filter::Fit)) if reasons.next().is_none() => {
                self.shrunk(known);
            }
            (Filter::Fit, _) | (_, Some(_)) => {}
            (_, None) => self.lift(first, known),
        }
        Some(first)
    }

    /// A cluster that would take it if it had so much more, and no smaller request.
    fn shrunk(&mut self, known: Known<'a>) {
        let under_cap = self.above_cap(known).is_some_and(|above| above.is_zero());
        let more = self.missing(known).filter(|_| under_cap && self.excess.is_none());
        let Some(more) = more else { return };
        let has = &known.entry.advertisement.allocatable;
        let part = |(kind, more): (Kind, u64)| share(more, more.saturating_add(has.get(&kind)));
        let part = more.iter().map(part).max().unwrap_or(0);
        self.shrunk.insert((part, known.cluster), more);
    }

    /// A cluster with room that one reason stands against; of several, the first by name.
    fn lift(&mut self, filter: Filter, known: Known<'a>) {
        let mut unmet = self.question.unmet(&known);
        let constraint = unmet.next();
        let later = self.lifts.get(&filter).is_some_and(|lift| lift.cluster <= *known.cluster);
        // Two constraints would be two changes.
        if later || unmet.next().is_some() {
            return;
        }
        let (cluster, constraint) = (known.cluster.clone(), constraint.cloned());
        self.lifts.insert(filter, Lift { filter, cluster, constraint });
    }

    /// The nearest of the clusters that are only too full.
    fn find_nearest(&mut self) {
        let Question { books, ask, .. } = self.question;
        let mut tries = TRIES_MAX;
        let mut near = |cluster| {
            if let Some(known) = Known::of(books, cluster)
                && self.question.reasons(known).eq([Filter::Fit])
            {
                self.told.nearest.extend(self.enough(known));
            }
            tries = tries.saturating_sub(1);
            tries > 0 && self.told.nearest.len() < NEAREST_MAX
        };
        match (&ask.target, books.labels().few(&ask.constraints)) {
            (Some(target), _) => drop(near(target)),
            // Those with a rare label need not be among the nearest of all.
            (None, Some(few)) => books.index().each_near_among(&few, &ask.resources, &mut near),
            (None, None) => books.index().each_near(&ask.resources, &mut near),
        }
    }

    /// What would have been enough there, if any one change would.
    fn enough(&self, known: Known<'a>) -> Option<Nearest> {
        let asked = &self.question.ask.resources;
        let short = asked.minus_floor(&known.row.room);
        let less = self.excess.as_ref().map_or(short.clone(), |excess| excess.max(&short));
        let rest = asked.minus_floor(&less);
        // To ask for none of something is another request, not a smaller one.
        let all_left = asked.iter().all(|(kind, _)| rest.get(&kind) > 0);
        let less = all_left.then_some(less);
        let (more, cap) = match (self.missing(known), self.above_cap(known)) {
            // Beyond the allowance, room alone is not enough.
            _ if self.excess.is_some() => (None, None),
            (Some(more), Some(cap)) if cap.is_zero() => (Some(more), None),
            (Some(more), Some(cap)) if more.is_zero() => (None, Some(cap)),
            _ => (None, None),
        };
        let enough = less.is_some() || more.is_some() || cap.is_some();
        enough.then(|| Nearest { cluster: known.cluster.clone(), less, more, cap })
    }

    /// How much more the cluster would need, for what is held and what is asked for, whatever its
    /// cap says; none beyond 64 bits.
    fn missing(&self, known: Known<'a>) -> Option<Resources> {
        let Question { books, ask, policy, now, .. } = self.question;
        let basis = books.basis(known.cluster, policy, now)?;
        let held = books.held(known.cluster);
        let taken = held.minus_floor(&basis.covered);
        let taken = taken.checked_add(&basis.ghosts).ok()?.checked_add(&basis.allocated).ok()?;
        let above = above(&ask.resources, &taken, |kind| Some(basis.allocatable.get(kind)))?;
        Some(above.max(&basis.shortage(&held)))
    }

    /// How much higher its cap would have to be.
    fn above_cap(&self, known: Known<'a>) -> Option<Resources> {
        let Some(standing) = known.standing else { return Some(Resources::default()) };
        let held = self.question.books.held(known.cluster);
        above(&self.question.ask.resources, &held, |kind| standing.cap.0.get(kind).copied())
    }

    fn finish(mut self) -> Refused {
        let places = NEAREST_MAX.saturating_sub(self.told.nearest.len());
        let shrunk = self.shrunk.into_iter().take(places).map(|((_, cluster), more)| {
            let (cluster, more) = (cluster.clone(), Some(more));
            Nearest { cluster, less: None, more, cap: None }
        });
        self.told.nearest.extend(shrunk);
        if self.excess.is_none() {
            let lifts = LIFTS.iter().filter_map(|filter| self.lifts.remove(filter));
            self.told.lifts = lifts.take(LIFTS_MAX).collect();
        }
        Refused { allowance: self.excess, ..self.told }
    }
}

/// By how much `asked` on top of `taken` is above a limit, of the resources asked for.
fn above(
    asked: &Resources,
    taken: &Resources,
    limit: impl Fn(&Kind) -> Option<u64>,
) -> Option<Resources> {
    asked.iter().try_fold(Resources::default(), |sum, (kind, amount)| {
        let total = taken.get(&kind).checked_add(amount)?;
        let above = limit(&kind).map_or(0, |limit| total.saturating_sub(limit));
        sum.with(kind, above).ok()
    })
}
