//! What is in the way between two clusters is said where people look, with one word for programs.

use sublet_crds::{Obstacle, RequestPhase, ResourceRequest};

use super::{World, small};
use crate::on_kubernetes::until::until;

/// The status and the reason of whether it can be used.
fn ready(request: &ResourceRequest) -> Option<(&str, &str, &str)> {
    let conditions = &request.status.as_ref()?.conditions;
    let ready = conditions.iter().find(|one| one.type_ == "Ready")?;
    Some((&ready.status, &ready.reason, &ready.message))
}

async fn says(world: &World, name: &str, status: &str, reason: &str) -> ResourceRequest {
    until(&format!("{name} to say {status} {reason}"), || async {
        let request = world.rome.requests().get(name).await.ok()?;
        let is_said = ready(&request).is_some_and(|said| (said.0, said.1) == (status, reason));
        is_said.then_some(request)
    })
    .await
}

pub(super) async fn what_could_not_be_joined_says_why_after_its_end(world: &World) {
    world.milan.advertise(16).await;
    world.rome.peering.hinder(Some(Obstacle::KeyNotPinned));
    world.ask("barred", small()).await;
    let request = world.in_phase("barred", RequestPhase::Failed).await;
    let (status, reason, message) = ready(&request).unwrap();
    assert_eq!((status, reason), ("False", "KeyNotPinned"));
    assert!(message.contains("sublet-liqo-keys"), "{message}");
    let said = request.status.unwrap().message;
    assert!(said.starts_with("The clusters could not be joined: KeyNotPinned: "), "{said}");
    world.rome.peering.hinder(None);
    world.delete("barred").await;
    world.is_clean().await;
}

pub(super) async fn what_was_in_force_is_not_given_up_but_says_what_is_wrong(world: &World) {
    world.milan.advertise(16).await;
    world.ask("running", small()).await;
    let request = world.in_phase("running", RequestPhase::Active).await;
    world.balances(1).await;
    for town in [&world.rome, &world.milan] {
        town.peering.hinder(Some(Obstacle::LiqoSilent));
    }
    says(world, "running", "False", "LiqoSilent").await;
    let id = request.status.unwrap().reservation_name;
    until("the provider to say so", || async {
        let all = world.milan.lent().list(&kube::api::ListParams::default()).await.ok()?;
        let conditions = &all.items.first()?.status.as_ref()?.conditions;
        conditions.iter().any(|one| one.reason == "LiqoSilent").then_some(())
    })
    .await;
    let known = world.rome.reservations().await;
    let known = known.iter().find(|one| one.id == id).unwrap();
    assert_eq!(known.status.phase, "Active", "nobody has given it up");
    for town in [&world.rome, &world.milan] {
        town.peering.hinder(None);
    }
    says(world, "running", "True", "Done").await;
    world.balances(1).await;
    world.delete("running").await;
    world.is_clean().await;
}
