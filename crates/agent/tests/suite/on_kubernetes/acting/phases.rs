//! A request is deleted in every phase that it can be in.

use serde_json::json;
use sublet_agent::controllers::Point;
use sublet_agent::transport::Broker as _;
use sublet_crds::RequestPhase;

use super::crashes::{restart, trap};
use super::{World, small};
use crate::on_kubernetes::until::until;

async fn goes(world: &World, name: &str) {
    world.delete(name).await;
    until(&format!("{name} to go"), || async {
        world.rome.requests().get_opt(name).await.unwrap().is_none().then_some(())
    })
    .await;
    world.is_clean().await;
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
    until("the reserved one to go", || async {
        world.rome.requests().get_opt("reserved").await.unwrap().is_none().then_some(())
    })
    .await;
    world.is_clean().await;

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
