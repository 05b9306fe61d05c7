//! The model is worth something only if it objects: each test tells it a history that is right up to
//! one wrong step, as a broken broker would produce it.

use crate::world::{World, ask, cluster, key, secs};
use sublet_core::event::{Event, Note};
use sublet_core::id::{Generation, ReservationId};
use sublet_core::plan::{Action, Command, Fill, Plan, Reply};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Actor, Ask, Confirmation, Reason};
use sublet_core::resources::Resources;

/// One provider of ours with four cores, and one of them held.
fn one_held() -> (World, ReservationId) {
    let mut world = World::new(Policy::default());
    world.advertise("c1", 4, 4);
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    (world, id)
}

/// What the model says to an event that the core would not have planned.
fn objections(world: &mut World, event: Event) -> String {
    objections_to(world, &Command::Sweep { expire: true }, vec![event])
}

fn objections_to(world: &mut World, command: &Command, events: Vec<Event>) -> String {
    let plan = Ok(Plan { events, reply: Reply::Swept { more: false } });
    world.model.observe(world.at(), command, &plan, &world.policy);
    std::mem::take(&mut world.model.objections).join("\n")
}

fn grant(world: &World, id: ReservationId, provider: &str, amounts: Resources) -> Event {
    let basis = world.books.basis(&cluster(provider), &world.policy, world.now).unwrap();
    let (expires_at, activate_by, confirms) = (None, None, true);
    let provider = cluster(provider);
    Event::Granted { id, provider, amounts, expires_at, activate_by, confirms, basis }
}

fn ended(id: ReservationId, reason: Reason, confirmation: Confirmation) -> Event {
    Event::Ended { id, reason, by: Actor::Broker, confirmation, hindrance: None }
}

fn waits(world: &mut World, cpu: u64) -> ReservationId {
    world.reserve("c3", "w", Ask { wait: Some(secs(600)), ..ask(cpu, 1) }).unwrap()
}

#[track_caller]
fn assert_objects(said: &str, invariant: &str) {
    assert!(said.lines().any(|line| line.starts_with(invariant)), "{invariant} not in: {said:?}");
}

#[test]
fn it_objects_to_more_than_is_free() {
    let (mut world, _) = one_held();
    let id = waits(&mut world, 4);
    let event = grant(&world, id, "c1", Resources::new(4, 1));
    assert_objects(&objections(&mut world, event), "I1");
}

#[test]
fn it_objects_to_a_basis_that_nobody_advertised() {
    let (mut world, _) = one_held();
    let id = waits(&mut world, 4);
    let Event::Granted { provider, amounts, mut basis, .. } =
        grant(&world, id, "c1", Resources::new(4, 1))
    else {
        unreachable!()
    };
    basis.allocatable = Resources::new(100, 100);
    let (expires_at, activate_by, confirms) = (None, None, true);
    let event = Event::Granted { id, provider, amounts, expires_at, activate_by, confirms, basis };
    assert_objects(&objections(&mut world, event), "I1: the basis");
}

#[test]
fn it_objects_to_a_grant_on_a_silent_a_cordoned_or_a_lost_provider() {
    let wrong: [fn(&mut World); 3] = [
        |world| world.tick(secs(90)),
        |world| {
            world.operate(Action::Cordon { cluster: cluster("c1"), drain: false });
        },
        |world| {
            world.operate(Action::DeclareLost(cluster("c1")));
        },
    ];
    for (make_wrong, invariant) in wrong.into_iter().zip(["I11", "I1", "I1"]) {
        let (mut world, _) = one_held();
        let id = waits(&mut world, 4);
        make_wrong(&mut world);
        let event = grant(&world, id, "c1", Resources::new(4, 1));
        assert_objects(&objections(&mut world, event), invariant);
    }
}

#[test]
fn it_objects_to_any_grant_on_a_provider_that_has_less_than_it_owes() {
    let mut world = World::new(Policy::default());
    world.advertise("c1", 4, 4);
    world.reserve("c2", "a", ask(1, 4)).unwrap();
    let id = waits(&mut world, 2);
    // Of cpu there is plenty, and nothing is asked of what it lacks.
    world.advertise("c1", 4, 3);
    let event = grant(&world, id, "c1", Resources::new(2, 0));
    assert_objects(&objections(&mut world, event), "I12");
}

#[test]
fn it_objects_to_a_second_reservation_under_one_key() {
    let (mut world, id) = one_held();
    let other = ReservationId::derive(&cluster("c2"), &key("a"), world.revision.next());
    let event = Event::Requested {
        id: other,
        requester: cluster("c2"),
        key: key("a"),
        ask: ask(1, 1),
        priority: 0,
        until: world.now,
    };
    assert_ne!(id, other);
    assert_objects(&objections(&mut world, event), "I5");
}

