//! What is granted, and what is not.

use std::sync::atomic::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use sublet_agent::peering::{Peering as _, Progress, Why};
use sublet_agent::transport::Order;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::{Kind, Resources};
use sublet_crds::Obstacle;

use super::audited::is_audited;
use super::forging::{asked_by_rome, of_another_cluster};
use super::guests::{offload, pod_abroad, pod_path, put, stay_home};
use super::hostile::{
    Rogue, SLICE, SLICES, decided, is_back_when_swept, is_decided, refusals, slice, swept,
};
use super::snapshot::Snapshot;
use super::world::{GRACE, World, at, condition, small, when, when_gone};
use crate::on_kubernetes::until::until;

const NODES: &str = "/api/v1/nodes";
const CLASS: &str = "sublet.io/reservation";

pub(super) async fn a_node_is_exactly_as_large_as_its_reservation(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    let amounts = Resources::new(1500, 3 << 30);
    world.keep("rsv-exact", &amounts).await;
    let node = world.rome.api.get(&format!("{NODES}/rsv-exact")).unwrap();
    let size =
        json!({ "cpu": "1500m", "memory": "3Gi", "pods": "110", "ephemeral-storage": "20Gi" });
    assert_eq!(node["status"]["allocatable"], size);
    assert_eq!(node["status"]["capacity"], size);
    assert_eq!(node["metadata"]["labels"]["sublet.io/reservation"], "rsv-exact");
    let quotas = world.milan.api.get(&world.milan.liqo("offloading", "quotas")).unwrap();
    assert_eq!(quotas["items"][0]["spec"]["resources"], size);
    assert!(quotas["items"][1].is_null());
    // What is in force is looked at, and not written again.
    let version = |world: &World| {
        world.rome.api.get(&world.rome.slice("rsv-exact")).unwrap()["metadata"]["resourceVersion"]
            .clone()
    };
    let was = version(world);
    world.rome.is_ready(&world.rome.order("rsv-exact", &amounts)).await;
    world.milan.is_ready(&world.milan.order("rsv-exact", &amounts)).await;
    assert_eq!(version(world), was);
    world.end("rsv-exact").await;
    before.is_back(world).await;
}

pub(super) async fn two_reservations_are_two_nodes(world: &mut World<'_>) {
    let large = Resources::new(4000, 8 << 30).with(Kind::Gpu, 2).unwrap();
    for (name, amounts) in [("rsv-one", &small()), ("rsv-two", &large)] {
        let lent = world.milan.order(name, amounts);
        world.instruct(&lent);
        if name == "rsv-two" {
            let path = format!("{}/rsv-two-provider", super::world::Town::instructions());
            let gpu = json!({ "spec": { "requestedGPU": "2" } });
            world.milan.api.patch(&path, &gpu).unwrap();
        }
    }
    let [one, two] = [("rsv-one", small()), ("rsv-two", large.clone())];
    let orders = [&one, &two]
        .map(|(name, amounts)| (world.milan.order(name, amounts), world.rome.order(name, amounts)));
    let [(a, b), (c, d)] = &orders;
    tokio::join!(
        world.milan.is_ready(a),
        world.rome.is_ready(b),
        world.milan.is_ready(c),
        world.rome.is_ready(d)
    );
    let size = |name: &str| {
        world.rome.api.get(&format!("{NODES}/{name}")).unwrap()["status"]["allocatable"].clone()
    };
    assert_eq!((&size("rsv-one")["cpu"], &size("rsv-two")["cpu"]), (&json!("2"), &json!("4")));
    assert_eq!(size("rsv-two")["nvidia.com/gpu"], "2");
    tokio::join!(world.end("rsv-one"), world.end("rsv-two"));
}

