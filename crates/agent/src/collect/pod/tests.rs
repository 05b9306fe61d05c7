//! What is set aside for a pod, case by case.

use super::*;
use serde_json::{Value, json};

fn pod(spec: &Value, status: &Value) -> Pod {
    let mut spec = spec.clone();
    spec["nodeName"] = json!("node-a");
    serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": spec, "status": status }))
        .unwrap()
}

fn container(cpu: &str, memory: &str) -> Value {
    json!({ "name": "c", "resources": { "requests": { "cpu": cpu, "memory": memory } } })
}

fn sidecar(cpu: &str, memory: &str) -> Value {
    let mut container = container(cpu, memory);
    container["restartPolicy"] = json!("Always");
    container
}

fn takes(spec: &Value) -> Resources {
    let facts = PodFacts::of(&pod(spec, &json!({ "phase": "Running" }))).unwrap();
    assert_eq!(facts.problems, Box::default());
    facts.request
}

#[test]
fn containers_add_up() {
    let both = json!({ "containers": [container("100m", "1Mi"), container("2", "1Mi")] });
    assert_eq!(takes(&both), Resources::new(2100, 2 << 20));
    assert_eq!(takes(&json!({ "containers": [{ "name": "c" }] })), Resources::default());
}

#[test]
fn the_largest_init_container_counts_where_it_needs_more() {
    let spec = json!({
        "containers": [container("1", "1Mi")],
        "initContainers": [container("500m", "3Mi"), container("700m", "2Mi")],
    });
    assert_eq!(takes(&spec), Resources::new(1000, 3 << 20));
}

#[test]
fn a_sidecar_adds_to_the_containers_and_to_the_init_containers_after_it() {
    let after = json!({
        "containers": [container("100m", "1Mi")],
        "initContainers": [sidecar("200m", "1Mi"), container("1", "1Mi")],
    });
    assert_eq!(takes(&after), Resources::new(1200, 2 << 20));
    let before = json!({
        "containers": [container("100m", "1Mi")],
        "initContainers": [container("1", "1Mi"), sidecar("200m", "1Mi")],
    });
    assert_eq!(takes(&before), Resources::new(1000, 2 << 20));
    let two = json!({
        "containers": [container("100m", "1Mi")],
        "initContainers": [sidecar("2", "1Mi"), sidecar("3", "1Mi")],
    });
    assert_eq!(takes(&two), Resources::new(5100, 3 << 20));
}

#[test]
fn what_the_pod_asks_for_as_a_whole_replaces_what_its_containers_do() {
    let spec = json!({
        "containers": [container("1", "1Gi")],
        "resources": { "requests": { "cpu": "3", "hugepages-2Mi": "4Mi", "ephemeral-storage": "9" } },
    });
    let pages = "hugepages-2Mi".parse().unwrap();
    assert_eq!(takes(&spec), Resources::new(3000, 1 << 30).with(pages, 4 << 20).unwrap());
    let less = json!({
        "containers": [container("1", "1Gi")],
        "resources": { "requests": { "cpu": "0" } },
    });
    assert_eq!(takes(&less), Resources::new(0, 1 << 30));
}

#[test]
fn overhead_comes_on_top() {
    let spec = json!({
        "containers": [container("1", "1Mi")],
        "resources": { "requests": { "cpu": "2" } },
        "overhead": { "cpu": "250m", "memory": "1Mi" },
    });
    assert_eq!(takes(&spec), Resources::new(2250, 2 << 20));
}

#[test]
fn every_extended_resource_counts() {
    let spec = json!({ "containers": [{ "name": "c", "resources": { "requests": {
        "nvidia.com/gpu": "2", "amd.com/gpu": 1, "example.com/fpga": "3", "ephemeral-storage": "1Gi",
    } } }] });
    let expected = [("gpu", 2), ("amd.com/gpu", 1), ("example.com/fpga", 3), ("storage", 1 << 30)];
    let expected = expected.into_iter().fold(Resources::default(), |sum, (name, amount)| {
        sum.with(name.parse().unwrap(), amount).unwrap()
    });
    assert_eq!(takes(&spec), expected);
}

