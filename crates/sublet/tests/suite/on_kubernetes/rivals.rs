//! Two agents of one cluster: one works, and the other takes over.

use sublet_core::resources::Resources;
use sublet_testkit::{Cluster, Nodes, Process, Setup, Signal};

use super::member::{Member, at_broker, comes, page};
use crate::broker::Town;
use crate::word::advertisement;

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
    comes(&first, "the first's turn", || leads(&member, &first).filter(|leads| *leads));

    let second = member.agent(&town, "second", &["--leader-elect"]);
    second.start().unwrap();
    let probes = member.address(&second, "health");
    comes(&second, "the second to be ready for its turn", || {
        page(&probes, "/readyz").filter(|page| page.starts_with("HTTP/1.0 200"))
    });
    assert_ne!(leads(&member, &second), Some(true));

    // Whoever is told to end lets go.
    first.signal(Signal::TERM).unwrap();
    comes(&second, "the second's turn", || leads(&member, &second).filter(|leads| *leads));
    comes(&first, "the first's end", || first.ended());

    // Whoever is killed is waited for no longer than the lease lasts.
    first.start().unwrap();
    second.kill();
    comes(&first, "the first's turn again", || leads(&member, &first).filter(|leads| *leads));
}

/// What an agent counts under a name.
fn counted(member: &Member, agent: &Process, name: &str) -> u64 {
    let at = member.address(agent, "metrics");
    let page = comes(agent, "its metrics", || page(&at, "/metrics"));
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

fn is_heard(member: &Member, agent: &Process) -> bool {
    counted(member, agent, "sublet_agent_broker_reached ") == 1
}

fn rises(member: &Member, agent: &Process) -> u64 {
    counted(member, agent, "sublet_agent_number_rises_total ")
}

/// How often an agent was told that another one is heard instead.
fn unheard(member: &Member, agent: &Process) -> u64 {
    counted(member, agent, "sublet_agent_published_total{result=\"overtaken\"} ")
}

/// The word of an agent's Advertisement on whether the broker has it: the status, and the reason.
fn published(member: &Member, agent: &Process) -> Option<(String, String)> {
    let kept = member.object("advertisement", agent.name())?;
    let all = kept["status"]["conditions"].as_array()?.clone();
    let said = all.into_iter().find(|one| one["type"] == "Published")?;
    let text = |name: &str| Some(said[name].as_str()?.to_owned());
    Some((text("status")?, text("reason")?))
}

/// Of two, the one that is heard and the one that is not, once that is so.
fn places<'a>(member: &Member, [a, b]: [&'a Process; 2]) -> [&'a Process; 2] {
    comes(b, "one that is heard, and one that is not", || {
        let is = |heard: &Process, other: &Process| {
            is_heard(member, heard) && !is_heard(member, other) && unheard(member, other) > 0
        };
        if is(a, b) { Some([a, b]) } else { is(b, a).then_some([b, a]) }
    })
}

/// As without `--leader-elect`: nothing keeps the two apart.
#[test]
fn who_was_overtaken_is_heard_again_and_of_two_that_live_one_says_that_it_is_not() {
    let town = Town::new();
    let cluster = Cluster::start(Setup::api("edge")).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 1)).unwrap();
    let member = Member::new(cluster, &town);
    // Somebody has advertised the cluster whose clock was days ahead, and is gone.
    let mut word = advertisement("edge", &Resources::new(1000, 1 << 30));
    let week_ms = 7 * 24 * 3_600_000;
    let ahead = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap() + week_ms;
    word.number = Some(sublet_wire::v1::Number { incarnation: ahead, sequence: 9 });
    town.edge_says(&word);

    // Each with an object of its own, so that neither writes over what the other says.
    let agent = |name: &str| {
        let object = format!("--advertisement-name={name}");
        member.agent(&town, name, &["--advertisement-requeue-interval=1s", &object])
    };
    let first = agent("first");
    first.start().unwrap();
    comes(&first, "the agent's own figures at the broker", || {
        let told = at_broker(&town, "edge")?;
        (told["resources"]["allocatable"]["cpu"] == "8").then_some(())
    });
    comes(&first, "that it is heard", || is_heard(&member, &first).then_some(()));
    assert_eq!(rises(&member, &first), 1);

    // Another one comes, and both live: one of them is heard, and the other says that it is not.
    let second = agent("second");
    second.start().unwrap();
    let both = [&first, &second];
    let [_, other] = places(&member, both);
    comes(other, "its object to say that it is not heard", || {
        published(&member, other)
            .filter(|said| *said == ("False".to_owned(), "Overtaken".to_owned()))
    });
    // They do not race: many words of one are passed over, and hardly ever is there a reason to rise.
    let sum = |count: fn(&Member, &Process) -> u64| -> u64 {
        both.map(|agent| count(&member, agent)).into_iter().sum()
    };
    let before = sum(unheard);
    comes(other, "many more words that are not heard", || {
        (sum(unheard) >= before + 8).then_some(())
    });
    assert!(sum(rises) <= 4, "{} rises", sum(rises));
    let said = std::fs::read_to_string(other.log()).unwrap();
    assert_eq!(said.matches("not heard: ").count(), 1, "it is said, and not at each turn: {said}");

    // The one that is heard dies: the other notices, and takes its place.
    let [heard, other] = places(&member, both);
    heard.kill();
    comes(other, "the other to be heard", || is_heard(&member, other).then_some(()));
    comes(other, "its object to say so", || {
        published(&member, other).filter(|said| said.0 == "True")
    });
}
