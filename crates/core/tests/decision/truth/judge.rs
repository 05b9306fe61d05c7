//! Looks at each answer as somebody would who has never seen the code: at everybody, one by one.

use std::collections::BTreeMap;

use super::fleets::fpga;

use crate::fleet::{Fleet, id, note};
use proptest::prelude::*;
use sublet_core::advertisement::Advertisement;
use sublet_core::decision::explain::{self, Explanation, Lift, Nearest, Refused};
use sublet_core::decision::filter::{Filter, Question, Verdict, allowance_excess};
use sublet_core::decision::{Constraint, Match, NoPick, Strategy as Choice};
use sublet_core::event::{Event, Subject};
use sublet_core::id::ClusterId;
use sublet_core::invariants;
use sublet_core::market::Freshness;
use sublet_core::reservation::Ask;
use sublet_core::resources::Kind;

pub(super) const REQUESTER: &str = "c0";

/// May this cluster be chosen? Written from the design, with nothing of the filter's code.
pub(super) fn may(fleet: &Fleet, ask: &Ask, name: &ClusterId) -> bool {
    let (books, ledger) = (&fleet.books, fleet.books.ledger());
    let entry = books.market().entry(name).unwrap();
    let word = &entry.advertisement;
    let standing = ledger.standing(name).cloned().unwrap_or_default();
    let label = |constraint: &Constraint| match (&constraint.is, word.labels.get("zone")) {
        (Match::In(values), Some(value)) => values.contains(value),
        (Match::NotIn(values), Some(value)) => !values.contains(value),
        (Match::Exists, value) => value.is_some(),
        (Match::Absent, value) => value.is_none(),
        (Match::In(_), None) => false,
        (Match::NotIn(_), None) => true,
    };
    let theirs = &word.capabilities.backends;
    name != &id(REQUESTER)
        && ask.target.as_ref().is_none_or(|target| target == name)
        && word.lending
        && standing.cordon.is_none()
        && standing.lost.is_none()
        && !ledger.awaits_report(name)
        && !ledger.revoked().contains_key(&Subject::Cluster(name.clone()))
        && !owes_more_than_it_has(fleet, word)
        && fleet.policy.allows(&id(REQUESTER), name)
        && (theirs.is_empty()
            || ask.backends.is_empty()
            || theirs.iter().any(|one| ask.backends.contains(one)))
        && ask.constraints.iter().all(label)
        && ask.resources.fits_in(&books.room(name))
}

/// Is something held there of which more is taken than it has? Where grants are not reported, all
/// pods may be inside them.
pub(super) fn owes_more_than_it_has(fleet: &Fleet, word: &Advertisement) -> bool {
    let all = fleet.books.ledger().reservations(None);
    let lent: BTreeMap<_, _> = all
        .filter_map(|one| Some((one.id, one.holding()?)))
        .filter(|(_, grant)| grant.provider == word.cluster)
        .map(|(id, grant)| (id, &grant.held))
        .collect();
    let kinds = [Kind::Cpu, Kind::Memory, Kind::Gpu, Kind::Storage, fpga()];
    kinds.iter().any(|kind| {
        let held: u64 = lent.values().map(|held| held.get(kind)).sum();
        let allocated = word.allocated.get(kind);
        let taken = word.grants.as_ref().map_or(held.max(allocated), |grants| {
            let used: u64 = grants.iter().map(|grant| grant.used.get(kind)).sum();
            let unreported = lent.iter().filter(|(id, _)| grants.iter().all(|g| g.id != **id));
            let unreported: u64 = unreported.map(|(_, held)| held.get(kind)).sum();
            let reported = grants.iter().map(|grant| {
                let kept = lent.get(&grant.id).copied().unwrap_or(&grant.amounts);
                kept.get(kind).max(grant.used.get(kind))
            });
            allocated - used + unreported + reported.sum::<u64>()
        });
        held > 0 && taken > word.allocatable.get(kind)
    })
}

/// The mean headroom left, as a fraction in floating point.
pub(super) fn headroom(fleet: &Fleet, ask: &Ask, name: &ClusterId) -> f64 {
    let has = fleet.word(name).allocatable;
    let room = fleet.books.room(name);
    let left = |(kind, amount): (Kind, u64)| {
        let (room, has) = (float(room.get(&kind)), float(has.get(&kind)));
        (room - float(amount)) / has
    };
    let shares: Vec<f64> = ask.resources.iter().map(left).collect();
    shares.iter().sum::<f64>() / float(shares.len() as u64)
}

