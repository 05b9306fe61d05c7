//! How a reservation ends when both sides want it to.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use sublet_agent::peering::{Peering as _, Progress, Removal};
use sublet_agent::transport::Order;
use sublet_core::instruction::Duty;
use sublet_testkit::wait::Stopwatch;

use super::enforcing::does_not_lend;
use super::guests::{ABROAD, HOME, abroad, offload, offloadings, pod_path, put, remote, stay_home};
use super::snapshot::Snapshot;
use super::world::{Town, World, is_gone, small, when_gone};
use crate::on_kubernetes::until::until;

/// For what takes many restarts.
const LONG: Duration = Duration::from_mins(5);

pub(super) async fn a_release_leaves_nothing_behind(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    for name in ["rsv-first", "rsv-second"] {
        world.keep(name, &small()).await;
    }
    let clock = Stopwatch::start();
    tokio::join!(world.end("rsv-first"), world.end("rsv-second"));
    eprintln!("  two released after {:?}", clock.elapsed());
    before.is_back(world).await;
    // What was never there ends as well, also with a cluster that was never linked: there the agent may
    // not even look.
    for town in [&world.rome, &world.milan] {
        let never = Order { duty: Duty::TakeDown, ..town.order("rsv-never", &small()) };
        assert_eq!(town.peering.withdraw(&never).await, Removal::Gone);
        let stranger = Order { peer: "venice".parse().unwrap(), ..never };
        assert_eq!(town.peering.withdraw(&stranger).await, Removal::Gone);
    }
}

pub(super) async fn pods_leave_before_their_node_does(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-pods", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-pods", json!({})).await;
    let clock = Stopwatch::start();
    world.end("rsv-pods").await;
    eprintln!("  released with a pod after {:?}", clock.elapsed());
    assert!(is_gone(&world.rome.api, &pod_path("guest")));
    assert_eq!(remote(&world.milan.api).len(), 0);
    stay_home(world).await;
    before.is_back(world).await;
}

/// A page full of pods that may stay, and one behind them that has to leave.
pub(super) async fn a_node_is_empty_when_all_its_pods_were_looked_at(world: &mut World<'_>) {
    world.keep("rsv-crowd", &small()).await;
    let api = &world.rome.api;
    api.create("/api/v1/namespaces", &json!({ "metadata": { "name": "crowd" } })).unwrap();
    super::world::when(api, "/api/v1/namespaces/crowd/serviceaccounts/default", |_| true).await;
    let container = json!({ "name": "main", "image": "simulated" });
    let labels = json!({ "app": "crowd" });
    let daemons = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "everywhere" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    });
    let daemons = api.create("/apis/apps/v1/namespaces/crowd/daemonsets", &daemons).unwrap();
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "everywhere",
                         "uid": daemons["metadata"]["uid"] }]);
    let pod = |name: &str, owners: &serde_json::Value| {
        json!({
            "metadata": { "name": name, "ownerReferences": owners },
            "spec": { "nodeName": "rsv-crowd", "containers": [container] },
        })
    };
    let mut pods: Vec<_> =
        (0..100).map(|number| pod(&format!("daemon-{number:03}"), &owner)).collect();
    pods.push(pod("last", &json!([])));
    api.create_all("/api/v1/namespaces/crowd/pods", &pods).unwrap();
    let over = Order { duty: Duty::TakeDown, ..world.rome.order("rsv-crowd", &small()) };
    let Removal::Pending(why) = world.rome.peering.withdraw(&over).await else {
        panic!("a pod is still there");
    };
    assert!(why.message.contains("pods are leaving"), "{why}");
    assert!(why.message.contains("crowd/last"), "{why}");
    world.end("rsv-crowd").await;
    assert!(is_gone(&world.rome.api, "/api/v1/namespaces/crowd/pods/last"));
    let forced = "/api/v1/namespaces/crowd/pods?gracePeriodSeconds=0";
    world.rome.api.delete(forced).unwrap();
    world.rome.api.delete("/api/v1/namespaces/crowd").unwrap();
    when_gone(&world.rome.api, "/api/v1/namespaces/crowd").await;
}

pub(super) async fn a_disruption_budget_is_honoured_until_the_deadline(world: &mut World<'_>) {
    world.keep("rsv-budget", &small()).await;
    offload(world).await;
    put(world, "dear", "rsv-budget", json!({ "labels": { "app": "dear" } })).await;
    let budget = json!({
        "metadata": { "name": "dear" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "dear" } } },
    });
    let budgets = format!("/apis/policy/v1/namespaces/{HOME}/poddisruptionbudgets");
    world.rome.api.create(&budgets, &budget).unwrap();
    // As the pod runs, and as the controller of budgets would count it.
    let running = json!({ "status": { "phase": "Running", "conditions": [
        { "type": "Ready", "status": "True" }
    ]}});
    let there = remote(&world.milan.api)[0]["metadata"].clone();
    let there = format!(
        "/api/v1/namespaces/{}/pods/{}/status",
        there["namespace"].as_str().unwrap(),
        there["name"].as_str().unwrap()
    );
    world.milan.api.patch(&there, &running).unwrap();
    super::world::when(&world.rome.api, &pod_path("dear"), |pod| {
        pod["status"]["phase"] == "Running"
    })
    .await;
    let order = Order { duty: Duty::TakeDown, ..world.rome.order("rsv-budget", &small()) };
    let uid = world.rome.api.get(&pod_path("dear")).unwrap()["metadata"]["uid"].clone();
    let clock = Stopwatch::start();
    assert!(matches!(world.rome.peering.withdraw(&order).await, Removal::Pending(_)));
    let node = world.rome.api.get("/api/v1/nodes/rsv-budget").unwrap();
    assert_eq!(node["spec"]["unschedulable"], true);
    // Looked at all the time: how long the rest of the end takes says nothing of the pod.
    let (left, ()) = tokio::join!(
        until("the pod to leave", || async {
            let pod = world.rome.api.get(&pod_path("dear"));
            let is_there = |pod: &serde_json::Value| {
                pod["metadata"]["uid"] == uid && pod["metadata"]["deletionTimestamp"].is_null()
            };
            (!pod.is_ok_and(|pod| is_there(&pod))).then(|| clock.elapsed())
        }),
        world.end("rsv-budget"),
    );
    let deadline = Duration::from_millis(super::world::EVICTION.as_millis());
    assert!(left >= deadline, "it was evicted all the same, after {left:?}");
    stay_home(world).await;
}

