//! A cluster whose agent has no broker, or may not see everything, and one that lacks our kinds: a single
//! cluster is all of them in turn.

use serde_json::{Value, json};
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Cluster, Nodes, Part, Process, Setup, wait_for};

use super::member::{Member, REQUEST, at_broker, comes, page};
use crate::broker::Town;

const KUBE_SYSTEM: &str = "/api/v1/namespaces/kube-system";
const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles/sublet-agent";
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

/// The Advertisement, once it is said of it that all was measured, or that something cannot be.
#[track_caller]
fn measured(member: &Member, agent: &Process, expected: (&str, &str, &str)) -> Value {
    let (holds, reason, phase) = expected;
    let kept = comes(agent, &format!("Measured to be {holds}"), || {
        let kept = member.object("advertisement", "cluster-advertisement")?;
        let is_said = said(&kept, "Measured")? == (holds.to_owned(), reason.to_owned());
        is_said.then_some(kept)
    });
    assert_eq!(kept["status"]["phase"], phase);
    assert_eq!(kept["spec"]["resources"]["available"]["cpu"], "8", "what is known stays");
    kept
}

/// At the start, and where the role is taken away from an agent that runs.
fn says_what_it_may_not_see(member: &Member, town: &Town) {
    let (all, blind) = (("True", "Done", "Active"), ("False", "MeasuringFailed", "Error"));
    let api = member.cluster.api();
    let whole = api.get(ROLE).unwrap()["rules"].clone();
    assert_eq!(whole[0]["resources"], json!(["nodes", "pods"]));
    let mut less = whole.clone();
    less[0]["resources"] = json!(["nodes"]);
    let may = |rules: &Value| drop(api.patch(ROLE, &json!({ "rules": rules })).unwrap());

    may(&less);
    let often = "--advertisement-requeue-interval=1s";
    let more = ["--broker-transport=", "--broker-cert-path=", often];
    let agent = member.agent(town, "unseeing", &more);
    agent.start().unwrap();
    let kept = measured(member, &agent, blind);
    let message = kept["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("Failed to collect metrics: pods: "), "{message}");
    let probes = member.address(&agent, "health");
    assert!(page(&probes, "/readyz").unwrap().starts_with("HTTP/1.0 503"));
    may(&whole);
    let kept = measured(member, &agent, all);
    assert_eq!(kept["spec"]["lending"], Value::Null, "as far as it is not said, it lends");

    may(&less);
    // What is being watched goes on; what is opened again does not.
    member.cluster.part(Part::ApiServer).kill();
    member.cluster.start_part(Part::ApiServer).unwrap();
    measured(member, &agent, blind);
    let lends = |expected: Value| {
        comes(&agent, &format!("lending to be {expected}"), || {
            let kept = member.object("advertisement", "cluster-advertisement")?;
            (kept["spec"]["lending"] == expected).then_some(())
        });
    };
    // Who has not seen its pods for a while lends nothing more.
    lends(json!(false));
    may(&whole);
    measured(member, &agent, all);
    lends(Value::Null);
}

#[test]
fn without_our_kinds_it_says_what_to_do_and_without_a_broker_or_a_role_what_it_cannot() {
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
    let member = Member::new(cluster, &town);
    measures_and_refuses(&member, &town);
    says_what_it_may_not_see(&member, &town);
}
