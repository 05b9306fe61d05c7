//! On any books: the pick is the one that a naive look at everybody finds, and every change that a
//! refusal proposes leads to a grant.

use std::collections::BTreeMap;

use crate::fleet::{Fleet, ask, id, note};
use proptest::prelude::*;
use sublet_core::advertisement::{Advertisement, Backend, Cost, GrantReport};
use sublet_core::decision::explain::{self, Explanation, Lift, Nearest, Refused};
use sublet_core::decision::filter::{Filter, Question, Verdict, allowance_excess};
use sublet_core::decision::{Constraint, Match, NoPick, Strategy as Choice};
use sublet_core::event::{Event, Subject};
use sublet_core::id::{ClusterId, Generation, ReservationId};
use sublet_core::invariants;
use sublet_core::market::Freshness;
use sublet_core::policy::{Allowance, Clusters, Rule};
use sublet_core::reservation::Ask;
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::Span;

const REQUESTER: &str = "c0";

#[derive(Clone, Debug)]
enum Step {
    /// A word; with eighths, it reports the grants there, of which so much is in use.
    Hear(Advertisement, Option<u64>),
    Reserve(u8, Ask),
    Decided(Event),
    Wait(u64),
    Revert(Event),
}

/// How large a fleet is, and the amounts that are asked of it.
#[derive(Clone, Copy)]
struct Scale {
    clusters: u16,
    asked: (u64, u64),
}

const SMALL: Scale = Scale { clusters: 12, asked: (1, 8) };
/// More than are looked at one by one. The requests are so large that many are refused all the same.
const LARGE: Scale = Scale { clusters: 400, asked: (8, 14) };

fn name(scale: Scale) -> impl Strategy<Value = ClusterId> {
    (0..scale.clusters).prop_map(|number| id(&format!("c{number}")))
}

fn fpga() -> Kind {
    "example.com/fpga".parse().unwrap()
}

fn amounts(most: u64) -> impl Strategy<Value = Resources> {
    (0..=most, 0..=most, 0..3_u64, 0..3_u64).prop_map(|(cpu, memory, gpu, fpgas)| {
        let four = Resources::new(cpu, memory).with(Kind::Gpu, gpu).unwrap();
        four.with(fpga(), fpgas).unwrap()
    })
}

fn advertisement(scale: Scale) -> impl Strategy<Value = Advertisement> {
    let cost = prop::option::of((0..3_u64, 0..3_u64));
    let said = (prop::bool::weighted(0.9), prop::option::of(0..2_u8), 0..3_u8, cost);
    (name(scale), amounts(12), amounts(8), said).prop_map(|(name, has, taken, said)| {
        let (lending, zone, backend, cost) = said;
        let mut word = Advertisement::plain(name, has, taken);
        word.lending = lending;
        word.labels = zone.map(|zone| ("zone".to_owned(), zone.to_string())).into_iter().collect();
        word.capabilities.backends = match backend {
            0 => [].into(),
            1 => [Backend::Liqo].into(),
            _ => [Backend::Liqoctl].into(),
        };
        word.cost = cost.map(|(cpu_micros, memory_micros)| Cost {
            cpu_micros,
            memory_micros,
            currency: "EUR".to_owned(),
        });
        word
    })
}

fn asks(scale: Scale) -> impl Strategy<Value = Ask> {
    let (least, most) = scale.asked;
    let shape = (least..most, least..most, 0..3_u64, prop_oneof![4 => Just(0_u64), 1 => 1..3_u64]);
    let target = prop::option::weighted(0.2, name(scale));
    let label = prop::collection::vec(
        (0..3_u8).prop_map(|kind| Constraint {
            label: "zone".to_owned(),
            is: match kind {
                0 => Match::In(vec!["0".to_owned()]),
                1 => Match::Exists,
                _ => Match::NotIn(vec!["1".to_owned()]),
            },
        }),
        0..3,
    );
    let backend = prop::option::weighted(0.4, prop::sample::select(vec![Backend::Liqo]));
    let strategy = prop::option::of(prop::sample::select(Choice::ALL.to_vec()));
    (shape, target, label, backend, strategy).prop_map(
        |((cpu, memory, gpu, fpgas), target, constraints, backend, strategy)| {
            let resources = Resources::new(cpu, memory).with(Kind::Gpu, gpu).unwrap();
            Ask {
                resources: resources.with(fpga(), fpgas).unwrap(),
                target,
                constraints,
                backends: backend.into_iter().collect(),
                strategy,
                ..Ask::default()
            }
        },
    )
}