/// What the request costs there in an hour; infinity where no price is named.
pub(super) fn price(fleet: &Fleet, ask: &Ask, name: &ClusterId) -> f64 {
    let Some(cost) = fleet.word(name).cost else { return f64::INFINITY };
    float(ask.resources.cpu) / 1e3 * float(cost.cpu_micros)
        + float(ask.resources.memory) / 1e9 * float(cost.memory_micros)
}

#[expect(clippy::cast_precision_loss, reason = "the amounts here are tiny")]
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

/// Is `other` better than `chosen` by more than rounding can explain?
pub(super) fn is_better(fleet: &Fleet, ask: &Ask, other: &ClusterId, chosen: &ClusterId) -> bool {
    const ROUNDING: f64 = 1e-8;
    let room = headroom(fleet, ask, other) - headroom(fleet, ask, chosen);
    let (a, b) = (price(fleet, ask, other), price(fleet, ask, chosen));
    // The amounts are so small that figures as near as this are equal: then the name decides.
    let tie = room.abs() < ROUNDING && other < chosen;
    match ask.strategy.unwrap_or_default() {
        Choice::Headroom => room > ROUNDING || tie,
        Choice::Binpack => room < -ROUNDING || tie,
        #[expect(clippy::float_cmp, reason = "prices here are small sums of small products")]
        Choice::Cost => a < b || (a == b && (room > ROUNDING || tie)),
    }
}

pub(super) fn check_pick(fleet: &Fleet, ask: &Ask) -> Result<(), TestCaseError> {
    let all: Vec<_> = fleet.books.market().entries().collect();
    let fresh = |name: &ClusterId| {
        let entry = fleet.books.market().entry(name).unwrap();
        entry.freshness(&fleet.policy.silence, fleet.now)
    };
    let fitting = |freshness| {
        let all = all.iter().map(|(name, _)| *name);
        all.filter(move |name| fresh(name) == freshness && may(fleet, ask, name))
    };
    match fleet.decide(REQUESTER, ask) {
        Ok(pick) => {
            prop_assert!(fitting(Freshness::Active).any(|name| *name == pick.provider));
            for other in fitting(Freshness::Active) {
                prop_assert!(!is_better(fleet, ask, other, &pick.provider), "{} is better", other);
            }
        }
        Err(no) => {
            prop_assert_eq!(fitting(Freshness::Active).next(), None);
            let suspects = fitting(Freshness::Suspect).next().is_some();
            prop_assert_eq!(no == NoPick::OnlySuspects, suspects);
        }
    }
    Ok(())
}

pub(super) fn is_granted(fleet: &Fleet, ask: &Ask) -> bool {
    let books = &fleet.books;
    let excess = allowance_excess(books, &id(REQUESTER), ask, &fleet.policy);
    ask.check().is_ok() && excess.is_none() && fleet.decide(REQUESTER, ask).is_ok()
}

pub(super) fn check_nearest(fleet: &Fleet, ask: &Ask, near: &Nearest) -> Result<(), TestCaseError> {
    prop_assert!(near.less.is_some() || near.more.is_some() || near.cap.is_some());
    if let Some(less) = &near.less {
        let resources = ask.resources.checked_sub(less).unwrap();
        prop_assert!(is_granted(fleet, &Ask { resources, ..ask.clone() }), "less: {:?}", near);
    }
    if let Some(more) = &near.more {
        let mut changed = fleet.clone();
        let mut word = fleet.word(&near.cluster);
        word.allocatable = word.allocatable.checked_add(more).unwrap();
        changed.hear(word);
        prop_assert!(is_granted(&changed, ask), "more: {:?}", near);
    }
    if let Some(cap) = &near.cap {
        let mut changed = fleet.clone();
        let mut limits = fleet.books.ledger().standing(&near.cluster).unwrap().cap.clone();
        for (kind, by) in cap.iter() {
            *limits.0.get_mut(&kind).unwrap() += by;
        }
        changed.apply(&Event::Capped { cluster: near.cluster.clone(), limits, note: note() });
        prop_assert!(is_granted(&changed, ask), "cap: {:?}", near);
    }
    Ok(())
}

