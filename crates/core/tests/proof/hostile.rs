//! What a hostile, broken or unlucky world may lead to. The engine stops for good when a plan breaks a
//! rule or is refused by the ledger, so nothing that comes from outside may bring that about. Every
//! test here found a hole.

use crate::world::{World, ask, cluster, key, secs};
use sublet_core::advertisement::{Advertisement, Error as AdvertisementError, GrantReport};
use sublet_core::event::{Event, Subject};
use sublet_core::id::{Generation, ReservationId};
use sublet_core::invariants;
use sublet_core::ledger::{Error as LedgerError, Ledger};
use sublet_core::plan::{Action, Command, EVENTS_MAX, Refusal, Reply, Which};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Confirmation, Phase, Reason};
use sublet_core::resources::{Kind, Limits, Resources};

fn calm() -> World {
    World::new(Policy::default())
}

fn kind(n: usize) -> Kind {
    format!("example.com/kind-{n}").parse().unwrap()
}

fn waiting(cpu: u64, memory: u64, wait: u64) -> Ask {
    Ask { wait: Some(secs(wait)), ..ask(cpu, memory) }
}

fn for_a_minute(cpu: u64, memory: u64) -> Ask {
    Ask { duration: Some(secs(60)), ..ask(cpu, memory) }
}

fn report(id: ReservationId, requester: &str, generation: u32, amounts: Resources) -> GrantReport {
    let (requester, generation) = (cluster(requester), Generation(generation));
    let used = Resources::default();
    GrantReport { id, generation, requester, amounts, used, remaining: None }
}

fn made_up(n: u64) -> ReservationId {
    ReservationId::derive(&cluster("x"), &key("made-up"), sublet_core::id::Revision(n))
}

#[test]
fn a_revoked_cluster_neither_lends_nor_is_granted_what_it_waits_for() {
    let mut world = calm();
    let pending = world.reserve("c2", "a", waiting(1, 1, 600)).unwrap();
    world.advertise("c1", 4, 4);
    world.operate(Action::Revoke(Subject::Cluster(cluster("c2"))));
    assert!(matches!(world.fill().reply, Reply::NothingToFill { .. }));
    world.operate(Action::Revoke(Subject::Cluster(cluster("c1"))));
    let refused = world.reserve("c3", "a", ask(1, 1));
    assert!(matches!(refused, Err(Refusal::NobodyFits(_))), "{refused:?}");
    world.operate(Action::Reinstate(Subject::Cluster(cluster("c1"))));
    world.operate(Action::Reinstate(Subject::Cluster(cluster("c2"))));
    assert!(matches!(world.fill().reply, Reply::Filled { .. }));
    assert_eq!(world.phase(pending), Phase::Reserved);
}

#[test]
fn what_expires_on_a_draining_provider_begins_to_end_once() {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    let id = world.reserve("c2", "a", for_a_minute(1, 1)).unwrap();
    world.operate(Action::Cordon { cluster: cluster("c1"), drain: true });
    world.tick(secs(60));
    world.sweep();
    assert_eq!(world.phase(id), Phase::Releasing);
}

#[test]
fn what_expires_on_a_lost_old_provider_ends_once() {
    let mut world = calm();
    world.advertise_old("c1", 4, 4);
    let id = world.reserve("c2", "a", for_a_minute(1, 1)).unwrap();
    world.operate(Action::DeclareLost(cluster("c1")));
    world.tick(secs(60));
    world.sweep();
    assert_eq!(world.phase(id), Phase::Released);
}

#[test]
fn a_cap_below_what_is_lent_of_one_resource_leaves_the_others() {
    let mut world = calm();
    let gpus = |n: u64, cpu: u64| Resources::new(cpu, cpu).with(Kind::Gpu, n).unwrap();
    world.advertise_more("c1", gpus(4, 8), Resources::default());
    world.reserve("c2", "a", Ask { resources: gpus(2, 1), ..ask(1, 1) }).unwrap();
    world.operate(Action::Cap(cluster("c1"), Limits([(Kind::Gpu, 1)].into())));
    world.reserve("c2", "b", ask(1, 1)).unwrap();
}

#[test]
fn no_wait_is_granted_after_its_patience() {
    let mut world = calm();
    let id = world.reserve("c2", "a", waiting(1, 1, 30)).unwrap();
    world.tick(secs(30));
    world.advertise("c1", 4, 4);
    assert!(matches!(world.fill().reply, Reply::NothingToFill { .. }));
    world.sweep();
    assert_eq!(world.phase(id), Phase::Failed);
}

