//! Two agents of one cluster: one works, and the other takes over.

use sublet_testkit::{Cluster, Nodes, Process, Setup, Signal};

use super::member::{Member, at_broker, comes, page};
use crate::broker::Town;

fn leads(member: &Member, agent: &Process) -> Option<bool> {
    let page = page(&member.address(agent, "metrics"), "/metrics")?;
    Some(page.contains("\nsublet_agent_leading 1"))
}

#[test]
fn one_of_two_agents_works_and_the_other_takes_over() {
    let town = Town::new();
    let cluster = Cluster::start(Setup::api("edge")).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 1)).unwrap();
    let member = Member::new(cluster, &town);
    let first = member.agent(&town, "first", &["--leader-elect"]);
    first.start().unwrap();
    comes(&first, "the first advertisement", || at_broker(&town, "edge"));
    assert_eq!(leads(&member, &first), Some(true));

    let second = member.agent(&town, "second", &["--leader-elect"]);
    second.start().unwrap();
    let probes = member.address(&second, "health");
    comes(&second, "the second to be ready for its turn", || {
        page(&probes, "/readyz").filter(|page| page.starts_with("HTTP/1.0 200"))
    });
    assert_eq!(leads(&member, &second), Some(false));

    // Whoever is told to end lets go.
    first.signal(Signal::TERM).unwrap();
    comes(&second, "the second's turn", || leads(&member, &second).filter(|leads| *leads));
    comes(&first, "the first's end", || first.ended());

    // Whoever is killed is waited for no longer than the lease lasts.
    first.start().unwrap();
    second.kill();
    comes(&first, "the first's turn again", || leads(&member, &first).filter(|leads| *leads));
}
