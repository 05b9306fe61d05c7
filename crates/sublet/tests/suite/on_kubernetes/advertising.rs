//! An agent under its own role: what it measures reaches the broker, and people in the cluster.

use serde_json::{Value, json};
use sublet_testkit::{Cluster, Nodes, Part, Pods, Setup, Signal};
use sublet_wire::client::{Client, Credentials, Options};

use super::deployment;
use super::member::{Member, at_broker, comes, page};
use crate::broker::Town;

/// The grid is far away: whatever is published before has another reason.
const RARELY: &str = "--advertisement-requeue-interval=10m";

fn cpu(cluster: &Value, what: &str) -> Option<String> {
    cluster["resources"][what]["cpu"].as_str().map(str::to_owned)
}

/// What whoever shows a certificate of the authority is answered to `/healthz`.
pub(super) fn asked_over_tls(town: &Town, at: &str) -> String {
    let credentials = Credentials::from_folder(&town.anna.path("certs/anna")).unwrap();
    let options =
        Options { attempts: 1, ..Options::new(vec![format!("https://{at}")], credentials) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = Client::new(options).unwrap();
    runtime.block_on(client.health()).map_or_else(|error| error.to_string(), |()| "ok".to_owned())
}

#[test]
fn what_matters_is_published_at_once_and_kept_for_people() {
    let mut town = Town::new();
    let cluster = Cluster::start(Setup::api("edge")).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 4).resource("nvidia.com/gpu", "2")).unwrap();
    cluster.add_pods(&Pods::new("web", 10).cpu("500m").on(&["worker-0", "worker-1"])).unwrap();
    let member = Member::new(cluster, &town);
    town.anna.ok("ca issue metrics --server --out certs/metrics");
    let certs = format!("--metrics-cert-path={}", town.anna.path("certs/metrics").display());
    let more = [RARELY, "--offer=all,gpu=none", "--labels=tier=gold", "--region=eu-1"];
    let agent = member.agent(&town, "agent", &[&more[..], &["--metrics-secure", &certs]].concat());
    agent.start().unwrap();

    let told = comes(&agent, "the first advertisement", || at_broker(&town, "edge"));
    assert_eq!(cpu(&told, "allocatable").as_deref(), Some("32"));
    assert_eq!(cpu(&told, "allocated").as_deref(), Some("5"));
    assert_eq!(told["resources"]["capacity"]["gpu"], "8");
    assert_eq!(told["resources"]["available"]["gpu"].as_str().unwrap_or("0"), "0");
    assert_eq!(told["labels"]["tier"], "gold");
    assert_eq!(told["labels"]["topology.kubernetes.io/region"], "eu-1");

    let metrics = member.address(&agent, "metrics");
    assert!(page(&metrics, "/metrics").is_none_or(|page| !page.contains("sublet_agent")));
    let said = asked_over_tls(&town, &metrics);
    assert!(said.contains("nothing here"), "over TLS there is a server, without /healthz: {said}");

    let kept = comes(&agent, "the object for people", || {
        let kept = member.object("advertisement", "cluster-advertisement")?;
        (kept["status"]["published"] == true).then_some(kept)
    });
    assert_eq!(kept["spec"]["clusterID"], "edge");
    assert_eq!(kept["spec"]["resources"]["available"]["cpu"], "27");
    assert_eq!(kept["status"]["phase"], "Active");

    // One that somebody deletes is back soon, although nothing changes and the grid is far away.
    let path = "/apis/rear.fluidos.eu/v1alpha1/namespaces/sublet/advertisements";
    member.cluster.api().delete(&format!("{path}/cluster-advertisement")).unwrap();
    let back = comes(&agent, "the object that was deleted", || {
        let back = member.object("advertisement", "cluster-advertisement")?;
        let is_new = back["metadata"]["uid"] != kept["metadata"]["uid"];
        (is_new && back["status"]["published"] == true).then_some(back)
    });
    assert_eq!(back["spec"]["resources"], kept["spec"]["resources"]);

    member.cluster.add_nodes(&Nodes::new("more", 1)).unwrap();
    comes(&agent, "a new node at the broker", || {
        at_broker(&town, "edge").filter(|told| cpu(told, "allocatable").as_deref() == Some("40"))
    });

    // A watch that breaks resumes, and what happened meanwhile is seen.
    member.cluster.part(Part::ApiServer).kill();
    member.cluster.start_part(Part::ApiServer).unwrap();
    let cordoned = json!({ "spec": { "unschedulable": true } });
    member.cluster.api().patch("/api/v1/nodes/more-0", &cordoned).unwrap();
    comes(&agent, "the cordon at the broker", || {
        at_broker(&town, "edge").filter(|told| cpu(told, "allocatable").as_deref() == Some("32"))
    });

    // A broker that was away knows what it was told, and believes it again when the agent repeats it:
    // on every reconnect, not only on the grid.
    town.restart();
    comes(&agent, "the agent's word to a broker that was away", || {
        at_broker(&town, "edge").filter(|told| told["freshness"] == "Active")
    });
    deployment::is_accepted(&member, &town);

    agent.signal(Signal::TERM).unwrap();
    let status = comes(&agent, "the agent's end", || agent.ended());
    assert!(status.success(), "{status}: {}", agent.log_tail());
}
