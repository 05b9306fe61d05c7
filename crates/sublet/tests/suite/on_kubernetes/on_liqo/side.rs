//! A cluster with Liqo and an agent, and what there is in it.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use sublet_testkit::{
    Cluster, Liqo, Nodes, Process, Setup, Tier, differences, inventory, wait_for,
};

use super::super::member::{Member, at_broker, comes};
use crate::broker::Town;

const RBAC: &str = include_str!("../../../../../../deploy/agent/rbac-liqo.yaml");
pub(super) const REQUESTS: &str =
    "/apis/rear.fluidos.eu/v1alpha1/namespaces/default/resourcerequests";

/// How long everything may take to go: after an outage, Kubernetes and Liqo wait ever longer before they
/// try again.
const END_PATIENCE: Duration = Duration::from_mins(4);

/// A cluster with Liqo and an agent.
pub(super) struct Side {
    // Before the cluster that they are processes of, so that they end first.
    pub(super) agent: Process,
    pub(super) liqo: Liqo,
    pub(super) member: Member,
}

/// Starts clusters of this kind, each with so many cores, Liqo and an agent that keeps no link for
/// longer than it must; returns when all lend.
pub(super) fn start(town: &Town, setup: fn(&str) -> Setup, all: &[(&str, &str)]) -> Vec<Side> {
    start_with(town, setup, all, &[])
}

/// The same with more flags for the agents.
pub(super) fn start_with(
    town: &Town,
    setup: fn(&str) -> Setup,
    all: &[(&str, &str)],
    flags: &[&str],
) -> Vec<Side> {
    let clusters = Cluster::start_all(all.iter().map(|(name, _)| setup(name))).unwrap();
    let sides = join(town, clusters, all, (RBAC, &[&["--link-idle=1s"], flags].concat()));
    for side in &sides {
        lends(town, side, true);
    }
    sides
}

/// Liqo and agents with this role and these flags in clusters that run.
pub(super) fn join(
    town: &Town,
    clusters: Vec<Cluster>,
    all: &[(&str, &str)],
    (role, flags): (&str, &[&str]),
) -> Vec<Side> {
    let liqo = Liqo::start_all(&clusters, Tier::Full).unwrap();
    let join = |cluster: Cluster, liqo: Liqo, cores: &str| {
        cluster.add_nodes(&Nodes::new("worker", 1).cpu(cores)).unwrap();
        let member = Member::new(cluster, town);
        member.cluster.apply(role).unwrap();
        let agent = member.agent(town, "agent", &[&["--log-level=debug"], flags].concat());
        agent.start().unwrap();
        Side { agent, liqo, member }
    };
    // At once: what kubectl waits for in one cluster leaves a core for the other.
    thread::scope(|scope| {
        let all = clusters.into_iter().zip(liqo).zip(all);
        let joining = all.map(|((cluster, liqo), (_, cores))| {
            let join = &join;
            scope.spawn(move || join(cluster, liqo, cores))
        });
        let joining: Vec<_> = joining.collect();
        joining.into_iter().map(|side| side.join().unwrap()).collect()
    })
}

/// Waits until the broker and the object for people say so.
pub(super) fn lends(town: &Town, side: &Side, lends: bool) {
    let Side { member, agent, .. } = side;
    let status = if lends { "True" } else { "False" };
    comes(agent, &format!("a cluster that lends: {lends}"), || {
        let told = at_broker(town, member.cluster.name())?;
        let object = member.object("advertisement", "cluster-advertisement")?;
        let conditions = object["status"]["conditions"].as_array()?;
        let lending = conditions.iter().find(|one| one["type"] == "Lending")?;
        (told["lending"] == lends && lending["status"] == status).then_some(())
    });
}

impl Side {
    pub(super) fn name(&self) -> &str {
        self.member.cluster.name()
    }

    /// What is at a path of its API, if it answers.
    pub(super) fn get(&self, path: &str) -> Option<Value> {
        self.member.cluster.api().get(path).ok()
    }

    /// Is there nothing at a path, by the API server's own word?
    pub(super) fn is_gone(&self, path: &str) -> bool {
        self.member.cluster.api().get(path).is_err_and(|error| error.status() == Some(404))
    }

    /// A request of this name.
    pub(super) fn request(&self, name: &str) -> Option<Value> {
        self.get(&format!("{REQUESTS}/{name}"))
    }

    /// Waits until a request is usable; its reservation.
    #[track_caller]
    pub(super) fn usable(&self, name: &str) -> String {
        let usable = comes(&self.agent, &format!("{name} to be usable"), || {
            self.request(name).filter(|found| found["status"]["phase"] == "Active")
        });
        usable["status"]["reservationName"].as_str().unwrap().to_owned()
    }

    /// As in a cluster, an agent that ends by itself is started again: one that starts just when its API
    /// server goes away ends, and says why.
    pub(super) fn attend(&self) {
        if let Some(status) = self.agent.ended() {
            eprintln!("the agent of {} ended ({status}), and is started again", self.name());
            self.agent.start().unwrap();
        }
    }

    /// Everything there is, but for what comes and goes, or stays, by itself.
    pub(super) fn inventory(&self) -> BTreeSet<String> {
        let mut all = inventory(&self.member.cluster.api()).unwrap();
        all.retain(|object| !is_other(object));
        all
    }

    /// Waits until there is exactly what there was.
    #[track_caller]
    pub(super) fn wait_until_as(&self, before: &BTreeSet<String>) {
        let mut left = Vec::new();
        let again = wait_for("everything as before", END_PATIENCE, || {
            self.attend();
            let api = self.member.cluster.api();
            left = differences(&api, before, |object| !is_other(object)).unwrap();
            left.is_empty().then_some(())
        });
        assert!(again.is_ok(), "{}: {left:#?}\n{}", self.name(), self.agent.log_tail());
    }
}

/// The keys that are known, and the lease of a machine.
fn is_other(object: &str) -> bool {
    object.ends_with(" sublet/sublet-liqo-keys") || object.contains(" kube-node-lease/worker")
}
