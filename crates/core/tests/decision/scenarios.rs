//! The Go system's vectors and scenarios, its defects turned round, and what it could not do.

use crate::fleet::{Fleet, GI, MI, ask, id, note};
use sublet_core::advertisement::{Backend, Cost};
use sublet_core::decision::filter::{Filter, Question, Verdict, allowance_excess};
use sublet_core::decision::score::{StatusScore, status_score};
use sublet_core::decision::{Constraint, Match, NoPick, Strategy};
use sublet_core::event::{Event, Subject};
use sublet_core::policy::{Allowance, Clusters, Rule};
use sublet_core::reservation::Ask;
use sublet_core::resources::{Kind, Limits, Resources};
use sublet_core::time::Span;

fn amounts(cpu: u64, memory: u64) -> Resources {
    Resources::new(cpu, memory)
}

fn two(a: (Resources, Resources), b: (Resources, Resources)) -> Fleet {
    Fleet::new().with("c1", a.0, a.1).with("c2", b.0, b.1)
}

// The vectors of the Go broker's unit tests: requester c0, 500m and 1Gi.

#[test]
fn the_cluster_that_keeps_the_larger_share_wins() {
    let fleet = two(
        (amounts(2000, 4 * GI), amounts(1000, 2 * GI)),
        (amounts(8000, 16 * GI), amounts(4000, 8 * GI)),
    );
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "c2");
}

#[test]
fn of_equal_room_the_smaller_cluster_wins() {
    let fleet = two(
        (amounts(4000, 8 * GI), amounts(2000, 4 * GI)),
        (amounts(8000, 16 * GI), amounts(2000, 4 * GI)),
    );
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "c1");
}

#[test]
fn an_inactive_cluster_is_passed_over_however_large() {
    let mut fleet = Fleet::new().with("big", amounts(64_000, 64 * GI), amounts(64_000, 64 * GI));
    fleet.wait(Span::from_secs(601));
    let fleet = fleet.with("small", amounts(2000, 4 * GI), amounts(1000, 2 * GI));
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "small");
}

#[test]
fn nobody_borrows_from_itself() {
    let fleet = two(
        (amounts(2000, 4 * GI), amounts(1000, 2 * GI)),
        (amounts(8000, 16 * GI), amounts(8000, 16 * GI)),
    );
    assert_eq!(fleet.pick("c2", &ask(500, GI)).unwrap(), "c1");
}

#[test]
fn an_exact_fit_is_accepted_and_one_unit_more_is_not() {
    let fleet = Fleet::new().with("c1", amounts(4000, 8 * GI), amounts(500, GI));
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "c1");
    assert_eq!(fleet.decide("c0", &ask(501, GI)), Err(NoPick::NobodyFits));
    assert_eq!(fleet.decide("c0", &ask(500, GI + 1)), Err(NoPick::NobodyFits));
}

#[test]
fn ten_cores_do_not_fit_on_one_or_two() {
    let fleet = two(
        (amounts(1000, 4 * GI), amounts(1000, 4 * GI)),
        (amounts(2000, 4 * GI), amounts(2000, 4 * GI)),
    );
    assert_eq!(fleet.decide("c0", &ask(10_000, GI)), Err(NoPick::NobodyFits));
    assert_eq!(Fleet::new().decide("c0", &ask(1, 1)), Err(NoPick::NobodyFits));
}

// The evaluation's scenarios.

#[test]
fn fifteen_requests_are_split_eight_to_seven() {
    let size = amounts(96_000, 503 * GI);
    let mut fleet = two((size.clone(), size.clone()), (size.clone(), size));
    let mut taken: Vec<String> = Vec::new();
    for _ in 0..15 {
        let (_, provider) = fleet.reserve("c0", &ask(500, 256 * MI)).unwrap();
        taken.push(provider.unwrap().to_string());
    }
    assert_eq!(taken.join(" "), "c1 c2 c1 c2 c1 c2 c1 c2 c1 c2 c1 c2 c1 c2 c1");
}

