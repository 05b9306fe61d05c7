//! The life of a reservation: every phase meets every command, and the rules of the design one by one.

mod cells;

use crate::world::{World, ask, cluster, key, secs};
use sublet_core::advertisement::{Advertisement, Backend};
use sublet_core::decision::explain::Explanation;
use sublet_core::decision::filter::Filter;
use sublet_core::event::Event;
use sublet_core::plan::{Action, Command, Fill, Grown, Refusal, Reply, Which};
use sublet_core::policy::{Allowance, Policy};
use sublet_core::reservation::{Actor, Ask, Confirmation, Phase, Reason, State};
use sublet_core::resources::Resources;
use sublet_core::time::Span;

const DAY: u64 = 24 * 3600;

#[test]
fn every_phase_answers_every_command_as_the_table_says() {
    let table = cells::table();
    if cells::updating() {
        std::fs::write(cells::GOLDEN, &table).unwrap();
    }
    let golden = std::fs::read_to_string(cells::GOLDEN).unwrap_or_default();
    let differs = table.lines().zip(golden.lines()).find(|(now, was)| now != was);
    assert!(table == golden, "UPDATE=1 writes the table anew; first difference: {differs:?}");
}

fn calm() -> World {
    World::new(Policy::default())
}

fn one_provider() -> World {
    let mut world = calm();
    world.advertise("c1", 4, 4);
    world
}

fn resize(world: &mut World, id: sublet_core::id::ReservationId, cpu: u64) -> Result<(), Refusal> {
    let by = Actor::Cluster(world.reservation(id).requester.clone());
    let resources = Resources::new(cpu, cpu);
    world.run(&Command::Resize { by, id, resources }).map(|_| ())
}

fn ending(world: &World, id: sublet_core::id::ReservationId) -> (Reason, Option<Confirmation>) {
    match &world.reservation(id).state {
        State::Releasing(_, ending) => (ending.reason, None),
        State::Ended { ending, confirmation, .. } => (ending.reason, Some(*confirmation)),
        other => panic!("{other:?}"),
    }
}

fn waits(priority: i32, cpu: u64) -> Ask {
    Ask { wait: Some(secs(600)), priority, ..ask(cpu, cpu) }
}

#[test]
fn capacity_comes_back_when_the_provider_has_confirmed_and_once_only() {
    let mut world = one_provider();
    let id = world.reserve("c2", "a", ask(3, 3)).unwrap();
    world.acknowledge(id);
    world.release("c2", id);
    assert_eq!((world.phase(id), world.room("c1")), (Phase::Releasing, Resources::new(1, 1)));
    world.acknowledge(id);
    assert_eq!((world.phase(id), world.room("c1")), (Phase::Released, Resources::new(4, 4)));
    assert_eq!(world.acknowledge(id).events, []);
    assert_eq!(world.release("c2", id).events, []);
    assert_eq!(world.room("c1"), Resources::new(4, 4));
}

#[test]
fn an_old_provider_gives_back_unconfirmed_at_release_and_at_expiry() {
    let mut world = calm();
    world.advertise_old("c1", 4, 4);
    let released = world.reserve("c2", "a", ask(1, 1)).unwrap();
    let minute = Ask { duration: Some(secs(60)), ..ask(1, 1) };
    let expired = world.reserve("c2", "b", minute).unwrap();
    world.release("c2", released);
    let unconfirmed = Some(Confirmation::Unconfirmed);
    assert_eq!(ending(&world, released), (Reason::ReleasedByRequester, unconfirmed));
    world.tick(secs(60));
    world.sweep();
    assert_eq!(ending(&world, expired), (Reason::Expired, unconfirmed));
    assert_eq!(world.room("c1"), Resources::new(4, 4));
}

#[test]
fn what_the_agent_can_do_now_counts_not_what_it_could_when_it_granted() {
    let mut world = calm();
    world.advertise_old("c1", 4, 4);
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    world.advertise("c1", 4, 4);
    world.release("c2", id);
    assert_eq!(world.phase(id), Phase::Releasing, "an upgraded agent confirms");
    world.tick(secs(90));
    world.advertise_old("c1", 4, 4);
    assert_eq!(world.phase(id), Phase::Released, "a downgraded one will not");
}

