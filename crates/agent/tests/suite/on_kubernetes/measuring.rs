//! Watches of a real API server, folded: the sums are those that `kubectl describe node` adds up to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sublet_agent::collect::{Measured, NodeRules, Standing};
use sublet_agent::metrics::Metrics;
use sublet_agent::watch::{Collector, Told};
use sublet_core::quantity::{Quantity, Round};
use sublet_core::resources::{Kind, Resources};
use sublet_testkit::{Cluster, Nodes, Part, Pods, Setup, wait_for};
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_mins(2);
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Nodes that are there and do not count.
const ASIDE: [&str; 4] = ["cordoned-0", "tainted-0", "virtual-0", "broken-0"];

/// Measures beside the test, as the agent does.
fn beside<T>(cluster: &Cluster, test: impl FnOnce(&Told) -> T) -> T {
    let (stop, stopping) = watch::channel(false);
    let (give, given) = std::sync::mpsc::sync_channel(1);
    let path = cluster.kubeconfig();
    thread::scope(|scope| {
        scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let client = sublet_agent::cluster::connect(Some(path)).await.unwrap();
                let metrics = Arc::new(Metrics::new());
                let rules = NodeRules::default();
                let (collector, told) = Collector::new(&client, "default", rules, metrics);
                give.send(told).unwrap();
                collector.run(stopping).await;
            });
        });
        let result = test(&given.recv().unwrap());
        // The other side may be gone already, because it has panicked; the scope says so.
        stop.send_replace(true);
        result
    })
}

/// What kubectl adds up to for the pods of the nodes that count.
fn described(cluster: &Cluster) -> Resources {
    let text = cluster.kubectl(&["describe", "nodes"]).unwrap();
    let (mut name, mut inside, mut sum) = ("", false, Resources::default());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Name:") {
            name = rest.trim();
        }
        inside = line.starts_with("Allocated resources:") || inside && line.starts_with("  ");
        let mut words = line.split_whitespace();
        let (Some(resource), Some(amount)) = (words.next(), words.next()) else { continue };
        let (Ok(kind), Ok(amount)) = (resource.parse::<Kind>(), amount.parse::<Quantity>()) else {
            continue;
        };
        if inside && !ASIDE.contains(&name) {
            let amount = sum.get(&kind) + kind.amount(&amount, Round::Up).unwrap();
            sum = sum.with(kind, amount).unwrap();
        }
    }
    sum
}

/// What the pod `whole` asks for beyond its container: kubectl does not look at what is asked for pods
/// as a whole, and the scheduler does.
fn unseen_by_kubectl() -> Resources {
    Resources::new(700 - 100, (64 - 10) << 20)
}

/// Waits until the fold and kubectl agree, and says on what.
fn agreed(cluster: &Cluster, told: &Told) -> Arc<Measured> {
    let mut last = String::new();
    let agreed = wait_for("the fold and kubectl to agree", PATIENCE, || {
        let measured = told.borrow().clone()?;
        let described = described(cluster).checked_add(&unseen_by_kubectl()).unwrap();
        last = format!("folded {}, described {described}", measured.allocated);
        (measured.allocated == described).then_some(measured)
    });
    agreed.unwrap_or_else(|late| panic!("{late}: {last}"))
}

/// A pod of a shape that is harder to count.
fn pod(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["nodeName"] = json!("worker-3");
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
}

fn container(name: &str, cpu: &str, memory: &str) -> Value {
    let requests = json!({ "cpu": cpu, "memory": memory, "ephemeral-storage": "1Mi" });
    json!({ "name": name, "image": "x", "resources": { "requests": requests } })
}

fn sidecar(name: &str, cpu: &str, memory: &str) -> Value {
    let mut container = container(name, cpu, memory);
    container["restartPolicy"] = json!("Always");
    container
}

fn shapes() -> Vec<Value> {
    let main = || json!([container("main", "100m", "10Mi")]);
    vec![
        pod(
            "init",
            json!({ "containers": main(), "initContainers": [
            container("a", "3", "1Mi"), container("b", "1", "500Mi"),
        ] }),
        ),
        pod(
            "sidecars",
            json!({ "containers": main(), "initContainers": [
            sidecar("a", "200m", "1Mi"), container("b", "1", "1Mi"), sidecar("c", "2", "1Mi"),
        ] }),
        ),
        pod("heavy", json!({ "containers": main(), "runtimeClassName": "heavy" })),
        pod("odd", json!({ "containers": [container("main", "1m", "1500")] })),
        pod(
            "whole",
            json!({
                "containers": main(), "resources": { "requests": { "cpu": "700m", "memory": "64Mi" } },
            }),
        ),
    ]
}