#[test]
fn it_objects_to_forgetting_too_early() {
    let (mut world, id) = one_held();
    world.release("c2", id);
    world.acknowledge(id);
    world.tick(secs(24 * 3600 - 1));
    let event = Event::Forgotten { reservations: vec![id], tombstones: vec![] };
    assert_objects(&objections(&mut world, event), "I5");
}

#[test]
fn it_objects_to_a_second_end() {
    let (mut world, id) = one_held();
    world.release("c2", id);
    world.acknowledge(id);
    let event = ended(id, Reason::ReleasedByRequester, Confirmation::Confirmed);
    assert_objects(&objections(&mut world, event), "I6");
}

#[test]
fn it_objects_to_an_end_before_its_time() {
    let mut world = World::new(Policy::default());
    world.advertise("c1", 4, 4);
    let minute = Ask { duration: Some(secs(60)), ..ask(1, 1) };
    let id = world.reserve("c2", "a", minute).unwrap();
    world.tick(secs(59));
    let event = Event::Ending { id, reason: Reason::Expired, by: Actor::Broker, hindrance: None };
    assert_objects(&objections(&mut world, event), "I6");
}

#[test]
fn it_objects_to_capacity_that_returns_without_the_providers_word() {
    for confirmation in
        [Confirmation::Confirmed, Confirmation::Unconfirmed, Confirmation::ProviderLost]
    {
        let (mut world, id) = one_held();
        let event = ended(id, Reason::ReleasedByRequester, confirmation);
        assert_objects(&objections(&mut world, event), "I8");
    }
}

#[test]
fn it_objects_to_an_advertisement_that_ends_what_runs() {
    let (mut world, id) = one_held();
    let says = world.books.market().entry(&cluster("c1")).unwrap().advertisement.clone();
    let event =
        Event::Ending { id, reason: Reason::ProviderLost, by: Actor::Broker, hindrance: None };
    let command = Command::Advertise(Box::new(says));
    assert_objects(&objections_to(&mut world, &command, vec![event]), "I10");
}

#[test]
fn it_objects_to_a_confirmation_of_what_was_never_told() {
    let (mut world, id) = one_held();
    let event = Event::Acknowledged { id, generation: Generation(2) };
    assert_objects(&objections(&mut world, event), "I6");
}

#[test]
fn it_objects_to_an_adoption_where_nothing_was_restored() {
    let (mut world, _) = one_held();
    let id = ReservationId::derive(&cluster("c9"), &key("x"), world.revision);
    let event = Event::Adopted {
        id,
        requester: cluster("c9"),
        provider: cluster("c1"),
        amounts: Resources::new(1, 1),
        generation: Generation(1),
        expires_at: None,
    };
    assert_objects(&objections(&mut world, event), "I6");
}

#[test]
fn it_objects_to_passing_over_who_waited_longer() {
    let mut world = World::new(Policy::default());
    let first = world.reserve("c3", "w", Ask { wait: Some(secs(600)), ..ask(1, 1) }).unwrap();
    let second = world.reserve("c4", "w", Ask { wait: Some(secs(600)), ..ask(1, 1) }).unwrap();
    world.advertise("c1", 4, 4);
    let place = world.books.ledger().waiting(None).last().unwrap().0;
    assert_eq!(place.2, second);
    let events = vec![grant(&world, second, "c1", Resources::new(1, 1))];
    let plan = Ok(Plan { events, reply: Reply::Filled { place, looks: 1 } });
    let command = Command::Fill(Fill::default());
    world.model.observe(world.at(), &command, &plan, &world.policy);
    let said = world.model.objections.join("\n");
    assert!(said.contains(&first.to_string()), "{said}");
}

#[test]
fn it_objects_to_leaving_somebody_waiting_for_what_is_free() {
    let mut world = World::new(Policy::default());
    let id = waits(&mut world, 2);
    world.model.judge_rest(world.at());
    assert_eq!(world.model.objections, [""; 0]);
    world.advertise("c1", 2, 2);
    world.model.judge_rest(world.at());
    let said = std::mem::take(&mut world.model.objections).join("\n");
    assert_objects(&said, "W1");
    assert!(said.contains(&id.to_string()), "{said}");
    // What is served in its turn is no longer objected to.
    world.fill_all();
}

#[test]
fn it_notices_books_that_differ_from_the_events() {
    let (mut world, id) = one_held();
    let event = Event::Ending { id, reason: Reason::Drained, by: Actor::Broker, hindrance: None };
    world.books.apply(world.at(), &event).unwrap();
    world.model.compare(&world.books);
    assert_objects(&world.model.objections.join("\n"), "I6");
    let note = Note { by: Actor::Broker, why: String::new() };
    let (mut world, _) = one_held();
    let limits = sublet_core::resources::Limits([(sublet_core::resources::Kind::Cpu, 1)].into());
    let capped = Event::Capped { cluster: cluster("c1"), limits, note };
    world.books.apply(world.at(), &capped).unwrap();
    world.model.compare(&world.books);
    assert_objects(&world.model.objections.join("\n"), "I1: room");
}
