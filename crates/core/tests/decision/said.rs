//! What a refusal says in words can be done as it is said, also by somebody who grows.

use crate::explain::{confirming, grow, refused};
use crate::fleet::{Fleet, GI, ask, id};
use proptest::prelude::*;
use sublet_core::decision::explain::{Explanation, Refused};
use sublet_core::plan::Refusal;
use sublet_core::resources::{Kind, Resources};

/// One change that would be enough.
#[derive(Debug, PartialEq)]
enum Change {
    Less(Resources),
    More(Resources),
}

/// Reads the changes out of what is said of one cluster, `c1`.
fn read(said: &str) -> Vec<Change> {
    let (_, proposed) = said.split_once("enough would be ").unwrap_or_default();
    let changes = proposed.split(", or ").filter(|one| !one.is_empty());
    let change = |one: &str| match (one.strip_suffix(" more free on c1"), one) {
        (Some(more), _) => Change::More(amounts(more)),
        (None, less) => {
            let less = less.strip_suffix(" on c1").unwrap_or(less);
            Change::Less(amounts(less.strip_suffix(" less").unwrap()))
        }
    };
    changes.map(change).collect()
}

fn amounts(said: &str) -> Resources {
    said.split(" and ").fold(Resources::default(), |sum, one| {
        let (kind, one) =
            one.strip_suffix(" of storage").map_or((Kind::Memory, one), |one| (Kind::Storage, one));
        let (number, unit) = one.split_once(' ').unwrap();
        let (kind, unit) = match unit {
            "core" | "cores" => (Kind::Cpu, 1000),
            "PiB" => (kind, 1 << 50),
            "TiB" => (kind, 1 << 40),
            "GiB" => (kind, 1 << 30),
            "MiB" => (kind, 1 << 20),
            "KiB" => (kind, 1 << 10),
            "B" => (kind, 1_u128),
            unit => panic!("{unit}"),
        };
        // Somebody who takes off so much asks for a whole number of bytes in the end.
        let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
        let (whole, part) = (whole.parse::<u128>().unwrap(), rest.parse::<u128>().unwrap());
        let amount = whole * unit + part * unit / 10_u128.pow(u32::try_from(rest.len()).unwrap());
        sum.with(kind, u64::try_from(amount).unwrap()).unwrap()
    })
}

/// An amount as people ask for it, and a little beside it.
fn amount() -> impl Strategy<Value = u64> {
    let unit = prop::sample::select(vec![10_u32, 20, 30, 40, 50]);
    let round = (unit, 1..2000_u64, prop::sample::select(vec![1_u64, 2, 4, 5, 200, 1000]));
    let round = round.prop_map(|(bits, many, parts)| (many << bits) / parts);
    (round, 0..3_u64, any::<bool>()).prop_map(|(round, little, above)| {
        if above { round + little } else { round.saturating_sub(little).max(1) }
    })
}

fn one_cluster(free: &Resources) -> Fleet {
    let fleet = Fleet::new().with("c1", free.clone(), free.clone());
    confirming(fleet, "c1")
}

fn with_more(mut fleet: Fleet, more: &Resources) -> Fleet {
    let mut said = fleet.word(&id("c1"));
    said.allocatable = said.allocatable.checked_add(more).unwrap();
    fleet.hear(said);
    fleet
}

fn refused_growth(refusal: Refusal) -> Refused {
    match refusal {
        Refusal::NobodyFits(why) => match *why {
            Explanation::Refused(why) => why,
            Explanation::Granted(why) => panic!("{why}"),
        },
        other => panic!("{other}"),
    }
}

#[test]
fn what_would_leave_nothing_is_said_in_a_finer_unit() {
    let said = |asked, free| {
        let why = refused(&one_cluster(&Resources::new(1, free)), &ask(1, asked));
        let text = why.to_string();
        text.split_once("enough would be ").unwrap().1.split_once(" less").unwrap().0.to_owned()
    };
    assert_eq!(said(2 * GI, 5 << 20), "2043 MiB");
    assert_eq!(said(GI + GI / 200, 1), "1079110532 B");
    assert_eq!(said(8 * GI, 15 << 20), "7.99 GiB");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_said_is_enough(
        asked in (1..9000_u64, amount(), amount()),
        free in (0..9000_u64, amount(), amount()),
    ) {
        let [asked, free] = [asked, free].map(|(cpu, memory, storage)| {
            Resources::new(cpu, memory).with(Kind::Storage, storage).unwrap()
        });
        let fleet = one_cluster(&free);
        let asks = |asked: &Resources| {
            let mut ask = ask(0, 0);
            ask.resources = asked.clone();
            ask
        };
        if fleet.pick("c0", &asks(&asked)).is_some() {
            return Ok(());
        }
        let why = refused(&fleet, &asks(&asked));
        let changes = read(&why.to_string());
        prop_assert!(!changes.is_empty(), "{}", why);
        for change in changes {
            let granted = match &change {
                Change::Less(less) => {
                    let rest = asks(&asked.checked_sub(less).unwrap());
                    rest.check().is_ok() && fleet.pick("c0", &rest).is_some()
                }
                Change::More(more) => with_more(fleet.clone(), more).pick("c0", &asks(&asked)).is_some(),
            };
            prop_assert!(granted, "{:?} of {:?}: {}", change, asked, why);
        }
    }

    #[test]
    fn what_is_said_to_somebody_who_grows_is_enough(
        (cpu, memory) in (1..9000_u64, amount()),
        room in (0..9000_u64, amount()),
        more in (0..9000_u64, amount()),
    ) {
        let sum = |one: (u64, u64)| Resources::new(cpu + one.0, memory + one.1);
        let mut fleet = one_cluster(&sum(room));
        let (reservation, _) = fleet.reserve("c0", &ask(cpu, memory)).unwrap();
        let wanted = sum(more);
        let Err(refusal) = grow(&fleet, reservation, wanted.clone()) else { return Ok(()) };
        let why = refused_growth(refusal);
        let changes = read(&why.to_string());
        prop_assert!(!changes.is_empty(), "{}", why);
        for change in changes {
            let grows = match &change {
                Change::Less(less) => grow(&fleet, reservation, wanted.checked_sub(less).unwrap()),
                Change::More(more) => grow(&with_more(fleet.clone(), more), reservation, wanted.clone()),
            };
            prop_assert!(grows.is_ok(), "{:?} of {:?}: {}", change, wanted, why);
        }
    }
}