#[test]
fn a_sweep_never_plans_more_than_one_record_holds_and_says_when_there_is_more() {
    let mut world = calm();
    let many = EVENTS_MAX + 3;
    for n in 0..many {
        let which = Which::Key(cluster("c1"), key(&format!("k{n}")));
        world.run(&Command::Release { by: Actor::Broker, which }).unwrap();
    }
    world.tick(secs(24 * 3600 + 1));
    for n in 0..EVENTS_MAX {
        world.reserve(&format!("r{}", n % 8), &format!("k{n}"), waiting(1, 1, 1)).unwrap();
    }
    world.tick(secs(1));
    let mut sweeps = 0;
    loop {
        sweeps += 1;
        let plan = world.sweep();
        assert!(plan.events.len() <= EVENTS_MAX);
        if plan.reply == (Reply::Swept { more: false }) {
            break;
        }
    }
    assert_eq!(world.books.ledger().tombstones_before(world.now).count(), 0, "{sweeps} sweeps");
    assert_eq!(world.books.ledger().due(world.now).count(), 0);
}

#[test]
fn what_one_requester_holds_in_all_never_overflows() {
    let mut world = calm();
    world.advertise("c1", 10, u64::MAX);
    world.advertise("c2", 10, u64::MAX);
    let first = world.reserve("c3", "a", ask(1, u64::MAX - 1)).unwrap();
    let second = world.reserve("c3", "b", ask(1, 1)).unwrap();
    let refused = world.reserve("c3", "c", ask(1, 1));
    assert!(matches!(refused, Err(Refusal::NobodyFits(_))), "{refused:?}");
    let resources = Resources::new(1, 2);
    let by = Actor::Cluster(cluster("c3"));
    let refused = world.run(&Command::Resize { by, id: second, resources });
    assert!(matches!(refused, Err(Refusal::NobodyFits(_))), "{refused:?}");
    let pending = world.reserve("c3", "d", waiting(1, 5, 600)).unwrap();
    assert!(matches!(world.fill().reply, Reply::NothingToFill { .. }));
    assert_eq!(world.phase(pending), Phase::Pending);
    world.release("c3", first);
    world.acknowledge(first);
    assert!(matches!(world.fill().reply, Reply::Filled { .. }));
}

#[test]
fn what_would_overflow_is_not_adopted_and_stays_a_ghost() {
    let mut world = calm();
    let backup = world.backup();
    world.restore(&backup);
    let reports = [
        report(made_up(1), "c3", 1, Resources::new(1, u64::MAX - 10)),
        report(made_up(2), "c3", 1, Resources::new(1, 5)),
    ];
    world.kept.insert(cluster("c1"), reports.into_iter().map(|r| (r.id, r)).collect());
    world.advertise("c1", 10, 100);
    let third = report(made_up(3), "c3", 1, Resources::new(1, u64::MAX));
    world.kept.insert(cluster("c2"), [(third.id, third)].into());
    world.advertise("c2", 10, 100);
    assert_eq!(world.books.held(&cluster("c2")), Resources::default());
    assert_eq!(world.room("c2").memory, 0);
}

#[test]
fn a_provider_cannot_make_a_record_unreadable_with_ghosts_of_many_kinds() {
    let ghosts = (0..2).map(|n| {
        let kinds = (0..20).map(|m| kind(20 * n + m));
        let amounts = kinds.fold(Resources::new(1, 1), |sum, kind| sum.with(kind, 1).unwrap());
        report(made_up(n as u64), "c3", 1, amounts)
    });
    let plain = Advertisement::plain(cluster("c1"), Resources::new(9, 9), Resources::default());
    let forged = Advertisement { grants: Some(ghosts.collect()), ..plain };
    assert!(matches!(forged.validated(), Err(AdvertisementError::Amounts(_))));
}

#[test]
fn a_ledger_can_be_read_back_whatever_kinds_a_reservation_was_resized_through() {
    let mut world = calm();
    let some = |from: usize| {
        let kinds = (from..from + 20).map(kind);
        kinds.fold(Resources::new(1, 1), |sum, kind| sum.with(kind, 1).unwrap())
    };
    world.advertise_more("c1", some(0), Resources::default());
    let id = world.reserve("c2", "a", Ask { resources: some(0), ..ask(1, 1) }).unwrap();
    world.acknowledge(id);
    world.advertise_more("c1", some(20), Resources::default());
    let by = Actor::Cluster(cluster("c2"));
    let grown = world.run(&Command::Resize { by, id, resources: some(20) });
    let image = serde_json::to_string(world.books.ledger()).unwrap();
    assert!(serde_json::from_str::<Ledger>(&image).is_ok());
    assert!(grown.is_err(), "{grown:?}");
}

#[test]
fn a_request_that_still_waits_in_a_restored_ledger_is_adopted_where_it_was_granted() {
    let mut world = calm();
    let id = world.reserve("c2", "a", waiting(1, 1, 600)).unwrap();
    let backup = world.backup();
    world.advertise("c1", 4, 4);
    world.fill();
    world.acknowledge(id);
    world.restore(&backup);
    world.advertise("c1", 4, 4);
    assert_eq!(world.phase(id), Phase::Active);
    assert_eq!(world.grant(id).provider, cluster("c1"));
    assert_eq!(world.room("c1"), Resources::new(3, 3));
    assert_eq!(world.reserve("c2", "a", waiting(1, 1, 600)), Ok(id), "its key still finds it");
}

