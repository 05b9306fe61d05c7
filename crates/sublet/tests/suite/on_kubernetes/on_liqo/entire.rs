//! The whole life of a reservation: a broker, two agents and Liqo as processes, and kubectl.

use std::time::Duration;

use serde_json::{Value, json};
use sublet_testkit::Setup;
use sublet_testkit::wait::Stopwatch;

use super::super::member::{REQUEST, at_broker, comes};
use super::changing::a_request_grows_shrinks_and_expires;
use super::draining::an_operator_empties_a_provider;
use super::losing::a_provider_that_was_given_up_returns;
use super::side::{self, REQUESTS, Side, lends};
use crate::broker::Town;

/// Cores of the nodes of each: shop has little, edge has much.
const CLUSTERS: [(&str, &str); 2] = [("shop", "2"), ("edge", "16")];

/// Whose pods are to go there; the request is in another one.
pub(super) const NAMESPACE: &str = "web";
const OFFLOADING: &str =
    "/apis/offloading.liqo.io/v1beta1/namespaces/web/namespaceoffloadings/offloading";

/// How long pods have to leave.
pub(super) const EVICTION: Duration = Duration::from_secs(4);

pub(super) fn deployment(reservation: &str) -> String {
    let requests = json!({ "cpu": "500m", "memory": "64Mi" });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": {
                    "nodeSelector": { "sublet.io/reservation": reservation },
                    "containers": [{ "name": "main", "image": "simulated",
                                     "resources": { "requests": requests, "limits": requests } }],
                },
            },
        },
    })
    .to_string()
}

fn without_a_webhook_nothing_is_lent(town: &Town, side: &Side) {
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let api = side.member.cluster.api();
    let mut hook = api.get(path).unwrap()["items"][0].clone();
    let name = hook["metadata"]["name"].as_str().unwrap().to_owned();
    hook["metadata"] = json!({ "name": name });
    api.delete(&format!("{path}/{name}")).unwrap();
    side.agent.kill();
    side.agent.start().unwrap();
    lends(town, side, false);
    api.create(path, &hook).unwrap();
    lends(town, side, true);
}

/// A request of another namespace has no say in it by itself.
fn its_pods_go_there_when_the_namespace_allows_it(shop: &Side) {
    let Side { member, agent, .. } = shop;
    comes(agent, "a word about a namespace that stays", || {
        let events = shop.get("/api/v1/namespaces/default/events")?;
        let says = |event: &Value| {
            let note = event["message"].as_str().unwrap_or_default();
            event["reason"] == "NotOffloaded" && note.contains("sublet.io/may-be-offloaded=true")
        };
        events["items"].as_array()?.iter().any(says).then_some(())
    });
    assert!(member.cluster.api().get(OFFLOADING).is_err());
    let label = ["label", "namespace", NAMESPACE, "sublet.io/may-be-offloaded=true"];
    member.cluster.kubectl(&label).unwrap();
    comes(agent, "a namespace over there", || {
        let found = member.cluster.api().get(OFFLOADING).ok()?;
        (found["status"]["offloadingPhase"] == "Ready").then_some(())
    });
}

/// Pods inside of what is lent are shown as its use, and take nothing more of what is free.
fn what_runs_there_counts_once(town: &Town, edge: &Side, id: &str) {
    comes(&edge.agent, "the use of the reservation", || {
        let table = town.anna.run("get reservations -o wide").out;
        let row = table.lines().find(|row| row.starts_with(id))?;
        (row.contains(" 1 ") && row.contains(" 128Mi ")).then_some(())
    });
    assert_eq!(town.reservation(id)["used"], json!({ "cpu": "1", "memory": "128Mi" }));
    let told = at_broker(town, "edge").unwrap();
    assert_eq!(told["resources"]["available"]["cpu"], "12", "4 of 16 are held: {told}");
}