#[test]
fn the_accuracy_scenarios_pick_the_least_loaded_cluster() {
    let size = amounts(96_000, 503 * GI);
    let free = |pods| amounts(96_000 - 500 * pods, 503 * GI - 256 * MI * pods);
    let mut fleet = Fleet::new()
        .with("agent-1", size.clone(), free(6))
        .with("agent-2", size.clone(), free(3))
        .with("agent-3", size.clone(), free(0));
    let mut take = |cpu, memory| {
        let (_, provider) = fleet.reserve("requester", &ask(cpu, memory)).unwrap();
        provider.unwrap().to_string()
    };
    assert_eq!(take(200, 128 * MI), "agent-3");
    assert_eq!(take(1000, 512 * MI), "agent-3");
    // The Go broker counted the first two twice and took agent-2.
    assert_eq!(take(2000, GI), "agent-3");
    // 3.2 cores are held on agent-3 now, more than agent-2's pods take.
    assert_eq!(take(1000, 512 * MI), "agent-2");
    assert_eq!(take(1000, 512 * MI), "agent-2");
    let refused = fleet.reserve("requester", &ask(100_000, 500 * GI)).unwrap_err();
    assert!(
        refused.to_string().contains("7 cores less, or 7 cores more free on agent-1"),
        "{refused}"
    );
}

#[test]
fn ten_requests_for_the_last_unit_find_exactly_what_fits() {
    let size = amounts(1000, GI);
    let mut fleet = Fleet::new().with("c1", size.clone(), size);
    let granted = (0..10).filter(|_| fleet.reserve("c0", &ask(400, 100 * MI)).is_ok()).count();
    assert_eq!(granted, 2);
}

// Scores.

#[test]
fn the_status_score_is_the_go_systems() {
    let score = |cpu, cpu_of, memory, memory_of| {
        status_score(&amounts(cpu, memory), &amounts(cpu_of, memory_of)).to_string()
    };
    assert_eq!(score(4000, 4000, GI, GI), "100.00");
    assert_eq!(score(3000, 4000, GI, GI), "87.50");
    assert_eq!(score(1000, 3000, 2 * GI, 3 * GI), "50.00");
    assert_eq!(score(1000, 3000, 0, GI), "16.67");
    assert_eq!(score(0, 0, GI, GI), "0.00");
    assert_eq!(score(1000, 1000, 0, 0), "0.00");
    // Halves go to the even neighbour, as they do in Go: 12.125, 12.375.
    assert_eq!(score(2425, 10_000, 0, GI), "12.12");
    assert_eq!(score(2475, 10_000, 0, GI), "12.38");
    assert_eq!(score(u64::MAX, u64::MAX, u64::MAX - 1, u64::MAX), "100.00");
    assert_eq!(StatusScore::default().hundredths(), 0);
}

#[test]
fn ties_end_at_the_smaller_name() {
    let size = amounts(4000, 8 * GI);
    let mut fleet = Fleet::new();
    for name in ["c9", "c10", "b", "c1"] {
        fleet = fleet.with(name, size.clone(), size.clone());
    }
    assert_eq!(fleet.pick("x", &ask(100, MI)).unwrap(), "b");
    assert_eq!(fleet.pick("b", &ask(100, MI)).unwrap(), "c1");
}

#[test]
fn a_cluster_without_anything_never_wins() {
    let fleet = Fleet::new()
        .with("empty", Resources::default(), Resources::default())
        .with("no-memory", amounts(64_000, 0), amounts(64_000, 0))
        .with("some", amounts(4000, 8 * GI), amounts(500, GI));
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "some");
    assert_eq!(fleet.decide("c0", &ask(501, GI)), Err(NoPick::NobodyFits));
}

#[test]
fn gpus_and_extended_resources_are_looked_at_like_any_other() {
    let fpga: Kind = "example.com/fpga".parse().unwrap();
    let with = |gpu, fpgas| {
        let size = amounts(8000, 16 * GI).with(Kind::Gpu, gpu).unwrap();
        size.with(fpga.clone(), fpgas).unwrap()
    };
    let fleet = Fleet::new()
        .with("c1", with(0, 0), with(0, 0))
        .with("c2", with(8, 0), with(2, 0))
        .with("c3", with(8, 4), with(1, 4));
    let wants = |gpu, fpgas| Ask {
        resources: ask(500, GI)
            .resources
            .with(Kind::Gpu, gpu)
            .and_then(|r| r.with(fpga.clone(), fpgas))
            .unwrap(),
        ..Ask::default()
    };
    assert_eq!(fleet.pick("c0", &wants(0, 0)).unwrap(), "c1");
    assert_eq!(fleet.pick("c0", &wants(1, 0)).unwrap(), "c2", "it keeps more of its GPUs");
    assert_eq!(fleet.pick("c0", &wants(1, 1)).unwrap(), "c3");
    assert_eq!(fleet.pick("c0", &wants(2, 1)), None);
    assert_eq!(fleet.pick("c0", &wants(3, 0)), None);
}

