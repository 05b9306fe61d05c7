//! What the broker is told, and what it makes of it.

use proptest::prelude::*;
use sublet_core::advertisement as core;
use sublet_core::books::Books;
use sublet_core::id::ClusterId;
use sublet_core::policy::Policy;
use sublet_core::resources::Kind;
use sublet_wire::v1::Cost;

use super::*;

const NOW: Time = Time::from_millis(1_794_780_000_000);
const NUMBER: sublet_crds::Number = sublet_crds::Number { incarnation: 7, sequence: 3 };
const ID: &str = "rsv-aaaaaaaaaaaaaaaaaaaa";

fn profile(offer: &str) -> Profile {
    Profile { offer: offer.parse().unwrap(), ..Profile::plain("c1".parse().unwrap()) }
}

fn grant(cpu: u64, carried_out: Option<u32>) -> Grant {
    Grant {
        reservation: ID.into(),
        requester: "c2".parse().unwrap(),
        carried_out: carried_out.map(Generation),
        amounts: Resources::new(cpu, 1),
        expires_at: Time::from_millis(NOW.as_millis() + 90_000).into(),
    }
}

/// 16 cores, of which own pods take 4, and a grant of 6 in which pods take 2.
fn measured() -> Measured {
    Measured {
        capacity: Resources::new(18_000, 100),
        allocatable: Resources::new(16_000, 90),
        allocated: Resources::new(6000, 10),
        grants: vec![(grant(6000, Some(2)), Resources::new(2000, 1))],
        ..Measured::default()
    }
}

fn told(profile: &Profile, measured: &Measured) -> core::Advertisement {
    let told = advertisement(profile, measured, Audience::Broker, NUMBER, NOW);
    told.to_core(profile.cluster.clone()).unwrap()
}

#[test]
fn all_of_it_is_told_as_it_was_measured() {
    let told = told(&profile("all"), &measured());
    assert_eq!(told.capacity, Resources::new(18_000, 100));
    assert_eq!(told.allocatable, Resources::new(16_000, 90));
    assert_eq!(told.allocated, Resources::new(6000, 10));
    assert_eq!(told.number, Some(core::Number { incarnation: 7, sequence: 3 }));
    let grants = told.grants.unwrap();
    assert_eq!(grants[0].used, Resources::new(2000, 1));
    assert_eq!(grants[0].amounts, Resources::new(6000, 1));
    assert_eq!(grants[0].generation, Generation(2));
    assert_eq!(grants[0].remaining.unwrap().to_string(), "1m30s");
}

#[test]
fn an_offer_of_less_is_a_smaller_allocatable() {
    // 12 cores are spare; 4 more are in use at home.
    for (offer, offered) in
        [("all", 12), ("50%", 6), ("cpu=all-4", 8), ("cpu=7", 7), ("none", 0), ("cpu=all-99", 0)]
    {
        let figures = Figures::of(&measured(), &offer.parse().unwrap());
        assert_eq!(figures.allocatable.cpu, 4000 + offered * 1000, "{offer}");
        assert_eq!(figures.available.cpu, (offered * 1000_u64).saturating_sub(6000), "{offer}");
        assert_eq!(figures.allocated.cpu, 6000, "{offer}");
    }
}

#[test]
fn what_was_not_carried_out_or_is_an_old_brokers_is_not_reported() {
    let mut measured = measured();
    measured.grants[0].0.carried_out = None;
    assert_eq!(told(&profile("all"), &measured).grants, Some(vec![]));
    measured.grants[0].0.carried_out = Some(Generation(1));
    measured.grants[0].0.reservation = "rsv-c2-1794780000000".into();
    assert_eq!(told(&profile("all"), &measured).grants, Some(vec![]));
    assert_eq!(Figures::of(&measured, &"all".parse().unwrap()).available.cpu, 6000);
}

#[test]
fn a_grant_that_has_run_out_has_nothing_remaining() {
    let late = Time::from_millis(NOW.as_millis() + 100_000);
    let told = advertisement(&profile("all"), &measured(), Audience::Broker, NUMBER, late);
    assert_eq!(told.grants.unwrap()[0].remaining.as_deref(), Some("0s"));
}