fn fill(cluster: &Cluster) {
    let workers = Nodes::new("worker", 36).resource("ephemeral-storage", "100Gi");
    cluster.add_nodes(&workers).unwrap();
    cluster.add_nodes(&Nodes::new("gpu", 10).resource("nvidia.com/gpu", "4")).unwrap();
    cluster.add_nodes(&Nodes::new("broken", 1).unattended()).unwrap();
    for name in ["cordoned", "tainted"] {
        cluster.add_nodes(&Nodes::new(name, 1)).unwrap();
    }
    let virtual_node = Nodes::new("virtual", 1).cpu("1000").label("liqo.io/type", "virtual-node");
    cluster.add_nodes(&virtual_node).unwrap();
    let taint = json!([{ "key": "mine", "effect": "NoSchedule" }]);
    let broken = json!([{ "type": "Ready", "status": "Unknown", "reason": "Tested" }]);
    for (path, patch) in [
        ("cordoned-0", json!({ "spec": { "unschedulable": true } })),
        ("tainted-0", json!({ "spec": { "taints": taint } })),
        ("broken-0/status", json!({ "status": { "conditions": broken } })),
    ] {
        cluster.api().patch(&format!("/api/v1/nodes/{path}"), &patch).unwrap();
    }
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": { "name": "heavy" },
        "handler": "heavy", "overhead": { "podFixed": { "cpu": "250m", "memory": "120Mi" } },
    });
    cluster.api().create("/apis/node.k8s.io/v1/runtimeclasses", &class).unwrap();
    cluster.add_pods(&Pods::new("web", 950).cpu("100m").memory("64Mi")).unwrap();
    let train = Pods::new("train", 40).cpu("1").resource("nvidia.com/gpu", "1");
    cluster.add_pods(&train.on(&["gpu-0", "gpu-1", "gpu-2"])).unwrap();
    let [attended @ .., broken] = ASIDE;
    cluster.add_pods(&Pods::new("aside", 6).cpu("1").on(&attended)).unwrap();
    let mut stranded = pod("stranded", json!({ "containers": [container("main", "1", "1Gi")] }));
    stranded["spec"]["nodeName"] = json!(broken);
    cluster.api().create(PODS, &stranded).unwrap();
    cluster.api().create_all(PODS, &shapes()).unwrap();
}

/// Pods come, go, end and move, nodes are cordoned and come back, and the API server dies once.
fn churn(cluster: &Cluster) {
    let api = cluster.api();
    for round in 0..4 {
        let batch = Pods::new(format!("batch-{round}"), 60).cpu("250m").memory("1Mi");
        cluster.add_pods(&batch).unwrap();
        for n in 0..30 {
            let web = round * 30 + n;
            api.delete(&format!("{PODS}/web-{web}?gracePeriodSeconds=0")).unwrap();
            let done = json!({ "status": { "phase": "Succeeded" } });
            api.patch(&format!("{PODS}/batch-{round}-{n}/status"), &done).unwrap();
        }
        let cordoned = json!({ "spec": { "unschedulable": round % 2 == 0 } });
        api.patch("/api/v1/nodes/worker-7", &cordoned).unwrap();
        if round == 2 {
            cluster.part(Part::ApiServer).kill();
            cluster.start_part(Part::ApiServer).unwrap();
        }
    }
    api.delete("/api/v1/nodes/worker-9").unwrap();
}

#[test]
fn fifty_nodes_and_a_thousand_pods_add_up_as_kubectl_says_before_and_after_churn() {
    let cluster = Cluster::start(Setup::api("rome").with(Part::Kwok)).unwrap();
    fill(&cluster);
    let kinds: Vec<_> = sublet_crds::FILES.iter().map(|(_, text)| *text).collect();
    cluster.apply_crds(&kinds.join("\n---\n")).unwrap();
    beside(&cluster, |told| {
        let before = agreed(&cluster, told);
        assert_eq!(before.capacity.cpu, 46 * 8000, "only nodes that count");
        assert_eq!(before.capacity.gpu, 40);
        assert_eq!(before.allocated.gpu, 40);
        assert!(before.pods > 900 && before.problems == 0);
        let aside: BTreeSet<_> =
            before.nodes.iter().filter(|(_, count)| **count == 1).map(|(one, _)| *one).collect();
        let [virtual_, not_ready, cordoned, tainted, _] = Standing::ALL;
        assert_eq!(aside, BTreeSet::from([virtual_, not_ready, cordoned, tainted]));
        churn(&cluster);
        let after = agreed(&cluster, told);
        assert_ne!(after, before);
        assert_eq!(after.capacity.cpu, 45 * 8000);
    });
}
