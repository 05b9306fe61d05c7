//! An agent in every cluster: `sublet agent` as a process of its own, under the role and the account
//! that `deploy/agent` gives it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sublet_testkit::{Cluster, Process, Recipe};

use crate::broker::Broker;

const RBAC: &str = include_str!("../../../../deploy/agent/rbac.yaml");
const RBAC_LIQO: &str = include_str!("../../../../deploy/agent/rbac-liqo.yaml");
const NAMESPACE: &str = "sublet";

/// Where an agent serves its metrics, by its own word.
pub(crate) fn metrics_at(at: &Path) -> Option<String> {
    let at: serde_json::Value = serde_json::from_slice(&std::fs::read(at).ok()?).ok()?;
    at["metrics"].as_str().map(str::to_owned)
}

/// Installs what an agent needs; the kubeconfig of its account.
pub(crate) fn prepare(cluster: &Cluster, broker: &Broker) -> Result<PathBuf> {
    cluster.apply_crds(&kinds(broker.sublet_path())?)?;
    cluster.apply(RBAC)?;
    Ok(cluster.account(NAMESPACE, "sublet-agent")?)
}

/// As [`prepare`], in a cluster that has Liqo.
pub(crate) fn prepare_for_liqo(cluster: &Cluster, broker: &Broker) -> Result<PathBuf> {
    let account = prepare(cluster, broker)?;
    cluster.apply(RBAC_LIQO)?;
    Ok(account)
}

/// Starts it under its account, with more flags.
pub(crate) fn start(
    cluster: &Cluster,
    broker: &Broker,
    account: &Path,
    more: &[&str],
) -> Result<Process> {
    let recipe = Recipe::new(broker.sublet_path())
        .args(["agent", "--broker-transport=http", "--health-probe-bind-address=0"])
        .arg(format!("--broker-url={}", broker.url()))
        .arg(format!("--broker-cert-path={}", broker.certificate(cluster).display()))
        .arg(format!("--kubeconfig={}", account.display()))
        .arg(format!("--advertisement-namespace={NAMESPACE}"))
        .args(more.iter().copied());
    let agent = cluster.process("agent", recipe);
    agent.start()?;
    Ok(agent)
}

/// The definitions of the kinds, as the program prints them.
fn kinds(sublet: &Path) -> Result<String> {
    let output = Command::new(sublet).args(["crds", "--for", "agent"]).output();
    let output = output.with_context(|| format!("starting {}", sublet.display()))?;
    ensure!(output.status.success(), "sublet crds failed");
    Ok(String::from_utf8(output.stdout)?)
}
