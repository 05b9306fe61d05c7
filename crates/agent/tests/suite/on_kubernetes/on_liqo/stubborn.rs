//! How a reservation ends when somebody does not want it to.

use serde_json::{Value, json};
use sublet_agent::peering::{Peering as _, Removal};
use sublet_agent::transport::Order;
use sublet_core::instruction::{Duty, Side};
use sublet_crds::Obstacle;
use sublet_crds::condition::Reason;
use sublet_testkit::{Controller, Signal};

use super::audited::is_audited;
use super::enforcing::{Hooks, does_not_lend};
use super::guests::{offload, place, pod_path, put, remote, stay_home};
use super::hostile::{PODS, Rogue, refusals, replicator};
use super::snapshot::Snapshot;
use super::world::{Town, World, condition, is_gone, is_late, small, when, when_gone};
use crate::on_kubernetes::logged::is_logged;
use crate::on_kubernetes::until::until;

/// As many as fit.
const GUESTS: [&str; 4] = ["guest", "guest-2", "guest-3", "guest-4"];

pub(super) async fn a_stuck_pod_stops_nobody_else(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-stuck", &small()).await;
    world.keep("rsv-free", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-stuck", json!({ "finalizers": ["example.com/stuck"] })).await;
    let stuck = Order { duty: Duty::TakeDown, ..world.rome.order("rsv-stuck", &small()) };
    let told = || async {
        match world.rome.peering.withdraw(&stuck).await {
            Removal::Pending(why) if why.message.contains("example.com/stuck") => {
                assert_eq!(why.obstacle, Some(Obstacle::PodsHeld));
                Some(())
            }
            Removal::Pending(_) => None,
            Removal::Gone => panic!("the pod is still there"),
        }
    };
    until("Rome says which finalizer it is", told).await;
    // Another one ends, and so does what Milan has of this one.
    world.end("rsv-free").await;
    world.tell_end("rsv-stuck");
    let lent = Order { duty: Duty::TakeDown, ..world.milan.order("rsv-stuck", &small()) };
    world.milan.is_gone(&lent).await;
    world.forget("rsv-stuck");
    assert_eq!(remote(&world.milan.api).len(), 0);
    let quotas = world.milan.api.get(&world.milan.liqo("offloading", "quotas")).unwrap();
    assert_eq!(quotas["items"], json!([]));
    let free = json!({ "metadata": { "finalizers": null } });
    world.rome.api.patch(&pod_path("guest"), &free).unwrap();
    world.rome.is_gone(&stuck).await;
    stay_home(world).await;
    // What Rome's replicator had made again in Milan went with the slice in Rome.
    when_gone(&world.milan.api, &world.milan.slice("rsv-stuck")).await;
    world.milan.is_gone(&lent).await;
    before.is_back(world).await;
}

pub(super) async fn a_requester_that_is_silent_loses_its_pods(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-silent", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-silent", json!({})).await;
    world.tell_end("rsv-silent");
    let over = Order { duty: Duty::TakeDown, ..world.milan.order("rsv-silent", &small()) };
    assert!(matches!(world.milan.peering.withdraw(&over).await, Removal::Pending(_)));
    let there = remote(&world.milan.api).len();
    let slice = world.milan.api.get(&world.milan.slice("rsv-silent")).unwrap();
    let since = &slice["metadata"]["annotations"]["sublet.io/reclaimed-since"];
    assert!(there == 1 || is_late(since), "it is given time");
    let quotas = world.milan.liqo("offloading", "quotas");
    when(&world.milan.api, &quotas, |found| found["items"][0]["spec"]["cordoned"] == true).await;
    world.milan.is_gone(&over).await;
    world.forget("rsv-silent");
    assert_eq!(remote(&world.milan.api).len(), 0);
    // Liqo brings the slice back, and nothing with it: it has no reservation any more.
    let replica = world.milan.slice("rsv-silent");
    let is_denied = |slice: &Value| condition(slice, "Resources") == Some("Denied");
    when(&world.milan.api, &replica, is_denied).await;
    assert_eq!(world.milan.api.get(&quotas).unwrap()["items"], json!([]));
    assert_eq!(remote(&world.milan.api).len(), 0);
    assert_eq!(world.milan.peering.withdraw(&over).await, Removal::Gone);
    // Rome is heard again.
    let over = Order { duty: Duty::TakeDown, ..world.rome.order("rsv-silent", &small()) };
    world.rome.is_gone(&over).await;
    when_gone(&world.milan.api, &replica).await;
    stay_home(world).await;
    before.is_back(world).await;
}

