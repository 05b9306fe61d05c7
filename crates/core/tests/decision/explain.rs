//! What an explanation says is true, bounded, and no more than its reader may know.

use crate::fleet::{Fleet, GI, ask, id, note};
use sublet_core::advertisement::{Advertisement, Cost};
use sublet_core::decision::explain::{self, Explanation, Granted, Judgement, Refused};
use sublet_core::decision::filter::Filter;
use sublet_core::decision::{Constraint, Match, Strategy};
use sublet_core::event::Event;
use sublet_core::id::ReservationId;
use sublet_core::invariants;
use sublet_core::plan::{Command, Plan, Refusal, plan};
use sublet_core::policy::{Allowance, Visibility};
use sublet_core::reservation::{Actor, Ask, Confirmation, Reason};
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::Span;

pub(super) fn refused(fleet: &Fleet, ask: &Ask) -> Refused {
    match explain::refused(&fleet.books, &id("c0"), ask, &fleet.policy, fleet.now) {
        Explanation::Refused(refused) => refused,
        Explanation::Granted(granted) => panic!("{granted}"),
    }
}

fn granted(fleet: &Fleet, ask: &Ask) -> Granted {
    let pick = fleet.decide("c0", ask).unwrap();
    match explain::granted(&fleet.books, &id("c0"), ask, &pick, &fleet.policy, fleet.now) {
        Explanation::Granted(granted) => granted,
        Explanation::Refused(refused) => panic!("{refused}"),
    }
}

fn cluster(fleet: Fleet, name: &str, cpu: u64, memory_gi: u64) -> Fleet {
    fleet.with(name, Resources::new(16_000, 64 * GI), Resources::new(cpu, memory_gi * GI))
}

#[test]
fn a_grant_tells_what_the_winner_and_the_next_three_keep() {
    let mut fleet = Fleet::new();
    for (name, cpu) in [("c1", 8000), ("c2", 16_000), ("c3", 4000), ("c4", 2000), ("c5", 1000)] {
        fleet = cluster(fleet, name, cpu, 32);
    }
    let why = granted(&fleet, &ask(1000, 4 * GI));
    assert_eq!(
        why.to_string(),
        "c2 (93.75 % cpu, 43.75 % memory left); next c1 (43.75 % cpu, 43.75 % memory left), \
         then c3 (18.75 % cpu, 43.75 % memory left), then c4 (6.25 % cpu, 43.75 % memory left)"
    );
    let target = Ask { target: Some(id("c5")), ..ask(1000, 4 * GI) };
    assert_eq!(granted(&fleet, &target).to_string(), "c5 (0.00 % cpu, 43.75 % memory left)");
}

#[test]
fn where_the_price_decides_it_is_told() {
    let mut fleet = cluster(Fleet::new(), "c1", 8000, 32);
    fleet.hear({
        let mut ad = fleet.word(&id("c1"));
        let currency = "EUR".to_owned();
        ad.cost = Some(Cost { cpu_micros: 30_000, memory_micros: 4000, currency });
        ad
    });
    let cheap = Ask { strategy: Some(Strategy::Cost), ..ask(1500, 2_000_000_000) };
    let text = granted(&fleet, &cheap).to_string();
    assert!(text.starts_with("c1 for 0.053000 EUR an hour ("), "{text}");
}

#[test]
fn a_refusal_counts_everybody_once_and_names_the_smallest_changes() {
    let mut fleet = Fleet::new();
    for (name, cpu, memory) in [("c0", 8, 32), ("c1", 1, 32), ("c2", 8, 2), ("c3", 2, 3)] {
        fleet = cluster(fleet, name, cpu * 1000, memory);
    }
    fleet = cluster(cluster(fleet, "c4", 1500, 32), "c5", 16_000, 64);
    fleet.apply(&Event::Cordoned { cluster: id("c5"), drain: false, note: note() });
    let why = refused(&fleet, &ask(3000, 4 * GI));
    assert_eq!(why.clusters, 6);
    assert_eq!(
        why.to_string(),
        "of 6 clusters 1 the requester itself, 1 cordoned, 4 too full; enough would be \
         1 core and 1 GiB less, or 1 core and 1 GiB more free on c3; or \
         2 GiB less, or 2 GiB more free on c2; or \
         1.5 cores less, or 1.5 cores more free on c4; or c5 uncordoned"
    );
}

#[test]
fn a_request_for_one_gpu_is_not_told_to_ask_for_one_less() {
    let gpus = |free| Resources::new(16_000, 64 * GI).with(Kind::Gpu, free).unwrap();
    let fleet = Fleet::new().with("c1", gpus(4), gpus(1));
    let one = |count| Ask { resources: gpus(count), ..ask(1000, GI) };
    assert_eq!(
        refused(&fleet, &one(2)).to_string(),
        "of 1 cluster 1 too full; enough would be 1 GPU less, or 1 GPU more free on c1"
    );
    let fleet = Fleet::new().with("c1", gpus(4), gpus(0));
    assert_eq!(
        refused(&fleet, &one(1)).to_string(),
        "of 1 cluster 1 too full; enough would be 1 GPU more free on c1"
    );
}