#[test]
fn a_late_word_of_an_old_agent_that_was_replaced_gives_up_nothing_and_hides_no_ghost() {
    let mut world = one_provider();
    let [gone, ending] = ["gone", "ending"].map(|key| world.reserve("c2", key, ask(1, 1)).unwrap());
    world.acknowledge(gone);
    world.operate(Action::DeclareLost(cluster("c1")));
    world.sweep();
    world.advertise("c1", 4, 4);
    let ending = world.reserve("c2", "later", ask(1, 1)).ok().filter(|id| *id != ending).unwrap();
    world.release("c2", ending);
    for seconds in [0, 45, 44] {
        world.tick(secs(seconds));
        let late = world.advertise_old("c1", 9, 9);
        assert_eq!((late.events, late.reply), (vec![], Reply::Advertised { news: false }));
        assert_eq!(world.phase(ending), Phase::Releasing);
        assert_eq!(world.room("c1"), Resources::new(2, 2), "one is held, one is a ghost");
    }
    // Who heard no number for so long hears an agent that was replaced by an old one.
    world.tick(secs(1));
    world.advertise_old("c1", 9, 9);
    assert_eq!(world.phase(ending), Phase::Released);
}

#[test]
fn without_an_advertisement_the_grant_remembers_whether_its_provider_confirms() {
    let mut world = one_provider();
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    world.books = sublet_core::books::Books::new(world.books.ledger().clone());
    world.model.heard.clear();
    world.release("c2", id);
    assert_eq!(world.phase(id), Phase::Releasing);
}

#[test]
fn growth_is_held_first_and_a_shrink_returns_on_acknowledgement_of_the_newest_only() {
    let mut world = one_provider();
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    resize(&mut world, id, 3).unwrap();
    assert_eq!(world.room("c1"), Resources::new(1, 1), "held before the provider knows");
    assert!(matches!(resize(&mut world, id, 5), Err(Refusal::NobodyFits(_))));
    resize(&mut world, id, 2).unwrap();
    assert_eq!(world.room("c1"), Resources::new(1, 1), "not given back yet");
    let generation = sublet_core::id::Generation(2);
    world.run(&Command::Acknowledge { by: cluster("c1"), id, generation }).unwrap();
    assert_eq!(world.room("c1"), Resources::new(1, 1), "that was the growth");
    world.acknowledge(id);
    assert_eq!(world.room("c1"), Resources::new(2, 2));
}

#[test]
fn growth_that_is_refused_is_not_refused_for_how_the_two_are_joined() {
    let mut world = one_provider();
    let asked = Ask { backends: [Backend::Liqo].into(), ..ask(1, 1) };
    let id = world.reserve("c2", "a", asked).unwrap();
    world.acknowledge(id);
    let mut said = world.books.market().entry(&cluster("c1")).unwrap().advertisement.clone();
    said.number = Some(world.number());
    said.capabilities.backends = [Backend::Liqoctl].into();
    world.hear(said);
    let Err(Refusal::NobodyFits(why)) = resize(&mut world, id, 5) else { panic!("it fits") };
    let Explanation::Refused(why) = *why else { panic!("granted") };
    assert_eq!(why.refused.get(&Filter::Fit), Some(&1), "{why}");
    assert_eq!(why.refused.get(&Filter::Backend), None, "{why}");
    resize(&mut world, id, 4).unwrap();
}

#[test]
fn a_copy_of_an_advertisement_is_not_news_and_brings_nobody_back() {
    let mut world = one_provider();
    let said = world.books.market().entry(&cluster("c1")).unwrap().advertisement.clone();
    world.operate(Action::DeclareLost(cluster("c1")));
    let plan = world.hear(said.clone());
    assert_eq!(plan.events, []);
    assert_eq!(plan.reply, Reply::Advertised { news: false });
    let next = Advertisement { number: Some(world.number()), ..said };
    assert_eq!(world.hear(next).events, [Event::Returned { cluster: cluster("c1") }]);
}

