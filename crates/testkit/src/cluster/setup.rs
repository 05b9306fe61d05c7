//! What a cluster shall be made of.

use std::collections::BTreeSet;

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

/// A cluster that is wanted.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) name: String,
    pub(super) parts: BTreeSet<Part>,
    pub(super) flags: Vec<(Part, String)>,
}

impl Setup {
    /// etcd and an API server: a real API with CRDs, validation, RBAC, watches and conflicts, and
    /// nobody who acts on what is in it.
    pub fn api(name: impl Into<String>) -> Self {
        let parts = BTreeSet::from([Part::Etcd, Part::ApiServer]);
        Self { name: name.into(), parts, flags: Vec::new() }
    }

    /// Everything: deployments become pods, pods are placed, run and end.
    pub fn whole(name: impl Into<String>) -> Self {
        let parts = BTreeSet::from(Part::ALL);
        Self { parts, ..Self::api(name) }
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
}
