//! The broker or the agents are away for a while.

use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use sublet_agent::transport::Broker as _;
use sublet_core::resources::Resources;
use sublet_crds::condition::{Type, holds};
use sublet_crds::{Duty, ProviderInstructionSpec, ReservationInstructionSpec};
use sublet_crds::{ProviderInstruction, RequestPhase, ReservationInstruction};

use super::{World, small};
use crate::on_kubernetes::until::until;

pub(super) async fn what_is_asked_and_given_back_while_the_broker_is_away_happens_later(
    world: &mut World,
) {
    world.milan.advertise(16).await;
    world.ask("before", small()).await;
    world.in_phase("before", RequestPhase::Active).await;
    world.house.close().await;
    world.delete("before").await;
    world.ask("meanwhile", small()).await;
    let request = world.in_phase("meanwhile", RequestPhase::Pending).await;
    let status = request.status.unwrap();
    let accepted = status.conditions.iter().find(|one| one.type_ == "Accepted").unwrap();
    assert_eq!((&*accepted.status, &*accepted.reason), ("Unknown", "BrokerUnavailable"));
    until("the deleted one to say why it stays", || async {
        let status = world.rome.requests().get("before").await.unwrap().status.unwrap();
        assert!(!status.reservation_name.is_empty());
        let says = status.message.contains("remove the finalizer");
        (says && holds(&status.conditions, Type::Ready).is_none()).then_some(())
    })
    .await;
    world.house.open().await;
    world.milan.advertise(16).await;
    world.in_phase("meanwhile", RequestPhase::Active).await;
    world.delete("meanwhile").await;
    world.is_clean().await;
}

pub(super) async fn what_nobody_reserved_is_removed(world: &mut World) {
    let peer = "turin".parse().unwrap();
    let amounts = Resources::new(1000, 1 << 30);
    let spec = ProviderInstructionSpec::new("rsv-nobody", &peer, &amounts, None);
    let lent = ProviderInstruction::new("rsv-nobody-provider", spec);
    world.milan.lent().create(&PostParams::default(), &lent).await.unwrap();
    let spec = ReservationInstructionSpec::new("rsv-nobody", &peer, &amounts, None);
    let borrowed = ReservationInstruction::new("rsv-nobody", spec);
    world.rome.borrowed().create(&PostParams::default(), &borrowed).await.unwrap();
    world.is_clean().await;
}

/// Two objects about one reservation would hide each other.
pub(super) async fn what_has_a_wrong_name_is_removed_and_the_right_one_stays(world: &mut World) {
    world.milan.advertise(16).await;
    world.ask("doubled", small()).await;
    let request = world.in_phase("doubled", RequestPhase::Active).await;
    world.balances(1).await;
    let id = request.status.unwrap().reservation_name;
    let (peer, amounts) = ("turin".parse().unwrap(), Resources::new(1000, 1 << 30));
    let spec = ProviderInstructionSpec::new(&id, &peer, &amounts, None);
    let lent = ProviderInstruction::new("double", spec);
    world.milan.lent().create(&PostParams::default(), &lent).await.unwrap();
    let spec = ReservationInstructionSpec::new(&id, &peer, &amounts, None);
    let borrowed = ReservationInstruction::new("double", spec);
    world.rome.borrowed().create(&PostParams::default(), &borrowed).await.unwrap();
    world.balances(1).await;
    assert!(world.milan.lent().get_opt("double").await.unwrap().is_none());
    world.delete("doubled").await;
    world.is_clean().await;
}

pub(super) async fn what_ended_while_the_agents_were_away_is_seen(world: &mut World) {
    world.milan.advertise(16).await;
    for name in ["ended", "deleted"] {
        world.ask(name, small()).await;
    }
    let request = world.in_phase("ended", RequestPhase::Active).await;
    world.in_phase("deleted", RequestPhase::Active).await;
    world.rome.kill().await;
    world.milan.kill().await;
    let id = request.status.unwrap().reservation_name;
    world.milan.http.release(&id).await.unwrap();
    world.delete("deleted").await;
    world.rome.begin(None);
    let request = world.in_phase("ended", RequestPhase::Releasing).await;
    let message = request.status.unwrap().message;
    assert!(message.contains("has not confirmed yet"), "{message}");
    world.milan.begin(None);
    world.in_phase("ended", RequestPhase::Failed).await;
    world.is_clean().await;
    world.delete("ended").await;
}

pub(super) async fn what_expired_while_the_agents_were_away_is_taken_down(world: &mut World) {
    world.milan.advertise(16).await;
    // Long enough to be seen in use, however busy the machine is.
    let brief = json!({ "requestedCPU": "1", "requestedMemory": "1Gi", "duration": "6s" });
    world.ask("expires", brief).await;
    world.in_phase("expires", RequestPhase::Active).await;
    world.balances(1).await;
    world.rome.kill().await;
    world.milan.kill().await;
    until("its time to be over at the broker", || async {
        let held = world.rome.reservations().await;
        held.iter().any(|one| one.status.phase == "Releasing").then_some(())
    })
    .await;
    world.rome.begin(None);
    world.milan.begin(None);
    let request = world.in_phase("expires", RequestPhase::Released).await;
    let conditions = request.status.unwrap().conditions;
    assert!(conditions.iter().any(|one| one.reason == "Expired"), "{conditions:?}");
    world.is_clean().await;
    world.delete("expires").await;
}

/// Somebody has deleted what was recorded, and what is to be taken down takes its time: since when is to be noted
/// somewhere, and people are to see why.
pub(super) async fn an_end_that_takes_time_is_written_down_though_nothing_was(world: &mut World) {
    world.milan.advertise(16).await;
    world.ask("unrecorded", small()).await;
    let request = world.in_phase("unrecorded", RequestPhase::Active).await;
    world.balances(1).await;
    let name = format!("{}-provider", request.status.unwrap().reservation_name);
    world.milan.kill().await;
    world.milan.lent().delete(&name, &DeleteParams::default()).await.unwrap();
    world.delete("unrecorded").await;
    until("it to be over at the broker", || async {
        let held = world.rome.reservations().await;
        held.iter().any(|one| one.status.phase == "Releasing").then_some(())
    })
    .await;
    world.milan.peering.take_time(true);
    world.milan.begin(None);
    until("what is waited for to be written down", || async {
        let found = world.milan.lent().get_opt(&name).await.unwrap()?;
        assert_eq!(found.spec.duty, Some(Duty::TakeDown));
        let said = found.status?.conditions;
        said.iter().any(|one| one.message.contains("takes its time")).then_some(())
    })
    .await;
    world.milan.peering.take_time(false);
    world.is_clean().await;
}
