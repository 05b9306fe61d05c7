//! Whoever holds on to what is over by something else than the slice or a pod: with what depends on the slice, and with
//! what its certificates let it write here.

use serde_json::{Value, json};
use sublet_agent::transport::Order;
use sublet_core::instruction::Duty;

use super::audited::is_audited;
use super::guests::{ABROAD, HOME, abroad, offload, put, stay_home};
use super::hostile::{COPIES, Rogue, SLICE, SLICES, refusals, replicator};
use super::snapshot::Snapshot;
use super::world::{World, small, when, when_gone};

const MAPS: &str = "/apis/offloading.liqo.io/v1beta1/namespaces/liqo-tenant-rome/namespacemaps";
const HELD: [&str; 1] = ["example.com/held"];
/// What the policies say.
const IN_BACKGROUND: &str = "deletes a slice in the background";
const NO_FINALIZERS: &str = "may not hold on to what it has here";
const NO_ORPHANS: &str = "may not leave anything behind";

/// A map of namespaces that is held, and belongs to the slice.
fn held_map(slice: &Value) -> Value {
    json!({
        "apiVersion": "offloading.liqo.io/v1beta1", "kind": "NamespaceMap",
        "metadata": { "name": "holder", "finalizers": HELD, "ownerReferences": [{
            "apiVersion": slice["apiVersion"], "kind": slice["kind"], "blockOwnerDeletion": true,
            "name": slice["metadata"]["name"], "uid": slice["metadata"]["uid"],
        }]},
        "spec": {},
    })
}

/// With the certificate of the whole cluster; and as it was where that got in before there was the policy.
pub(super) async fn a_slice_is_not_held_by_what_belongs_to_it(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-waits", &small()).await;
    replicator(world).kill();
    let (rogue, known) = (Rogue::of_cluster(world), refusals(world));
    let in_foreground = ["delete", SLICE, "rsv-waits", "--cascade=foreground", "--wait=false"];
    let refused = rogue.kubectl(world, &in_foreground).unwrap_err();
    assert!(refused.contains(IN_BACKGROUND), "{refused}");
    assert!(refusals(world) > known, "what a policy refuses is counted");
    is_audited(world, "rome", SLICES, IN_BACKGROUND).await;

    let (path, milan) = (world.milan.slice("rsv-waits"), &world.milan.api);
    milan.create(MAPS, &held_map(&milan.get(&path).unwrap())).unwrap();
    let by_an_administrator = [&["-n", "liqo-tenant-rome"], &in_foreground[..]].concat();
    world.rig.clusters[1].kubectl(&by_an_administrator).unwrap();
    let waits = |found: &Value| found["metadata"]["finalizers"] == json!(["foregroundDeletion"]);
    when(milan, &path, waits).await;
    world.tell_end("rsv-waits");
    let over = Order { duty: Duty::TakeDown, ..world.milan.order("rsv-waits", &small()) };
    world.milan.is_gone(&over).await;
    when_gone(milan, &path).await;
    world.forget("rsv-waits");

    let free = json!({ "metadata": { "finalizers": null } });
    milan.patch(&format!("{MAPS}/holder"), &free).unwrap();
    when_gone(milan, &format!("{MAPS}/holder")).await;
    replicator(world).start().unwrap();
    world
        .rome
        .is_gone(&Order { duty: Duty::TakeDown, ..world.rome.order("rsv-waits", &small()) })
        .await;
    when_gone(milan, &path).await;
    before.is_back(world).await;
}

/// What a slice's certificate may write where its pods are, by its kind.
fn reflected() -> Vec<Value> {
    let service = json!({ "spec": { "ports": [{ "port": 80 }] } });
    let volume = json!({ "spec": { "accessModes": ["ReadWriteOnce"],
                                   "resources": { "requests": { "storage": "1Gi" } } } });
    let ingress = json!({ "spec": { "defaultBackend": { "service": {
        "name": "a", "port": { "number": 80 } } } } });
    let event = json!({ "involvedObject": { "namespace": format!("{HOME}-rome") } });
    let all = [
        ("v1", "ConfigMap", json!({})),
        ("v1", "Secret", json!({})),
        ("v1", "Service", service),
        ("v1", "PersistentVolumeClaim", volume),
        ("v1", "Event", event),
        ("networking.k8s.io/v1", "Ingress", ingress),
        ("offloading.liqo.io/v1beta1", "ShadowEndpointSlice", json!({ "spec": {} })),
    ];
    Vec::from(all.map(|(version, kind, mut object)| {
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({ "name": "held" });
        object
    }))
}

fn with_finalizers(object: &Value, finalizers: &[&str]) -> Value {
    let mut held = object.clone();
    held["metadata"]["finalizers"] = json!(finalizers);
    held
}

/// Its namespaces here would never go.
pub(super) async fn nothing_of_a_requesters_is_held(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-keeps", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-keeps", json!({})).await;
    abroad(world).await;
    let (cluster, slice) = (Rogue::of_cluster(world), Rogue::of_slice(world, "rsv-keeps"));
    let refused = |made: Result<String, String>, why: &str| {
        let refused = made.expect_err(why);
        assert!(refused.contains(why), "{refused}");
    };
    let known = refusals(world);
    for object in reflected() {
        slice.try_to_create(world, &object).unwrap();
        refused(slice.try_to_create(world, &with_finalizers(&object, &HELD)), NO_FINALIZERS);
    }
    // Kubernetes sets this one on volumes; nobody would ever take it off anything else.
    let protected = with_finalizers(&reflected()[0], &["kubernetes.io/pvc-protection"]);
    refused(slice.try_to_create(world, &protected), NO_FINALIZERS);
    let maps = world.milan.api.get(MAPS).unwrap();
    let map = maps["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    let held = json!({ "metadata": { "finalizers": HELD } }).to_string();
    let holding = ["patch", "namespacemap", &map, "--type=merge", "-p", &held];
    refused(cluster.kubectl(world, &holding), NO_FINALIZERS);
    let renew = json!({ "apiVersion": "authentication.liqo.io/v1beta1", "kind": "Renew",
                        "metadata": { "name": "held" }, "spec": { "consumerClusterID": "rome" } });
    refused(cluster.try_to_create(world, &with_finalizers(&renew, &HELD)), NO_FINALIZERS);
    let orphaning = ["delete", "namespacemap", &map, "--cascade=orphan", "--wait=false"];
    refused(cluster.kubectl(world, &orphaning), NO_ORPHANS);
    assert!(refusals(world) >= known + 11, "what a policy refuses is counted");
    for (user, why) in
        [("rsv-keeps-", NO_FINALIZERS), ("rome", NO_FINALIZERS), ("rome", NO_ORPHANS)]
    {
        is_audited(world, user, COPIES, why).await;
    }
    // Whoever is at home here may.
    let at_home = with_finalizers(&reflected()[0], &HELD);
    let (path, milan) = (format!("{ABROAD}/configmaps"), &world.milan.api);
    milan.create(&path, &at_home).unwrap();
    milan.patch(&format!("{path}/held"), &json!({ "metadata": { "finalizers": null } })).unwrap();
    world.end("rsv-keeps").await;
    stay_home(world).await;
    before.is_back(world).await;
}
