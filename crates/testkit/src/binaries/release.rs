//! The versions, and what each program is called and built from. A new version is a change of this
//! file alone: the cache keeps releases side by side.

/// All of Kubernetes has one version; its libraries have the same with a 0 in front.
pub(super) const KUBERNETES: Version = Version { major: 1, minor: 35, patch: 8 };
/// Streaming lists and consistent reads from cache need 3.6.
pub(super) const ETCD: &str = "v3.6.16";
/// It keeps simulated nodes and pods alive.
pub(super) const KWOK: &str = "v0.7.0";

/// A version of Kubernetes.
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) patch: u32,
}

/// The name of the folder that holds exactly these versions.
pub fn release() -> String {
    let Version { major, minor, patch } = KUBERNETES;
    format!("kubernetes-v{major}.{minor}.{patch}-etcd-{ETCD}-kwok-{KWOK}")
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
}

impl Program {
    /// All of them, in the order in which they are built: the largest first, so that a build that
    /// cannot work fails early, and those after it find most of its packages compiled.
    pub const ALL: [Self; 6] = [
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubectl,
        Self::Etcd,
        Self::Kwok,
    ];

    /// The name of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubectl => "kubectl",
            Self::Kwok => "kwok",
        }
    }

    /// The Go package that it is built from.
    pub(super) fn package(self) -> String {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3".to_owned(),
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok".to_owned(),
            _ => format!("k8s.io/kubernetes/cmd/{}", self.name()),
        }
    }

    /// How its answer to `--version` begins its version, if it is a part of Kubernetes.
    pub(super) fn kubernetes_minor(self) -> Option<String> {
        let Version { major, minor, .. } = KUBERNETES;
        let others = matches!(self, Self::Etcd | Self::Kwok);
        (!others).then(|| format!("v{major}.{minor}."))
    }
}
