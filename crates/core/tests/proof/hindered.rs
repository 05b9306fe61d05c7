//! Why two clusters were not joined stays known as long as the reservation does.

use crate::world::{World, ask, cluster};
use sublet_core::event::Event;
use sublet_core::id::ReservationId;
use sublet_core::ledger::Ledger;
use sublet_core::plan::Command;
use sublet_core::policy::Policy;
use sublet_core::reservation::{Hindrance, Phase, State};

fn failed(world: &mut World, by: &str) -> ReservationId {
    let id = world.reserve("c2", "a", ask(1, 1)).unwrap();
    let why = Hindrance::new("KeyNotPinned", "another key; compare them");
    world.run(&Command::Fail { by: cluster(by), id, why }).unwrap();
    id
}

/// What the ledger says is in the way, also after it was read back from a snapshot.
fn word(world: &World, id: ReservationId) -> String {
    let image = serde_json::to_string(world.books.ledger()).unwrap();
    let again: Ledger = serde_json::from_str(&image).unwrap();
    assert_eq!(again.reservation(id), Some(world.reservation(id)));
    match &world.reservation(id).state {
        State::Releasing(_, ending) | State::Ended { ending, .. } => {
            ending.hindrance.as_ref().unwrap().word().to_owned()
        }
        live => panic!("{live:?}"),
    }
}

#[test]
fn why_clusters_were_not_joined_is_known_until_the_reservation_is_forgotten() {
    let mut world = World::new(Policy::default());
    world.advertise("c1", 4, 4);
    let id = failed(&mut world, "c1");
    assert_eq!((world.phase(id), word(&world, id).as_str()), (Phase::Releasing, "KeyNotPinned"));
    world.acknowledge(id);
    assert_eq!((world.phase(id), word(&world, id).as_str()), (Phase::Failed, "KeyNotPinned"));
    world.check_replay();
}

#[test]
fn it_is_known_of_a_provider_that_never_confirms_too() {
    let mut world = World::new(Policy::default());
    world.advertise_old("c1", 4, 4);
    let id = failed(&mut world, "c2");
    assert_eq!((world.phase(id), word(&world, id).as_str()), (Phase::Failed, "KeyNotPinned"));
}

#[test]
fn records_from_before_it_was_kept_are_read_and_written_as_ever() {
    let id = "rsv-aaaaaaaaaaaaaaaaaaaa";
    let ended = r#""reason":"PeeringFailed","by":{"cluster":"c1"},"confirmation":"Confirmed"}}"#;
    for text in [
        format!(r#"{{"ending":{{"id":"{id}","reason":"Expired","by":"broker"}}}}"#),
        format!(r#"{{"ended":{{"id":"{id}",{ended}"#),
    ] {
        let event: Event = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&event).unwrap(), text);
    }
}
