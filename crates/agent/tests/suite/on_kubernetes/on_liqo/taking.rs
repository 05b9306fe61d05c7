//! What pods really take. Liqo's quota lets them in by what their containers ask for; Kubernetes sets more aside
//! for some of them, and a smaller quota ends none.

use serde_json::{Value, json};
use sublet_agent::peering::{Peering as _, Progress};
use sublet_core::resources::Resources;

use super::guests::{offload, pod_path, put, stay_home};
use super::hostile::{Rogue, refusals};
use super::world::{World, small};
use crate::on_kubernetes::until::until;

/// What somebody who has the certificate of a slice sends without Liqo's virtual kubelet.
fn attempts() -> [(Value, &'static str); 7] {
    let requests = json!({ "cpu": "64", "memory": "64Gi" });
    let sidecar = json!([{
        "name": "side", "image": "simulated", "restartPolicy": "Always",
        "resources": { "requests": requests, "limits": requests },
    }]);
    let more = "counts what containers ask for alone";
    [
        (json!({ "resources": { "requests": requests } }), more),
        (json!({ "overhead": requests }), more),
        (json!({ "nodeName": "machine" }), more),
        (json!({ "priorityClassName": "system-node-critical" }), more),
        (json!({ "priority": 2_000_000_000 }), more),
        (json!({ "hostNetwork": true }), more),
        (json!({ "initContainers": sidecar }), "does not count sidecars"),
    ]
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
    for (more, why) in attempts() {
        let refused = rogue.create(world, &merged(&guest, "more", &more)).unwrap_err();
        assert!(refused.contains(why), "{more}: {refused}");
    }
    assert!(refusals(world) >= before + 7);
    // What asks for nothing takes nothing; and what was let in is not made more of.
    let nothing = json!({ "cpu": "0", "memory": "0" });
    let idle = json!({ "initContainers": [{
        "name": "side", "image": "simulated", "restartPolicy": "Always",
        "resources": { "requests": nothing },
    }]});
    // Rome's virtual kubelet knows nothing of it, and removes it soon.
    rogue.create(world, &merged(&guest, "idle", &idle)).unwrap();
    let more = json!({ "spec": { "pod": attempts()[0].0 } }).to_string();
    let more = ["patch", "shadowpods", "guest", "--type=merge", "-p", &more];
    let refused = rogue.kubectl(world, &more).unwrap_err();
    assert!(refused.contains("denied"), "{refused}");

    a_smaller_one_waits_for_what_was_let_in(world).await;
    world.end("rsv-take").await;
    stay_home(world).await;
}

/// Its pod has no node in Milan yet: it takes nothing now, and will.
async fn a_smaller_one_waits_for_what_was_let_in(world: &World<'_>) {
    let less = Resources::new(250, 1 << 30);
    let (lent, borrowed) =
        (world.milan.order("rsv-take", &less), world.rome.order("rsv-take", &less));
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