#[test]
fn binpack_leaves_the_least_and_cost_takes_the_cheapest() {
    let size = amounts(8000, 16 * GI);
    let mut fleet = Fleet::new().with("roomy", size.clone(), size.clone()).with(
        "tight",
        size.clone(),
        amounts(1000, 2 * GI),
    );
    let by = |strategy| Ask { strategy: Some(strategy), ..ask(500, GI) };
    assert_eq!(fleet.pick("c0", &by(Strategy::Headroom)).unwrap(), "roomy");
    assert_eq!(fleet.pick("c0", &by(Strategy::Binpack)).unwrap(), "tight");
    assert_eq!(fleet.pick("c0", &by(Strategy::Cost)).unwrap(), "roomy", "nobody names a price");
    let cost = |cpu, currency: &str| {
        Some(Cost { cpu_micros: cpu, memory_micros: 10, currency: currency.to_owned() })
    };
    fleet.hear({
        let mut ad = fleet.word(&id("tight"));
        ad.cost = cost(900, "EUR");
        ad
    });
    assert_eq!(fleet.pick("c0", &by(Strategy::Cost)).unwrap(), "tight", "a price before none");
    fleet.hear({
        let mut ad = fleet.word(&id("roomy"));
        ad.cost = cost(901, "EUR");
        ad
    });
    assert_eq!(fleet.pick("c0", &by(Strategy::Cost)).unwrap(), "tight");
    fleet.hear({
        let mut ad = fleet.word(&id("roomy"));
        ad.cost = cost(1, "USD");
        ad
    });
    assert_eq!(fleet.pick("c0", &by(Strategy::Cost)).unwrap(), "tight", "no rates are known");
    // The broker's own default applies where a request does not say.
    fleet.policy.strategy = Strategy::Binpack;
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "tight");
}

// Who may be chosen.

pub(super) fn verdict(fleet: &Fleet, requester: &str, cluster: &str, ask: &Ask) -> Verdict {
    let Fleet { books, policy, now, .. } = fleet;
    Question { books, requester: &id(requester), ask, policy, now: *now, grows: false }
        .verdict(&id(cluster))
}

fn pair() -> Fleet {
    let size = amounts(8000, 16 * GI);
    two((size.clone(), size.clone()), (size.clone(), amounts(4000, 8 * GI)))
}

#[test]
fn a_fixed_target_is_taken_or_nobody_is() {
    let mut fleet = pair();
    let target = |name: &str| Ask { target: Some(id(name)), ..ask(500, GI) };
    assert_eq!(fleet.pick("c0", &target("c2")).unwrap(), "c2", "although c1 has more room");
    assert_eq!(fleet.decide("c2", &target("c2")), Err(NoPick::NobodyFits));
    assert_eq!(verdict(&fleet, "c2", "c2", &target("c2")), Verdict::Refused(Filter::Itself));
    assert_eq!(fleet.decide("c0", &target("nobody")), Err(NoPick::NobodyFits));
    assert_eq!(
        verdict(&fleet, "c0", "nobody", &target("nobody")),
        Verdict::Refused(Filter::Unknown)
    );
    let big = Ask { target: Some(id("c2")), ..ask(5000, GI) };
    assert_eq!(fleet.decide("c0", &big), Err(NoPick::NobodyFits), "c1 is not asked");
    fleet.wait(Span::from_secs(91));
    fleet.hear(fleet.word(&id("c1")));
    assert_eq!(fleet.decide("c0", &target("c2")), Err(NoPick::OnlySuspects));
    fleet.wait(Span::from_secs(600));
    assert_eq!(fleet.decide("c0", &target("c2")), Err(NoPick::NobodyFits), "stale by now");
}

#[test]
fn an_overdue_cluster_is_not_chosen_but_worth_asking_again_for() {
    let mut fleet = pair();
    fleet.wait(Span::from_secs(91));
    fleet.hear(fleet.word(&id("c2")));
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "c2");
    assert_eq!(fleet.decide("c0", &ask(5000, GI)), Err(NoPick::OnlySuspects), "c1 could");
    assert_eq!(fleet.decide("c0", &ask(9000, GI)), Err(NoPick::NobodyFits), "c1 could not");
}

