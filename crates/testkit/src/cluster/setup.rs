//! What a cluster shall be made of.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::binaries::Program;

/// A process of a cluster, in the order in which they are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Keeps the state.
    Etcd,
    /// Serves the API.
    ApiServer,
    /// Runs the controllers. Wanted where deployments, garbage collection, the deletion of
    /// namespaces, service accounts or the signing of certificates matter.
    ControllerManager,
    /// Wanted where pods must be placed.
    Scheduler,
    /// Plays kubelet: wanted where nodes must stay Ready, pods become Running and end when they are
    /// deleted.
    Kwok,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    pub(crate) const fn program(self) -> Program {
        match self {
            Self::Etcd => Program::Etcd,
            Self::ApiServer => Program::ApiServer,
            Self::ControllerManager => Program::ControllerManager,
            Self::Scheduler => Program::Scheduler,
            Self::Kwok => Program::Kwok,
        }
    }
}

/// Which controllers run, where all are wanted: one of them would take simulated nodes for dead.
const ALL_CONTROLLERS: &str = "*,-node-lifecycle-controller";
/// Those that Liqo cannot do without: they sign its certificates, and remove what depended on
/// something that is gone.
const LIQO_CONTROLLERS: &str = "certificatesigningrequest-signing-controller,\
     garbage-collector-controller,namespace-controller,serviceaccount-controller";

/// A cluster that is wanted.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) name: String,
    pub(super) parts: BTreeSet<Part>,
    pub(super) flags: Vec<(Part, String)>,
    /// What the API server writes down of who did what, if it does.
    pub(super) audit_policy: Option<PathBuf>,
    pub(super) controllers: &'static str,
    /// Whether the controllers are started by somebody else, later.
    pub(super) controllers_later: bool,
}

impl Setup {
    /// etcd and an API server: a real API with CRDs, validation, RBAC, watches and conflicts, and
    /// nobody who acts on what is in it.
    pub fn api(name: impl Into<String>) -> Self {
        let parts = BTreeSet::from([Part::Etcd, Part::ApiServer]);
        let (controllers, controllers_later) = (ALL_CONTROLLERS, false);
        let (flags, audit_policy) = (Vec::new(), None);
        Self { name: name.into(), parts, flags, audit_policy, controllers, controllers_later }
    }

    /// Everything: deployments become pods, pods are placed, run and end.
    pub fn whole(name: impl Into<String>) -> Self {
        let parts = BTreeSet::from(Part::ALL);
        Self { parts, ..Self::api(name) }
    }

    /// etcd and an API server for [`Liqo`](crate::Liqo), which starts the few controllers that it
    /// needs when its kinds are there: before, the garbage collector would learn of them late.
    pub fn for_liqo(name: impl Into<String>) -> Self {
        Self { controllers: LIQO_CONTROLLERS, controllers_later: true, ..Self::api(name) }
    }

    /// Everything, for [`Liqo`](crate::Liqo), which starts the controllers when its kinds are there.
    pub fn whole_for_liqo(name: impl Into<String>) -> Self {
        let mut setup = Self { controllers_later: true, ..Self::whole(name) };
        setup.parts.remove(&Part::ControllerManager);
        setup
    }

    /// Whether there are controllers, now or later.
    pub(super) fn has_controllers(&self) -> bool {
        self.controllers_later || self.parts.contains(&Part::ControllerManager)
    }

    /// With one more part.
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.insert(part);
        self
    }

    /// With one more flag for a part, after ours: for most flags, the last one counts.
    #[must_use]
    pub fn flag(mut self, part: Part, flag: impl Into<String>) -> Self {
        self.flags.push((part, flag.into()));
        self
    }

    /// With an audit log ([`audit_log`](super::Cluster::audit_log)) of what this policy says.
    #[must_use]
    pub fn audited(mut self, policy: impl Into<PathBuf>) -> Self {
        self.audit_policy = Some(policy.into());
        self
    }
}