/// One of ours: what it lends can be resized.
pub(super) fn confirming(mut fleet: Fleet, name: &str) -> Fleet {
    let mut said = fleet.word(&id(name));
    said.capabilities.acknowledge = true;
    fleet.hear(said);
    fleet
}

pub(super) fn grow(fleet: &Fleet, id: ReservationId, to: Resources) -> Result<Plan, Refusal> {
    let by = Actor::Cluster(crate::fleet::id("c0"));
    let command = Command::Resize { by, id, resources: to };
    plan(&fleet.books, &command, &fleet.policy, fleet.stamp())
}

#[test]
fn a_cluster_with_as_many_grants_as_it_can_report_needs_one_fewer() {
    let mut fleet = confirming(cluster(Fleet::new(), "c1", 16_000, 64), "c1");
    let mut all = Vec::new();
    for _ in 0..Advertisement::GRANTS_MAX {
        all.push(fleet.reserve("c0", &ask(1, 1)).unwrap().0);
    }
    let why = refused(&fleet, &ask(1, 1)).to_string();
    let told = "of 1 cluster 1 with as many grants as can be reported; enough would be \
                one grant fewer on c1";
    assert_eq!(why, told);
    // What is lent there may grow all the same: that is no further grant.
    let basis = fleet.books.basis(&id("c1"), &fleet.policy, fleet.now).unwrap();
    let resized = Event::Resized { id: all[0], amounts: Resources::new(9000, GI), basis };
    assert_eq!(
        grow(&fleet, all[0], Resources::new(9000, GI)).unwrap().events,
        std::slice::from_ref(&resized)
    );
    assert_eq!(invariants::judge(fleet.books.ledger(), fleet.stamp(), &resized), None);
    let refusal = grow(&fleet, all[0], Resources::new(11_905 + 1, 1)).unwrap_err().to_string();
    let told =
        "of 1 cluster 1 too full; enough would be 0.001 cores less, or 0.001 cores more free on c1";
    assert!(refusal.ends_with(told), "{refusal}");
    let (reason, by) = (Reason::ReleasedByRequester, Actor::Cluster(id("c0")));
    let confirmation = Confirmation::Unconfirmed;
    fleet.apply(&Event::Ended { id: all[0], reason, by, confirmation, hindrance: None });
    assert_eq!(fleet.pick("c0", &ask(1, 1)).as_deref(), Some("c1"));
}

#[test]
fn a_cap_that_is_in_the_way_is_named() {
    let mut fleet = cluster(Fleet::new(), "c1", 16_000, 64);
    let limits = Limits([(Kind::Cpu, 2000)].into());
    fleet.apply(&Event::Capped { cluster: id("c1"), limits, note: note() });
    let why = refused(&fleet, &ask(3000, GI));
    assert_eq!(
        why.to_string(),
        "of 1 cluster 1 too full; enough would be 1 core less, or a cap 1 core higher on c1"
    );
}

#[test]
fn the_requesters_own_allowance_is_told_apart_from_what_clusters_have() {
    let mut fleet = cluster(Fleet::new(), "c1", 16_000, 64);
    let held = Limits([(Kind::Cpu, 2000)].into());
    fleet.policy.allowance = Allowance { held, ..Allowance::default() };
    let why = refused(&fleet, &ask(3000, GI));
    assert_eq!(why.to_string(), "of 1 cluster 1 with room; 1 core more than your allowance");
    // A request that is beyond both must give up what both demand.
    let why = refused(&fleet, &ask(3000, 65 * GI));
    assert_eq!(
        why.to_string(),
        "of 1 cluster 1 too full; 1 core more than your allowance; enough would be \
         1 core and 1 GiB less on c1"
    );
}

#[test]
fn a_target_that_nobody_knows_is_counted_as_unknown() {
    let fleet = cluster(Fleet::new(), "c1", 16_000, 64);
    let why = refused(&fleet, &Ask { target: Some(id("c9")), ..ask(1000, GI) });
    assert_eq!(
        why.to_string(),
        "of 1 cluster 1 unknown, 1 not the target; enough would be another target: c1 has room"
    );
    assert_eq!(refused(&Fleet::new(), &ask(1, 1)).to_string(), "no cluster is known");
    let nowhere = Ask { target: Some(id("c9")), ..ask(1, 1) };
    assert_eq!(refused(&Fleet::new(), &nowhere).to_string(), "no cluster is known: 1 unknown");
}

