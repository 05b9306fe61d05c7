//! docs/quickstart.md, with kubectl only: three clusters, a broker, and agents as separate processes.

use serde_json::Value;
use sublet_testkit::{Cluster, Nodes, Process, Setup};

use super::member::{Member, REQUEST, at_broker, comes};
use crate::broker::Town;

/// Cores of the nodes of each: only edge has room for what shop asks for, and some left.
const CLUSTERS: [(&str, &str); 3] = [("shop", "2"), ("edge", "16"), ("yard", "3")];

fn federation(town: &Town) -> Vec<(Member, Process)> {
    town.anna.ok("ca issue yard --out certs/yard");
    let clusters = Cluster::start_all(CLUSTERS.map(|(name, _)| Setup::api(name))).unwrap();
    let join = |(cluster, (_, cores)): (Cluster, (&str, &str))| {
        cluster.add_nodes(&Nodes::new("worker", 1).cpu(cores)).unwrap();
        let member = Member::new(cluster, town);
        let agent = member.agent(town, "agent", &[]);
        agent.start().unwrap();
        (member, agent)
    };
    clusters.into_iter().zip(CLUSTERS).map(join).collect()
}

/// The names of the objects of a kind in the agents' namespace.
fn names(member: &Member, kind: &str) -> Vec<String> {
    let list = member.cluster.kubectl(&["get", kind, "-n", "sublet", "-o", "name"]).unwrap();
    list.lines().filter_map(|line| Some(line.split_once('/')?.1.to_owned())).collect()
}

fn request(member: &Member) -> Option<Value> {
    member.cluster.kubectl_json(&["get", "resourcerequest", "burst"]).ok()
}

fn available(town: &Town, cluster: &str) -> Option<String> {
    let told = at_broker(town, cluster)?;
    told["resources"]["available"]["cpu"].as_str().map(str::to_owned)
}

#[test]
fn a_request_in_one_cluster_is_an_instruction_in_two_until_it_is_deleted() {
    let town = Town::new();
    let members = federation(&town);
    let [(shop, shop_agent), (edge, edge_agent), (yard, _)] = members.as_slice() else {
        panic!("three clusters")
    };
    for (member, agent) in &members {
        comes(agent, "an advertisement", || at_broker(&town, member.cluster.name()));
    }

    shop.cluster.apply(REQUEST).unwrap();
    let usable = comes(shop_agent, "the request to be usable", || {
        request(shop).filter(|found| found["status"]["phase"] == "Active")
    });
    assert_eq!(usable["status"]["targetClusterID"], "edge");
    let id = usable["status"]["reservationName"].as_str().unwrap().to_owned();

    comes(edge_agent, "the instruction to be carried out", || {
        let told = edge.object("providerinstruction", &format!("{id}-provider"))?;
        (told["status"]["enforced"] == true && told["spec"]["requestedCPU"] == "4").then_some(())
    });
    comes(shop_agent, "the instruction to be delivered", || {
        let told = shop.object("reservationinstruction", &id)?;
        (told["status"]["delivered"] == true && told["spec"]["targetClusterID"] == "edge")
            .then_some(())
    });
    assert_eq!(names(yard, "providerinstructions"), Vec::<String>::new());
    assert_eq!(town.reservation(&id)["status"]["phase"], "Active");
    comes(edge_agent, "less to be available", || {
        available(&town, "edge").filter(|cores| cores == "12")
    });
    comes(edge_agent, "what is lent, for people", || {
        let kept = edge.object("advertisement", "cluster-advertisement")?;
        (kept["spec"]["resources"]["lent"]["cpu"] == "4").then_some(())
    });

    shop.delete("resourcerequest", "burst");
    for (member, agent, kind) in
        [(shop, shop_agent, "reservationinstructions"), (edge, edge_agent, "providerinstructions")]
    {
        comes(agent, "the end of its instruction", || names(member, kind).is_empty().then_some(()));
    }
    comes(edge_agent, "the capacity to be back", || {
        available(&town, "edge").filter(|cores| cores == "16")
    });
    assert_eq!(town.reservation(&id)["status"]["phase"], "Released");
}