fn decided(scale: Scale) -> impl Strategy<Value = Event> {
    (name(scale), 0..7_u8, 0..8_u64).prop_map(|(cluster, kind, limit)| match kind {
        0 => Event::Cordoned { cluster, drain: false, note: note() },
        1 => Event::Uncordoned { cluster, note: note() },
        2 => Event::Lost { cluster, note: note() },
        3 => Event::Revoked { subject: Subject::Cluster(cluster), note: note() },
        4 => Event::Restored { note: note() },
        5 => Event::Reconciled { cluster, note: note() },
        _ => Event::Capped { cluster, limits: Limits([(Kind::Cpu, limit)].into()), note: note() },
    })
}

fn step(scale: Scale) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (advertisement(scale), prop::option::of(0..9_u64))
            .prop_map(|(word, in_use)| Step::Hear(word, in_use)),
        3 => (0..4_u8, asks(scale)).prop_map(|(who, ask)| Step::Reserve(who, ask)),
        1 => decided(scale).prop_map(Step::Decided),
        1 => decided(scale).prop_map(Step::Revert),
        1 => (0..70_u64).prop_map(Step::Wait),
    ]
}

fn built(steps: Vec<Step>, limit: Option<u64>, forbidden: Option<ClusterId>) -> Fleet {
    let mut fleet = Fleet::new();
    for step in steps {
        match step {
            Step::Hear(word, None) => fleet.hear(word),
            Step::Hear(word, Some(eighths)) => fleet.hear(reporting(&fleet, word, eighths)),
            Step::Reserve(who, ask) => drop(fleet.reserve(&format!("c{who}"), &ask)),
            Step::Decided(event) => fleet.apply(&event),
            Step::Wait(seconds) => fleet.wait(Span::from_secs(seconds)),
            Step::Revert(event) => {
                let reversal = fleet.books.apply(fleet.stamp(), &event).unwrap();
                fleet.books.revert(reversal).unwrap();
            }
        }
    }
    if let Some(limit) = limit {
        let held = Limits([(Kind::Cpu, limit)].into());
        fleet.policy.allowance = Allowance { held, ..Allowance::default() };
    }
    fleet.policy.lending.extend(forbidden.map(|provider| Rule {
        requesters: Clusters::Any,
        providers: Clusters::These([provider].into()),
        allow: false,
    }));
    fleet
}

/// The same word from an agent that reports its grants, and sometimes one that nobody knows.
fn reporting(fleet: &Fleet, mut word: Advertisement, eighths: u64) -> Advertisement {
    let mut grants = Vec::new();
    for known in fleet.books.ledger().reservations(None) {
        let Some(grant) = known.holding().filter(|grant| grant.provider == word.cluster) else {
            continue;
        };
        let used = grant.held.iter().fold(Resources::default(), |used, (kind, amount)| {
            used.with(kind, amount * eighths / 8).unwrap()
        });
        grants.push(report(known.id, &grant.held, used));
    }
    if eighths % 2 == 1 {
        let stray = Resources::new(eighths, 1).with(fpga(), 1).unwrap();
        grants.push(report("rsv-aaaaaaaaaaaaaaaaaaaa".parse().unwrap(), &stray, stray.clone()));
    }
    let add = |sum: Resources, grant: &GrantReport| sum.checked_add(&grant.used).unwrap();
    word.allocated = grants.iter().fold(word.allocated, add);
    word.grants = Some(grants);
    word.validated().unwrap()
}

fn report(id: ReservationId, amounts: &Resources, used: Resources) -> GrantReport {
    let (generation, requester) = (Generation(1), crate::fleet::id("c1"));
    GrantReport { id, generation, requester, amounts: amounts.clone(), used, remaining: None }
}

/// May this cluster be chosen? Written from the design, with nothing of the filter's code.
fn may(fleet: &Fleet, ask: &Ask, name: &ClusterId) -> bool {
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
        && (theirs.is_empty() || ask.backends.is_empty() || !theirs.is_disjoint(&ask.backends))
        && ask.constraints.iter().all(label)
        && ask.resources.fits_in(&books.room(name))
}

