//! The command line of each part of a cluster.

use std::path::{Path, PathBuf};

use super::setup::{Part, Setup};
use crate::binaries::Binaries;
use crate::pki::Pki;
use crate::port::Port;
use crate::process::Recipe;

/// Nodes with this annotation are KWOK's; others are left alone, so that a test can have nodes of its
/// own making, and so that virtual nodes keep their own kubelet.
pub(crate) const KWOK_NODE: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// Where the state and the API are, also after a restart. The other parts listen somewhere else each
/// time that they are started: nobody but the testkit looks for them.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) etcd: Port,
    pub(super) etcd_peer: Port,
    pub(super) api: Port,
}

/// What all parts of one cluster share.
pub(super) struct Flags<'a> {
    pub(super) setup: &'a Setup,
    pub(super) ports: &'a Ports,
    pub(super) pki: &'a Pki,
    pub(super) kubeconfig: &'a Path,
    pub(super) data: PathBuf,
    pub(super) audit_log: PathBuf,
}

impl Flags<'_> {
    /// How a part is started.
    pub(super) fn recipe(&self, part: Part, binaries: &Binaries) -> Recipe {
        let own = match part {
            Part::Etcd => self.etcd(),
            Part::ApiServer => self.api_server(),
            Part::ControllerManager => self.controller_manager(),
            Part::Scheduler => self.scheduler(),
            Part::Kwok => self.kwok(),
        };
        let others = self.setup.flags.iter().filter(|(of, _)| *of == part);
        let recipe = Recipe::new(binaries.path(part.program()))
            .args(own)
            .args(others.map(|(_, flag)| flag.clone()));
        match part {
            Part::Etcd | Part::ApiServer => recipe,
            Part::ControllerManager | Part::Scheduler => recipe.port("--secure-port="),
            Part::Kwok => recipe.port("--server-address=127.0.0.1:"),
        }
    }

    fn etcd(&self) -> Vec<String> {
        let Ports { etcd, etcd_peer, .. } = self.ports;
        let client = format!("https://127.0.0.1:{}", etcd.number());
        let peer = format!("http://127.0.0.1:{}", etcd_peer.number());
        vec![
            "--name=main".to_owned(),
            path("--data-dir", &self.data),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=main={peer}"),
            // Only who belongs to this cluster may read and write, should ports ever meet.
            "--client-cert-auth".to_owned(),
            path("--trusted-ca-file", &self.pki.ca.certificate),
            path("--cert-file", &self.pki.server.certificate),
            path("--key-file", &self.pki.server.key),
            // What is written survives the process, which is all that tests kill.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    fn api_server(&self) -> Vec<String> {
        let Ports { etcd, api, .. } = self.ports;
        let Pki { ca, admin, accounts, .. } = self.pki;
        let mut flags = self.serving();
        flags.extend([
            format!("--secure-port={}", api.number()),
            format!("--etcd-servers=https://127.0.0.1:{}", etcd.number()),
            path("--etcd-cafile", &ca.certificate),
            path("--etcd-certfile", &admin.certificate),
            path("--etcd-keyfile", &admin.key),
            path("--client-ca-file", &ca.certificate),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            path("--service-account-key-file", &accounts.public),
            path("--service-account-signing-key-file", &accounts.private),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--disable-admission-plugins={}", self.admission_off()),
        ]);
        flags.extend(self.auditing());
        flags
    }

    fn auditing(&self) -> Vec<String> {
        let log = path("--audit-log-path", &self.audit_log);
        let policy = self.setup.audit_policy.iter();
        policy.flat_map(|policy| [path("--audit-policy-file", policy), log.clone()]).collect()
    }

    /// Nodes are born not ready, and pods want the service account that a controller makes.
    fn admission_off(&self) -> &'static str {
        if self.setup.has_controllers() {
            "TaintNodesByCondition"
        } else {
            "TaintNodesByCondition,ServiceAccount"
        }
    }

    fn controller_manager(&self) -> Vec<String> {
        let Pki { ca, accounts, .. } = self.pki;
        let mut flags = self.serving();
        flags.extend([
            path("--kubeconfig", self.kubeconfig),
            "--leader-elect=false".to_owned(),
            format!("--controllers={}", self.setup.controllers),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            path("--service-account-private-key-file", &accounts.private),
            path("--root-ca-file", &ca.certificate),
            path("--cluster-signing-cert-file", &ca.certificate),
            path("--cluster-signing-key-file", &ca.key),
        ]);
        flags
    }

    fn scheduler(&self) -> Vec<String> {
        let mut flags = self.serving();
        flags.extend([
            path("--kubeconfig", self.kubeconfig),
            "--leader-elect=false".to_owned(),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ]);
        flags
    }

    fn kwok(&self) -> Vec<String> {
        let (annotation, value) = KWOK_NODE;
        vec![
            path("--kubeconfig", self.kubeconfig),
            format!("--manage-nodes-with-annotation-selector={annotation}={value}"),
            path("--tls-cert-file", &self.pki.server.certificate),
            path("--tls-private-key-file", &self.pki.server.key),
        ]
    }

    /// How a part of Kubernetes serves: on loopback, with the cluster's certificate.
    fn serving(&self) -> Vec<String> {
        vec![
            "--bind-address=127.0.0.1".to_owned(),
            path("--tls-cert-file", &self.pki.server.certificate),
            path("--tls-private-key-file", &self.pki.server.key),
        ]
    }
}

fn path(flag: &str, path: &Path) -> String {
    format!("{flag}={}", path.display())
}