#[test]
fn while_it_is_resized_the_larger_amount_counts() {
    let spec = json!({ "containers": [container("2", "1Mi")] });
    let status = |cpu: &str, agreed: &str, reason: &str| {
        json!({
            "phase": "Running",
            "conditions": [{ "type": "PodResizePending", "status": "True", "reason": reason }],
            "containerStatuses": [{
                "name": "c",
                "resources": { "requests": { "cpu": cpu } },
                "allocatedResources": { "cpu": agreed },
            }],
        })
    };
    let table = [("3", "1", "Deferred", 3000), ("1", "4", "Deferred", 4000)];
    let never = [("1", "1", "Infeasible", 1000), ("1", "1", "Deferred", 2000)];
    for (runs, agreed, reason, expected) in table.into_iter().chain(never) {
        let facts = PodFacts::of(&pod(&spec, &status(runs, agreed, reason))).unwrap();
        assert_eq!(facts.request.cpu, expected, "{runs} {agreed} {reason}");
    }
    let silent =
        json!({ "containerStatuses": [{ "name": "c", "allocatedResources": { "cpu": "9" } }] });
    assert_eq!(PodFacts::of(&pod(&spec, &silent)).unwrap().request.cpu, 2000);
}

#[test]
fn a_pod_takes_something_from_its_binding_to_its_end() {
    let spec = json!({ "containers": [container("1", "1Mi")] });
    for phase in ["Running", "Pending", "Unknown", ""] {
        assert!(PodFacts::of(&pod(&spec, &json!({ "phase": phase }))).is_some(), "{phase}");
    }
    for phase in ["Succeeded", "Failed"] {
        assert!(PodFacts::of(&pod(&spec, &json!({ "phase": phase }))).is_none(), "{phase}");
    }
    let mut unbound = pod(&spec, &json!({ "phase": "Pending" }));
    unbound.spec.node_name.clear();
    assert!(PodFacts::of(&unbound).is_none());
}

#[test]
fn what_cannot_be_read_is_told_and_the_rest_counts() {
    let spec = json!({ "containers": [container("lots", "1Mi"), container("1", "1Mi")] });
    let facts = PodFacts::of(&pod(&spec, &json!({}))).unwrap();
    assert_eq!(facts.request, Resources::new(1000, 2 << 20));
    assert_eq!(facts.problems[0].field, "spec.containers[c].resources.requests.cpu");
    let whole = json!({
        "containers": [container("1", "1Mi")],
        "resources": { "requests": { "cpu": "-1" } },
    });
    let facts = PodFacts::of(&pod(&whole, &json!({}))).unwrap();
    assert_eq!((facts.request.cpu, facts.problems.len()), (1000, 1));
}

#[test]
fn the_full_type_of_kubernetes_is_read_the_same_way() {
    use k8s_openapi::api::core::v1;
    let full: v1::Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "p", "namespace": "n", "uid": "u", "creationTimestamp": "2026-11-15T22:12:29Z",
            "labels": { "liqo.io/managed-by": "shadowpod", "liqo.io/creator-user": "somebody" },
            "managedFields": [{ "manager": "kubectl", "fieldsV1": { "f:spec": {} } }],
        },
        "spec": {
            "nodeName": "node-a", "containers": [container("1", "1Mi")], "tolerations": [],
            "initContainers": [sidecar("1", "1Mi")], "overhead": { "cpu": "1m" },
            "volumes": [{ "name": "v", "emptyDir": {} }], "serviceAccountName": "default",
        },
        "status": { "phase": "Running", "hostIP": "10.0.0.1", "qosClass": "Burstable" },
    }))
    .unwrap();
    let seen: Pod = serde_json::from_value(serde_json::to_value(full).unwrap()).unwrap();
    assert!(seen.metadata.managed_fields.is_none());
    assert_eq!(seen.metadata.uid.as_deref(), Some("u"));
    let facts = PodFacts::of(&seen).unwrap();
    assert_eq!(facts.request, Resources::new(2001, 2 << 20));
    assert_eq!(facts.guest, Some(Guest::User("somebody".into())));
}
