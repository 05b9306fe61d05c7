//! Any fleet: what clusters said of themselves, what was reserved and decided, in any order.

use crate::fleet::{Fleet, id, note};
use proptest::prelude::*;
use sublet_core::advertisement::{Advertisement, Backend, Cost, GrantReport};
use sublet_core::decision::{Constraint, Match, Strategy as Choice};
use sublet_core::event::{Event, Subject};
use sublet_core::id::{ClusterId, Generation, ReservationId};
use sublet_core::policy::{Allowance, Clusters, Rule};
use sublet_core::reservation::Ask;
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::Span;

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A word; with eighths, it reports the grants there, of which so much is in use.
    Hear(Advertisement, Option<u64>),
    Reserve(u8, Ask),
    Decided(Event),
    Wait(u64),
    Revert(Event),
}

/// How large a fleet is, and the amounts that are asked of it.
#[derive(Clone, Copy)]
pub(super) struct Scale {
    clusters: u16,
    asked: (u64, u64),
}

pub(super) const SMALL: Scale = Scale { clusters: 12, asked: (1, 8) };
/// More than are looked at one by one. The requests are so large that many are refused all the same.
pub(super) const LARGE: Scale = Scale { clusters: 400, asked: (8, 14) };

pub(super) fn name(scale: Scale) -> impl Strategy<Value = ClusterId> {
    (0..scale.clusters).prop_map(|number| id(&format!("c{number}")))
}

pub(super) fn fpga() -> Kind {
    "example.com/fpga".parse().unwrap()
}

pub(super) fn amounts(most: u64) -> impl Strategy<Value = Resources> {
    (0..=most, 0..=most, 0..3_u64, 0..3_u64).prop_map(|(cpu, memory, gpu, fpgas)| {
        let four = Resources::new(cpu, memory).with(Kind::Gpu, gpu).unwrap();
        four.with(fpga(), fpgas).unwrap()
    })
}

pub(super) fn advertisement(scale: Scale) -> impl Strategy<Value = Advertisement> {
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

pub(super) fn asks(scale: Scale) -> impl Strategy<Value = Ask> {
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

pub(super) fn decided(scale: Scale) -> impl Strategy<Value = Event> {
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

pub(super) fn step(scale: Scale) -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (advertisement(scale), prop::option::of(0..9_u64))
            .prop_map(|(word, in_use)| Step::Hear(word, in_use)),
        3 => (0..4_u8, asks(scale)).prop_map(|(who, ask)| Step::Reserve(who, ask)),
        1 => decided(scale).prop_map(Step::Decided),
        1 => decided(scale).prop_map(Step::Revert),
        1 => (0..70_u64).prop_map(Step::Wait),
    ]
}

pub(super) fn built(steps: Vec<Step>, limit: Option<u64>, forbidden: Option<ClusterId>) -> Fleet {
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
pub(super) fn reporting(fleet: &Fleet, mut word: Advertisement, eighths: u64) -> Advertisement {
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

pub(super) fn report(id: ReservationId, amounts: &Resources, used: Resources) -> GrantReport {
    let (generation, requester) = (Generation(1), crate::fleet::id("c1"));
    GrantReport { id, generation, requester, amounts: amounts.clone(), used, remaining: None }
}
