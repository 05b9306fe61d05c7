//! What pods really take. Liqo's quota lets them in by what their containers ask for; Kubernetes sets more aside
//! for some of them, and a smaller quota ends none.

use serde_json::{Value, json};
use sublet_agent::peering::{Peering as _, Progress};
use sublet_agent::transport::Order;
use sublet_core::id::Generation;
use sublet_core::resources::Resources;

use super::audited::is_audited;
use super::guests::{
    bind, has_ended, make, offload, place, pod_abroad, pod_path, put, stay_home, take_machine,
};
use super::hostile::{PODS, Rogue, is_hurried, refusals};
use super::world::{Town, World, small, when, when_gone};
use crate::on_kubernetes::logged::is_logged;
use crate::on_kubernetes::until::until;

/// The shadows of Rome's pods, in Milan.
const SHADOWS: &str = "/apis/offloading.liqo.io/v1beta1/namespaces/demo-rome/shadowpods";

const AS_A_WHOLE: &str = "counts what containers ask for alone";
const WRITTEN: &str = "not below zero, and whole or in thousandths";
const LIMITED: &str = "what has a limit needs a request";
const SIDECARS: &str = "does not count sidecars";
const INITIAL: &str = "takes the first of init containers";
const ENDING: &str = "does not count pods that are ending";
const DELETED: &str = "let it be deleted in the background";

/// What somebody who has the certificate of a slice sends without Liqo's virtual kubelet.
fn attempts() -> Vec<(Value, &'static str)> {
    let requests = json!({ "cpu": "64", "memory": "64Gi" });
    let mut sidecar = container("side", &requests);
    sidecar["restartPolicy"] = json!("Always");
    let claims = json!([{ "name": "gpus", "resourceClaimName": "all-of-them" }]);
    let as_a_whole = [
        json!({ "resources": { "requests": requests } }),
        json!({ "overhead": requests }),
        json!({ "nodeName": "machine" }),
        json!({ "priorityClassName": "system-node-critical" }),
        json!({ "priority": 2_000_000_000 }),
        json!({ "resourceClaims": claims }),
        json!({ "runtimeClassName": "heavy" }),
        json!({ "hostNetwork": true }),
    ];
    let mut all = vec![
        (json!({ "initContainers": [sidecar] }), SIDECARS),
        (json!({ "terminationGracePeriodSeconds": 1_000_000 }), ENDING),
        // It is counted as one thousandth of a core, and takes a whole one.
        (json!({ "initContainers": [with_cpu("first", "1m"), with_cpu("second", "1")] }), INITIAL),
    ];
    all.extend(as_a_whole.map(|more| (more, AS_A_WHOLE)));
    // Less than nothing makes room for others; and so much less than a thousandth is one, to Kubernetes.
    for cpu in ["-100", "-1m", "1n", "0.0001"] {
        all.push((json!({ "containers": [with_cpu("main", cpu)] }), WRITTEN));
        all.push((json!({ "initContainers": [with_cpu("first", cpu)] }), WRITTEN));
    }
    for limits in [json!({ "nvidia.com/gpu": "8" }), json!({ "ephemeral-storage": "1Ti" })] {
        let mut limited = with_cpu("limited", "100m");
        limited["resources"]["limits"] = limits;
        all.push((json!({ "containers": [limited] }), LIMITED));
        all.push((json!({ "initContainers": [limited] }), LIMITED));
    }
    all
}

fn container(name: &str, requests: &Value) -> Value {
    json!({ "name": name, "image": "simulated",
            "resources": { "requests": requests, "limits": requests } })
}

fn with_cpu(name: &str, cpu: &str) -> Value {
    container(name, &json!({ "cpu": cpu, "memory": "64Mi" }))
}

fn merged(template: &Value, name: &str, more: &Value) -> Value {
    let mut pod = template.clone();
    pod["metadata"] = json!({ "name": name, "labels": template["metadata"]["labels"] });
    pod["status"] = Value::Null;
    if let (Value::Object(all), Value::Object(more)) = (&mut pod["spec"]["pod"], more) {
        all.extend(more.clone());
    }
    pod
}

