//! The clusters, Liqo, the broker and the agents that are measured.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Cluster, Liqo, Nodes, Process, Setup, Tier, inventory, wait_for};

use crate::agents;
use crate::broker::Broker;

/// The cluster that borrows.
pub(super) const REQUESTER: &str = "rome";
/// The cluster that lends, and two more.
pub(super) const PROVIDER: &str = "milan";
const OTHERS: [&str; 2] = ["turin", "genoa"];

/// Everything that runs, and ends in this order.
pub(super) struct Stage {
    agents: Vec<Process>,
    pub(super) broker: Option<Broker>,
    liqo: Vec<Liqo>,
    clusters: Vec<Cluster>,
    sublet: PathBuf,
}

impl Stage {
    /// A requester and a provider with Liqo; neither broker nor agents.
    pub(super) fn build(sublet: PathBuf) -> Result<Self> {
        let mut stage = Self {
            agents: Vec::new(),
            broker: None,
            liqo: Vec::new(),
            clusters: Vec::new(),
            sublet,
        };
        stage.add_clusters(&[REQUESTER, PROVIDER])?;
        Ok(stage)
    }

    fn add_clusters(&mut self, names: &[&str]) -> Result<()> {
        let clusters = Cluster::start_all(names.iter().map(|name| Setup::for_liqo(*name)))?;
        self.liqo.extend(Liqo::start_all(&clusters, Tier::Full)?);
        for cluster in &clusters {
            // Room for everything at once; the requester has little, and is never asked.
            let cores = if cluster.name() == REQUESTER { "2" } else { "64" };
            cluster.add_nodes(&Nodes::new("worker", 1).cpu(cores).memory("256Gi"))?;
        }
        self.clusters.extend(clusters);
        Ok(())
    }

    /// Two more clusters that lend.
    pub(super) fn add_others(&mut self) -> Result<()> {
        let first = self.clusters.len();
        self.add_clusters(&OTHERS)?;
        let broker = self.broker()?;
        for cluster in self.clusters.get(first..).unwrap_or_default() {
            broker.admit(cluster)?;
            agents::prepare_for_liqo(cluster, broker)?;
        }
        Ok(())
    }

    pub(super) fn requester(&self) -> Result<&Cluster> {
        self.cluster(REQUESTER)
    }

    pub(super) fn provider(&self) -> Result<&Cluster> {
        self.cluster(PROVIDER)
    }

    fn cluster(&self, name: &str) -> Result<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name() == name).context("no such cluster")
    }

    /// All that lend.
    pub(super) fn providers(&self) -> Vec<&str> {
        let all = self.clusters.iter().map(Cluster::name);
        all.filter(|name| *name != REQUESTER).collect()
    }

    /// Starts the broker, and prepares the clusters for agents.
    pub(super) fn start_broker(&mut self) -> Result<()> {
        let broker = Broker::start(&self.clusters, self.sublet.clone())?;
        for cluster in &self.clusters {
            agents::prepare_for_liqo(cluster, &broker)?;
        }
        self.broker = Some(broker);
        Ok(())
    }

    pub(super) fn broker(&self) -> Result<&Broker> {
        self.broker.as_ref().context("no broker yet")
    }

    /// Starts an agent in every cluster, or starts them again with other flags; returns when all lend.
    pub(super) fn start_agents(&mut self, flags: &[&str]) -> Result<()> {
        self.agents.clear();
        let broker = self.broker()?;
        let start = |cluster: &Cluster| {
            let account = cluster.account("sublet", "sublet-agent")?;
            agents::start(cluster, broker, &account, flags)
        };
        let agents = self.clusters.iter().map(start).collect::<Result<Vec<_>>>()?;
        self.agents = agents;
        self.wait_until_all_lend()
    }

    fn wait_until_all_lend(&self) -> Result<()> {
        let all = self.clusters.len();
        let broker = self.broker()?;
        wait_for("clusters that lend", PATIENCE, || {
            let list = broker.ask(&["get", "clusters", "-o", "json"]).ok()?;
            let lend = list.as_array()?.iter().filter(|one| one["lending"] == true);
            (lend.count() == all).then_some(())
        })?;
        Ok(())
    }

    /// Copies the logs of all processes, a folder for each cluster.
    pub(super) fn copy_logs(&self, to: &Path) -> Result<()> {
        for cluster in &self.clusters {
            let folder = to.join(cluster.name());
            fs::create_dir_all(&folder)?;
            for file in fs::read_dir(cluster.folder())? {
                let path = file?.path();
                if let Some(name) =
                    path.file_name().filter(|_| path.extension().is_some_and(|end| end == "log"))
                {
                    fs::copy(&path, folder.join(name))?;
                }
            }
        }
        Ok(())
    }

    /// The agent of the requester, which is the first cluster.
    pub(super) fn agent(&self) -> Result<&Process> {
        self.agents.first().context("no agents yet")
    }

    /// Everything there is in the pair, but for what comes and goes, or stays, by itself: the keys that
    /// are known, and the leases of machines.
    pub(super) fn inventory(&self) -> Result<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        for cluster in [self.requester()?, self.provider()?] {
            let there = inventory(&cluster.api())?.into_iter().filter(|one| !is_other(one));
            all.extend(there.map(|one| format!("{} {one}", cluster.name())));
        }
        Ok(all)
    }

    /// What is there that was not, once all that goes has had time to. What liqoctl left before may go too.
    pub(super) fn leftovers(&self, before: &BTreeSet<String>) -> Result<Vec<String>> {
        let mut left = Vec::new();
        let look = || {
            let now = self.inventory().ok()?;
            left = now.difference(before).cloned().collect();
            left.is_empty().then_some(())
        };
        // What is still there then is counted, and printed.
        drop(wait_for("everything as before", Duration::from_secs(20), look));
        ensure!(self.agents.iter().all(|agent| agent.ended().is_none()), "an agent has ended");
        Ok(left)
    }
}

fn is_other(object: &str) -> bool {
    object.ends_with(" sublet/sublet-liqo-keys") || object.contains(" kube-node-lease/worker")
}