pub(super) async fn the_last_node_takes_the_remote_namespaces_with_it(world: &mut World<'_>) {
    world.keep("rsv-former", &small()).await;
    world.keep("rsv-last", &small()).await;
    offload(world).await;
    let made = abroad(world).await;
    world.end("rsv-former").await;
    let kept = world.milan.api.get(ABROAD).unwrap();
    assert_eq!(kept["metadata"]["uid"], made["metadata"]["uid"]);
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "another node still needs it");
    put(world, "guest", "rsv-last", json!({})).await;
    world.end("rsv-last").await;
    when_gone(&world.milan.api, ABROAD).await;
    assert!(world.rome.api.get(&format!("{}/offloading", offloadings())).is_ok(), "the user's own");
    // The next one has it again.
    world.keep("rsv-next", &small()).await;
    abroad(world).await;
    stay_home(world).await;
    world.end("rsv-next").await;
}

/// One that is only about to have a slice needs the link as much as one that has.
pub(super) async fn a_link_is_unused_when_nothing_is_to_be_kept_any_more(world: &mut World<'_>) {
    let unused = |world: &World<'_>| {
        [&world.rome, &world.milan].map(|town| town.links.unused.load(Ordering::Relaxed))
    };
    world.keep("rsv-over", &small()).await;
    world.instruct(&world.milan.order("rsv-coming", &small()));
    let instructions = "/apis/rear.fluidos.eu/v1alpha1/namespaces/sublet/reservationinstructions";
    let coming = json!({
        "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ReservationInstruction",
        "metadata": { "name": "rsv-coming" },
        "spec": { "reservationName": "rsv-coming", "targetClusterID": "milan", "duty": "Keep",
                  "requestedCPU": "2", "requestedMemory": "4Gi", "instructionGeneration": 1 },
    });
    world.rome.api.create(instructions, &coming).unwrap();
    let before = unused(world);
    world.end("rsv-over").await;
    assert_eq!(unused(world), before, "another one is coming");
    world.end("rsv-coming").await;
    let [rome, milan] = unused(world);
    assert!(rome > before[0] && milan > before[1], "{before:?}, then {rome} and {milan}");
    world.rome.api.delete(&format!("{instructions}/rsv-coming")).unwrap();
    whoever_comes_while_a_link_is_let_go_keeps_it(world).await;
}

async fn whoever_comes_while_a_link_is_let_go_keeps_it(world: &World<'_>) {
    world.keep("rsv-over", &small()).await;
    world.instruct(&world.milan.order("rsv-sudden", &small()));
    world.tell_end("rsv-sudden");
    let sudden = format!("{}/rsv-sudden-provider", Town::instructions());
    let (api, links, path) =
        (world.milan.api.clone(), Arc::clone(&world.milan.links), sudden.clone());
    let (said, asked) = std::sync::mpsc::sync_channel(1);
    *world.milan.links.meanwhile.lock().unwrap() = Some(Box::new(move || {
        api.patch(&path, &json!({ "spec": { "duty": "Keep" } })).unwrap();
        said.send(links.asked.load(Ordering::Relaxed)).unwrap();
    }));
    world.end("rsv-over").await;
    let then = asked.try_recv().unwrap();
    assert!(world.milan.links.asked.load(Ordering::Relaxed) > then, "it is asked for again");
    world.milan.api.delete(&sudden).unwrap();
}

pub(super) async fn both_may_be_restarted_between_any_two_steps(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let [lent, borrowed] =
        [&world.milan, &world.rome].map(|town| town.order("rsv-again", &small()));
    world.instruct(&lent);
    let (clock, mut is_ready) = (Stopwatch::start(), (false, false));
    while is_ready != (true, true) {
        assert!(clock.elapsed() < LONG, "it does not become ready: {is_ready:?}");
        is_ready.0 = world.milan.peering.establish(&lent).await == Progress::Ready;
        is_ready.1 = world.rome.peering.establish(&borrowed).await == Progress::Ready;
        world.milan.restart().await;
        world.rome.restart().await;
        // Whoever was just started lends nothing before he has looked whether he can.
        does_not_lend(world, None).await;
    }
    offload(world).await;
    put(world, "guest", "rsv-again", json!({})).await;
    world.tell_end("rsv-again");
    let lent = Order { duty: Duty::TakeDown, ..lent };
    let borrowed = Order { duty: Duty::TakeDown, ..borrowed };
    let (clock, mut is_over) = (Stopwatch::start(), (false, false));
    while is_over != (true, true) {
        assert!(clock.elapsed() < LONG, "it does not end: {is_over:?}");
        is_over.0 = world.milan.peering.withdraw(&lent).await == Removal::Gone;
        is_over.1 = world.rome.peering.withdraw(&borrowed).await == Removal::Gone;
        world.milan.restart().await;
        world.rome.restart().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.forget("rsv-again");
    stay_home(world).await;
    before.is_back(world).await;
}