#[test]
fn what_is_being_taken_down_is_not_brought_back_by_adopting() {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    world.acknowledge(id);
    world.release("c2", id);
    let backup = world.backup();
    world.restore(&backup);
    let boast = report(id, "c2", 77, Resources::new(1, 1));
    world.kept.insert(cluster("c1"), [(id, boast)].into());
    world.advertise("c1", 4, 4);
    assert_eq!(world.phase(id), Phase::Releasing);
}

#[test]
fn a_repeat_that_meets_its_own_adopted_reservation_finds_it() {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    let backup = world.backup();
    world.next_record();
    world.next_record();
    let revision = world.revision;
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    world.acknowledge(id);
    world.restore(&backup);
    world.advertise("c1", 4, 4);
    // The log grows again, up to the revision that the lost record had.
    world.revision = revision;
    assert_eq!(world.reserve("c2", "a", ask(1, 1)), Ok(id));
    assert_eq!(world.room("c1"), Resources::new(3, 3));
}

#[test]
fn forgetting_the_same_twice_counts_its_ghost_once() {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    world.acknowledge(id);
    world.advertise("c1", 4, 4);
    world.operate(Action::DeclareLost(cluster("c1")));
    world.sweep();
    let twice = Event::Forgotten { reservations: vec![id, id], tombstones: vec![] };
    let forgotten = world.books.apply(world.at(), &twice);
    assert_eq!(invariants::check_books(&world.books), []);
    if let Ok(reversal) = forgotten {
        world.books.revert(reversal).unwrap();
        assert_eq!(invariants::check_books(&world.books), []);
    }
}

#[test]
fn what_a_provider_carried_out_ahead_of_the_ledger_is_not_lent_again() {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    world.acknowledge(id);
    let ahead = report(id, "c2", 2, Resources::new(3, 1));
    world.kept.insert(cluster("c1"), [(id, ahead)].into());
    world.advertise("c1", 4, 4);
    assert_eq!(world.room("c1"), Resources::new(1, 3));
    assert_eq!(invariants::check_books(&world.books), []);
    // One from before what the ledger knows takes nothing more.
    let behind = report(id, "c2", 0, Resources::new(3, 1));
    world.kept.insert(cluster("c1"), [(id, behind)].into());
    world.advertise("c1", 4, 4);
    assert_eq!(world.room("c1"), Resources::new(3, 3));
}

#[test]
fn no_event_makes_a_cluster_lend_to_itself() {
    let mut world = calm();
    let id = world.reserve("c2", "a", waiting(1, 1, 600)).unwrap();
    let amounts = Resources::new(1, 1);
    let (expires_at, activate_by, confirms) = (None, None, true);
    let (provider, basis) = (cluster("c2"), <_>::default());
    let mut ledger = world.books.ledger().clone();
    let granted = Event::Granted {
        id,
        provider: provider.clone(),
        amounts: amounts.clone(),
        expires_at,
        activate_by,
        confirms,
        basis,
    };
    let adopted = Event::Adopted {
        id: made_up(1),
        requester: provider.clone(),
        provider,
        amounts,
        generation: Generation(1),
        expires_at,
    };
    for event in [granted, adopted] {
        let refused = ledger.apply(world.at(), &event).unwrap_err();
        assert!(matches!(refused, LedgerError::ToItself(_)), "{refused}");
        assert_eq!(ledger, *world.books.ledger());
    }
}

#[test]
fn no_audit_lets_capacity_return_from_one_that_runs_as_if_nothing_was_held() {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    for confirmation in [Confirmation::NothingHeld, Confirmation::Confirmed] {
        let (reason, by) = (Reason::ReleasedByRequester, Actor::Broker);
        let ended = Event::Ended { id, reason, by, confirmation, hindrance: None };
        assert!(invariants::judge(world.books.ledger(), world.at(), &ended).is_some());
    }
}

#[test]
fn after_an_outage_a_holder_can_renew_what_was_not_swept_yet() {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    let id = world.reserve("c2", "a", for_a_minute(1, 1)).unwrap();
    world.tick(secs(3600));
    world.restart();
    let by = Actor::Cluster(cluster("c2"));
    world.run(&Command::Renew { by, id, duration: Some(secs(60)) }).unwrap();
    assert_eq!(world.sweep().events, []);
    assert_eq!(world.phase(id), Phase::Reserved);
}

#[test]
fn renewing_to_the_same_time_changes_nothing() {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    let by = Actor::Cluster(cluster("c2"));
    let plan = world.run(&Command::Renew { by, id, duration: None }).unwrap();
    assert_eq!(plan.events, []);
}
