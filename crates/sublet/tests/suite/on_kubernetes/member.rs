//! A cluster that takes part: its kinds and its role are installed, and its agent is a process of its
//! own, with its own account.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::Value;
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Cluster, Process, Recipe, wait_for};

use crate::broker::Town;

/// What shop asks for.
pub(super) const REQUEST: &str = "\
apiVersion: rear.fluidos.eu/v1alpha1
kind: ResourceRequest
metadata:
  name: burst
  namespace: default
spec:
  requestedCPU: \"4\"
  requestedMemory: 8Gi
  duration: 1h
";

const RBAC: &str = include_str!("../../../../../deploy/agent/rbac.yaml");
const NAMESPACE: &str = "sublet";

/// A cluster that takes part.
pub(crate) struct Member {
    pub(crate) cluster: Cluster,
    kubeconfig: PathBuf,
}

impl Member {
    /// Installs what an agent needs, as the guide says.
    pub(crate) fn new(cluster: Cluster, town: &Town) -> Self {
        cluster.apply_crds(&town.anna.ok("crds --for agent")).unwrap();
        cluster.apply(RBAC).unwrap();
        let kubeconfig = cluster.account(NAMESPACE, "sublet-agent").unwrap();
        Self { cluster, kubeconfig }
    }

    /// An agent that does not run yet, with more arguments.
    pub(crate) fn agent(&self, town: &Town, name: &str, more: &[&str]) -> Process {
        let certs = town.anna.path("certs").join(self.cluster.name());
        let recipe = Recipe::new(env!("CARGO_BIN_EXE_sublet"))
            .args(["agent", "--broker-transport=http", "--metrics-secure=false"])
            .arg(format!("--broker-url={}", town.url))
            .arg(format!("--broker-cert-path={}", certs.display()))
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .arg(format!("--advertisement-namespace={NAMESPACE}"))
            .args(["--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0"])
            .arg(format!("--address-file={}", self.at(name).display()))
            .args(more.iter().copied());
        self.cluster.process(name, recipe)
    }

    /// Where an agent serves what, by its own word.
    pub(crate) fn address(&self, agent: &Process, what: &str) -> String {
        let path = self.at(agent.name());
        let found = wait_for("the agent's addresses", PATIENCE, || {
            let at: Value = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
            at[what].as_str().map(str::to_owned)
        });
        found.unwrap_or_else(|late| panic!("{late}\n{}", agent.log_tail()))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.cluster.folder().join(format!("{name}.at.json"))
    }

    /// Deletes something, and returns when it is gone.
    #[track_caller]
    pub(crate) fn delete(&self, kind: &str, name: &str) {
        let timeout = format!("--timeout={}s", PATIENCE.as_secs());
        self.cluster.kubectl(&["delete", kind, name, &timeout]).unwrap();
    }

    /// An object of ours in the agents' namespace, if it is there.
    pub(crate) fn object(&self, kind: &str, name: &str) -> Option<Value> {
        let all = format!("/apis/rear.fluidos.eu/v1alpha1/namespaces/{NAMESPACE}/{kind}s");
        self.cluster.api().get(&format!("{all}/{name}")).ok()
    }
}

/// Waits until there is something; if it does not come, shows what the agent said last.
#[track_caller]
pub(crate) fn comes<T>(agent: &Process, what: &str, look: impl FnMut() -> Option<T>) -> T {
    let found = wait_for(what, PATIENCE, look);
    found.unwrap_or_else(|late| panic!("{late}; the agent's log ends:\n{}", agent.log_tail()))
}

/// A cluster as the operator sees it at the broker, if it has advertised.
pub(crate) fn at_broker(town: &Town, cluster: &str) -> Option<Value> {
    let list = town.asked("get clusters -o json");
    list.as_array()?.iter().find(|one| one["clusterID"] == cluster).cloned()
}

/// A page of an agent, over plain HTTP.
pub(crate) fn page(at: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(at).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}
