//! What an agent costs on a cluster of 50 nodes and 1 000 pods: `cargo xtask bench agent`.
//!
//! It is not run with the tests: it takes minutes, and means something in a release build alone. It
//! never fails because a figure is high; it says what was to be reached.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use sublet_testkit::wait::Stopwatch;
use sublet_testkit::{Cluster, Nodes, Part, Pods, Process, Setup};

use super::member::{Member, comes, page};
use crate::broker::Town;

const IDLE: Duration = Duration::from_secs(60);
const CHURN: Duration = Duration::from_secs(20);
/// A clock tick of the kernel, as /proc counts processor time.
const TICK: Duration = Duration::from_millis(10);
const PODS: &str = "/api/v1/namespaces/default/pods";

/// What a process has used so far.
#[derive(Clone, Copy)]
struct Used {
    cpu: Duration,
    sent: Option<u64>,
    received: Option<u64>,
}

impl Used {
    fn of(agent: &Process) -> Self {
        let pid = agent.pid().unwrap();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let after_name = stat.rsplit(')').next().unwrap();
        let field =
            |n: usize| after_name.split_whitespace().nth(n).unwrap().parse::<u32>().unwrap();
        let (sent, received) = bytes(pid).unzip();
        Self { cpu: TICK * (field(11) + field(12)), sent, received }
    }

    /// What was used since then, over this time.
    fn print(self, what: &str, since: Self, over: Duration) {
        let seconds = over.as_secs_f64();
        let cpu = (self.cpu.saturating_sub(since.cpu)).as_secs_f64() / seconds * 100.0;
        println!("{what}: cpu {cpu:.2} % of a core (idle, to reach: < 0.1)");
        let rate = |now: Option<u64>, then: Option<u64>| {
            let bytes = u32::try_from(now?.saturating_sub(then?)).ok()?;
            Some(format!("{:.0} B/s", f64::from(bytes) / seconds))
        };
        let (sent, received) = (rate(self.sent, since.sent), rate(self.received, since.received));
        let or = "not known: there is no `ss` here".to_owned();
        println!("{what}: sent {} (idle, to reach: < 100)", sent.unwrap_or_else(|| or.clone()));
        println!("{what}: received {}", received.unwrap_or(or));
    }
}

/// Bytes sent and received over the connections that are open now, by the kernel's count.
fn bytes(pid: u32) -> Option<(u64, u64)> {
    let output = Command::new("ss").arg("-Htinp").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = text.lines().collect();
    let ours = lines.windows(2).filter(|two| two[0].contains(&format!("pid={pid},")));
    let count = |line: &str, name: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name));
        word.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    Some(ours.fold((0, 0), |(sent, received), two| {
        let line = two[1];
        (sent + count(line, "bytes_sent:"), received + count(line, "bytes_received:"))
    }))
}

fn print_memory(agent: &Process, what: &str) {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid().unwrap())).unwrap();
    let mib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let kib: u32 = line.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        f64::from(kib) / 1024.0
    };
    let (all, own, peak) = (mib("VmRSS:"), mib("RssAnon:"), mib("VmHWM:"));
    println!("{what}: RSS {all:.1} MiB (to reach: < 15), of that {own:.1} its own; peak {peak:.1}");
}

/// Fifty pod events a second: a pod comes, a pod goes.
fn churn(cluster: &Cluster) {
    let (api, clock) = (cluster.api(), Stopwatch::start());
    for round in 0_u32.. {
        if clock.elapsed() > CHURN {
            return;
        }
        let batch = Pods::new(format!("churn-{round}"), 12).cpu("100m").on(&["worker-0"]);
        cluster.add_pods(&batch).unwrap();
        for pod in 0..12 {
            api.delete(&format!("{PODS}/churn-{round}-{pod}?gracePeriodSeconds=0")).unwrap();
        }
        let next = Duration::from_millis(1000) * (round + 1);
        thread::sleep(next.saturating_sub(clock.elapsed()));
    }
}

/// A cluster with nothing in it, and the same with everything: the difference is the watch cache.
fn empty(town: &Town) {
    let member = Member::new(Cluster::start(Setup::api("shop")).unwrap(), town);
    let agent = member.agent(town, "agent", &[]);
    start(&member, &agent, "nothing in the cluster");
    print_memory(&agent, "nothing in the cluster");
}

fn start(member: &Member, agent: &Process, what: &str) {
    let clock = Stopwatch::start();
    agent.start().unwrap();
    comes(agent, "the first advertisement", || {
        let page = page(&member.address(agent, "metrics"), "/metrics")?;
        page.contains("sublet_agent_published_total{result=\"ok\"}").then_some(())
    });
    println!("{what}: first advertisement after {:.0} ms", clock.elapsed().as_secs_f64() * 1000.0);
}

#[test]
#[ignore = "a benchmark: `cargo xtask bench agent`"]
fn an_agent_costs_little() {
    let town = Town::new();
    empty(&town);
    let cluster = Cluster::start(Setup::api("edge").with(Part::Kwok)).unwrap();
    cluster.add_nodes(&Nodes::new("worker", 50)).unwrap();
    cluster.add_pods(&Pods::new("web", 1000).cpu("100m").memory("64Mi")).unwrap();
    let member = Member::new(cluster, &town);
    let agent = member.agent(&town, "agent", &[]);
    let what = "50 nodes, 1000 pods";
    start(&member, &agent, what);
    print_memory(&agent, what);
    let before = Used::of(&agent);
    thread::sleep(IDLE);
    Used::of(&agent).print("idle", before, IDLE);
    print_memory(&agent, "idle");
    let (before, clock) = (Used::of(&agent), Stopwatch::start());
    churn(&member.cluster);
    Used::of(&agent).print("churn", before, clock.elapsed());
    print_memory(&agent, "churn");
}