#[test]
fn what_is_left_is_told_to_the_nearest_hundredth() {
    let fleet = Fleet::new().with("c1", Resources::new(3000, 100), Resources::new(3000, 86));
    let why = granted(&fleet, &ask(1000, 1));
    assert_eq!(why.to_string(), "c1 (66.67 % cpu, 85.00 % memory left)");
}

/// Clusters with two free cores, one in three of them in zone 3.
fn many(count: u64) -> Fleet {
    let mut fleet = Fleet::new();
    for n in 0..count {
        let (size, taken) = (Resources::new(16_000, 64 * GI), Resources::new(14_000, 60 * GI));
        let mut word = Advertisement::plain(id(&format!("d{n:04}")), size, taken);
        word.labels = [("zone".to_owned(), (n % 3).to_string())].into();
        fleet.hear(word);
    }
    fleet
}

#[test]
fn a_large_fleet_is_counted_without_a_look_at_everybody() {
    let mut fleet = many(2000);
    for cluster in ["d0007", "d1007", "d1999"] {
        fleet.apply(&Event::Cordoned { cluster: id(cluster), drain: false, note: note() });
    }
    let why = refused(&fleet, &ask(4000, GI));
    let counts = [(Filter::Cordoned, 3), (Filter::Fit, 1997)];
    assert_eq!((why.refused, why.uncounted), (counts.into(), 0));
    let near: Vec<_> = why.nearest.iter().map(|near| near.cluster.as_str()).collect();
    assert_eq!(near, ["d0000", "d0001", "d0002"]);
}

#[test]
fn where_too_many_must_be_looked_at_the_counts_say_at_least() {
    let mut fleet = many(2000);
    fleet.apply(&Event::Cordoned { cluster: id("d1999"), drain: false, note: note() });
    let zone = Constraint { label: "zone".into(), is: Match::In(vec!["2".into()]) };
    let why = refused(&fleet, &Ask { constraints: vec![zone.clone()], ..ask(4000, GI) });
    let text = why.to_string();
    let counts = "of 2000 clusters 1 cordoned, at least 171 without the labels asked for, \
                  at least 85 too full, 1743 not looked at; enough would be 2 cores less";
    assert!(text.starts_with(counts), "{text}");
    assert_eq!(why.nearest[0].cluster, id("d0002"));
    // With room, but beyond the allowance.
    let held = Limits([(Kind::Cpu, 500)].into());
    fleet.policy.allowance = Allowance { held, ..Allowance::default() };
    assert_eq!(
        refused(&fleet, &ask(1000, GI)).to_string(),
        "of 2000 clusters 1 cordoned, at least 256 with room, 1743 not looked at; \
         0.5 cores more than your allowance"
    );
}

#[test]
fn a_cluster_sees_as_much_of_others_as_policy_lets_it() {
    let fleet = cluster(cluster(Fleet::new(), "c1", 8000, 32), "c2", 4000, 32);
    let both = |explanation: &Explanation| {
        [Visibility::Counts, Visibility::Names, Visibility::Everything]
            .map(|visibility| explanation.seen_by(visibility).to_string())
    };
    let yes = Explanation::Granted(granted(&fleet, &ask(1000, 4 * GI)));
    let [counts, names, everything] = both(&yes);
    assert_eq!(counts, "c1");
    assert_eq!(names, "c1; next c2");
    assert_eq!(everything, yes.to_string());
    let no = Explanation::Refused(refused(&fleet, &ask(9000, 4 * GI)));
    let [counts, names, everything] = both(&no);
    assert_eq!(counts, "of 2 clusters 2 too full");
    assert_eq!(names, no.to_string());
    assert_eq!(everything, no.to_string());
}

#[test]
fn operators_see_every_candidate_a_page_at_a_time() {
    let mut fleet = cluster(cluster(Fleet::new(), "c1", 8000, 32), "c2", 400, 32);
    fleet = cluster(cluster(fleet, "c3", 8000, 32), "c4", 8000, 32);
    fleet.apply(&Event::Cordoned { cluster: id("c3"), drain: false, note: note() });
    let constraints = vec![Constraint { label: "zone".into(), is: Match::Absent }];
    let want = Ask { constraints, ..ask(1000, GI) };
    fleet.wait(Span::from_secs(100));
    for name in ["c1", "c2", "c3"] {
        fleet.hear(fleet.word(&id(name)));
    }
    let page = |after: Option<&str>, limit| {
        let after = after.map(id);
        explain::candidates(
            &fleet.books,
            &id("c0"),
            &want,
            &fleet.policy,
            fleet.now,
            after.as_ref(),
            limit,
        )
    };
    let all = page(None, 100);
    assert_eq!(all, [page(None, 2), page(Some("c2"), 2)].concat());
    let told: Vec<_> = all
        .iter()
        .map(|candidate| match &candidate.verdict {
            Judgement::Fits { left, .. } => format!("{} keeps {}", candidate.cluster, left[0]),
            Judgement::Refused { filter, detail } => {
                let silent = detail.silent_for.map_or(0, Span::as_millis) / 1000;
                format!("{} is {filter}, {} short, {silent} s", candidate.cluster, detail.short.cpu)
            }
        })
        .collect();
    assert_eq!(
        told,
        [
            "c1 keeps 43.75 % cpu",
            "c2 is too full, 600 short, 0 s",
            "c3 is cordoned, 0 short, 0 s",
            "c4 is overdue with their advertisement, 0 short, 100 s",
        ]
    );
}

