//! The versions, and what each program is called and built from. A new version is a change of this
//! file alone: the cache keeps releases side by side.

/// All of Kubernetes has one version; its libraries have the same with a 0 in front.
pub(super) const KUBERNETES: Version = Version { major: 1, minor: 35, patch: 8 };
/// Streaming lists and consistent reads from cache need 3.6.
pub(super) const ETCD: &str = "v3.6.16";
/// It keeps simulated nodes and pods alive.
pub(super) const KWOK: &str = "v0.7.0";

/// The system that lends one cluster's resources to another: its controllers, unpatched.
pub(super) const LIQO: &str = "v1.2.0";
/// Where Liqo's module is published.
pub(super) const LIQO_MODULE: &str = "github.com/liqotech/liqo";

/// A version of Kubernetes.
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) patch: u32,
}

/// Programs that are wanted together, and may be had or missing together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kit {
    /// What clusters are made of.
    Kubernetes,
    /// Liqo's controllers, and the chart that says how they are installed.
    Liqo,
    /// Liqo's command line, which few want.
    Liqoctl,
}

impl Kit {
    /// Its programs in the order in which they are built: the largest first, so that a build that
    /// cannot work fails early, and those after it find most of its packages compiled.
    pub const fn programs(self) -> &'static [Program] {
        match self {
            Self::Kubernetes => &[
                Program::ApiServer,
                Program::ControllerManager,
                Program::Scheduler,
                Program::Kubectl,
                Program::Etcd,
                Program::Kwok,
            ],
            Self::Liqo => &[
                Program::LiqoChart,
                Program::LiqoControllerManager,
                Program::LiqoReplicator,
                Program::LiqoVirtualKubelet,
                Program::LiqoWebhook,
            ],
            Self::Liqoctl => &[Program::Liqoctl],
        }
    }

    /// The name of the folder that holds exactly these versions.
    pub fn release(self) -> String {
        let Version { major, minor, patch } = KUBERNETES;
        match self {
            Self::Kubernetes => {
                format!("kubernetes-v{major}.{minor}.{patch}-etcd-{ETCD}-kwok-{KWOK}")
            }
            Self::Liqo | Self::Liqoctl => format!("liqo-{LIQO}"),
        }
    }

    /// The command that brings them.
    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::Kubernetes | Self::Liqo => "cargo xtask kube",
            Self::Liqoctl => "cargo xtask kube --liqoctl",
        }
    }
}

/// What a cluster is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// Keeps the state.
    Etcd,
    /// Serves the API.
    ApiServer,
    /// Runs the controllers: deployments, garbage collection, namespaces, service accounts.
    ControllerManager,
    /// Places pods on nodes.
    Scheduler,
    /// The command line.
    Kubectl,
    /// Plays kubelet for nodes that do not exist.
    Kwok,
    /// No program but a folder: Liqo's kinds, roles and settings, as they come with its source.
    LiqoChart,
    /// Liqo's own controllers.
    LiqoControllerManager,
    /// Copies Liqo's objects from one cluster to another.
    LiqoReplicator,
    /// Is a node to one cluster, and uses another.
    LiqoVirtualKubelet,
    /// Checks and completes Liqo's objects, and keeps guests within their quota.
    LiqoWebhook,
    /// Liqo's command line.
    Liqoctl,
}

impl Program {
    /// The name of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
            Self::LiqoChart => "liqo-chart",
            Self::LiqoControllerManager => "liqo-controller-manager",
            Self::LiqoReplicator => "crd-replicator",
            Self::LiqoVirtualKubelet => "virtual-kubelet",
            Self::LiqoWebhook => "webhook",
            Self::Liqoctl => "liqoctl",
        }
    }

    /// What it is wanted with.
    pub(super) const fn kit(self) -> Kit {
        match self {
            Self::Etcd
            | Self::ApiServer
            | Self::ControllerManager
            | Self::Scheduler
            | Self::Kubectl
            | Self::Kwok => Kit::Kubernetes,
            Self::LiqoChart
            | Self::LiqoControllerManager
            | Self::LiqoReplicator
            | Self::LiqoVirtualKubelet
            | Self::LiqoWebhook => Kit::Liqo,
            Self::Liqoctl => Kit::Liqoctl,
        }
    }

    /// The Go package that it is built from.
    pub(super) fn package(self) -> String {
        match (self, self.kit()) {
            (Self::Etcd, _) => "go.etcd.io/etcd/server/v3".to_owned(),
            (Self::Kwok, _) => "sigs.k8s.io/kwok/cmd/kwok".to_owned(),
            (_, Kit::Kubernetes) => format!("k8s.io/kubernetes/cmd/{}", self.name()),
            (_, Kit::Liqo | Kit::Liqoctl) => format!("{LIQO_MODULE}/cmd/{}", self.name()),
        }
    }

    /// How its answer to `--version` begins its version, if it is a part of Kubernetes.
    pub(super) fn kubernetes_minor(self) -> Option<String> {
        let Version { major, minor, .. } = KUBERNETES;
        let part = self.kit() == Kit::Kubernetes && !matches!(self, Self::Etcd | Self::Kwok);
        part.then(|| format!("v{major}.{minor}."))
    }
}
