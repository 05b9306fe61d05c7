//! A cluster that has the Go system's kinds, which have the same names as ours and fewer fields.

use std::time::Duration;

use serde_json::{Value, json};
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Cluster, Nodes, Setup, wait_for};

use super::advertising::asked_over_tls;
use super::member::{Member, REQUEST, at_broker, comes, page};
use crate::broker::Town;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const REQUESTS: &str = "/apis/rear.fluidos.eu/v1alpha1/namespaces/default/resourcerequests";

/// What the Go system's kinds have: of the spec, and of the status. The last one is looked at to see
/// whether the API server goes by all of them.
const FIELDS: [(&str, &[&str], &[&str]); 4] = [
    (
        "advertisements",
        &["clusterID", "resources", "cost", "timestamp"],
        &["phase", "lastUpdateTime", "published", "message"],
    ),
    (
        "reservationinstructions",
        &[
            "reservationName",
            "targetClusterID",
            "requestedCPU",
            "requestedMemory",
            "message",
            "expiresAt",
        ],
        &["observedReservationResourceVersion", "delivered", "lastUpdateTime"],
    ),
    (
        "providerinstructions",
        &[
            "reservationName",
            "requesterClusterID",
            "requestedCPU",
            "requestedMemory",
            "message",
            "expiresAt",
        ],
        &["enforced", "lastUpdateTime"],
    ),
    (
        "resourcerequests",
        &["requestedCPU", "requestedMemory", "priority", "duration"],
        &["phase", "targetClusterID", "reservationName", "message", "lastUpdateTime"],
    ),
];

/// Leaves a schema these fields alone, and no rules.
fn keep_only(schema: &mut Value, fields: &[&str]) {
    let schema = schema.as_object_mut().unwrap();
    schema.remove("x-kubernetes-validations");
    let properties = schema["properties"].as_object_mut().unwrap();
    properties.retain(|name, _| fields.contains(&name.as_str()));
    assert_eq!(properties.len(), fields.len(), "{fields:?}");
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name.as_str().is_some_and(|name| fields.contains(&name)));
    }
}

/// Our kinds as they are in the cluster, and as the Go system has them.
fn kinds(cluster: &Cluster) -> Vec<[(String, Value); 2]> {
    let of = |(plural, spec, status): &(&str, &[&str], &[&str])| {
        let path = format!("{DEFINITIONS}/{plural}.rear.fluidos.eu");
        let ours = cluster.api().get(&path).unwrap()["spec"]["versions"].clone();
        let mut theirs = ours.clone();
        let parts = &mut theirs[0]["schema"]["openAPIV3Schema"]["properties"];
        keep_only(&mut parts["spec"], spec);
        keep_only(&mut parts["status"], status);
        if *plural == "advertisements" {
            let all = ["capacity", "allocatable", "allocated", "available", "used"];
            let resources = &mut parts["spec"]["properties"]["resources"];
            keep_only(resources, &all);
            for one in all {
                let amounts = &mut resources["properties"][one];
                keep_only(amounts, &["cpu", "memory", "gpu", "storage"]);
            }
        }
        [(path.clone(), ours), (path, theirs)]
    };
    FIELDS.iter().map(of).collect()
}

/// Installs one or the other, and waits until the API server goes by it.
fn install(cluster: &Cluster, kinds: &[[(String, Value); 2]], which: usize) {
    for pair in kinds {
        let (path, versions) = &pair[which];
        cluster.api().patch(path, &json!({ "spec": { "versions": versions } })).unwrap();
    }
    let probe = json!({
        "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ResourceRequest",
        "metadata": { "name": "probe" },
        "spec": { "requestedCPU": "1", "requestedMemory": "1Gi", "duration": "1h", "renew": true },
    });
    wait_for("the API server to go by the new schema", PATIENCE, || {
        let back = cluster.api().create(&format!("{REQUESTS}?dryRun=All"), &probe).ok()?;
        (back["spec"]["renew"].is_null() == (which == 1)).then_some(())
    })
    .unwrap();
}

#[test]
fn the_go_systems_kinds_are_an_error_at_the_start_and_no_reason_to_spin_later() {
    let town = Town::new();
    let cluster = Cluster::start(Setup::api("edge")).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 1)).unwrap();
    let member = Member::new(cluster, &town);
    let kinds = kinds(&member.cluster);
    // As in the Go system's overlay: metrics over TLS, and not a word about their certificates.
    let agent = member.agent(&town, "agent", &["--metrics-secure"]);

    install(&member.cluster, &kinds, 1);
    agent.start().unwrap();
    let status = comes(&agent, "the agent's end", || agent.ended());
    assert_eq!(status.code(), Some(1), "{}", agent.log_tail());
    let said = std::fs::read_to_string(agent.log()).unwrap();
    let expected = "the kind Advertisement in this cluster is not ours, it loses spec.";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("sublet crds --for agent | kubectl apply --server-side"), "{said}");
    assert!(at_broker(&town, "edge").is_none(), "it has said nothing");

    // As it should be, and then exchanged under it.
    install(&member.cluster, &kinds, 0);
    agent.start().unwrap();
    comes(&agent, "the first advertisement", || at_broker(&town, "edge"));
    let metrics = member.address(&agent, "metrics");
    assert!(page(&metrics, "/metrics").is_none_or(|page| !page.contains("sublet_agent")));
    let said = asked_over_tls(&town, &metrics);
    assert!(said.contains("certificate"), "over TLS there is that of a client: {said}");

    install(&member.cluster, &kinds, 1);
    member.cluster.apply(REQUEST).unwrap();
    let lost = "what becomes of a request cannot be written: the kind ResourceRequest";
    let told = || std::fs::read_to_string(agent.log()).unwrap().matches(lost).count();
    comes(&agent, "the agent to notice", || (told() > 0).then_some(()));
    let version = || {
        let request = member.cluster.api().get(&format!("{REQUESTS}/burst")).unwrap();
        request["metadata"]["resourceVersion"].clone()
    };
    let before = version();
    for _ in 0..20 {
        assert_eq!((told(), version()), (1, before.clone()), "it spins");
        std::thread::sleep(Duration::from_millis(250));
    }
}
