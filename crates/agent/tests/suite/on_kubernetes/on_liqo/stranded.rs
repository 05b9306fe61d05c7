//! Links that end, or break, under slices that live: liqo-rig calls it "tenant first".

use serde_json::{Value, json};
use sublet_agent::peering::{Peering as _, Progress, Removal};
use sublet_agent::transport::Order;
use sublet_core::instruction::{Duty, Side};
use sublet_core::time::Span;
use sublet_crds::Obstacle;
use sublet_testkit::Controller;

use super::guests::{offload, put, remote, stay_home};
use super::linking::{PINS, another_key};
use super::links::pass;
use super::snapshot::Snapshot;
use super::world::{Town, World, condition, is_gone, small, when, when_gone};
use crate::on_kubernetes::until::until;

const TENANT: &str =
    "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-rome/tenants/rome";
const IDENTITY: &str = "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-milan/\
                        identities/controlplane-milan";
const BOTH: [Side; 2] = [Side::Provider, Side::Requester];

fn over(town: &Town, name: &str, duty: Duty) -> Order {
    Order { duty, ..town.order(name, &small()) }
}

/// The broker has told everything there is, and that is nothing.
async fn listed(town: &Town) {
    town.peering.sweep(&BOTH, &|_: Side, _: &str| false).await;
}

/// Somebody deletes the tenant, and the reservation goes on as if nothing had happened.
pub(super) async fn a_tenant_deleted_under_a_slice_is_back(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-tenant", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-tenant", json!({})).await;
    let tenant = world.milan.api.get(TENANT).unwrap()["metadata"]["uid"].clone();
    world.milan.api.delete(TENANT).unwrap();
    when(&world.milan.api, TENANT, |found| found["metadata"]["uid"] != tenant).await;
    // What lived lives, and what is new comes.
    world.keep("rsv-tenant", &small()).await;
    world.keep("rsv-later", &small()).await;
    assert_eq!(remote(&world.milan.api).len(), 1);
    tokio::join!(world.end("rsv-tenant"), world.end("rsv-later"));
    stay_home(world).await;
    before.is_back(world).await;
}

/// Rome's Liqo has a new key. Milan's operator accepts it, and that is all that anybody has to do: what lives goes on with
/// certificates of that key, on the same node, and with the same pods.
pub(super) async fn a_new_key_of_the_requester_is_taken_under_slices_that_live(
    world: &mut World<'_>,
) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-rekeyed", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-rekeyed", json!({})).await;
    let (rome, milan) = (&world.rome, &world.milan);
    let uids =
        || [rome.api.get("/api/v1/nodes/rsv-rekeyed").unwrap(), remote(&milan.api)[0].clone()];
    let uids = || uids().map(|object| object["metadata"]["uid"].clone());
    let (known, old) = (uids(), milan.api.get(&milan.slice("rsv-rekeyed")).unwrap());
    let (public, _) = another_key(&rome.api);
    let order = rome.order("rsv-rekeyed", &small());
    let refused = || async {
        match rome.peering.establish(&order).await {
            Progress::Pending(why) => (why.obstacle == Some(Obstacle::KeyNotPinned)).then_some(()),
            Progress::Ready => None,
            Progress::Failed(why) => panic!("what lives does not end by that: {why:?}"),
        }
    };
    until("that the new key is refused", refused).await;
    assert_eq!(uids(), known);

    milan.api.patch(PINS, &json!({ "data": { "rome": public } })).unwrap();
    let renewed = || async {
        drop(rome.peering.establish(&order).await);
        let copy = milan.api.get(&milan.slice("rsv-rekeyed")).ok()?;
        let is_new = copy["spec"]["csr"].is_string() && copy["spec"]["csr"] != old["spec"]["csr"];
        let is_issued =
            copy["status"]["authParams"]["signedCRT"] != old["status"]["authParams"]["signedCRT"];
        let is_accepted = condition(&copy, "Authentication") == Some("Accepted");
        (is_new && is_issued && is_accepted).then_some(())
    };
    until("a certificate of the new key", renewed).await;
    world.keep("rsv-rekeyed", &small()).await;
    assert_eq!(uids(), known, "nothing was made anew");
    // With the new certificate, and beside the first.
    put(world, "guest-2", "rsv-rekeyed", json!({})).await;
    assert_eq!(remote(&world.milan.api).len(), 2);
    world.end("rsv-rekeyed").await;
    stay_home(world).await;
    before.is_back(world).await;
}

