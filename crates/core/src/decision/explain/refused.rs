//! How many clusters each filter refused, and the smallest changes that would have been granted.
//!
//! Small is what changes the request least: the largest part of any amount that is missing counts,
//! then the sum of the parts, then the name.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{LIFTS_MAX, Lift, NEAREST_MAX, Nearest, Refused};
use crate::decision::filter::{self, Filter, Known, Question};
use crate::decision::score::share;
use crate::resources::{Kind, Resources};

/// Which lifts are told first: what the requester can do, what comes by itself, what operators and
/// owners can do.
const LIFTS: [Filter; 11] = [
    Filter::Target,
    Filter::Labels,
    Filter::Backend,
    Filter::Suspect,
    Filter::Stale,
    Filter::AwaitingReport,
    Filter::NotLending,
    Filter::Cordoned,
    Filter::Policy,
    Filter::Revoked,
    Filter::Lost,
];

/// How much of the request must change: the largest part, then the sum of the parts.
type Distance = (u64, u64);

pub(super) fn explain(question: Question<'_>) -> Refused {
    let Question { books, requester, ask, policy, .. } = question;
    let excess = filter::allowance_excess(books, requester, ask, policy);
    let mut tally = Tally::new(question, excess);
    for known in everybody(question) {
        tally.count(known);
    }
    tally.count_missing_target();
    tally.finish()
}

/// All known clusters by name: three lists in the same order, walked together.
fn everybody(question: Question<'_>) -> impl Iterator<Item = Known<'_>> {
    let books = question.books;
    let mut entries = books.market().entries().peekable();
    let mut standings = books.ledger().standings().peekable();
    books.index().rows(None).filter_map(move |(cluster, row)| {
        // The market and the index know the same clusters: the next one is the same name, shared,
        // so the names need not be read to know it.
        while entries.next_if(|(other, _)| *other != cluster && *other < cluster).is_some() {}
        let (_, entry) = entries.next_if(|(other, _)| *other == cluster)?;
        while standings.next_if(|(other, _)| *other < cluster).is_some() {}
        let standing = standings.next_if(|(other, _)| *other == cluster);
        Some(Known { cluster, entry, row, standing: standing.map(|(_, standing)| standing) })
    })
}

struct Tally<'a> {
    question: Question<'a>,
    excess: Option<Resources>,
    clusters: u64,
    fitting: u64,
    refused: BTreeMap<Filter, u64>,
    /// Sorted; those with the same distance in the order of their names.
    nearest: Vec<(Distance, Nearest)>,
    lifts: BTreeMap<Filter, Lift>,
}

impl<'a> Tally<'a> {
    fn new(question: Question<'a>, excess: Option<Resources>) -> Self {
        let (refused, lifts) = (BTreeMap::new(), BTreeMap::new());
        Self { question, excess, clusters: 0, fitting: 0, refused, nearest: Vec::new(), lifts }
    }

    fn count(&mut self, known: Known<'a>) {
        self.clusters = self.clusters.saturating_add(1);
        let mut reasons = self.question.reasons(known);
        let (first, second) = (reasons.next(), reasons.next());
        match (first, second) {
            (None, _) => self.fitting = self.fitting.saturating_add(1),
            (Some(Filter::Fit), None) => self.come_near(known),
            (Some(filter), None) => self.lift(filter, known),
            (Some(_), Some(_)) => {}
        }
        if let Some(filter) = first {
            self.refuse(filter);
        }
    }

    fn refuse(&mut self, filter: Filter) {
        let count = self.refused.entry(filter).or_default();
        *count = count.saturating_add(1);
    }

    /// A target that nobody knows is refused as well.
    fn count_missing_target(&mut self) {
        let Question { books, requester, ask, .. } = self.question;
        if let Some(target) = &ask.target
            && Known::of(books, target).is_none()
        {
            self.refuse(if target == requester { Filter::Itself } else { Filter::Unknown });
        }
    }

    /// A cluster with room that one reason stands against; of several, the first by name.
    fn lift(&mut self, filter: Filter, known: Known<'a>) {
        let mut unmet = self.question.unmet(&known);
        let constraint = unmet.next();
        // Two constraints would be two changes.
        if self.lifts.contains_key(&filter) || unmet.next().is_some() {
            return;
        }
        let (cluster, constraint) = (known.cluster.clone(), constraint.cloned());
        self.lifts.insert(filter, Lift { filter, cluster, constraint });
    }

    /// A cluster that is only too full.
    fn come_near(&mut self, known: Known<'a>) {
        let asked = &self.question.ask.resources;
        let distance = asked.iter().fold((0, 0_u64), |(most, sum): Distance, (kind, amount)| {
            let missing = amount.saturating_sub(known.row.room.get(&kind));
            let part = share(missing, amount);
            (most.max(part), sum.saturating_add(part))
        });
        let full = self.nearest.len() >= NEAREST_MAX;
        if full && self.nearest.last().is_some_and(|(last, _)| *last <= distance) {
            return;
        }
        if let Some(nearest) = self.enough(known) {
            let place = self.nearest.partition_point(|(other, _)| *other <= distance);
            self.nearest.insert(place, (distance, nearest));
            self.nearest.truncate(NEAREST_MAX);
        }
    }

    /// What would have been enough there, if any one change would.
    fn enough(&self, known: Known<'a>) -> Option<Nearest> {
        let asked = &self.question.ask.resources;
        let short = asked.minus_floor(&known.row.room);
        let less = self.excess.as_ref().map_or(short.clone(), |excess| excess.max(&short));
        let rest = asked.minus_floor(&less);
        let less = (rest.cpu > 0 && rest.memory > 0).then_some(less);
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

    /// How much more the cluster would need, whatever its cap says; none beyond 64 bits.
    fn missing(&self, known: Known<'a>) -> Option<Resources> {
        let Question { books, ask, policy, .. } = self.question;
        let basis = books.basis(known.cluster, policy)?;
        let taken = books.held(known.cluster).minus_floor(&basis.covered);
        let taken = taken.checked_add(&basis.ghosts).ok()?.checked_add(&basis.allocated).ok()?;
        above(&ask.resources, &taken, |kind| Some(basis.allocatable.get(kind)))
    }

    /// How much higher its cap would have to be.
    fn above_cap(&self, known: Known<'a>) -> Option<Resources> {
        let Some(standing) = known.standing else { return Some(Resources::default()) };
        let held = self.question.books.held(known.cluster);
        above(&self.question.ask.resources, &held, |kind| standing.cap.0.get(kind).copied())
    }

    fn finish(mut self) -> Refused {
        // Where somebody fits, only the allowance is in the way, and it says itself what is enough.
        let alone = self.excess.is_none();
        let lifts = LIFTS.iter().filter_map(|filter| self.lifts.remove(filter));
        let lifts = lifts.take(if alone { LIFTS_MAX } else { 0 }).collect();
        let nearest = self.nearest.into_iter().map(|(_, nearest)| nearest);
        let nearest = nearest.take(if self.fitting == 0 { NEAREST_MAX } else { 0 }).collect();
        Refused {
            clusters: self.clusters,
            refused: self.refused,
            fitting: self.fitting,
            allowance: self.excess,
            nearest,
            lifts,
        }
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
