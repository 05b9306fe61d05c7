//! The two clusters under every world of these tests: Rome and Milan, with Liqo, and with what an agent comes
//! with.

use std::path::{Path, PathBuf};
use std::thread;

use sublet_testkit::{Cluster, Liqo, Setup, Tier};

/// Starts both, with these manifests of the deployment in each: all at once, because whoever waits for one of
/// them leaves a core idle.
pub(super) fn start(tier: Tier, manifests: &[&str]) -> (Vec<Cluster>, Vec<Liqo>) {
    let [rome, milan] = ["rome", "milan"].map(Setup::for_liqo);
    let lends = milan.audited(deployment().join("agent/audit-policy.yaml"));
    let clusters = Cluster::start_all([rome, lends]).unwrap();
    let liqo = Liqo::start_all(&clusters, tier).unwrap();
    thread::scope(|scope| {
        for cluster in &clusters {
            scope.spawn(|| install(cluster, manifests));
        }
    });
    (clusters, liqo)
}

fn deployment() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn install(cluster: &Cluster, manifests: &[&str]) {
    let files = manifests.iter().map(|file| deployment().join(file).to_str().unwrap().to_owned());
    let flags: Vec<_> = files.map(|file| format!("--filename={file}")).collect();
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    cluster.kubectl(&[&["apply"], &flags[..]].concat()).unwrap();
    cluster
        .kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"])
        .unwrap();
}
