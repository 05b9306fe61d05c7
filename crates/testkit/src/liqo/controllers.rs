//! The command line of each of Liqo's controllers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::objects::{VIRTUAL_KUBELET_OPTIONS, metadata, prefixed};
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

    /// As Liqo's images call it.
    const fn command(self) -> &'static str {
        match self {
            Self::Manager => "liqo-controller-manager",
            Self::Replicator => "crd-replicator",
            Self::Webhook => "webhook",
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
        let process = |controller: &Controller| {
            let (name, recipe) = (controller.program().name(), self.recipe(*controller)?);
            Ok((*controller, Arc::new(self.cluster.process(name, recipe))))
        };
        wanted(tier).iter().map(process).collect()
    }

    /// Under its own account, and with a folder for temporary files that no other one uses.
    fn recipe(&self, controller: Controller) -> Result<Recipe, Error> {
        let program = controller.program();
        let kubeconfig = self.cluster.account(NAMESPACE, &prefixed(controller.account()))?;
        let temporary = make(&self.cluster.folder().join("tmp").join(program.name()))?;
        if controller == Controller::Webhook {
            self.put_certificate(&temporary)?;
        }
        Ok(Recipe::new(self.binaries.path(program))
            .args(self.arguments(controller))
            .env("KUBECONFIG", kubeconfig.display().to_string())
            .env("POD_NAMESPACE", NAMESPACE)
            .env("POD_NAME", program.name())
            .env("TMPDIR", temporary.display().to_string()))
    }

    /// The Deployments that say how the controllers of a tier were started. Nobody makes pods of them: the
    /// processes are beside the cluster.
    pub(super) fn deployments(&self, tier: Tier) -> Vec<Value> {
        wanted(tier).iter().map(|controller| self.deployment(*controller)).collect()
    }

    fn deployment(&self, controller: Controller) -> Value {
        let component = controller.account();
        let labels = metadata(&prefixed(component), component)["labels"].clone();
        let container = json!({
            "name": component,
            "image": "simulated",
            "command": [format!("/usr/bin/{}", controller.command())],
            "args": self.arguments(controller),
        });
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata(&prefixed(component), component),
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels },
                              "spec": { "containers": [container] } },
            },
        })
    }

    fn arguments(&self, controller: Controller) -> Vec<String> {
        let own = match controller {
            Controller::Manager => self.manager(),
            Controller::Replicator => Vec::new(),
            Controller::Webhook => self.webhook(),
        };
        let all =
            [format!("--cluster-id={}", self.cluster.name()), "--metrics-address=0".to_owned()];
        all.into_iter().chain(own).collect()
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
    fn webhook(&self) -> Vec<String> {
        vec![
            format!("--liqo-namespace={NAMESPACE}"),
            format!("--webhook-port={}", self.webhook),
            "--health-probe-address=0".to_owned(),
            format!("--vk-options-default-template={NAMESPACE}/{VIRTUAL_KUBELET_OPTIONS}"),
            "--enable-resource-enforcement".to_owned(),
        ]
    }

    fn put_certificate(&self, temporary: &Path) -> Result<(), Error> {
        let folder = make(&temporary.join(WEBHOOK_CERTIFICATES))?;
        let (certificate, key) = self.cluster.server_pair();
        for (from, name) in [(certificate, "tls.crt"), (key, "tls.key")] {
            let to = folder.join(name);
            fs::copy(from, &to).map_err(during(|| format!("making {}", to.display())))?;
        }
        Ok(())
    }
}

const fn wanted(tier: Tier) -> &'static [Controller] {
    match tier {
        Tier::Fast => &[Controller::Manager, Controller::Replicator],
        Tier::Full => &[Controller::Manager, Controller::Replicator, Controller::Webhook],
    }
}

fn make(folder: &Path) -> Result<PathBuf, Error> {
    fs::create_dir_all(folder).map_err(during(|| format!("making {}", folder.display())))?;
    Ok(folder.to_owned())
}