#[test]
fn what_operators_decided_stands_until_they_decide_otherwise() {
    let (cluster, c1) = (id("c1"), ask(500, GI));
    let there_and_back = [
        (
            Event::Cordoned { cluster: cluster.clone(), drain: false, note: note() },
            Event::Uncordoned { cluster: cluster.clone(), note: note() },
            Filter::Cordoned,
        ),
        (
            Event::Lost { cluster: cluster.clone(), note: note() },
            Event::Returned { cluster: cluster.clone() },
            Filter::Lost,
        ),
        (
            Event::Restored { note: note() },
            Event::Reconciled { cluster: cluster.clone(), note: note() },
            Filter::AwaitingReport,
        ),
        (
            Event::Revoked { subject: Subject::Cluster(cluster.clone()), note: note() },
            Event::Reinstated { subject: Subject::Cluster(cluster.clone()), note: note() },
            Filter::Revoked,
        ),
    ];
    for (there, back, filter) in there_and_back {
        let mut fleet = pair();
        fleet.apply(&there);
        assert_eq!(verdict(&fleet, "c0", "c1", &c1), Verdict::Refused(filter));
        assert_ne!(fleet.pick("c0", &c1).as_deref(), Some("c1"), "{filter}");
        fleet.apply(&back);
        assert_eq!(verdict(&fleet, "c0", "c1", &c1), Verdict::Fits);
        assert_eq!(fleet.pick("c0", &c1).unwrap(), "c1", "{filter}");
    }
}

#[test]
fn a_cluster_that_does_not_lend_or_that_policy_forbids_is_passed_over() {
    let mut fleet = pair();
    fleet.hear({
        let mut ad = fleet.word(&id("c1"));
        ad.lending = false;
        ad
    });
    assert_eq!(fleet.pick("c0", &ask(500, GI)).unwrap(), "c2");
    fleet.policy.lending.push(Rule {
        requesters: Clusters::These([id("c0")].into()),
        providers: Clusters::These([id("c2")].into()),
        allow: false,
    });
    assert_eq!(fleet.pick("c0", &ask(500, GI)), None);
    assert_eq!(fleet.pick("other", &ask(500, GI)).unwrap(), "c2");
}

#[test]
fn two_clusters_must_share_a_backend_if_both_say_what_they_have() {
    let mut fleet = pair();
    fleet.hear({
        let mut ad = fleet.word(&id("c1"));
        ad.capabilities.backends = [Backend::Liqo].into();
        ad
    });
    let having =
        |backends: &[Backend]| Ask { backends: backends.iter().copied().collect(), ..ask(500, GI) };
    assert_eq!(fleet.pick("c0", &having(&[])).unwrap(), "c1", "an old requester says nothing");
    assert_eq!(fleet.pick("c0", &having(&[Backend::Liqo])).unwrap(), "c1");
    assert_eq!(fleet.pick("c0", &having(&[Backend::Liqoctl])).unwrap(), "c2", "c2 says nothing");
}

#[test]
fn constraints_mean_what_kubernetes_selectors_mean() {
    let mut fleet = pair();
    fleet.hear({
        let mut ad = fleet.word(&id("c2"));
        ad.labels = [("zone".to_owned(), "eu".to_owned())].into();
        ad
    });
    let values = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect();
    let pick = |is| {
        let constraints = vec![Constraint { label: "zone".into(), is }];
        fleet.pick("c0", &Ask { constraints, ..ask(500, GI) }).unwrap_or_default()
    };
    assert_eq!(pick(Match::In(values(&["us", "eu"]))), "c2");
    assert_eq!(pick(Match::In(values(&["us"]))), "");
    assert_eq!(pick(Match::NotIn(values(&["eu"]))), "c1", "absent is not in");
    assert_eq!(pick(Match::NotIn(values(&["us"]))), "c1");
    assert_eq!(pick(Match::Exists), "c2");
    assert_eq!(pick(Match::Absent), "c1");
}

#[test]
fn the_allowance_counts_what_is_held_and_only_what_is_asked_for() {
    let mut fleet = pair();
    fleet.reserve("c0", &ask(2000, GI)).unwrap();
    let limits = [(Kind::Cpu, 3000), (Kind::Gpu, 0), (Kind::Memory, GI)];
    fleet.policy.allowance =
        Allowance { held: Limits(limits.into_iter().collect()), ..Allowance::default() };
    let excess =
        |cpu, memory| allowance_excess(&fleet.books, &id("c0"), &ask(cpu, memory), &fleet.policy);
    assert_eq!(excess(1000, 0), None);
    assert_eq!(excess(1500, 0), Some(amounts(500, 0)));
    assert_eq!(excess(1000, MI), Some(amounts(0, MI)), "memory is at its limit");
    assert_eq!(excess(u64::MAX, 1), Some(amounts(u64::MAX, 1)), "no sum is that large");
}
