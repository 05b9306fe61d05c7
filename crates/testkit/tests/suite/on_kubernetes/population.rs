//! Nodes and pods that live.

use serde_json::{Value, json};
use sublet_testkit::wait::{PATIENCE, Stopwatch};
use sublet_testkit::{Cluster, Nodes, Part, Pods, Setup, wait_for};

/// The Ready condition of every node.
fn readiness(cluster: &Cluster) -> Vec<Value> {
    let nodes = cluster.api().get("/api/v1/nodes").unwrap();
    let nodes = nodes["items"].as_array().unwrap().iter();
    let ready = |node: &Value| {
        let conditions = node["status"]["conditions"].as_array()?;
        conditions.iter().find(|condition| condition["type"] == "Ready").cloned()
    };
    nodes.filter_map(ready).collect()
}

#[test]
fn a_deployment_of_40_pods_becomes_ready_and_is_gone_when_deleted() {
    let cluster = Cluster::start(Setup::whole("rome")).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 5).label("zone", "a")).unwrap();
    let clock = Stopwatch::start();
    cluster.deploy(&Pods::new("web", 40).cpu("100m").memory("64Mi")).unwrap();
    cluster.wait_until_deployed("default", "web").unwrap();
    cluster.wait_until_running("default", "web", 40).unwrap();
    println!("40 pods ready after {:?}", clock.elapsed());
    let clock = Stopwatch::start();
    cluster.kubectl(&["delete", "deployment", "web"]).unwrap();
    cluster.wait_until_running("default", "web", 0).unwrap();
    println!("40 pods gone after {:?}", clock.elapsed());
}

#[test]
fn fifty_nodes_and_a_thousand_pods_are_there_in_seconds_and_kept_alive() {
    let cluster = Cluster::start(Setup::api("rome").with(Part::Kwok)).unwrap();
    let clock = Stopwatch::start();
    let gpus = Nodes::new("gpu", 10).resource("nvidia.com/gpu", "4").label("pool", "gpu");
    cluster.add_nodes(&gpus).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 40)).unwrap();
    cluster.add_pods(&Pods::new("web", 960).cpu("100m").memory("64Mi")).unwrap();
    let trained = Pods::new("train", 40).resource("nvidia.com/gpu", "1").on(&["gpu-0", "gpu-1"]);
    cluster.add_pods(&trained).unwrap();
    println!("50 nodes and 1000 pods after {:?}", clock.elapsed());

    let node = cluster.kubectl_json(&["get", "node", "gpu-9"]).unwrap();
    assert_eq!(node["status"]["allocatable"]["nvidia.com/gpu"], "4");
    assert_eq!(node["metadata"]["labels"]["pool"], "gpu");
    // A node that KWOK attends to is Ready again at once, and another one is not.
    cluster.add_nodes(&Nodes::new("lone", 1).unattended()).unwrap();
    for name in ["lone-0", "worker-7"] {
        let path = format!("/api/v1/nodes/{name}/status");
        let conditions = json!([{ "type": "Ready", "status": "False", "reason": "Tested" }]);
        cluster.api().patch(&path, &json!({ "status": { "conditions": conditions } })).unwrap();
    }
    wait_for("KWOK to mend the node", PATIENCE, || {
        let ready = readiness(&cluster).iter().filter(|ready| ready["status"] == "True").count();
        (ready == 50).then_some(())
    })
    .unwrap();
    assert!(readiness(&cluster).iter().any(|ready| ready["reason"] == "Tested"));

    // And pods that have half a minute to end in peace are gone much sooner.
    let clock = Stopwatch::start();
    cluster.api().delete("/api/v1/namespaces/default/pods").unwrap();
    cluster.wait_until_running("default", "web", 0).unwrap();
    println!("1000 pods gone after {:?}", clock.elapsed());
}

#[test]
fn without_kwok_pods_are_said_to_run_and_nodes_stay_as_they_are() {
    let cluster = Cluster::start(Setup::api("rome")).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 2).cpu("4").memory("8Gi")).unwrap();
    cluster.add_pods(&Pods::new("web", 6).cpu("1")).unwrap();
    let pods = cluster.kubectl_json(&["get", "pods"]).unwrap();
    let on_first = |pod: &&Value| pod["spec"]["nodeName"] == "worker-0";
    assert_eq!(pods["items"].as_array().unwrap().iter().filter(on_first).count(), 3);
    let born = readiness(&cluster);
    assert_eq!(born.len(), 2);
    assert!(born.iter().all(|ready| ready["reason"] == "Simulated"));
    let patch = json!({ "spec": { "unschedulable": true } });
    let node = cluster.api().patch("/api/v1/nodes/worker-1", &patch).unwrap();
    assert_eq!(node["spec"]["unschedulable"], true);
}
