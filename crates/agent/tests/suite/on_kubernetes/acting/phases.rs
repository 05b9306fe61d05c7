//! A request is deleted in every phase that it can be in.

use std::collections::BTreeSet;

use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::json;
use sublet_agent::controllers::Point;
use sublet_agent::transport::Broker as _;
use sublet_crds::RequestPhase;

use super::crashes::{is_sprung, restart, trap};
use super::{World, is_live, small};
use crate::on_kubernetes::until::until;

async fn goes(world: &World, name: &str) {
    world.delete(name).await;
    is_gone(world, name).await;
}

async fn is_gone(world: &World, name: &str) {
    until(&format!("{name} to go"), || async {
        world.rome.requests().get_opt(name).await.unwrap().is_none().then_some(())
    })
    .await;
    world.is_clean().await;
}

/// Its agent dies where it has no phase yet: before the broker was asked, and when the broker has reserved
/// it and nobody here knows.
pub(super) async fn a_request_may_be_deleted_before_it_has_a_phase(world: &mut World) {
    world.milan.advertise(16).await;
    for (name, at) in [("unasked", Point::Finalized), ("unwritten", Point::Answered)] {
        let (hook, sprung) = trap(at);
        restart(&mut world.rome, Some(hook)).await;
        world.ask(name, small()).await;
        is_sprung(at, &sprung).await;
        let request = world.rome.requests().get(name).await.unwrap();
        assert!(request.status.is_none_or(|status| status.phase.is_none()), "{name}");
        let is_held = world.rome.reservations().await.iter().any(is_live);
        assert_eq!(is_held, at == Point::Answered, "{name}");
        world.delete(name).await;
        restart(&mut world.rome, None).await;
        is_gone(world, name).await;
    }
    // The broker is away: it cannot be asked, nor told that it need not be.
    world.house.close().await;
    world.ask("unheard", small()).await;
    world.in_phase("unheard", RequestPhase::Pending).await;
    world.delete("unheard").await;
    until("it to say why it stays", || async {
        let status = world.rome.requests().get("unheard").await.unwrap().status.unwrap();
        status.message.contains("remove the finalizer").then_some(())
    })
    .await;
    world.house.open().await;
    is_gone(world, "unheard").await;
}

pub(super) async fn a_request_may_be_deleted_in_every_phase(world: &mut World) {
    world.milan.advertise(16).await;

    let waits = json!({ "requestedCPU": "99", "requestedMemory": "1Gi", "wait": "10m" });
    world.ask("pending", waits).await;
    world.in_phase("pending", RequestPhase::Pending).await;
    goes(world, "pending").await;

    // Its agent writes the instruction down and dies, so that it never becomes more than reserved.
    let (hook, _) = trap(Point::Recorded);
    restart(&mut world.rome, Some(hook)).await;
    world.ask("reserved", small()).await;
    world.in_phase("reserved", RequestPhase::Reserved).await;
    world.delete("reserved").await;
    restart(&mut world.rome, None).await;
    is_gone(world, "reserved").await;

    world.ask("active", small()).await;
    world.in_phase("active", RequestPhase::Active).await;
    goes(world, "active").await;

    // Its provider took it back and says no more.
    world.ask("releasing", small()).await;
    let request = world.in_phase("releasing", RequestPhase::Active).await;
    world.milan.kill().await;
    let id = request.status.unwrap().reservation_name;
    world.milan.http.release(&id).await.unwrap();
    world.in_phase("releasing", RequestPhase::Releasing).await;
    world.delete("releasing").await;
    world.milan.begin(None);
    world.is_clean().await;

    let much = json!({ "requestedCPU": "99", "requestedMemory": "1Gi" });
    world.ask("failed", much).await;
    world.in_phase("failed", RequestPhase::Failed).await;
    goes(world, "failed").await;

    let brief = json!({ "requestedCPU": "1", "requestedMemory": "1Gi", "duration": "1s" });
    world.ask("released", brief).await;
    world.in_phase("released", RequestPhase::Released).await;
    goes(world, "released").await;
}

/// What was said in a cluster: of what, whether it is a warning, and in which word.
async fn events(client: &Client) -> BTreeSet<(String, bool, String)> {
    let api: Api<Event> = Api::all(client.clone());
    let all = api.list(&ListParams::default()).await.unwrap().items.into_iter();
    all.filter_map(|event| {
        let about = event.regarding?;
        // Those of requests by name; the others have the name of a reservation.
        let is_request = about.kind.as_deref() == Some("ResourceRequest");
        let name = if is_request { about.name } else { about.kind };
        Some((name?, event.type_? == "Warning", event.reason?))
    })
    .collect()
}

/// After [`a_request_may_be_deleted_in_every_phase`].
pub(super) async fn each_phase_was_an_event(world: &World) {
    let said = |all: &[(&str, bool, &str)]| -> BTreeSet<_> {
        let owned = |(of, is_warning, word): &(&str, bool, &str)| {
            ((*of).to_owned(), *is_warning, (*word).to_owned())
        };
        all.iter().map(owned).collect()
    };
    let rome = said(&[
        ("pending", false, "Pending"),
        ("active", false, "Reserved"),
        ("active", false, "Active"),
        ("releasing", false, "Releasing"),
        ("failed", true, "Failed"),
        ("released", false, "Released"),
        ("unheard", true, "ReleasePending"),
        ("ReservationInstruction", false, "Delivered"),
        ("ReservationInstruction", false, "Withdrawn"),
    ]);
    let milan = said(&[
        ("ProviderInstruction", false, "Enforced"),
        ("ProviderInstruction", false, "Withdrawn"),
    ]);
    for (town, expected) in [(&world.rome, rome), (&world.milan, milan)] {
        until(&format!("{expected:?} in the Events of {}", town.id), || async {
            expected.is_subset(&events(&town.client).await).then_some(())
        })
        .await;
    }
}
