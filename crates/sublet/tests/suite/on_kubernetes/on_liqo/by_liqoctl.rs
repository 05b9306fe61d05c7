//! The whole life of a reservation where agents are started as the Go agent is: with a folder of
//! kubeconfigs, and liqoctl beside them.

use sublet_testkit::binaries::{Binaries, Kit, Program};
use sublet_testkit::wait::Stopwatch;
use sublet_testkit::{Cluster, Setup};

use super::super::member::{REQUEST, at_broker, comes, page};
use super::side::{self, Side};
use crate::broker::Town;

const ROLE: &str = include_str!("../../../../../../deploy/agent/rbac-liqoctl.yaml");
const CLUSTERS: [(&str, &str); 2] = [("shop", "2"), ("edge", "16")];
const OFFLOADING: &str =
    "/apis/offloading.liqo.io/v1beta1/namespaces/default/namespaceoffloadings/offloading";

/// Both clusters, each with an agent that has the kubeconfigs of both.
fn start(town: &Town) -> Vec<Side> {
    let clusters = Cluster::start_all(CLUSTERS.map(|(name, _)| Setup::for_liqo(name))).unwrap();
    let folder = town.anna.path("kubeconfigs");
    std::fs::create_dir(&folder).unwrap();
    for cluster in &clusters {
        let place = folder.join(format!("{}.kubeconfig", cluster.name()));
        std::fs::copy(cluster.kubeconfig(), place).unwrap();
    }
    let liqoctl = Binaries::of_this_machine(Kit::Liqoctl).unwrap();
    let flags = [
        "--peering=liqoctl".to_owned(),
        format!("--kubeconfigs-dir={}", folder.display()),
        format!("--liqoctl-path={}", liqoctl.path(Program::Liqoctl).display()),
    ];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let sides = side::join(town, clusters, &CLUSTERS, (ROLE, &flags));
    for side in &sides {
        comes(&side.agent, "a cluster that advertises", || at_broker(town, side.name()));
    }
    sides
}

#[test]
fn an_agent_with_kubeconfigs_makes_a_node_of_a_request_and_takes_it_down() {
    let clock = Stopwatch::start();
    let town = Town::new();
    let sides = start(&town);
    println!("two clusters with Liqo and agents after {:?}", clock.elapsed());
    let [shop, edge] = sides.as_slice() else { panic!("two clusters") };
    let before: Vec<_> = sides.iter().map(Side::inventory).collect();

    let clock = Stopwatch::start();
    let request = format!("{REQUEST}  namespaces: [default]\n");
    shop.member.cluster.apply(&request).unwrap();
    let id = shop.usable("burst");
    println!("usable after {:?}", clock.elapsed());
    // liqoctl names it after the provider.
    let node = shop.get("/api/v1/nodes/edge").unwrap();
    let has = &node["status"]["allocatable"];
    assert_eq!((has["cpu"].as_str(), has["memory"].as_str()), (Some("4"), Some("8Gi")));
    comes(&shop.agent, "the namespace to go there", || shop.get(OFFLOADING));
    let metrics = shop.member.address(&shop.agent, "metrics");
    let counted = page(&metrics, "/metrics").unwrap();
    let runs = "sublet_agent_liqoctl_runs_total{outcome=\"succeeded\"}";
    assert!(counted.lines().any(|line| line.starts_with(runs)), "{counted}");

    shop.member.delete("resourcerequest", "burst");
    comes(&edge.agent, "the capacity to be back", || {
        (at_broker(&town, "edge")?["resources"]["available"]["cpu"] == "16").then_some(())
    });
    assert_eq!(town.reservation(&id)["status"]["phase"], "Released");
    for (side, before) in sides.iter().zip(&before) {
        side.wait_until_as(before);
    }
    println!("everything is as before after {:?}", clock.elapsed());
}