/// Liqo makes no quota of a copy of which it has heard too early. Milan's agent touches that, so that Liqo
/// hears of it again.
pub(super) async fn a_provider_reminds_liqo_of_a_copy_without_a_quota(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-known", &small()).await;
    let manager = world.rig.liqo[1].controller(Controller::Manager).unwrap();
    manager.kill();
    let (lent, borrowed) =
        (world.milan.order("rsv-unheard", &small()), world.rome.order("rsv-unheard", &small()));
    world.instruct(&lent);
    let waits = || async {
        drop(world.rome.peering.establish(&borrowed).await);
        match world.milan.peering.establish(&lent).await {
            Progress::Pending(why) => why.message.contains("making the quota").then_some(()),
            _ => None,
        }
    };
    until("that only the quota is missing", waits).await;
    let reminded = || {
        let copy = world.milan.api.get(&world.milan.slice("rsv-unheard")).unwrap();
        copy["metadata"]["annotations"]["sublet.io/reminded"].as_str().map(str::to_owned)
    };
    pass(Span::from_secs(10));
    assert!(matches!(world.milan.peering.establish(&lent).await, Progress::Pending(_)));
    let first = reminded().expect("Liqo is reminded");
    pass(Span::from_secs(10));
    assert!(matches!(world.milan.peering.establish(&lent).await, Progress::Pending(_)));
    assert_ne!(reminded(), Some(first), "and again");
    manager.start().unwrap();
    world.keep("rsv-unheard", &small()).await;
    tokio::join!(world.end("rsv-known"), world.end("rsv-unheard"));
    before.is_back(world).await;
}

/// Somebody deletes the tenant while the provider's agent is away, and the reservation ends just then.
pub(super) async fn a_slice_that_ends_without_its_tenant_strands_nobody(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-barred", &small()).await;
    world.milan.stop().await;
    world.milan.api.delete(TENANT).unwrap();
    when_gone(&world.milan.api, TENANT).await;
    let borrowed = over(&world.rome, "rsv-barred", Duty::TakeDown);
    let slice = world.rome.slice("rsv-barred");
    let stuck = |found: &Value| found["metadata"]["deletionTimestamp"].is_string();
    until("that it is kept by what cannot be given back", || async {
        assert!(matches!(world.rome.peering.withdraw(&borrowed).await, Removal::Pending(_)));
        world.rome.api.get(&slice).is_ok_and(|found| stuck(&found)).then_some(())
    })
    .await;
    world.milan.restart().await;
    world.tell_end("rsv-barred");
    world.milan.is_gone(&over(&world.milan, "rsv-barred", Duty::TakeDown)).await;
    world.forget("rsv-barred");
    listed(&world.milan).await;
    world.rome.is_gone(&over(&world.rome, "rsv-barred", Duty::Gone)).await;
    when_gone(&world.rome.api, IDENTITY).await;
    pass(Span::from_secs(60));
    before.is_back(world).await;
}

/// A requester that was silent for so long that the provider has ended reservation and link.
pub(super) async fn a_requester_that_comes_back_too_late_is_rid_of_everything(
    world: &mut World<'_>,
) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-late", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-late", json!({})).await;
    world.rome.stop().await;
    world.tell_end("rsv-late");
    world.milan.is_gone(&over(&world.milan, "rsv-late", Duty::TakeDown)).await;
    world.forget("rsv-late");
    // Rome's Liqo brings it back, worth nothing, and Milan ends the link at last.
    let is_denied = |slice: &Value| condition(slice, "Resources") == Some("Denied");
    when(&world.milan.api, &world.milan.slice("rsv-late"), is_denied).await;
    world.milan.stop().await;
    world.milan.api.delete(TENANT).unwrap();
    when_gone(&world.milan.api, TENANT).await;
    world.rome.restart().await;
    listed(&world.rome).await;
    world.rome.is_gone(&over(&world.rome, "rsv-late", Duty::Gone)).await;
    assert!(is_gone(&world.rome.api, "/api/v1/nodes/rsv-late"));
    when_gone(&world.rome.api, IDENTITY).await;
    world.milan.restart().await;
    listed(&world.milan).await;
    pass(Span::from_secs(60));
    stay_home(world).await;
    before.is_back(world).await;
}
