//! How what is over ends.

use serde_json::{Value, json};
use sublet_agent::peering::{Networking, Peering as _, Progress, Removal, Why};
use sublet_agent::transport::Order;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;

use super::super::guests::{HOME, offload, remote, stay_home};
use super::super::network_to_milan;
use super::super::snapshot::Snapshot;
use super::world::{World, is_gone, sizes, small, until, when};

/// Lets pods of a namespace of Rome go to Milan, and puts one there.
async fn send(world: &World<'_>, name: &str, cpu: &str) {
    let api = &world.rome.api;
    if api.get(&format!("/api/v1/namespaces/{HOME}")).is_err() {
        offload(world).await;
    }
    let requests = json!({ "cpu": cpu, "memory": "64Mi" });
    let pod = json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": "milan",
            "containers": [{ "name": "main", "image": "simulated",
                             "resources": { "requests": requests, "limits": requests } }],
        },
    });
    api.create(&format!("/api/v1/namespaces/{HOME}/pods"), &pod).unwrap();
    let there = || async {
        let there = guests(world);
        there.iter().any(|pod| pod["metadata"]["name"] == name).then_some(())
    };
    until(&format!("{name} in Milan"), there).await;
    // As if it were bound to a node there, so that it takes something.
    let pod = guests(world).into_iter().find(|pod| pod["metadata"]["name"] == name).unwrap();
    let namespace = pod["metadata"]["namespace"].as_str().unwrap();
    let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
                          "target": { "apiVersion": "v1", "kind": "Node", "name": "worker" } });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    world.milan.api.create(&path, &binding).unwrap();
}

fn guests(world: &World<'_>) -> Vec<Value> {
    remote(&world.milan.api)
}

/// Nobody plays the kubelet of Milan's nodes: pods that are bound there and deleted are removed here.
fn bury(world: &World<'_>) {
    for pod in guests(world) {
        if pod["metadata"]["deletionTimestamp"].is_null() {
            continue;
        }
        let text = |key: &str| pod["metadata"][key].as_str().unwrap().to_owned();
        let path = format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"));
        drop(world.milan.api.delete(&(path + "?gracePeriodSeconds=0")));
    }
}

async fn bury_for_ever(world: &World<'_>) {
    loop {
        bury(world);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

pub(super) async fn pods_leave_before_the_clusters_part(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-pods", &small()).await;
    send(world, "guest", "500m").await;
    tokio::select! {
        () = world.end("rsv-pods") => {}
        () = bury_for_ever(world) => {}
    }
    assert!(is_gone(&world.rome.api, &format!("/api/v1/namespaces/{HOME}/pods/guest")));
    assert_eq!(guests(world).len(), 0);
    stay_home(world).await;
    before.is_back(world).await;
}

pub(super) async fn capacity_is_back_when_its_pods_are_gone(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let one = Resources::new(1000, 1 << 30);
    world.keep("rsv-stays", &one).await;
    world.keep("rsv-goes", &one).await;
    send(world, "large", "1500m").await;
    let [borrowed, lent] = world.over("rsv-goes");
    world.rome.record(&borrowed);
    world.milan.record(&lent);
    world.rome.is_gone(&borrowed).await;
    when(&world.milan.api, &world.milan.liqo("offloading", "quotas"), |quotas| {
        quotas["items"][0]["spec"]["resources"]["cpu"] == "1"
    })
    .await;
    // The slice is smaller, and the pod is not.
    let removal = world.milan.peering.withdraw(&lent).await;
    let waits = |why: &Why| why.message.contains("still take cpu 1500m");
    assert!(matches!(&removal, Removal::Pending(why) if waits(why)), "{removal:?}");
    world.rome.api.delete(&format!("/api/v1/namespaces/{HOME}/pods/large")).unwrap();
    tokio::select! {
        () = world.milan.is_gone(&lent) => {}
        () = bury_for_ever(world) => {}
    }
    world.rome.forget(&borrowed);
    world.milan.forget(&lent);
    world.end("rsv-stays").await;
    stay_home(world).await;
    before.is_back(world).await;
}

pub(super) async fn a_requester_that_is_silent_is_drained(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-silent", &small()).await;
    send(world, "stays", "500m").await;
    let [borrowed, lent] = world.over("rsv-silent");
    world.rome.stop().await;
    world.milan.record(&lent);
    tokio::select! {
        () = world.milan.is_gone(&lent) => {}
        () = bury_for_ever(world) => {}
    }
    assert_eq!(guests(world).len(), 0);
    world.milan.forget(&lent);
    // It comes back, and hears that it is over.
    world.rome.restart().await;
    world.rome.record(&borrowed);
    world.rome.is_gone(&borrowed).await;
    world.rome.forget(&borrowed);
    // The next one works as if nothing had been.
    world.keep("rsv-next", &small()).await;
    world.end("rsv-next").await;
    stay_home(world).await;
    before.is_back(world).await;
}

pub(super) async fn what_nobody_wants_is_swept(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-orphan", &small()).await;
    let [borrowed, lent] = world.over("rsv-orphan");
    world.rome.stop().await;
    world.rome.forget(&borrowed);
    world.rome.restart().await;
    // The broker still has it: it stays, although nothing is written here.
    let sides = [Side::Requester, Side::Provider];
    world.rome.peering.sweep(&sides, &|_, name| name == "rsv-orphan").await;
    let kept = world.rome.order(Side::Requester, "rsv-orphan", &small());
    world.rome.record(&kept);
    assert_eq!(world.rome.peering.establish(&kept).await, Progress::Ready);
    world.rome.stop().await;
    world.rome.forget(&kept);
    world.rome.restart().await;
    world.rome.peering.sweep(&sides, &|_, _| false).await;
    world.milan.record(&lent);
    world.milan.is_gone(&lent).await;
    world.milan.forget(&lent);
    before.is_back(world).await;
}

pub(super) async fn a_lost_provider_is_given_up_and_cleans_up_when_it_returns(
    world: &mut World<'_>,
) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-lost", &small()).await;
    world.milan.stop().await;
    world.rig.stop_milan();
    // While the broker waits for the provider, so does the requester.
    let [borrowed, lent] = world.over("rsv-lost");
    world.rome.record(&borrowed);
    assert!(matches!(world.rome.peering.withdraw(&borrowed).await, Removal::Pending(_)));
    let borrowed = Order { duty: Duty::Gone, ..borrowed };
    world.rome.is_gone(&borrowed).await;
    assert!(is_gone(&world.rome.api, &world.rome.slice()));
    world.rome.forget(&borrowed);
    // It returns, and hears that it was given up.
    world.rig.start_milan();
    world.milan.restart().await;
    let lent = Order { duty: Duty::Gone, ..lent };
    world.milan.is_gone(&lent).await;
    world.milan.forget(&lent);
    // The next one works as if nothing had been.
    world.keep("rsv-back", &small()).await;
    world.end("rsv-back").await;
    before.is_back(world).await;
}

pub(super) async fn an_existing_network_is_left_alone(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.rome.networking = Networking::Existing;
    world.rome.restart().await;
    world.keep("rsv-network", &small()).await;
    let network = network_to_milan(&world.rome.api);
    let slice = world.rome.api.get(&world.rome.slice()).unwrap();
    assert_eq!(sizes(&slice), [("2", "4Gi"); 2]);
    world.end("rsv-network").await;
    assert!(world.rome.api.get(&network).is_ok(), "it is not ours");
    world.rome.api.delete(&network).unwrap();
    world.rome.networking = Networking::Disabled;
    world.rome.restart().await;
    before.is_back(world).await;
}
