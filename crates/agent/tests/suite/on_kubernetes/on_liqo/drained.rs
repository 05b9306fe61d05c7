//! A provider's operator has a requester do no more, and later lets it in again.

use serde_json::json;
use sublet_agent::peering::{Peering as _, Progress};
use sublet_agent::transport::Order;
use sublet_crds::Obstacle;

use super::guests::{ABROAD, offload, put, remote, stay_home};
use super::snapshot::Snapshot;
use super::world::{World, is_gone, small, when, when_gone};
use crate::on_kubernetes::until::until;

const TENANT: &str =
    "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-rome/tenants/rome";

fn set(world: &World<'_>, condition: &str) {
    let change = json!({ "spec": { "tenantCondition": condition } });
    world.milan.api.patch(TENANT, &change).unwrap();
}

/// Waits until Milan says so, and not that it is enforced.
async fn is_said(world: &World<'_>, lent: &Order, obstacle: Option<Obstacle>, words: &str) {
    let said = || async {
        match world.milan.peering.establish(lent).await {
            Progress::Pending(why) if why.message.contains(words) => {
                assert_eq!(why.obstacle, obstacle);
                Some(())
            }
            Progress::Failed(why) => panic!("what lives does not end by that: {why:?}"),
            _ => None,
        }
    };
    until(words, said).await;
}

/// Cordoned, it keeps what it has, and gets no more. Drained, it loses everything here, and has it again when it is let
/// in, although nobody in Rome was told.
pub(super) async fn a_requester_that_was_drained_has_everything_again(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-drained", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-drained", json!({})).await;
    let lent = world.milan.order("rsv-drained", &small());
    let not_active = Some(Obstacle::TenantNotActive);
    set(world, "Cordoned");
    is_said(world, &lent, not_active, "to Cordoned").await;
    let later = world.milan.order("rsv-later", &small());
    world.instruct(&later);
    drop(world.rome.peering.establish(&world.rome.order("rsv-later", &small())).await);
    is_said(world, &later, not_active, "to Cordoned").await;
    assert_eq!(remote(&world.milan.api).len(), 1, "what is there stays");
    set(world, "Active");
    world.keep("rsv-later", &small()).await;
    world.milan.is_ready(&lent).await;
    world.end("rsv-later").await;

    // Nobody reminds Rome's Liqo of anything while its agent is away.
    world.rome.stop().await;
    set(world, "Drained");
    when_gone(&world.milan.api, &world.milan.slice("rsv-drained")).await;
    is_said(world, &lent, not_active, "to Drained").await;
    when_gone(&world.milan.api, ABROAD).await;
    set(world, "Active");
    is_said(world, &lent, None, "was here and is gone").await;
    world.milan.restart().await;
    is_said(world, &lent, None, "was here and is gone").await;
    let quotas = world.milan.liqo("offloading", "quotas");
    assert_eq!(world.milan.api.get(&quotas).unwrap()["items"], json!([]));
    assert!(is_gone(&world.milan.api, &world.milan.slice("rsv-drained")));

    world.rome.restart().await;
    world.keep("rsv-drained", &small()).await;
    when(&world.milan.api, &quotas, |found| found["items"][0]["spec"]["resources"]["cpu"] == "2")
        .await;
    when(&world.milan.api, ABROAD, |found| found["metadata"]["deletionTimestamp"].is_null()).await;
    put(world, "guest-2", "rsv-drained", json!({})).await;
    world.end("rsv-drained").await;
    stay_home(world).await;
    before.is_back(world).await;
}
