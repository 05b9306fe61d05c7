//! Pods of Rome in Milan.

use serde_json::{Value, json};
use sublet_testkit::Api;

use super::snapshot::Pair;
use super::world::{World, when, when_gone};
use crate::on_kubernetes::until::until;

/// A namespace of Rome's whose pods may go to Milan.
pub(super) const HOME: &str = "demo";
/// A machine of Milan's.
const MACHINE: &str = "machine";
/// What Liqo makes of it in Milan.
pub(super) const ABROAD: &str = "/api/v1/namespaces/demo-rome";

/// Lets the pods of the namespace go to Milan; by the name of the cluster, because another selector
/// makes Liqo go round in circles.
pub(super) async fn offload(pair: &impl Pair) {
    let [api, _] = pair.apis();
    let namespace = json!({ "metadata": { "name": HOME } });
    if api.get(&format!("/api/v1/namespaces/{HOME}")).is_err() {
        api.create("/api/v1/namespaces", &namespace).unwrap();
        let accounts = format!("/api/v1/namespaces/{HOME}/serviceaccounts/default");
        when(api, &accounts, |_| true).await;
    }
    let term = json!({ "matchExpressions": [
        { "key": "liqo.io/remote-cluster-id", "operator": "In", "values": ["milan"] }
    ]});
    let offloading = json!({
        "apiVersion": "offloading.liqo.io/v1beta1", "kind": "NamespaceOffloading",
        "metadata": { "name": "offloading" },
        "spec": {
            "podOffloadingStrategy": "LocalAndRemote", "namespaceMappingStrategy": "DefaultName",
            "clusterSelector": { "nodeSelectorTerms": [term] },
        },
    });
    let collection = offloadings();
    api.create(&collection, &offloading).unwrap();
    let ready = |found: &Value| found["status"]["offloadingPhase"] == "Ready";
    when(api, &format!("{collection}/offloading"), ready).await;
}

pub(super) fn offloadings() -> String {
    format!("/apis/offloading.liqo.io/v1beta1/namespaces/{HOME}/namespaceoffloadings")
}

/// The namespace in Milan that is the one of Rome's, once Liqo has made it. One that is still going, from
/// before, is none.
pub(super) async fn abroad(world: &World<'_>) -> Value {
    when(&world.milan.api, ABROAD, |found| found["metadata"]["deletionTimestamp"].is_null()).await
}

/// Ends what [`offload`] began, in both clusters: what is still going in Milan would be taken for what the
/// next one is to have there.
pub(super) async fn stay_home(pair: &impl Pair) {
    let [api, milan] = pair.apis();
    let path = format!("{}/offloading", offloadings());
    api.delete(&path).unwrap();
    when_gone(api, &path).await;
    api.delete(&format!("/api/v1/namespaces/{HOME}")).unwrap();
    when_gone(api, &format!("/api/v1/namespaces/{HOME}")).await;
    when_gone(milan, ABROAD).await;
}

/// Where a pod of the namespace is, in Rome.
pub(super) fn pod_path(name: &str) -> String {
    format!("/api/v1/namespaces/{HOME}/pods/{name}")
}

/// The pods of Rome's that are in Milan.
pub(super) fn remote(api: &Api) -> Vec<Value> {
    let path = "/api/v1/pods?labelSelector=liqo.io%2Fmanaged-by%3Dshadowpod";
    api.get(path).unwrap()["items"].as_array().cloned().unwrap_or_default()
}

/// Where such a pod is in Milan.
pub(super) fn pod_abroad(name: &str) -> String {
    format!("{ABROAD}/pods/{name}")
}

/// Binds a pod of Rome's to a machine of Milan's that has no kubelet: it ends when somebody says so.
pub(super) fn bind(milan: &Api, name: &str) {
    let machine = json!({ "metadata": { "name": MACHINE } });
    if milan.get(&machine_path()).is_err() {
        milan.create("/api/v1/nodes", &machine).unwrap();
    }
    let binding = json!({
        "metadata": { "name": name },
        "target": { "apiVersion": "v1", "kind": "Node", "name": MACHINE },
    });
    milan.create(&format!("{}/binding", pod_abroad(name)), &binding).unwrap();
}

/// As its kubelet does when the time of a pod is over.
pub(super) fn has_ended(milan: &Api, name: &str) {
    milan.delete(&format!("{}?gracePeriodSeconds=0", pod_abroad(name))).unwrap();
}

/// Takes the machine away again.
pub(super) fn take_machine(milan: &Api) {
    milan.delete(&machine_path()).unwrap();
}

fn machine_path() -> String {
    format!("/api/v1/nodes/{MACHINE}")
}

/// Puts a pod of half a core on a node, and waits until it is in Milan.
pub(super) async fn put(world: &World<'_>, name: &str, node: &str, metadata: Value) {
    place(world, name, node, (metadata, json!({}))).await;
}

/// The same with more in its metadata and in its spec.
pub(super) async fn place(world: &World<'_>, name: &str, node: &str, more: (Value, Value)) {
    make(world, name, node, more);
    let there = || async {
        remote(&world.milan.api).iter().any(|pod| pod["metadata"]["name"] == name).then_some(())
    };
    until(&format!("{name} in Milan"), there).await;
}

/// The same, whatever comes of it in Milan.
pub(super) fn make(world: &World<'_>, name: &str, node: &str, (metadata, spec): (Value, Value)) {
    let requests = json!({ "cpu": "500m", "memory": "64Mi" });
    let mut pod = json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "main", "image": "simulated",
                             "resources": { "requests": requests, "limits": requests } }],
        },
    });
    for (part, more) in [("metadata", metadata), ("spec", spec)] {
        if let (Value::Object(all), Value::Object(more)) = (&mut pod[part], more) {
            all.extend(more);
        }
    }
    world.rome.api.create(&format!("/api/v1/namespaces/{HOME}/pods"), &pod).unwrap();
}