pub(super) async fn nobodys_pods_take_more_than_is_counted(world: &mut World<'_>) {
    world.keep("rsv-take", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-take", json!({})).await;
    let (rogue, before) = (Rogue::of_slice(world, "rsv-take"), refusals(world));
    let guest = rogue.kubectl(world, &["get", "shadowpods", "guest", "-o", "json"]).unwrap();
    let guest: Value = serde_json::from_str(&guest).unwrap();
    let attempts = attempts();
    for (more, why) in &attempts {
        let refused = rogue.create(world, &merged(&guest, "more", more)).unwrap_err();
        assert!(refused.contains(why), "{more}: {refused}");
    }
    let twice = ["delete", "shadowpods", "guest", "--cascade=foreground", "--wait=false"];
    let refused = rogue.kubectl(world, &twice).unwrap_err();
    assert!(refused.contains(DELETED), "{refused}");
    assert!(refusals(world) > before + attempts.len() as u64);
    for why in [AS_A_WHOLE, WRITTEN, LIMITED, SIDECARS, INITIAL, ENDING, DELETED] {
        is_audited(world, "rsv-take-", PODS, why).await;
    }
    // What takes no more than is counted is let in; and what was let in is not made more of.
    let mut idle = container("side", &json!({ "cpu": "0", "memory": "0" }));
    idle["restartPolicy"] = json!("Always");
    let honest = json!({
        "initContainers": [idle, with_cpu("first", "500m"), with_cpu("second", "1500m")],
        "terminationGracePeriodSeconds": 600,
    });
    // Rome's virtual kubelet knows nothing of it, and removes it soon.
    rogue.create(world, &merged(&guest, "idle", &honest)).unwrap();
    let more = json!({ "spec": { "pod": { "overhead": { "cpu": "64" } } } }).to_string();
    let more = ["patch", "shadowpods", "guest", "--type=merge", "-p", &more];
    let refused = rogue.kubectl(world, &more).unwrap_err();
    assert!(refused.contains("denied"), "{refused}");
    when_gone(&world.milan.api, &format!("{SHADOWS}/idle")).await;

    whoever_means_no_harm_is_told_what_is_refused(world).await;
    whoever_ends_slowly_is_hastened_when_others_come(world).await;
    whoever_is_let_in_by_a_wrong_count_is_removed(world).await;
    whoever_came_while_the_agent_was_away_is_removed(world).await;
    a_smaller_one_waits_for_what_was_let_in(world).await;
    world.end("rsv-take").await;
    stay_home(world).await;
}

/// Its pod has no node in Milan yet: it takes nothing now, and will.
async fn a_smaller_one_waits_for_what_was_let_in(world: &World<'_>) {
    let less = Resources::new(250, 1 << 30);
    let [lent, borrowed] = [&world.milan, &world.rome].map(|town| {
        let generation = Some(Generation(2));
        Order { generation, ..town.order("rsv-take", &less) }
    });
    world.instruct(&lent);
    until("the pod to be in the way", || async {
        // Whatever comes of it, Rome asks for less.
        drop(world.rome.peering.establish(&borrowed).await);
        let progress = world.milan.peering.establish(&lent).await;
        assert_ne!(progress, Progress::Ready, "what the pod takes is not free");
        format!("{progress:?}").contains("still take cpu 500m").then_some(())
    })
    .await;
    world.rome.api.delete(&format!("{}?gracePeriodSeconds=0", pod_path("guest"))).unwrap();
    tokio::join!(world.milan.is_ready(&lent), world.rome.is_ready(&borrowed));
}

/// In his own cluster, where he looks.
async fn whoever_means_no_harm_is_told_what_is_refused(world: &World<'_>) {
    let patient = json!({ "terminationGracePeriodSeconds": 3600 });
    make(world, "patient", "rsv-take", (json!({}), patient));
    let is_told = |found: &Value| {
        let mut all = found["items"].as_array().into_iter().flatten();
        all.any(|event| {
            let said = event["message"].as_str().unwrap_or_default();
            event["involvedObject"]["name"] == "patient" && said.contains(ENDING)
        })
    };
    when(&world.rome.api, "/api/v1/namespaces/demo/events", is_told).await;
    world.rome.api.delete(&format!("{}?gracePeriodSeconds=0", pod_path("patient"))).unwrap();
}

/// How often Milan's agent made a pod end so.
fn ended(world: &World<'_>, how: &str) -> u64 {
    let name = format!("sublet_agent_guest_pods_ended_total{{how=\"{how}\"}} ");
    let page = world.milan.metrics.page();
    let count = page.lines().find_map(|line| line.strip_prefix(&name).map(str::to_owned));
    count.map_or(0, |count| count.trim().parse().unwrap())
}

async fn is_ended(world: &World<'_>, how: &str, times: u64) {
    let what = format!("{how} for the {times}. time");
    until(&what, || async { (ended(world, how) >= times).then_some(()) }).await;
}

/// Liqo's quota has room for another pod as soon as one is deleted, and Milan only when it has ended.
async fn whoever_ends_slowly_is_hastened_when_others_come(world: &World<'_>) {
    let (milan, before) = (&world.milan.api, ended(world, "hastened"));
    let slowly = json!({ "terminationGracePeriodSeconds": 600 });
    place(world, "slow", "rsv-take", (json!({}), slowly)).await;
    bind(milan, "slow");
    world.rome.api.delete(&pod_path("slow")).unwrap();
    let is_slow = |pod: &Value| pod["metadata"]["deletionGracePeriodSeconds"] == 600;
    when(milan, &pod_abroad("slow"), is_slow).await;
    assert_eq!(ended(world, "hastened"), before, "there is room for all");
    place(world, "next", "rsv-take", (json!({}), large("1500m"))).await;
    when(milan, &pod_abroad("slow"), is_hurried).await;
    is_ended(world, "hastened", before + 1).await;
    is_logged(&["WARN", "this one is hastened", "rsv-take", "slow"]).await;
    has_ended(milan, "slow");
    leaves(world, "next").await;
    when_gone(milan, &pod_abroad("slow")).await;
}

fn large(cpu: &str) -> Value {
    json!({ "containers": [with_cpu("main", cpu)] })
}

async fn leaves(world: &World<'_>, name: &str) {
    world.rome.api.delete(&format!("{}?gracePeriodSeconds=0", pod_path(name))).unwrap();
    when_gone(&world.milan.api, &pod_abroad(name)).await;
}

async fn whoever_is_let_in_by_a_wrong_count_is_removed(world: &World<'_>) {
    let before = ended(world, "removed");
    let names = ["twice", "beyond"];
    let_in_by_a_wrong_count(world, names).await;
    is_turned_away(world, names, before + 1).await;
}

/// All had room when the size was confirmed, and nobody has changed it.
async fn whoever_came_while_the_agent_was_away_is_removed(world: &mut World<'_>) {
    let standing = json!({ "status": { "enforced": true, "appliedGeneration": 1 } });
    let instruction = format!("{}/rsv-take-provider/status", Town::instructions());
    world.milan.api.patch(&instruction, &standing).unwrap();
    world.milan.stop().await;
    let names = ["again", "further"];
    let_in_by_a_wrong_count(world, names).await;
    world.milan.restart().await;
    is_turned_away(world, names, 1).await;
}

/// Liqo gives back what a pod takes each time that it is asked whether it may be deleted. A requester that asks
/// often enough at once has it miscount, as here an administrator, whom no policy hinders.
async fn let_in_by_a_wrong_count(world: &World<'_>, [twice, beyond]: [&str; 2]) {
    let milan = &world.milan.api;
    put(world, twice, "rsv-take", json!({})).await;
    bind(milan, twice);
    let twice = format!("{SHADOWS}/{twice}?propagationPolicy=Foreground");
    for _ in 0..5 {
        milan.delete(&twice).unwrap();
    }
    // Three cores, of two that there are.
    place(world, beyond, "rsv-take", (json!({}), large("3"))).await;
}

async fn is_turned_away(world: &World<'_>, [twice, beyond]: [&str; 2], times: u64) {
    let milan = &world.milan.api;
    is_ended(world, "removed", times).await;
    is_logged(&["WARN", "for which there is no room", "rsv-take", beyond]).await;
    leaves(world, beyond).await;
    let over = format!("{}?gracePeriodSeconds=0", pod_path(twice));
    world.rome.api.delete(&over).unwrap();
    // Deleted in the foreground, its shadow is held until its pod has gone, of which Liqo makes another one at once; and
    // Liqo's webhook does not let Kubernetes let go of it. Whoever deletes it in the background does that himself.
    let shadow = format!("{SHADOWS}/{twice}");
    milan.delete(&format!("{shadow}?propagationPolicy=Background")).unwrap();
    when_gone(milan, &shadow).await;
    has_ended(milan, twice);
    when_gone(milan, &pod_abroad(twice)).await;
    take_machine(milan);
}