pub(super) async fn amounts_follow_the_reservation_up_and_down(world: &mut World<'_>) {
    world.keep("rsv-size", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-size", json!({})).await;
    let ids = |world: &World| {
        let (rome, milan) = (&world.rome.api, &world.milan.api);
        [rome.get(&pod_path("guest")), milan.get(&pod_abroad("guest"))]
            .map(|pod| pod.unwrap()["metadata"]["uid"].as_str().unwrap().to_owned())
    };
    let pods = ids(world);
    for amounts in [Resources::new(3000, 6 << 30), Resources::new(500, 1 << 30)] {
        world.keep("rsv-size", &amounts).await;
        let node = world.rome.api.get(&format!("{NODES}/rsv-size")).unwrap();
        let memory = format!("{}Gi", amounts.memory >> 30);
        assert_eq!(node["status"]["allocatable"]["memory"], memory);
        assert_eq!(ids(world), pods, "the pods are the same ones");
    }
    world.end("rsv-size").await;
    stay_home(world).await;
}

pub(super) async fn a_slice_that_is_ahead_of_its_instruction_waits(world: &mut World<'_>) {
    let borrowed = world.rome.order("rsv-early", &small());
    let replica = world.milan.slice("rsv-early");
    let progress = world.rome.peering.establish(&borrowed).await;
    assert!(matches!(progress, Progress::Pending(_)), "{progress:?}");
    let authenticated = |slice: &Value| condition(slice, "Authentication") == Some("Accepted");
    let slice = when(&world.milan.api, &replica, authenticated).await;
    // Nobody knows of it yet, and that is no reason to deny it before its time is over.
    let conditions = slice["status"]["conditions"].as_array().unwrap();
    for said in conditions.iter().filter(|said| said["type"] == "Resources") {
        let passed = at(&said["lastTransitionTime"])
            .since(at(&slice["metadata"]["creationTimestamp"]))
            .as_millis();
        assert!(passed >= GRACE.as_millis(), "{said}");
    }
    world.keep("rsv-early", &small()).await;
    world.end("rsv-early").await;
}

pub(super) async fn a_slice_without_a_reservation_is_denied(world: &mut World<'_>) {
    let borrowed = world.rome.order("rsv-none", &small());
    let denials = decided(world, "no_reservation");
    let denied = || async {
        match world.rome.peering.establish(&borrowed).await {
            Progress::Pending(why) if why.message.contains("there is no reservation") => {
                assert_eq!(why.obstacle, Some(Obstacle::SliceDenied));
                Some(())
            }
            Progress::Ready => panic!("nobody has granted it"),
            _ => None,
        }
    };
    until("a denial that Rome can read", denied).await;
    let quotas = world.milan.api.get(&world.milan.liqo("offloading", "quotas")).unwrap();
    assert_eq!(quotas["items"], json!([]));
    is_decided(world, "no_reservation", denials + 1).await;
    // It is reserved after all.
    world.keep("rsv-none", &small()).await;
    world.end("rsv-none").await;
}

pub(super) async fn whoever_asks_for_more_gets_what_is_reserved(world: &mut World<'_>) {
    world.keep("rsv-more", &small()).await;
    let greedy = json!({ "spec": { "resources": { "cpu": "64", "memory": "1Ti" } } });
    world.rome.api.patch(&world.rome.slice("rsv-more"), &greedy).unwrap();
    let replica = world.milan.slice("rsv-more");
    let slice =
        when(&world.milan.api, &replica, |slice| slice["spec"]["resources"]["cpu"] == "64").await;
    assert_eq!(slice["status"]["resources"]["cpu"], "2");
    world.milan.is_ready(&world.milan.order("rsv-more", &small())).await;
    let quotas = world.milan.api.get(&world.milan.liqo("offloading", "quotas")).unwrap();
    assert_eq!(quotas["items"][0]["spec"]["resources"]["cpu"], "2");
    // Rome's own agent asks for what was reserved again.
    world.rome.is_ready(&world.rome.order("rsv-more", &small())).await;
    when(&world.milan.api, &replica, |slice| slice["spec"]["resources"]["cpu"] == "2").await;
    world.end("rsv-more").await;
}

/// With the certificate that Liqo has given to Rome for its control plane.
pub(super) async fn nobody_grants_himself_anything(world: &mut World<'_>) {
    world.keep("rsv-self", &small()).await;
    let (rogue, before) = (Rogue::of_cluster(world), refusals(world));
    let kubectl = |arguments: &[&str]| rogue.kubectl(world, arguments);
    kubectl(&["get", SLICE, "rsv-self"]).unwrap();
    let status = r#"{"status":{"resources":{"cpu":"64"}}}"#;
    let status = ["patch", SLICE, "rsv-self", "--subresource=status", "--type=merge", "-p", status];
    let refused = kubectl(&status).unwrap_err();
    assert!(refused.contains("may not write the status"), "{refused}");
    let refused = rogue.create(world, &slice("rsv-default", "default", "64")).unwrap_err();
    assert!(refused.contains("only slices of reservations"), "{refused}");
    let long = BASE64.encode([b'x'; 9000]);
    let since = json!({ "sublet.io/reclaimed-since": "2099-01-01T00:00:00Z" });
    let many = |value: &str| {
        let named = |number| (format!("example.com/{number}"), value.to_owned());
        (0..17).map(named).collect::<Value>()
    };
    let labels = |name: &str, value: &str| json!({ "metadata": { "labels": { name: value } } });
    for (change, why) in [
        (json!({ "spec": { "class": "default" } }), "only slices of reservations"),
        (json!({ "metadata": { "annotations": since } }), "the provider's to say"),
        (labels("liqo.io/replication", "true"), "in its own name alone"),
        (labels("liqo.io/replicated", "false"), "in its own name alone"),
        (labels("liqo.io/originID", "turin"), "in its own name alone"),
        (labels("liqo.io/remote-cluster-id", "turin"), "in its own name alone"),
        (json!({ "spec": { "consumerClusterID": "turin" } }), "in its own name alone"),
        (json!({ "spec": { "csr": long } }), "and not longer"),
        (json!({ "metadata": { "finalizers": ["example.com/held"] } }), "may not hold on"),
        (json!({ "metadata": { "labels": many("x") } }), "no more than"),
        (json!({ "metadata": { "annotations": many("x") } }), "no more than"),
        (json!({ "metadata": { "annotations": { "a": "x".repeat(2000) } } }), "no more than"),
        (json!({ "spec": { "resources": many("1") } }), "no more than"),
    ] {
        let change = change.to_string();
        let refused = kubectl(&["patch", SLICE, "rsv-self", "--type=merge", "-p", &change]);
        let refused = refused.unwrap_err();
        assert!(refused.contains(why), "{change}: {refused}");
    }
    let orphaning = ["delete", SLICE, "rsv-self", "--cascade=orphan", "--wait=false"];
    let refused = kubectl(&orphaning).unwrap_err();
    assert!(refused.contains("may not leave anything behind"), "{refused}");
    for name in ["r".repeat(51), "rsv.self".to_owned()] {
        let refused = rogue.create(world, &slice(&name, CLASS, "2")).unwrap_err();
        assert!(refused.contains("at most 50"), "{refused}");
    }
    // Each of the eighteen is counted where the operator looks, and written down with who it was.
    assert!(refusals(world) >= before + 18);
    for why in [
        "may not write the status",
        "only slices of reservations",
        "the provider's to say",
        "in its own name alone",
        "and not longer",
        "may not hold on",
        "no more than",
        "at most 50",
        "may not leave anything behind",
    ] {
        is_audited(world, "rome", SLICES, why).await;
    }
    world.milan.is_ready(&world.milan.order("rsv-self", &small())).await;
    world.end("rsv-self").await;
    // From before the policy was there: it can have no pods, and they are not looked for.
    let long = world.milan.order(&"r".repeat(60), &small());
    world.milan.is_gone(&Order { duty: Duty::Gone, ..long }).await;
}

pub(super) async fn what_somebody_else_changes_is_put_right_without_a_broker(
    world: &mut World<'_>,
) {
    world.keep("rsv-back", &small()).await;
    let replica = world.milan.slice("rsv-back");
    let more = json!({ "status": { "resources": { "cpu": "64" } } });
    // An administrator may do that; nobody calls the peering here.
    world.milan.api.patch(&format!("{replica}/status"), &more).unwrap();
    when(&world.milan.api, &replica, |slice| slice["status"]["resources"]["cpu"] == "2").await;
    world.milan.api.delete(&replica).unwrap();
    let is_granted = |slice: &Value| condition(slice, "Resources") == Some("Accepted");
    when(&world.milan.api, &replica, is_granted).await;
    world.milan.is_ready(&world.milan.order("rsv-back", &small())).await;
    world.rome.is_ready(&world.rome.order("rsv-back", &small())).await;
    world.end("rsv-back").await;
}

pub(super) async fn trouble_with_a_link_ends_nothing_that_was_granted(world: &mut World<'_>) {
    world.keep("rsv-cut", &small()).await;
    let set = |is_broken: bool| {
        for town in [&world.rome, &world.milan] {
            town.links.is_broken.store(is_broken, Ordering::Relaxed);
        }
    };
    set(true);
    for town in [&world.rome, &world.milan] {
        let progress = town.peering.establish(&town.order("rsv-cut", &small())).await;
        let is_told = |why: &Why| {
            why.obstacle == Some(Obstacle::LiqoSilent) && why.message == "nobody answers"
        };
        assert!(matches!(&progress, Progress::Pending(why) if is_told(why)), "{progress:?}");
        let progress = town.peering.establish(&town.order("rsv-new", &small())).await;
        assert!(matches!(&progress, Progress::Failed(why) if is_told(why)), "{progress:?}");
    }
    // Both still see to what is there.
    let greedy = json!({ "spec": { "resources": { "cpu": "64" } } });
    world.rome.api.patch(&world.rome.slice("rsv-cut"), &greedy).unwrap();
    let _ = world.rome.peering.establish(&world.rome.order("rsv-cut", &small())).await;
    let slice = world.rome.api.get(&world.rome.slice("rsv-cut")).unwrap();
    assert_eq!(slice["spec"]["resources"]["cpu"], "2");
    set(false);
    world.keep("rsv-cut", &small()).await;
    world.end("rsv-cut").await;
}

pub(super) async fn whoever_wants_to_be_somebody_else_is_denied(world: &mut World<'_>) {
    let before = swept(world).await;
    world.keep("rsv-forged", &small()).await;
    let quotas = world.milan.api.get(&world.milan.liqo("offloading", "quotas")).unwrap();
    let user = quotas["items"][0]["metadata"]["name"].as_str().unwrap();
    let change = json!({ "spec": { "csr": of_another_cluster(user) } });
    world.rome.api.patch(&world.rome.slice("rsv-forged"), &change).unwrap();
    let is_denied = |slice: &Value| condition(slice, "Resources") == Some("Denied");
    let slice = when(&world.milan.api, &world.milan.slice("rsv-forged"), is_denied).await;
    let text = slice["status"]["conditions"].to_string();
    assert!(text.contains("BadCertificateRequest") && text.contains("another group"), "{text}");
    is_decided(world, "bad_request", 1).await;
    let quota = format!("{}/{user}", world.milan.liqo("offloading", "quotas"));
    when_gone(&world.milan.api, &quota).await;
    world.end("rsv-forged").await;
    is_back_when_swept(world, &before).await;
}

/// Liqo has asked for a certificate for the slice, and made it, by the time it is denied. That goes with the
/// slice, although the reservation of that name lives; and if nobody saw it go, when everything is looked at.
pub(super) async fn what_is_reserved_for_another_leaves_nothing(world: &mut World<'_>) {
    let turins =
        Order { peer: "turin".parse().unwrap(), ..world.milan.order("rsv-taken", &small()) };
    world.instruct(&turins);
    let before = Snapshot::of(world).await;
    let order = world.rome.order("rsv-taken", &small());
    let over = Order { duty: Duty::TakeDown, ..order.clone() };
    let certificate =
        "/api/v1/namespaces/liqo-tenant-rome/secrets/liqo-remote-certificate-rsv-taken";
    let denied = || async {
        let progress = world.rome.peering.establish(&order).await;
        matches!(progress, Progress::Pending(why) if why.obstacle == Some(Obstacle::SliceDenied))
            .then_some(())
    };
    until("that it is denied", denied).await;
    let secret = when(&world.milan.api, certificate, |_| true).await;
    world.rome.is_gone(&over).await;
    when_gone(&world.milan.api, &world.milan.slice("rsv-taken")).await;
    before.is_back(world).await;
    // As if it had gone while Milan's agent was away.
    let left =
        json!({ "metadata": { "name": secret["metadata"]["name"] }, "data": secret["data"] });
    let secrets = certificate.rsplit_once('/').unwrap().0;
    world.milan.api.create(secrets, &left).unwrap();
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let left = json!({
        "metadata": { "name": "left", "labels": { "liqo.io/remote-tenant-csr": "true" } },
        "spec": {
            "request": asked_by_rome(world, "rsv-taken"), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client",
        },
    });
    world.milan.api.create(requests, &left).unwrap();
    let is_live = |_: Side, name: &str| name == "rsv-taken";
    world.milan.peering.sweep(&[Side::Provider], &is_live).await;
    when_gone(&world.milan.api, certificate).await;
    when_gone(&world.milan.api, &format!("{requests}/left")).await;
    world.forget("rsv-taken");
}