#[test]
fn an_explanation_is_kept_as_json_and_read_back() {
    let fleet = cluster(cluster(Fleet::new(), "c1", 8000, 32), "c2", 4000, 32);
    let yes = Explanation::Granted(granted(&fleet, &ask(1000, 4 * GI)));
    let no = Explanation::Refused(refused(&fleet, &ask(9000, 4 * GI)));
    for explanation in [yes, no] {
        let text = serde_json::to_string(&explanation).unwrap();
        assert_eq!(serde_json::from_str::<Explanation>(&text).unwrap(), explanation, "{text}");
    }
    let why = refused(&fleet, &ask(9000, 4 * GI));
    let json = serde_json::to_value(&why).unwrap();
    assert_eq!(json["refused"]["fit"], 2);
    assert_eq!(why.refused[&Filter::Fit], 2);
}

#[test]
fn what_is_held_is_explained_with_what_its_provider_keeps_beside_it() {
    let mut fleet = cluster(cluster(Fleet::new(), "c1", 8000, 32), "c2", 16_000, 64);
    let asked = ask(2000, 8 * GI);
    let before = granted(&fleet, &asked).to_string();
    let (reservation, provider) = fleet.reserve("c0", &asked).unwrap();
    assert_eq!(provider, Some(id("c2")));
    let held = |fleet: &Fleet| {
        let reservation = fleet.books.ledger().reservation(reservation).unwrap();
        explain::held(&fleet.books, reservation, &fleet.policy, fleet.now)
    };
    let Some(Explanation::Granted(why)) = held(&fleet) else { panic!("it holds something") };
    assert_eq!(why.to_string(), before, "nothing but this grant has changed");
    let basis = fleet.books.basis(&id("c2"), &fleet.policy, fleet.now).unwrap();
    let amounts = Resources::new(4000, 8 * GI);
    fleet.apply(&Event::Resized { id: reservation, amounts, basis });
    let Some(Explanation::Granted(why)) = held(&fleet) else { panic!("it holds something") };
    assert_eq!(
        why.to_string(),
        "c2 (75.00 % cpu, 87.50 % memory left); next c1 (25.00 % cpu, 37.50 % memory left)"
    );
    fleet.apply(&Event::Ended {
        id: reservation,
        reason: Reason::ReleasedByRequester,
        by: Actor::Broker,
        confirmation: Confirmation::Unconfirmed,
        hindrance: None,
    });
    assert_eq!(held(&fleet), None, "there is nothing to explain any more");
}

#[test]
fn a_refusal_for_a_rare_label_proposes_those_that_have_it_however_full() {
    let mut fleet = Fleet::new();
    // All of these are nearer than the one that is asked for.
    for number in 0..100 {
        fleet = cluster(fleet, &format!("near-{number}"), 900, 32);
    }
    fleet = cluster(fleet, "far", 100, 32);
    fleet.hear({
        let mut ad = fleet.word(&id("far"));
        ad.labels = [("zone".to_owned(), "eu".to_owned())].into();
        ad
    });
    let constraints = vec![Constraint { label: "zone".into(), is: Match::Exists }];
    let why = refused(&fleet, &Ask { constraints, ..ask(1000, GI) });
    assert_eq!(why.nearest.len(), 1, "{why}");
    assert_eq!(why.nearest[0].cluster, id("far"));
    assert_eq!(why.nearest[0].less, Some(Resources::new(900, 0)));
}

#[test]
fn a_growth_of_one_resource_that_is_too_large_is_told_how_much_less_would_do() {
    let mut fleet = confirming(cluster(Fleet::new(), "c1", 8000, 32), "c1");
    let (reservation, _) = fleet.reserve("c0", &ask(1000, 4 * GI)).unwrap();
    let refusal = grow(&fleet, reservation, Resources::new(10_000, 4 * GI)).unwrap_err();
    let Refusal::NobodyFits(why) = refusal else { panic!("{refusal}") };
    let Explanation::Refused(why) = *why else { panic!("{why:?}") };
    assert_eq!(why.nearest[0].less, Some(Resources::new(2000, 0)), "{why}");
}