#[test]
fn it_expires_at_its_deadline_and_not_a_moment_before() {
    let mut world = one_provider();
    let id = world.reserve("c2", "a", Ask { duration: Some(secs(60)), ..ask(1, 1) }).unwrap();
    world.tick(Span::from_millis(59_999));
    assert_eq!(world.sweep().events, []);
    world.tick(Span::from_millis(1));
    world.sweep();
    assert_eq!(ending(&world, id), (Reason::Expired, None));
}

#[test]
fn a_deadline_to_activate_is_set_for_those_who_activate_and_lifted_when_they_do() {
    let mut world = one_provider();
    let old = world.reserve("c2", "old", ask(1, 1)).unwrap();
    let activates = Ask { activates: true, ..ask(1, 1) };
    let quick = world.reserve("c2", "quick", activates.clone()).unwrap();
    let slow = world.reserve("c2", "slow", activates).unwrap();
    world.run(&Command::Activate { by: cluster("c2"), id: quick }).unwrap();
    world.tick(Span::from_millis(15 * 60_000 - 1));
    assert_eq!(world.sweep().events, []);
    world.tick(Span::from_millis(1));
    world.sweep();
    assert_eq!(world.phase(old), Phase::Reserved);
    assert_eq!(world.phase(quick), Phase::Active);
    assert_eq!(ending(&world, slow), (Reason::NeverActivated, None));
}

#[test]
fn what_expires_and_was_never_activated_at_once_has_expired() {
    let mut world = one_provider();
    let both = Ask { activates: true, duration: Some(secs(15 * 60)), ..ask(1, 1) };
    let id = world.reserve("c2", "a", both).unwrap();
    world.tick(secs(15 * 60));
    world.sweep();
    assert_eq!(ending(&world, id), (Reason::Expired, None));
}

#[test]
fn a_lost_provider_that_is_back_does_not_lend_again_what_it_still_keeps() {
    let mut world = one_provider();
    let id = world.reserve("c2", "a", ask(3, 3)).unwrap();
    world.acknowledge(id);
    world.operate(Action::DeclareLost(cluster("c1")));
    assert_eq!(world.phase(id), Phase::Reserved, "nothing ends before the sweep");
    world.sweep();
    assert_eq!(ending(&world, id), (Reason::ProviderLost, Some(Confirmation::ProviderLost)));
    let plan = world.advertise("c1", 4, 4);
    assert_eq!(plan.events, [Event::Returned { cluster: cluster("c1") }]);
    assert_eq!(world.room("c1"), Resources::new(1, 1), "a ghost");
    world.carry_out(&cluster("c1"), id);
    world.advertise("c1", 4, 4);
    assert_eq!(world.room("c1"), Resources::new(4, 4));
}

#[test]
fn a_provider_that_is_back_before_the_sweep_keeps_what_it_lends() {
    let mut world = one_provider();
    let id = world.reserve("c2", "a", ask(3, 3)).unwrap();
    world.operate(Action::DeclareLost(cluster("c1")));
    world.advertise("c1", 4, 4);
    assert_eq!(world.sweep().events, []);
    assert_eq!(world.phase(id), Phase::Reserved);
}

#[test]
fn a_provider_that_is_never_heard_after_a_restore_is_given_up_after_the_time_that_was_set() {
    let mut world = one_provider();
    world.policy.lost_after = Some(secs(1200));
    let id = world.reserve("c2", "a", Ask { duration: Some(secs(60)), ..ask(3, 3) }).unwrap();
    let backup = world.backup();
    world.restore(&backup);
    // The time in which no broker listened is not its silence.
    world.tick(secs(3600));
    world.restart();
    world.tick(secs(1199));
    assert_eq!(world.sweep().events, [], "it may still report");
    world.tick(secs(1));
    world.sweep();
    world.sweep();
    assert_eq!(ending(&world, id), (Reason::ProviderLost, Some(Confirmation::ProviderLost)));
}