/// Is something held there of which more is taken than it has? Where grants are not reported, all
/// pods may be inside them.
fn owes_more_than_it_has(fleet: &Fleet, word: &Advertisement) -> bool {
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
fn headroom(fleet: &Fleet, ask: &Ask, name: &ClusterId) -> f64 {
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
fn price(fleet: &Fleet, ask: &Ask, name: &ClusterId) -> f64 {
    let Some(cost) = fleet.word(name).cost else { return f64::INFINITY };
    float(ask.resources.cpu) / 1e3 * float(cost.cpu_micros)
        + float(ask.resources.memory) / 1e9 * float(cost.memory_micros)
}

#[expect(clippy::cast_precision_loss, reason = "the amounts here are tiny")]
fn float(number: u64) -> f64 {
    number as f64
}

/// Is `other` better than `chosen` by more than rounding can explain?
fn is_better(fleet: &Fleet, ask: &Ask, other: &ClusterId, chosen: &ClusterId) -> bool {
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

fn check_pick(fleet: &Fleet, ask: &Ask) -> Result<(), TestCaseError> {
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

fn is_granted(fleet: &Fleet, ask: &Ask) -> bool {
    let books = &fleet.books;
    let excess = allowance_excess(books, &id(REQUESTER), ask, &fleet.policy);
    ask.check().is_ok() && excess.is_none() && fleet.decide(REQUESTER, ask).is_ok()
}

fn check_nearest(fleet: &Fleet, ask: &Ask, near: &Nearest) -> Result<(), TestCaseError> {
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

fn check_lift(fleet: &Fleet, ask: &Ask, lift: &Lift) -> Result<(), TestCaseError> {
    let (mut fleet, mut ask, cluster) = (fleet.clone(), ask.clone(), lift.cluster.clone());
    let mut word = fleet.word(&cluster);
    match lift.filter {
        Filter::Target => ask.target = None,
        Filter::Labels => ask.constraints.retain(|other| Some(other) != lift.constraint.as_ref()),
        Filter::Backend => ask.backends.extend(&word.capabilities.backends),
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
fn counted_one_by_one(fleet: &Fleet, ask: &Ask) -> BTreeMap<Filter, u64> {
    let (books, requester) = (&fleet.books, id(REQUESTER));
    let question =
        Question { books, requester: &requester, ask, policy: &fleet.policy, now: fleet.now };
    let target = ask.target.iter().filter(|target| books.market().entry(target).is_none());
    let everybody = books.market().entries().map(|(name, _)| name).chain(target);
    everybody.fold(BTreeMap::new(), |mut counts, name| {
        if let Verdict::Refused(filter) = question.verdict(name) {
            *counts.entry(filter).or_default() += 1;
        }
        counts
    })
}

fn check_refusal(fleet: &Fleet, ask: &Ask, why: &Refused) -> Result<(), TestCaseError> {
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
fn check_answers(fleet: &Fleet, asks: &[Ask]) -> Result<usize, TestCaseError> {
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

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn the_pick_is_the_best_and_what_is_proposed_is_granted(
        steps in prop::collection::vec(step(SMALL), 0..60),
        asks in prop::collection::vec(asks(SMALL), 1..12),
        limit in prop::option::weighted(0.3, 0..8_u64),
        forbidden in prop::option::weighted(0.3, name(SMALL)),
    ) {
        check_answers(&built(steps, limit, forbidden), &asks)?;
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn the_same_holds_in_a_fleet_of_several_hundred(
        steps in prop::collection::vec(step(LARGE), 900..1200),
        asks in prop::collection::vec(asks(LARGE), 24),
        limit in prop::option::weighted(0.2, 8..16_u64),
        forbidden in prop::option::weighted(0.3, name(LARGE)),
    ) {
        let refused = check_answers(&built(steps, limit, forbidden), &asks)?;
        prop_assert!(refused > 0, "nothing was refused");
    }
}

#[test]
fn the_test_itself_sees_a_wrong_pick() {
    let size = Resources::new(8, 8);
    let fleet =
        Fleet::new().with("c1", size.clone(), Resources::new(4, 4)).with("c2", size.clone(), size);
    assert!(is_better(&fleet, &ask(1, 1), &id("c2"), &id("c1")));
    assert!(!is_better(&fleet, &ask(1, 1), &id("c1"), &id("c2")));
}
