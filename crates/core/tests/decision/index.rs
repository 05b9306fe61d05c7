//! The index answers exactly as a look at every row does, whatever the order of updates was.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sublet_core::advertisement::Cost;
use sublet_core::decision::Strategy as Choice;
use sublet_core::decision::filter::Filter;
use sublet_core::decision::index::{Index, Note, Row};
use sublet_core::id::ClusterId;
use sublet_core::resources::{Kind, Resources};

#[derive(Clone, Debug)]
enum Step {
    Set(ClusterId, Row),
    Remove(ClusterId),
}

/// Names of different lengths, so that their order is not that of their numbers.
fn name() -> impl Strategy<Value = ClusterId> {
    (0..300_u32).prop_map(|number| format!("c{number}").parse().unwrap())
}

/// Few values, so that many are alike; large ones, so that products need 128 bits.
fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0..6_u64,
        2 => (0..6_u64).prop_map(|n| n << 40),
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ]
}

fn resources() -> impl Strategy<Value = Resources> {
    let extended = prop::option::weighted(0.3, (0..3_u8, 0..4_u64));
    (amount(), amount(), 0..3_u64, 0..3_u64, extended).prop_map(|(cpu, memory, gpu, storage, x)| {
        let mut four = Resources::new(cpu, memory);
        (four.gpu, four.storage) = (gpu, storage);
        match x {
            Some((name, amount)) => four.with(extended_kind(name), amount).unwrap(),
            None => four,
        }
    })
}

fn extended_kind(number: u8) -> Kind {
    format!("example.com/thing-{number}").parse().unwrap()
}

fn cost() -> impl Strategy<Value = Option<Cost>> {
    let currency = prop::sample::select(vec!["EUR", "USD"]);
    prop::option::of((0..4_u64, 0..4_u64, currency).prop_map(|(cpu, memory, currency)| Cost {
        cpu_micros: cpu,
        memory_micros: memory,
        currency: currency.to_owned(),
    }))
}

fn note(open: bool) -> Note {
    Note { closed: (!open).then_some(Filter::Cordoned), ..Note::default() }
}