/// With the certificate of the slice, and with a finalizer from before there was the policy.
pub(super) async fn nobody_holds_on_to_what_is_over(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-held", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-held", json!({})).await;
    let (rogue, known) = (Rogue::of_slice(world, "rsv-held"), refusals(world));
    let kubectl = |arguments: &[&str]| rogue.kubectl(world, arguments);
    kubectl(&["get", "shadowpods", "guest"]).unwrap();
    let held = r#"{"metadata":{"finalizers":["example.com/held"]}}"#;
    let refused = kubectl(&["patch", "shadowpods", "guest", "--type=merge", "-p", held]);
    let refused = refused.unwrap_err();
    assert!(refused.contains("may not hold on to a pod"), "{refused}");
    let orphaning = ["delete", "shadowpods", "guest", "--cascade=orphan", "--wait=false"];
    let refused = kubectl(&orphaning).unwrap_err();
    assert!(refused.contains("may not leave pods behind"), "{refused}");
    assert!(refusals(world) >= known + 2, "what a policy refuses is counted");
    for why in ["may not hold on to a pod", "may not leave pods behind"] {
        is_audited(world, "rsv-held-", PODS, why).await;
    }
    let held = json!({ "metadata": { "finalizers": ["example.com/held"] } });
    world.milan.api.patch(&world.milan.slice("rsv-held"), &held).unwrap();
    world.end("rsv-held").await;
    when_gone(&world.milan.api, &world.milan.slice("rsv-held")).await;
    stay_home(world).await;
    before.is_back(world).await;
}

/// While Liqo's webhooks are away nothing more is lent. A pod that got in then does not say whose it is, and
/// nobody can remove its shadow when they are back.
pub(super) async fn a_pod_that_got_in_without_a_webhook_ends_like_any_other(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-stray", &small()).await;
    offload(world).await;
    let milan = &world.milan.api;
    let hooks = Hooks::take_away(world);
    does_not_lend(world, Some(Reason::WebhookMissing)).await;
    put(world, "guest", "rsv-stray", json!({})).await;
    let requests = json!({ "cpu": "4", "memory": "64Mi" });
    let greedy = json!({ "containers": [{ "name": "main", "image": "simulated",
                                          "resources": { "requests": requests } }] });
    place(world, "greedy", "rsv-stray", (json!({}), greedy)).await;
    hooks.put_back(world);
    does_not_lend(world, None).await;
    // What is within the reservation stays, and what is beyond it goes while the reservation lives.
    let trimmed = || async {
        let names: Vec<_> =
            remote(milan).iter().map(|pod| pod["metadata"]["name"].clone()).collect();
        (names == ["guest"]).then_some(())
    };
    until("that only what there is room for is left", trimmed).await;
    let labels = remote(milan)[0]["metadata"]["labels"].clone();
    assert!(labels["liqo.io/creator-user"].is_null(), "{labels}");
    assert_eq!(labels["offloading.liqo.io/nodename"], "rsv-stray");
    world.end("rsv-stray").await;
    assert_eq!(remote(milan).len(), 0);
    let shadows = "/apis/offloading.liqo.io/v1beta1/shadowpods";
    let left = milan.get(shadows).unwrap()["items"].as_array().cloned().unwrap();
    let is_over = |shadow: &Value| shadow["status"]["phase"] == "Failed";
    assert!(!left.is_empty() && left.iter().all(is_over), "{left:?}");
    // Nobody can remove it, until somebody takes the webhooks away for a moment.
    let hooks = Hooks::take_away(world);
    let swept = || async {
        world.milan.peering.sweep(&[Side::Provider], &|_: Side, _: &str| false).await;
        (milan.get(shadows).unwrap()["items"] == json!([])).then_some(())
    };
    until("the shadow is swept", swept).await;
    hooks.put_back(world);
    stay_home(world).await;
    before.is_back(world).await;
}

