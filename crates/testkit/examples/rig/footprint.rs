//! `cargo xtask bench agent`: what an agent costs on a cluster of 50 nodes and 1 000 pods, and how
//! quickly a request becomes instructions.
//!
//! It never fails because a figure is high; it says what was to be reached. Processor time and memory
//! are the kernel's, bytes are those of the connections that are open, by `ss`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sublet_testkit::wait::{PATIENCE, Stopwatch};
use sublet_testkit::{Cluster, Nodes, Part, Pods, Process, Setup};

use crate::broker::{Broker, program};
use crate::used::{Meter, print_memory, row};
use crate::{agents, latency};

const IDLE: Duration = Duration::from_mins(2);
const CHURN: Duration = Duration::from_secs(30);
const STARTS: usize = 9;
const PODS: &str = "/api/v1/namespaces/default/pods";

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program to measure; without it, the one beside this program
    #[arg(long)]
    sublet: Option<PathBuf>,
}

/// Fifty pod events a second: sixteen pods come, begin to run, and go.
fn churn(cluster: &Cluster, meter: &mut Meter<'_>) -> Result<()> {
    let (api, clock) = (cluster.api(), Stopwatch::start());
    let mut round = 0;
    while clock.elapsed() < CHURN {
        let batch = Pods::new(format!("churn-{round}"), 16).cpu("100m").on(&["worker-0"]);
        cluster.add_pods(&batch)?;
        for pod in 0..16 {
            api.delete(&format!("{PODS}/churn-{round}-{pod}?gracePeriodSeconds=0"))?;
        }
        round += 1;
        meter.look()?;
        thread::sleep(Duration::from_secs(round).saturating_sub(clock.elapsed()));
    }
    Ok(())
}

/// An agent, and how long it took until the broker had its figures.
fn start(cluster: &Cluster, broker: &Broker, account: &Path) -> Result<(Process, Duration)> {
    let at = cluster.folder().join("agent.at.json");
    // An earlier agent's word is not this one's.
    drop(std::fs::remove_file(&at));
    let file = format!("--address-file={}", at.display());
    let more = ["--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", &file];
    let clock = Stopwatch::start();
    let agent = agents::start(cluster, broker, account, &more)?;
    while has_published(&at).is_none() {
        ensure!(clock.elapsed() < PATIENCE, "it never published: {}", agent.log_tail());
        thread::sleep(Duration::from_millis(2));
    }
    Ok((agent, clock.elapsed()))
}

/// Whether the agent's own metrics say so.
fn has_published(at: &Path) -> Option<()> {
    let mut stream = TcpStream::connect(agents::metrics_at(at)?).ok()?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    page.contains("sublet_agent_published_total{result=\"ok\"}").then_some(())
}

/// Some starts; the last agent stays.
fn starts(cluster: &Cluster, broker: &Broker, what: &str) -> Result<Process> {
    let account = agents::prepare(cluster, broker)?;
    // The first one waits until the API server knows of the role.
    let (mut agent, _) = start(cluster, broker, &account)?;
    let mut times = Vec::new();
    while times.len() < STARTS {
        drop(agent);
        let (next, took) = start(cluster, broker, &account)?;
        agent = next;
        times.push(took);
    }
    row(&format!("{what}: from start to first advertisement"), &latency::spread(&mut times), "");
    Ok(agent)
}

/// Measures, and prints a table.
pub(crate) fn run(args: Args) -> Result<()> {
    let sublet = args.sublet.map_or_else(program, Ok)?;
    let size = std::fs::metadata(&sublet)?.len() >> 20;
    println!("starting two clusters, one with 50 nodes and 1 000 pods …");
    let clusters = [Setup::api("empty"), Setup::api("full").with(Part::Kwok)];
    let clusters = Cluster::start_all(clusters)?;
    let broker = Broker::start(&clusters, sublet)?;
    let [empty, full] = clusters.as_slice() else { anyhow::bail!("two clusters") };
    full.add_nodes(&Nodes::new("worker", 50))?;
    full.add_pods(&Pods::new("web", 1000).cpu("100m").memory("64Mi"))?;
    println!("\n| what | found | to reach |\n|---|---|---|");
    row("the program's file", &format!("{size} MiB"), "");
    // The difference is what is kept of nodes and pods.
    let other = starts(empty, &broker, "empty cluster")?;
    print_memory(&other, "empty cluster, just started")?;
    let agent = starts(full, &broker, "50 nodes, 1 000 pods")?;
    print_memory(&agent, "50 nodes, 1 000 pods, just started")?;
    let port = broker.url().rsplit(':').next().context("a port")?;
    let mut meter = Meter::start(&agent, port)?;
    meter.wait(IDLE)?;
    meter.print("idle")?;
    print_memory(&other, "empty cluster, idle")?;
    print_memory(&agent, "50 nodes, 1 000 pods, idle")?;
    let mut meter = Meter::start(&agent, port)?;
    churn(full, &mut meter)?;
    meter.print("50 pod events a second")?;
    print_memory(&agent, "50 pod events a second")?;
    latency::measure(empty, full, &broker)?;
    print_memory(&agent, "after the requests")?;
    latency::measure_many(empty)?;
    print_memory(&agent, "after many at once")
}