#[test]
fn a_stale_advertisement_frees_nothing() {
    let mut world = one_provider();
    let id = world.reserve("c2", "a", ask(3, 3)).unwrap();
    world.tick(secs(DAY));
    assert_eq!(world.sweep().events, []);
    assert_eq!((world.phase(id), world.room("c1")), (Phase::Reserved, Resources::new(1, 1)));
}

#[test]
fn a_restored_ledger_grants_nothing_until_its_provider_has_reported_and_adopts_what_it_forgot() {
    let mut world = one_provider();
    let known = world.reserve("c2", "known", ask(1, 1)).unwrap();
    world.acknowledge(known);
    let backup = world.backup();
    let forgotten = world.reserve("c3", "forgotten", ask(2, 2)).unwrap();
    world.acknowledge(forgotten);
    world.restore(&backup);
    world.advertise_old("c1", 4, 4);
    assert!(world.reserve("c4", "a", ask(1, 1)).is_err(), "no report");
    world.advertise("c1", 4, 4);
    assert_eq!(world.phase(forgotten), Phase::Active);
    assert_eq!(world.grant(forgotten).amounts, Resources::new(2, 2));
    assert_eq!(world.room("c1"), Resources::new(1, 1));
    assert!(world.reserve("c4", "b", ask(2, 2)).is_err());
    world.reserve("c4", "c", ask(1, 1)).unwrap();
}

#[test]
fn after_a_restore_nothing_expires_before_its_provider_has_said_how_long_it_lasts() {
    let mut world = one_provider();
    let hour = |duration| Ask { duration: Some(duration), ..ask(1, 1) };
    let renewed = world.reserve("c2", "a", hour(secs(3600))).unwrap();
    let over = world.reserve("c2", "b", hour(secs(3600))).unwrap();
    for id in [renewed, over] {
        world.acknowledge(id);
    }
    let backup = world.backup();
    let by = Actor::Cluster(cluster("c2"));
    world.run(&Command::Renew { by, id: renewed, duration: Some(secs(DAY)) }).unwrap();
    world.acknowledge(renewed);
    world.restore(&backup);
    world.tick(secs(7200));
    assert_eq!(world.sweep().events, [], "neither is known to be over");
    world.advertise("c1", 4, 4);
    world.sweep();
    assert_eq!(world.phase(renewed), Phase::Active);
    assert_eq!(ending(&world, over), (Reason::Expired, None));
}

#[test]
fn what_a_provider_runs_after_a_restore_is_not_given_up_because_its_use_was_confirmed_later() {
    let mut world = one_provider();
    let [used, lost] = ["used", "lost"]
        .map(|key| world.reserve("c2", key, Ask { activates: true, ..ask(1, 1) }).unwrap());
    world.acknowledge(used);
    let backup = world.backup();
    world.run(&Command::Activate { by: cluster("c2"), id: used }).unwrap();
    world.restore(&backup);
    world.tick(secs(3600));
    world.advertise("c1", 4, 4);
    world.sweep();
    assert_eq!(world.phase(used), Phase::Active);
    assert_eq!(ending(&world, lost), (Reason::NeverActivated, None));
    // Both sides are told anew, and the provider confirms that.
    world.acknowledge(used);
    assert_eq!(world.grant(used).acknowledged, world.grant(used).generation);
}

#[test]
fn what_waited_before_a_restore_is_granted_to_nobody_until_whoever_has_it_has_said_so() {
    let mut world = one_provider();
    world.reserve("c4", "full", ask(4, 4)).unwrap();
    let id = world.reserve("c3", "a", Ask { wait: Some(secs(60)), ..ask(1, 1) }).unwrap();
    let backup = world.backup();
    world.advertise("c5", 1, 1);
    world.fill_all();
    world.acknowledge(id);
    world.restore(&backup);
    // Another one that could lend it reports first, and the patience that the log knows is over.
    world.advertise("c6", 4, 4);
    assert_eq!(world.fill().events, []);
    world.tick(secs(599));
    world.advertise("c6", 4, 4);
    assert_eq!((world.fill().events, world.sweep().events), (vec![], vec![]));
    world.advertise("c5", 1, 1);
    assert_eq!(world.phase(id), Phase::Active);
    assert_eq!(world.grant(id).provider, cluster("c5"));
}

