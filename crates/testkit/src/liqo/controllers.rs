//! The command line of each of Liqo's controllers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::objects::{VIRTUAL_KUBELET_OPTIONS, prefixed};
use super::{NAMESPACE, Tier};
use crate::binaries::{Binaries, Program};
use crate::cluster::Cluster;
use crate::error::{Error, during};
use crate::process::{Process, Recipe};

/// Where a server of this kind looks for its certificate, below the folder for temporary files.
const WEBHOOK_CERTIFICATES: &str = "k8s-webhook-server/serving-certs";

/// One of Liqo's own programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// Does most of it: tenants, identities, slices, quotas, virtual nodes.
    Manager,
    /// Copies slices to the provider, and their status back.
    Replicator,
    /// Checks and completes objects, and enforces quotas.
    Webhook,
}

impl Controller {
    const fn program(self) -> Program {
        match self {
            Self::Manager => Program::LiqoControllerManager,
            Self::Replicator => Program::LiqoReplicator,
            Self::Webhook => Program::LiqoWebhook,
        }
    }

    const fn account(self) -> &'static str {
        match self {
            Self::Manager => "controller-manager",
            Self::Replicator => "crd-replicator",
            Self::Webhook => "webhook",
        }
    }
}

/// What all controllers of one cluster share.
pub(super) struct Controllers<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) binaries: &'static Binaries,
    /// Where the webhook listens.
    pub(super) webhook: u16,
}

impl Controllers<'_> {
    /// Those of a tier, which do not run yet.
    pub(super) fn processes(
        &self,
        tier: Tier,
    ) -> Result<BTreeMap<Controller, Arc<Process>>, Error> {
        let wanted = match tier {
            Tier::Fast => &[Controller::Manager, Controller::Replicator][..],
            Tier::Full => &[Controller::Manager, Controller::Replicator, Controller::Webhook],
        };
        let process = |controller: &Controller| {
            let (name, recipe) = (controller.program().name(), self.recipe(*controller)?);
            Ok((*controller, Arc::new(self.cluster.process(name, recipe))))
        };
        wanted.iter().map(process).collect()
    }

    /// Under its own account, and with a folder for temporary files that no other one uses.
    fn recipe(&self, controller: Controller) -> Result<Recipe, Error> {
        let program = controller.program();
        let kubeconfig = self.cluster.account(NAMESPACE, &prefixed(controller.account()))?;
        let temporary = make(&self.cluster.folder().join("tmp").join(program.name()))?;
        let own = match controller {
            Controller::Manager => self.manager(),
            Controller::Replicator => Vec::new(),
            Controller::Webhook => self.webhook(&temporary)?,
        };
        Ok(Recipe::new(self.binaries.path(program))
            .arg(format!("--cluster-id={}", self.cluster.name()))
            .arg("--metrics-address=0")
            .args(own)
            .env("KUBECONFIG", kubeconfig.display().to_string())
            .env("POD_NAMESPACE", NAMESPACE)
            .env("POD_NAME", program.name())
            .env("TMPDIR", temporary.display().to_string()))
    }

    fn manager(&self) -> Vec<String> {
        vec![
            format!("--liqo-namespace={NAMESPACE}"),
            "--networking-enabled=false".to_owned(),
            "--default-limits-enforcement=Soft".to_owned(),
            "--default-node-resources=cpu=4,ephemeral-storage=20Gi,memory=8Gi,pods=110".to_owned(),
            format!("--api-server-address-override={}", self.cluster.url()),
            "--enable-api-server-ip-remapping=false".to_owned(),
            "--global-labels=liqo.io/managed=true".to_owned(),
            "--health-probe-address=0".to_owned(),
            // A lost cluster is noticed within seconds.
            "--foreign-cluster-ping-interval=5s".to_owned(),
        ]
    }

    /// Without the name of a secret for its certificate: it would be written to one and the same
    /// folder for all clusters of the machine.
    fn webhook(&self, temporary: &Path) -> Result<Vec<String>, Error> {
        let folder = make(&temporary.join(WEBHOOK_CERTIFICATES))?;
        let (certificate, key) = self.cluster.server_pair();
        for (from, name) in [(certificate, "tls.crt"), (key, "tls.key")] {
            let to = folder.join(name);
            fs::copy(from, &to).map_err(during(|| format!("making {}", to.display())))?;
        }
        Ok(vec![
            format!("--liqo-namespace={NAMESPACE}"),
            format!("--webhook-port={}", self.webhook),
            "--health-probe-address=0".to_owned(),
            format!("--vk-options-default-template={NAMESPACE}/{VIRTUAL_KUBELET_OPTIONS}"),
            "--enable-resource-enforcement".to_owned(),
        ])
    }
}

fn make(folder: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(folder).map_err(during(|| format!("making {}", folder.display())))?;
    Ok(folder.to_owned())
}
