//! `cargo xtask bench agent`: what an agent costs on a cluster of 50 nodes and 1 000 pods.
//!
//! It never fails because a figure is high; it says what was to be reached. Processor time and memory
//! are the kernel's, bytes are those of the connections that are open, by `ss`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use sublet_testkit::wait::Stopwatch;
use sublet_testkit::{Cluster, Nodes, Part, Pods, Process, Setup, wait_for};

use crate::agents;
use crate::broker::Broker;

const PATIENCE: Duration = Duration::from_mins(1);
const IDLE: Duration = Duration::from_mins(1);
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
    fn of(agent: &Process) -> Result<Self> {
        let pid = agent.pid().context("the agent has ended")?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let mut words = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
        let mut ticks = || words.next().and_then(|word| word.parse::<u32>().ok());
        let (user, system) = (ticks().context("no utime")?, ticks().context("no stime")?);
        let (sent, received) = bytes(pid).unzip();
        Ok(Self { cpu: TICK * (user + system), sent, received })
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

fn print_memory(agent: &Process, what: &str) -> Result<()> {
    let pid = agent.pid().context("the agent has ended")?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mib = |name: &str| -> Result<f64> {
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        let kib: u32 = line.trim_matches(|c: char| !c.is_ascii_digit()).parse()?;
        Ok(f64::from(kib) / 1024.0)
    };
    let (all, own, peak) = (mib("VmRSS:")?, mib("RssAnon:")?, mib("VmHWM:")?);
    println!("{what}: RSS {all:.1} MiB (to reach: < 15), of that {own:.1} its own; peak {peak:.1}");
    Ok(())
}

/// Fifty pod events a second: pods come, begin to run, and go.
fn churn(cluster: &Cluster) -> Result<()> {
    let (api, clock) = (cluster.api(), Stopwatch::start());
    let mut round = 0;
    while clock.elapsed() < CHURN {
        let batch = Pods::new(format!("churn-{round}"), 16).cpu("100m").on(&["worker-0"]);
        cluster.add_pods(&batch)?;
        for pod in 0..16 {
            api.delete(&format!("{PODS}/churn-{round}-{pod}?gracePeriodSeconds=0"))?;
        }
        round += 1;
        thread::sleep(Duration::from_secs(round).saturating_sub(clock.elapsed()));
    }
    Ok(())
}

/// An agent, and how long it took until the broker had its figures.
fn start(cluster: &Cluster, broker: &Broker, what: &str) -> Result<Process> {
    let at = cluster.folder().join("agent.at.json");
    let file = format!("--address-file={}", at.display());
    let more = ["--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", &file];
    agents::prepare(cluster, broker)?;
    let clock = Stopwatch::start();
    let agent = agents::start(cluster, broker, &more)?;
    wait_for("the first advertisement", PATIENCE, || has_published(&at))
        .with_context(|| agent.log_tail())?;
    println!("{what}: first advertisement after {:.0} ms", clock.elapsed().as_secs_f64() * 1000.0);
    print_memory(&agent, what)?;
    Ok(agent)
}

/// Whether the agent's own metrics say so.
fn has_published(at: &PathBuf) -> Option<()> {
    let at: serde_json::Value = serde_json::from_slice(&fs::read(at).ok()?).ok()?;
    let mut stream = TcpStream::connect(at["metrics"].as_str()?).ok()?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    page.contains("sublet_agent_published_total{result=\"ok\"}").then_some(())
}

/// Measures, and prints.
pub(crate) fn run() -> Result<()> {
    let clusters = [Setup::api("empty"), Setup::api("full").with(Part::Kwok)];
    let clusters = Cluster::start_all(clusters)?;
    let broker = Broker::start(&clusters)?;
    let [empty, full] = clusters.as_slice() else { anyhow::bail!("two clusters") };
    full.add_nodes(&Nodes::new("worker", 50))?;
    full.add_pods(&Pods::new("web", 1000).cpu("100m").memory("64Mi"))?;
    // The difference is what is kept of nodes and pods.
    drop(start(empty, &broker, "nothing in the cluster")?);
    let agent = start(full, &broker, "50 nodes, 1000 pods")?;
    let before = Used::of(&agent)?;
    thread::sleep(IDLE);
    Used::of(&agent)?.print("idle", before, IDLE);
    print_memory(&agent, "idle")?;
    let (before, clock) = (Used::of(&agent)?, Stopwatch::start());
    churn(full)?;
    Used::of(&agent)?.print("churn", before, clock.elapsed());
    print_memory(&agent, "churn")
}