fn row() -> impl Strategy<Value = Row> {
    let size = prop_oneof![
        // Whole fleets of one size, idle or nearly so.
        3 => Just(Resources::new(4, 8).with(Kind::Gpu, 2).unwrap()),
        2 => resources(),
    ];
    (size, resources(), any::<bool>(), cost(), prop::bool::weighted(0.9)).prop_map(
        |(allocatable, taken, idle, cost, open)| Row {
            room: if idle { allocatable.clone() } else { allocatable.minus_floor(&taken) },
            allocatable,
            cost,
            note: note(open),
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (name(), row()).prop_map(|(name, row)| Step::Set(name, row)),
        1 => name().prop_map(Step::Remove),
    ]
}

fn built(steps: &[Step]) -> Index {
    let mut index = Index::default();
    for step in steps {
        match step {
            Step::Set(cluster, row) => index.set(cluster, row.clone()),
            Step::Remove(cluster) => index.remove(cluster),
        }
    }
    index
}

/// The `count` best, one after the other, each by a look at every row.
fn scan_of(
    index: &Index,
    count: usize,
    resources: &Resources,
    strategy: Choice,
    refused: &BTreeSet<ClusterId>,
) -> Vec<ClusterId> {
    let mut found: Vec<ClusterId> = Vec::new();
    for _ in 0..count {
        let next = index.scan(resources, strategy, |cluster| {
            !refused.contains(cluster) && !found.contains(cluster)
        });
        match next {
            Some(cluster) => found.push(cluster),
            None => break,
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_tree_finds_what_the_scan_finds(
        steps in prop::collection::vec(step(), 0..600),
        asks in prop::collection::vec(resources(), 1..8),
        refused in prop::collection::btree_set(name(), 0..40),
    ) {
        let index = built(&steps);
        for ask in &asks {
            for strategy in Choice::ALL {
                let accept = |cluster: &ClusterId| !refused.contains(cluster);
                let expected = index.scan(ask, strategy, accept);
                prop_assert_eq!(index.best(ask, strategy, accept), expected, "{:?}", strategy);
                if !ask.is_zero() {
                    prop_assert_eq!(
                        index.best_of(4, ask, strategy, accept),
                        scan_of(&index, 4, ask, strategy, &refused)
                    );
                }
            }
        }
    }

    #[test]
    fn a_provider_is_asked_about_only_when_it_would_win(
        steps in prop::collection::vec(step(), 0..200),
        ask in resources(),
    ) {
        let index = built(&steps);
        prop_assume!(!ask.is_zero());
        let mut asked = 0;
        index.best(&ask, Choice::Headroom, |_| { asked += 1; true });
        prop_assert!(asked <= 1);
    }

    #[test]
    fn rows_come_back_as_they_were_set_and_by_name(
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let index = built(&steps);
        let mut expected = std::collections::BTreeMap::new();
        for step in steps {
            match step {
                Step::Set(cluster, row) => drop(expected.insert(cluster, row)),
                Step::Remove(cluster) => drop(expected.remove(&cluster)),
            }
        }
        let found: Vec<_> = index.rows(None).map(|(c, row)| (c.clone(), row.clone())).collect();
        prop_assert_eq!(index.len(), expected.len());
        prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }
}

/// A row of one of a few sizes and many prices, by the digits of `n`.
fn varied(n: u64) -> Row {
    let (cores, part) = (4 << (n % 4), 1 + n / 4 % 40);
    let allocatable = Resources::new(cores * 1000, cores << 32).with(Kind::Gpu, n % 3).unwrap();
    let taken = Resources::new(cores * 20 * part, (cores << 26) * (n / 7 % 60));
    let cost =
        Cost { cpu_micros: n / 3 % 30, memory_micros: n / 11 % 30, currency: "EUR".to_owned() };
    let room = allocatable.minus_floor(&taken);
    Row {
        room,
        allocatable,
        cost: (!n.is_multiple_of(50)).then_some(cost),
        note: note(!n.is_multiple_of(17)),
    }
}

#[test]
fn a_large_fleet_that_changes_is_searched_as_it_is_scanned() {
    let (mut index, size) = (Index::default(), 4000);
    let number = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let name = |n: u64| format!("c{}", n % size).parse::<ClusterId>().unwrap();
    for n in 0..3 * size {
        // First all of them, then others in their places, some of which go.
        match number(n) % 9 {
            0 if n > size => index.remove(&name(number(n))),
            _ => index.set(&name(if n < size { n } else { number(n) }), varied(number(n))),
        }
    }
    for n in 0..200 {
        let ask = Resources::new(1 + number(n) % 9000, 1 + ((number(n) % 70) << 28));
        let ask = ask.with(Kind::Gpu, u64::from(n % 8 == 0)).unwrap();
        for strategy in Choice::ALL {
            let accept = |cluster: &ClusterId| n % 4 > 0 || !cluster.as_str().ends_with('7');
            let found = index.best(&ask, strategy, accept);
            assert_eq!(found, index.scan(&ask, strategy, accept), "{strategy:?} {ask:?}");
        }
    }
}

#[test]
fn names_that_always_fall_into_the_same_gap_are_still_in_order() {
    let mut index = Index::default();
    let idle = Row {
        room: Resources::new(1000, 1000),
        allocatable: Resources::new(1000, 1000),
        cost: None,
        note: note(true),
    };
    // Each name is the first before all but `a`, so the gap after `a` is halved every time.
    let names: Vec<ClusterId> =
        (0..400).rev().map(|n| format!("b{n:03}").parse().unwrap()).collect();
    index.set(&"a".parse().unwrap(), Row { note: note(false), ..idle.clone() });
    for (set, name) in names.iter().enumerate() {
        index.set(name, idle.clone());
        let best = index.best_of(set + 1, &Resources::new(1, 1), Choice::Headroom, |_| true);
        assert_eq!(best, names[..=set].iter().rev().cloned().collect::<Vec<_>>());
    }
}

#[test]
fn many_identical_idle_clusters_are_not_looked_at_one_by_one() {
    let mut index = Index::default();
    let size = Resources::new(8000, 32 << 30);
    let names: Vec<ClusterId> = (0..5000).map(|n| format!("c{n}").parse().unwrap()).collect();
    for name in &names {
        let row =
            Row { room: size.clone(), allocatable: size.clone(), cost: None, note: note(true) };
        index.set(name, row);
    }
    let ask = Resources::new(500, 1 << 30);
    let mut expected: Vec<_> = names.clone();
    expected.sort();
    // Refusing the first few shows that the next by name follow, in order.
    let mut asked = Vec::new();
    let found = index.best(&ask, Choice::Headroom, |cluster| {
        asked.push(cluster.clone());
        asked.len() > 3
    });
    assert_eq!(asked, expected[..4]);
    assert_eq!(found.as_ref(), asked.last());
}