/// Nothing can be written on the slice, and no shadow pod removed, while Milan's webhook is asked and says
/// nothing, which the API server takes ten seconds to notice each time. That is said, and the pods end.
pub(super) async fn pods_end_although_no_webhook_answers(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-mute", &small()).await;
    offload(world).await;
    for guest in GUESTS {
        put(world, guest, "rsv-mute", json!({})).await;
    }
    let webhook = world.rig.liqo[1].controller(Controller::Webhook).unwrap();
    webhook.signal(Signal::STOP).unwrap();
    world.tell_end("rsv-mute");
    let over = Order { duty: Duty::TakeDown, ..world.milan.order("rsv-mute", &small()) };
    let told = || async {
        match world.milan.peering.withdraw(&over).await {
            Removal::Pending(why) => (why.obstacle == Some(Obstacle::WebhookSilent)).then_some(()),
            Removal::Gone => panic!("the slice is still there"),
        }
    };
    until("Milan says that the webhook does not answer", told).await;
    // The time that the requester has is not on the slice, so it is on the instruction; a new agent goes by it.
    let instruction = format!("{}/rsv-mute-provider", Town::instructions());
    let noted =
        |object: &Value| object["metadata"]["annotations"]["sublet.io/reclaimed-since"].clone();
    let since =
        noted(&when(&world.milan.api, &instruction, |found| noted(found).is_string()).await);
    assert!(noted(&world.milan.api.get(&world.milan.slice("rsv-mute")).unwrap()).is_null());
    until("the end of that time", || async { is_late(&since).then_some(()) }).await;
    assert_eq!(remote(&world.milan.api).len(), GUESTS.len(), "nobody has looked since");
    world.milan.restart().await;
    assert!(matches!(world.milan.peering.withdraw(&over).await, Removal::Pending(_)));
    let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
    assert_eq!(remote(&world.milan.api).iter().filter(stays).count(), 0, "the time is over");
    assert_eq!(noted(&world.milan.api.get(&instruction).unwrap()), since);
    let ended = || async {
        assert!(matches!(world.milan.peering.withdraw(&over).await, Removal::Pending(_)));
        let shadows = world.milan.api.get("/apis/offloading.liqo.io/v1beta1/shadowpods").unwrap();
        let is_over = |shadow: &Value| shadow["status"]["phase"] == "Failed";
        let all_over = shadows["items"].as_array().unwrap().iter().all(is_over);
        (all_over && remote(&world.milan.api).is_empty()).then_some(())
    };
    until("the pods end", ended).await;
    webhook.signal(Signal::CONT).unwrap();
    world.end("rsv-mute").await;
    // Rome's Liqo may have brought it back in the meantime.
    when_gone(&world.milan.api, &world.milan.slice("rsv-mute")).await;
    world.milan.is_gone(&over).await;
    stay_home(world).await;
    before.is_back(world).await;
}