/// What would cut what runs there is refused, with how much that is, and nothing changes.
fn it_is_not_made_smaller_than_what_runs(town: &Town, shop: &Side, id: &str) {
    let refused = town.run_as("shop", &format!("resize {id} --cpu 500m --memory 1Gi -o json"));
    assert_eq!(refused.status, 3, "{refused:?}");
    let said: Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!(said["code"], "InUse", "{said}");
    assert!(said["error"].as_str().unwrap().contains("cpu 1, memory 128Mi"), "{said}");
    let change = json!({ "spec": { "requestedCPU": "500m", "requestedMemory": "1Gi" } });
    shop.member.cluster.api().patch(&format!("{REQUESTS}/burst"), &change).unwrap();
    comes(&shop.agent, "the request to say why it is not smaller", || {
        let status = shop.request("burst")?["status"].clone();
        status.to_string().contains("cpu 1, memory 128Mi").then_some(())
    });
    let held = &town.reservation(id)["requestedResources"];
    assert_eq!(*held, json!({ "cpu": "4", "memory": "8Gi" }));
}

#[test]
fn what_is_asked_for_in_one_cluster_runs_in_the_other_until_it_is_given_back() {
    let clock = Stopwatch::start();
    let town = Town::new();
    let eviction = format!("--eviction-deadline={}s", EVICTION.as_secs());
    let sides =
        side::start_with(&town, |name| Setup::whole_for_liqo(name), &CLUSTERS, &[&eviction]);
    println!("two clusters with Liqo and agents after {:?}", clock.elapsed());
    let [shop, edge] = sides.as_slice() else { panic!("two clusters") };
    without_a_webhook_nothing_is_lent(&town, edge);
    let before: Vec<_> = sides.iter().map(Side::inventory).collect();
    shop.member.cluster.kubectl(&["create", "namespace", NAMESPACE]).unwrap();
    let clock = Stopwatch::start();
    let request = format!("{REQUEST}  namespaces: [{NAMESPACE}]\n");
    shop.member.cluster.apply(&request).unwrap();
    let id = shop.usable("burst");
    println!("usable, without a link before, after {:?}", clock.elapsed());
    let node = shop.member.cluster.kubectl_json(&["get", "node", &id]).unwrap();
    assert_eq!(node["status"]["allocatable"]["cpu"], "4");
    assert_eq!(node["status"]["allocatable"]["memory"], "8Gi");
    assert_eq!(node["metadata"]["labels"]["sublet.io/reservation"], id);

    its_pods_go_there_when_the_namespace_allows_it(shop);
    shop.member.cluster.apply(&deployment(&id)).unwrap();
    shop.member.cluster.wait_until_deployed("web", "web").unwrap();
    let there = || {
        let pods = edge.get("/api/v1/namespaces/web-shop/pods")?;
        let running = |pod: &&Value| pod["status"]["phase"] == "Running";
        (pods["items"].as_array()?.iter().filter(running).count() == 2).then_some(())
    };
    comes(&edge.agent, "two pods over there", there);
    what_runs_there_counts_once(&town, edge, &id);
    it_is_not_made_smaller_than_what_runs(&town, shop, &id);

    let clock = Stopwatch::start();
    shop.member.delete("resourcerequest", "burst");
    comes(&edge.agent, "the capacity to be back", || {
        let told = at_broker(&town, "edge")?;
        (told["resources"]["available"]["cpu"] == "16").then_some(())
    });
    println!("free again, with pods, after {:?}", clock.elapsed());
    assert_eq!(town.reservation(&id)["status"]["phase"], "Released");
    let is_home = || shop.member.cluster.api().get(OFFLOADING).is_err().then_some(());
    comes(&shop.agent, "the namespace to be at home again", is_home);
    let took = an_operator_empties_a_provider(&town, shop, edge);
    println!("emptied by its operator after {took:?}");
    let changing = Stopwatch::start();
    a_request_grows_shrinks_and_expires(&town, shop, edge);
    println!("grown, shrunk and over after {:?}", changing.elapsed());
    a_provider_that_was_given_up_returns(&town, shop, edge);
    comes(&shop.agent, "the namespace to be at home once more", is_home);
    shop.member.delete("namespace", NAMESPACE);
    for (side, before) in sides.iter().zip(&before) {
        side.wait_until_as(before);
    }
    println!("everything is as before after {:?}", clock.elapsed());
}
