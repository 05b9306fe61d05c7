//! A cluster whose agent has no broker, and one that lacks our kinds: a single cluster is both in turn.

use serde_json::Value;
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Cluster, Nodes, Setup, wait_for};

use super::member::{Member, REQUEST, at_broker, comes};
use crate::broker::Town;

const KUBE_SYSTEM: &str = "/api/v1/namespaces/kube-system";
const BURST: &str = "/apis/rear.fluidos.eu/v1alpha1/namespaces/default/resourcerequests/burst";

/// The status and the reason of one of an object's conditions.
fn said(object: &Value, about: &str) -> Option<(String, String)> {
    let all = object["status"]["conditions"].as_array()?;
    let one = all.iter().find(|one| one["type"] == about)?;
    let text = |name: &str| Some(one[name].as_str()?.to_owned());
    Some((text("status")?, text("reason")?))
}

fn no_broker() -> (String, String) {
    ("False".to_owned(), "NoBroker".to_owned())
}

/// It has neither a name nor a certificate, so the cluster is its namespace `kube-system`.
fn measures_and_refuses(member: &Member, town: &Town) {
    let agent = member.agent(town, "alone", &["--broker-transport=", "--broker-cert-path="]);
    agent.start().unwrap();
    let kept = comes(&agent, "the object for people", || {
        let kept = member.object("advertisement", "cluster-advertisement")?;
        said(&kept, "Published").filter(|said| *said == no_broker()).map(|_| kept)
    });
    let uid = member.cluster.api().get(KUBE_SYSTEM).unwrap()["metadata"]["uid"].clone();
    assert!(uid.is_string(), "{uid}");
    assert_eq!(kept["spec"]["clusterID"], uid);
    assert_eq!(kept["spec"]["resources"]["available"]["cpu"], "8");
    assert!(at_broker(town, "edge").is_none(), "nobody was told");

    member.cluster.apply(REQUEST).unwrap();
    let request = comes(&agent, "the request to be refused", || {
        let found = member.cluster.api().get(BURST).ok()?;
        (found["status"]["phase"] == "Failed").then_some(found)
    });
    assert_eq!(said(&request, "Accepted"), Some(no_broker()));
    member.cluster.api().delete(BURST).unwrap();
    let gone = || member.cluster.api().get(BURST).is_err().then_some(());
    wait_for("the request to go", PATIENCE, gone).unwrap();
}

#[test]
fn without_our_kinds_it_says_what_to_do_and_without_a_broker_it_measures_and_refuses() {
    let town = Town::new();
    let cluster = Cluster::start(Setup::api("edge")).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 1)).unwrap();
    let kubeconfig = cluster.kubeconfig().display().to_string();
    let certs = town.anna.path("certs/edge").display().to_string();
    let ended = town.anna.run(&format!(
        "agent --broker-transport=http --broker-url={} --broker-cert-path={certs} \
         --kubeconfig={kubeconfig} --health-probe-bind-address=0",
        town.url
    ));
    assert_eq!(ended.status, 1, "{ended:?}");
    assert!(ended.err.contains("sublet crds --for agent"), "{ended:?}");
    measures_and_refuses(&Member::new(cluster, &town), &town);
}