/// The same at the requester's: its slice cannot be marked, and its pods leave all the same.
pub(super) async fn pods_leave_although_no_webhook_answers(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-dumb", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-dumb", json!({})).await;
    let instructions = "/apis/rear.fluidos.eu/v1alpha1/namespaces/sublet/reservationinstructions";
    let object = json!({
        "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ReservationInstruction",
        "metadata": { "name": "rsv-dumb" },
        "spec": { "reservationName": "rsv-dumb", "targetClusterID": "milan", "duty": "TakeDown",
                  "requestedCPU": "2", "requestedMemory": "4Gi", "instructionGeneration": 2 },
    });
    world.rome.api.create(instructions, &object).unwrap();
    let webhook = world.rig.liqo[0].controller(Controller::Webhook).unwrap();
    webhook.signal(Signal::STOP).unwrap();
    let over = Order { duty: Duty::TakeDown, ..world.rome.order("rsv-dumb", &small()) };
    let left = || async {
        assert!(matches!(world.rome.peering.withdraw(&over).await, Removal::Pending(_)));
        is_gone(&world.rome.api, &pod_path("guest")).then_some(())
    };
    until("that the pod leaves", left).await;
    let instruction = world.rome.api.get(&format!("{instructions}/rsv-dumb")).unwrap();
    let noted = &instruction["metadata"]["annotations"]["sublet.io/leaving-since"];
    assert!(noted.is_string(), "{instruction}");
    webhook.signal(Signal::CONT).unwrap();
    world.end("rsv-dumb").await;
    world.rome.api.delete(&format!("{instructions}/rsv-dumb")).unwrap();
    stay_home(world).await;
    before.is_back(world).await;
}

/// What is there on either side and in no list of the broker's.
/// Its slice went while nobody was there who would have ended it.
pub(super) async fn pods_of_what_is_over_are_swept(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    for name in ["rsv-stays", "rsv-late"] {
        world.keep(name, &small()).await;
    }
    offload(world).await;
    put(world, "guest", "rsv-late", json!({})).await;
    put(world, "other", "rsv-stays", json!({})).await;
    replicator(world).kill();
    world.milan.stop().await;
    world.forget("rsv-late");
    let slice = world.milan.slice("rsv-late");
    world.milan.api.delete(&slice).unwrap();
    when_gone(&world.milan.api, &slice).await;
    world.milan.restart().await;
    let shadows = "/apis/offloading.liqo.io/v1beta1/namespaces/demo-rome/shadowpods";
    let is_live = |_: Side, name: &str| name == "rsv-stays";
    world.milan.peering.sweep(&[Side::Provider], &is_live).await;
    when_gone(&world.milan.api, &format!("{shadows}/guest")).await;
    is_logged(&["WARN", "of a reservation that is over is removed", "guest"]).await;
    assert!(!is_gone(&world.milan.api, &format!("{shadows}/other")), "it is let in");
    replicator(world).start().unwrap();
    let over = Order { duty: Duty::TakeDown, ..world.rome.order("rsv-late", &small()) };
    world.rome.is_gone(&over).await;
    world.end("rsv-stays").await;
    stay_home(world).await;
    before.is_back(world).await;
}

pub(super) async fn what_nobody_wants_is_swept(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    for name in ["rsv-wanted", "rsv-orphan"] {
        world.keep(name, &small()).await;
    }
    world.forget("rsv-orphan");
    let is_live = |_: Side, name: &str| name == "rsv-wanted";
    world.milan.peering.sweep(&[Side::Provider, Side::Requester], &is_live).await;
    world.rome.peering.sweep(&[Side::Provider, Side::Requester], &is_live).await;
    when_gone(&world.rome.api, &world.rome.slice("rsv-orphan")).await;
    when_gone(&world.milan.api, &world.milan.slice("rsv-orphan")).await;
    when_gone(&world.rome.api, "/api/v1/nodes/rsv-orphan").await;
    assert!(!is_gone(&world.rome.api, "/api/v1/nodes/rsv-wanted"));
    world.milan.is_ready(&world.milan.order("rsv-wanted", &small())).await;
    world.rome.is_ready(&world.rome.order("rsv-wanted", &small())).await;
    world.end("rsv-wanted").await;
    let nothing = |_: Side, _: &str| false;
    world.milan.peering.sweep(&[Side::Provider, Side::Requester], &nothing).await;
    world.rome.peering.sweep(&[Side::Provider, Side::Requester], &nothing).await;
    before.is_back(world).await;
}