#[test]
fn labels_region_and_cost_are_told() {
    let mut profile = profile("all");
    profile.labels = labels("tier=gold, gpu-model = h100").unwrap();
    profile.region = Some("eu-west".to_owned());
    let cost = |cpu: &str| Cost {
        cpu_cost: cpu.to_owned(),
        memory_cost: "0.004".to_owned(),
        currency: "EUR".to_owned(),
    };
    profile.cost = Some(cost("0.031"));
    profile.lending = false;
    profile.check().unwrap();
    let told = told(&profile, &measured());
    assert_eq!(told.labels["tier"], "gold");
    assert_eq!(told.labels["gpu-model"], "h100");
    assert_eq!(told.labels[Profile::REGION], "eu-west");
    assert_eq!(told.cost.unwrap().cpu_micros, 31_000);
    assert!(!told.lending);
    profile.cost = Some(cost("cheap"));
    assert!(profile.check().unwrap_err().to_string().contains("cpuCost"));
    profile.cost = None;
    profile.region = Some("x".repeat(64));
    assert!(profile.check().is_err());
}

#[test]
fn a_label_has_a_name_and_a_value_and_comes_once() {
    assert_eq!(labels("").unwrap().len(), 0);
    assert_eq!(labels("a=").unwrap()["a"], "");
    assert_eq!(labels("gold"), Err(LabelError::NoValue("gold".to_owned())));
    assert_eq!(labels("=gold"), Err(LabelError::NoValue("=gold".to_owned())));
    assert_eq!(labels("a=1,a=2"), Err(LabelError::Twice("a".to_owned())));
}

#[test]
fn an_old_broker_is_told_what_it_can_subtract_from() {
    let mut measured = measured();
    for resources in [&mut measured.capacity, &mut measured.allocatable] {
        *resources = resources.clone().with(Kind::Gpu, 2).unwrap();
    }
    let told = advertisement(&profile("all"), &measured, Audience::OldBroker, NUMBER, NOW);
    assert_eq!((told.grants, told.number), (None, None));
    let v1::ResourceMetrics { allocatable, allocated, available, .. } = told.resources;
    assert_eq!(allocatable.gpu.as_deref(), Some("2"));
    assert_eq!(allocated.gpu.as_deref(), Some("0"));
    assert_eq!(available.gpu.as_deref(), Some("2"));
    // It subtracts the 6 cores that it holds itself: 16 − 4 − 6.
    assert_eq!(allocated.cpu, "4");
    assert_eq!(available.cpu, "6");
}

#[test]
fn the_object_for_people_says_the_same() {
    let spec = object(&profile("50%"), &measured(), NUMBER, NOW);
    let text = serde_json::to_value(&spec).unwrap();
    assert_eq!(text["clusterID"], "c1");
    assert_eq!(text["resources"]["allocatable"]["cpu"], "10");
    assert_eq!(text["resources"]["allocated"]["cpu"], "6");
    assert_eq!(text["resources"]["lent"]["cpu"], "6");
    assert_eq!(text["resources"]["available"]["cpu"], "0");
    assert_eq!(text["timestamp"], "2026-11-15T22:00:00Z");
    assert_eq!(text["number"]["sequence"], 3);
}

/// What a broker that holds nothing makes of an advertisement: what it would lend.
fn room(told: core::Advertisement) -> Resources {
    let cluster: ClusterId = told.cluster.clone();
    let mut books = Books::default();
    books.hear(told, NOW, &Policy::default().silence);
    books.room(&cluster)
}

proptest! {
    #[test]
    fn a_broker_never_makes_more_of_it_than_is_offered(
        allocatable in 0..50_u64, own in 0..50_u64, granted in 1..50_u64, used in 0..50_u64,
        share in 0..=100_u64,
    ) {
        let mut measured = Measured {
            capacity: Resources::new(allocatable, 1),
            allocatable: Resources::new(allocatable, 1),
            allocated: Resources::new(own + used, 1),
            ..Measured::default()
        };
        measured.grants = vec![(grant(granted, Some(1)), Resources::new(used, 0))];
        let offered = allocatable.saturating_sub(own) * share / 100;
        let told = told(&profile(&format!("{share}%")), &measured);
        // The broker does not hold the grant, so to it the grant is a ghost: what was granted, or
        // what is used where that is more, is not lent again.
        prop_assert_eq!(room(told).cpu, offered.saturating_sub(granted.max(used)));
    }
}