pub(super) fn check_lift(fleet: &Fleet, ask: &Ask, lift: &Lift) -> Result<(), TestCaseError> {
    let (mut fleet, mut ask, cluster) = (fleet.clone(), ask.clone(), lift.cluster.clone());
    let mut word = fleet.word(&cluster);
    match lift.filter {
        Filter::Target => ask.target = None,
        Filter::Labels => ask.constraints.retain(|other| Some(other) != lift.constraint.as_ref()),
        Filter::Backend => {
            ask.backends = ask.backends.iter().chain(word.capabilities.backends.iter()).collect();
        }
        Filter::Suspect | Filter::Stale => fleet.hear(word),
        Filter::NotLending => {
            word.lending = true;
            fleet.hear(word);
        }
        Filter::Cordoned => fleet.apply(&Event::Uncordoned { cluster, note: note() }),
        Filter::Lost => fleet.apply(&Event::Returned { cluster }),
        Filter::AwaitingReport => fleet.apply(&Event::Reconciled { cluster, note: note() }),
        Filter::Revoked => {
            fleet.apply(&Event::Reinstated { subject: Subject::Cluster(cluster), note: note() });
        }
        Filter::Policy => fleet.policy.lending.clear(),
        // So many grants have a test of their own.
        Filter::Itself
        | Filter::Unknown
        | Filter::Crowded
        | Filter::Overcommitted
        | Filter::Fit => {
            prop_assert!(false, "{:?}", lift);
        }
    }
    prop_assert!(is_granted(&fleet, &ask), "{:?}", lift);
    Ok(())
}

/// How many clusters each filter refuses first, with a look at everybody.
pub(super) fn counted_one_by_one(fleet: &Fleet, ask: &Ask) -> BTreeMap<Filter, u64> {
    let (books, requester) = (&fleet.books, id(REQUESTER));
    let question = Question {
        books,
        requester: &requester,
        ask,
        policy: &fleet.policy,
        now: fleet.now,
        grows: false,
    };
    let target = ask.target.iter().filter(|target| books.market().entry(target).is_none());
    let everybody = books.market().entries().map(|(name, _)| name).chain(target);
    everybody.fold(BTreeMap::new(), |mut counts, name| {
        if let Verdict::Refused(filter) = question.verdict(name) {
            *counts.entry(filter).or_default() += 1;
        }
        counts
    })
}

pub(super) fn check_refusal(fleet: &Fleet, ask: &Ask, why: &Refused) -> Result<(), TestCaseError> {
    let missing = ask.target.as_ref().is_some_and(|t| fleet.books.market().entry(t).is_none());
    let counted = why.refused.values().sum::<u64>() + why.fitting + why.uncounted;
    prop_assert_eq!(counted, why.clusters + u64::from(missing));
    let exact = counted_one_by_one(fleet, ask);
    if why.uncounted == 0 {
        prop_assert_eq!(&why.refused, &exact);
    } else {
        prop_assert!(why.clusters > explain::LOOKS_MAX, "so few can all be looked at");
        for (filter, count) in &why.refused {
            prop_assert!(Some(count) <= exact.get(filter), "{:?}: {}", filter, count);
        }
    }
    prop_assert!(
        why.nearest.len() <= explain::NEAREST_MAX && why.lifts.len() <= explain::LIFTS_MAX
    );
    if let Some(excess) = &why.allowance {
        let resources = ask.resources.minus_floor(excess);
        let less = Ask { resources, ..ask.clone() };
        prop_assert!(
            allowance_excess(&fleet.books, &id(REQUESTER), &less, &fleet.policy).is_none()
        );
    }
    for near in &why.nearest {
        check_nearest(fleet, ask, near)?;
    }
    for lift in &why.lifts {
        check_lift(fleet, ask, lift)?;
    }
    Ok(())
}

/// Asks a fleet, and looks at every answer; how many were refused.
pub(super) fn check_answers(fleet: &Fleet, asks: &[Ask]) -> Result<usize, TestCaseError> {
    prop_assert!(invariants::check_books(&fleet.books).is_empty());
    let mut refused = 0;
    for ask in asks {
        check_pick(fleet, ask)?;
        if is_granted(fleet, ask) {
            continue;
        }
        refused += 1;
        match explain::refused(&fleet.books, &id(REQUESTER), ask, &fleet.policy, fleet.now) {
            Explanation::Refused(why) => check_refusal(fleet, ask, &why)?,
            Explanation::Granted(why) => prop_assert!(false, "{}", why),
        }
    }
    Ok(refused)
}
