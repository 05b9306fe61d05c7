//! `clusters up`: some clusters that stay up for a person, until Ctrl-C.

use std::path::Path;

use anyhow::{Context, Result};
use sublet_testkit::binaries::{Binaries, Kit, Program};
use sublet_testkit::wait::Stopwatch;
use sublet_testkit::{Cluster, Liqo, Nodes, Process, Setup, Tier};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::agents;
use crate::broker::{Broker, program};

/// What to do with clusters.
#[derive(clap::Subcommand)]
pub(crate) enum Verb {
    /// Start some, and keep them up until Ctrl-C
    Up(Up),
}

/// Which clusters.
#[derive(clap::Args)]
pub(crate) struct Up {
    /// How many: cluster-1, cluster-2, …
    #[arg(value_parser = clap::value_parser!(u16).range(1..=20))]
    count: u16,
    /// Simulated nodes in each: 8 cores, 32 GiB
    #[arg(long, default_value_t = 3)]
    nodes: usize,
    /// With a broker beside them, and certificates for everybody
    #[arg(long)]
    broker: bool,
    /// With Liqo in each of them, all but its network: virtual nodes, quotas
    #[arg(long)]
    liqo: bool,
    /// With an agent in each of them, under its own role
    #[arg(long, requires = "broker")]
    agents: bool,
}

impl Verb {
    /// Does it.
    pub(crate) fn run(self) -> Result<()> {
        let Self::Up(up) = self;
        // Before anything is started, so that Ctrl-C ends nothing half-way.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let end = runtime.block_on(async { Ends::listen() })?;
        let clock = Stopwatch::start();
        println!("starting {} clusters …", up.count);
        let rig = Rig::start(&up)?;
        rig.show();
        println!("\nup after {:.1} s; Ctrl-C ends everything", clock.elapsed().as_secs_f64());
        runtime.block_on(end.any());
        println!("\nstopping …");
        drop(rig);
        println!("stopped; nothing is left");
        Ok(())
    }
}

/// Everything that runs.
struct Rig {
    agents: Vec<Process>,
    broker: Option<Broker>,
    // Before the clusters that it runs on, so that it ends first.
    liqo: Vec<Liqo>,
    clusters: Vec<Cluster>,
}

impl Rig {
    fn start(up: &Up) -> Result<Self> {
        let setup = if up.liqo { Setup::whole_for_liqo } else { Setup::whole };
        let setups = (1..=up.count).map(|number| setup(format!("cluster-{number}")));
        let clusters = Cluster::start_all(setups)?;
        let liqo = up.liqo.then(|| Liqo::start_all(&clusters, Tier::Full)).transpose()?;
        let liqo = liqo.unwrap_or_default();
        for cluster in &clusters {
            cluster.add_nodes(&Nodes::new(format!("{}-node", cluster.name()), up.nodes))?;
        }
        let broker = up.broker.then(|| Broker::start(&clusters, program()?)).transpose()?;
        let wanted = broker.as_ref().filter(|_| up.agents);
        let agents = wanted.into_iter().flat_map(|broker| {
            clusters.iter().map(move |cluster| {
                let prepare = if up.liqo { agents::prepare_for_liqo } else { agents::prepare };
                let account = prepare(cluster, broker)?;
                agents::start(cluster, broker, &account, &[])
            })
        });
        let agents = agents.collect::<Result<_>>()?;
        Ok(Self { agents, broker, liqo, clusters })
    }

    fn show(&self) {
        println!("\nclusters, each with all controllers and nodes that KWOK plays:");
        for cluster in &self.clusters {
            println!("  {}  {}", cluster.name(), cluster.url());
            println!("    export KUBECONFIG={}", cluster.kubeconfig().display());
        }
        let all: Vec<_> =
            self.clusters.iter().map(Cluster::kubeconfig).map(Path::display).collect();
        let all: Vec<_> = all.iter().map(ToString::to_string).collect();
        println!("  all of them, as contexts:\n    export KUBECONFIG={}", all.join(":"));
        println!("  logs are beside each kubeconfig");
        if !self.liqo.is_empty() {
            println!("  each has Liqo, under its own name as the id; its network is off");
        }
        let kubectl =
            Binaries::of_this_machine(Kit::Kubernetes).map(|all| all.path(Program::Kubectl));
        let kubectl = kubectl.ok().and_then(Path::parent);
        let sublet = self.broker.as_ref().and_then(|broker| broker.sublet_path().parent());
        let folders: Vec<_> = [sublet, kubectl].into_iter().flatten().collect();
        let folders: Vec<_> = folders.iter().map(|path| path.display().to_string()).collect();
        println!("\nthe programs:\n    export PATH={}:$PATH", folders.join(":"));
        if let Some(broker) = &self.broker {
            broker.show();
        }
        for (agent, cluster) in self.agents.iter().zip(&self.clusters) {
            println!("agent of {}: log {}", cluster.name(), agent.log().display());
        }
    }
}

/// What ends the rig: Ctrl-C, a request to end, a terminal that is closed.
struct Ends([Signal; 3]);

impl Ends {
    fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be heard");
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(listen);
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    async fn any(self) {
        let Self([mut interrupt, mut terminate, mut hangup]) = self;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