#[test]
fn what_nobody_reports_after_a_restore_is_granted_once_whoever_had_it_is_inactive() {
    let mut world = one_provider();
    let [long, short] = [1000, 60].map(|patience| {
        let wait = Some(secs(patience));
        world.reserve("c3", &patience.to_string(), Ask { wait, ..ask(5, 5) }).unwrap()
    });
    let backup = world.backup();
    world.restore(&backup);
    // Time in which nobody could report does not count.
    world.tick(secs(300));
    world.restart();
    world.tick(secs(599));
    world.advertise("c1", 9, 9);
    let new = world.reserve("c2", "new", ask(1, 1)).unwrap();
    assert_eq!((world.phase(new), world.sweep().events), (Phase::Reserved, vec![]));
    assert_eq!(world.fill().events, []);
    world.tick(secs(1));
    world.fill_all();
    world.sweep();
    assert_eq!(world.phase(long), Phase::Reserved);
    assert_eq!(ending(&world, short).0, Reason::WaitOver);
}

#[test]
fn after_a_restore_what_waits_longer_than_it_may_or_is_drained_ends_as_ever() {
    let mut world = one_provider();
    let held = world.reserve("c2", "a", Ask { duration: Some(secs(60)), ..ask(4, 4) }).unwrap();
    let waiting = world.reserve("c3", "a", waits(0, 4)).unwrap();
    let backup = world.backup();
    world.restore(&backup);
    world.tick(secs(3600));
    world.operate(Action::Cordon { cluster: cluster("c1"), drain: true });
    world.sweep();
    assert_eq!(ending(&world, waiting).0, Reason::WaitOver);
    assert_eq!(ending(&world, held), (Reason::Drained, None));
}

#[test]
fn what_a_provider_has_no_more_after_a_restore_is_kept_and_named() {
    let mut world = one_provider();
    let [kept, gone, new] = ["kept", "gone", "new"].map(|key| {
        let id = world.reserve("c2", key, ask(1, 1)).unwrap();
        if key != "new" {
            world.acknowledge(id);
        }
        id
    });
    let backup = world.backup();
    world.release("c2", gone);
    world.acknowledge(gone);
    world.restore(&backup);
    let plan = world.advertise("c1", 4, 4);
    let [Event::Reconciled { note, .. }] = &plan.events[..] else { panic!("{plan:?}") };
    // One that the provider had not confirmed may be on its way to it.
    assert_eq!(note.why, format!("reported, but has no more {gone}"));
    for id in [kept, gone, new] {
        assert_eq!(world.phase(id), Phase::Reserved);
    }
    // What nobody uses, an operator releases: it comes back when the provider has confirmed.
    let (by, which) = (Actor::Operator("anna".into()), Which::Id(gone));
    world.run(&Command::Release { by, which }).unwrap();
    assert_eq!((world.phase(gone), world.room("c1").cpu), (Phase::Releasing, 1));
    world.acknowledge(gone);
    assert_eq!((world.phase(gone), world.room("c1").cpu), (Phase::Released, 2));
}

#[test]
fn waiting_requests_are_served_by_capped_priority_then_by_age_and_small_ones_may_pass() {
    let mut policy = Policy::default();
    let capped = Allowance { priority_max: 1, ..Allowance::default() };
    policy.requesters.insert(cluster("boast"), capped);
    let mut world = World::new(policy);
    let old = world.reserve("c3", "a", waits(0, 1)).unwrap();
    let large = world.reserve("c4", "a", waits(9, 5)).unwrap();
    let boast = world.reserve("boast", "a", waits(1000, 1)).unwrap();
    let young = world.reserve("c5", "a", waits(0, 1)).unwrap();
    let first = world.reserve("c6", "a", waits(2, 1)).unwrap();
    world.advertise("c1", 4, 4);
    let mut order = Vec::new();
    while let Some(Event::Granted { id, .. }) = world.fill().events.first() {
        order.push(*id);
    }
    assert_eq!(order, [first, boast, old, young]);
    assert_eq!(world.phase(large), Phase::Pending);
}

#[test]
fn one_plan_looks_at_so_many_for_those_who_wait_and_says_how_far_it_came() {
    let mut world = World::new(Policy::default());
    let large: Vec<_> =
        (0..3).map(|n| world.reserve("c3", &n.to_string(), waits(0, 5)).unwrap()).collect();
    let small = world.reserve("c3", "small", waits(0, 1)).unwrap();
    world.advertise("c1", 4, 4);
    let mut fill = Fill { looks: 3, ..Fill::default() };
    let Reply::NotYetFilled { place, looks } = fills(&mut world, &fill) else {
        panic!("all tried")
    };
    assert_eq!((Some(&place.2), looks), (large.last(), 3));
    fill.after = Some(place);
    assert!(matches!(fills(&mut world, &fill), Reply::Filled { place, .. } if place.2 == small));
}

fn fills(world: &mut World, fill: &Fill) -> Reply {
    let scene = (&world.books, &Command::Fill(fill.clone()), &world.policy, world.at());
    sublet_core::plan::plan(scene.0, scene.1, scene.2, scene.3).unwrap().reply
}

#[test]
fn who_was_tried_everywhere_is_tried_again_only_where_something_grew_or_everywhere_for_itself() {
    let mut world = one_provider();
    world.advertise("c2", 4, 4);
    let waits = world.reserve("c3", "large", waits(0, 5)).unwrap();
    world.advertise("c1", 8, 8);
    let mut tries = |clusters: &[&str], requesters: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|name| cluster(name)).collect();
        let grown = Some(Grown { clusters: names(clusters), requesters: names(requesters) });
        match fills(&mut world, &Fill { grown, ..Fill::default() }) {
            Reply::Filled { place, .. } => place.2 == waits,
            Reply::NothingToFill { looks } => {
                assert!(looks <= 2, "{looks} looks for one that is asked about one cluster");
                false
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(!tries(&["c2"], &["c2"]), "it fits only where nothing grew");
    assert!(tries(&["c1"], &[]));
    assert!(tries(&["c2"], &["c3"]));
}

#[test]
fn a_key_finds_its_reservation_for_a_day_after_the_end() {
    let mut world = one_provider();
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    world.release("c2", id);
    world.acknowledge(id);
    world.tick(secs(DAY));
    assert_eq!(world.sweep().events, []);
    assert_eq!(world.reserve("c2", "a", ask(1, 1)), Ok(id));
    world.tick(Span::from_millis(1));
    world.sweep();
    world.advertise("c1", 4, 4);
    assert_ne!(world.reserve("c2", "a", ask(1, 1)), Ok(id));
}

#[test]
fn a_tombstone_keeps_a_late_request_out_for_a_day() {
    let mut world = one_provider();
    let which = Which::Key(cluster("c2"), key("late"));
    let by = Actor::Cluster(cluster("c2"));
    let release = Command::Release { by, which };
    assert_eq!(world.run(&release).unwrap().reply, Reply::KeyReleased);
    assert_eq!(world.run(&release).unwrap().events, [], "again");
    assert_eq!(world.reserve("c2", "late", ask(1, 1)), Err(Refusal::KeyReleased));
    world.tick(secs(DAY));
    world.sweep();
    assert_eq!(world.reserve("c2", "late", ask(1, 1)), Err(Refusal::KeyReleased));
    world.tick(Span::from_millis(1));
    world.sweep();
    world.advertise("c1", 4, 4);
    world.reserve("c2", "late", ask(1, 1)).unwrap();
}

#[test]
fn nobody_touches_the_keys_of_another() {
    let mut world = one_provider();
    world.reserve("c2", "a", ask(1, 1)).unwrap();
    let which = Which::Key(cluster("c2"), key("a"));
    let by = Actor::Cluster(cluster("c1"));
    assert_eq!(world.run(&Command::Release { by, which }), Err(Refusal::NotFound));
}
