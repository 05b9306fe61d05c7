//! A cluster: its processes, from the first start to the last kill.
//!
//! It owns everything that belongs to it, a CA, ports, a folder and processes, and shares nothing
//! with other clusters. All of it ends with the value, and with this process if that is killed.

mod flags;
mod host;
mod setup;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

pub use setup::{Part, Setup};

pub(crate) use flags::KWOK_NODE;
pub(crate) use host::Host;

use crate::api::Api;
use crate::binaries::{Binaries, Kit};
use crate::error::{Error, during};
use crate::folder::Folder;
use crate::guardian::Guardian;
use crate::http::Identity;
use crate::kubeconfig::User;
use crate::pki::Pki;
use crate::port::{Port, is_taken, start_on_free};
use crate::process::{Process, Recipe};
use crate::wait::{START_PATIENCE, wait_for};
use flags::{Flags, Ports};

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    name: String,
    parts: BTreeMap<Part, Process>,
    setup: Setup,
    ports: Ports,
    identity: Identity,
    api: Api,
    pki: Pki,
    kubeconfig: PathBuf,
    binaries: &'static Binaries,
    // After the processes, so that they are gone when these go.
    guardian: Arc<Guardian>,
    folder: Folder,
}

impl Cluster {
    /// Starts a cluster, and returns when all of it is ready.
    pub fn start(setup: Setup) -> Result<Self, Error> {
        start_on_free(|| {
            let cluster = Self::new(setup.clone())?;
            match cluster.start_parts() {
                Ok(()) => Ok(cluster),
                Err(error) => {
                    if !is_taken(&error) {
                        cluster.folder.keep();
                    }
                    Err(error)
                }
            }
        })
    }

    /// Starts some clusters at once.
    pub fn start_all(setups: impl IntoIterator<Item = Setup>) -> Result<Vec<Self>, Error> {
        thread::scope(|scope| {
            let starts: Vec<_> =
                setups.into_iter().map(|setup| scope.spawn(move || Self::start(setup))).collect();
            let joined = starts
                .into_iter()
                .map(|start| start.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.collect()
        })
    }

    /// Everything but the processes.
    fn new(setup: Setup) -> Result<Self, Error> {
        let binaries = Binaries::of_this_machine(Kit::Kubernetes)?;
        let folder = Folder::new(&setup.name).map_err(during(|| "making a folder".to_owned()))?;
        let guardian = Guardian::start().map_err(during(|| "starting sh".to_owned()))?;
        let pki = Pki::make(&folder.path().join("pki"))?;
        let [etcd, etcd_peer, api] = Port::reserve_all()?;
        let ports = Ports { etcd, etcd_peer, api };
        let identity = Identity::admin(&pki)?;
        let cluster = Self {
            name: setup.name.clone(),
            parts: BTreeMap::new(),
            api: Api::new(ports.api.number(), identity.clone()),
            ports,
            identity,
            pki,
            kubeconfig: folder.path().join("kubeconfig"),
            binaries,
            guardian: Arc::new(guardian),
            folder,
            setup,
        };
        let user = User::Certificate(&cluster.pki.admin);
        cluster.host().write_kubeconfig(&cluster.kubeconfig, user)?;
        Ok(cluster.with_parts())
    }

    /// With a process for every part; those that were not asked for can be started later.
    fn with_parts(mut self) -> Self {
        let flags = Flags {
            setup: &self.setup,
            ports: &self.ports,
            pki: &self.pki,
            kubeconfig: &self.kubeconfig,
            data: self.folder().join("etcd"),
            audit_log: self.audit_log(),
        };
        let process = |part: Part| {
            let recipe = flags.recipe(part, self.binaries);
            (part, self.process(part.program().name(), recipe))
        };
        self.parts = Part::ALL.map(process).into();
        self
    }

    /// First the state, then the API, then all who use it.
    fn start_parts(&self) -> Result<(), Error> {
        let (bases, users): (Vec<_>, Vec<_>) =
            self.setup.parts.iter().partition(|part| **part <= Part::ApiServer);
        for part in bases {
            self.start_part(part)?;
        }
        for part in &users {
            self.part(*part).start()?;
        }
        users.into_iter().try_for_each(|part| self.start_part(part))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its folder, with a log for every process.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where its API server writes down who did what, if it was [asked to](Setup::audited): one JSON event a line.
    pub fn audit_log(&self) -> PathBuf {
        self.folder().join("audit.log")
    }

    /// The kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where its API is.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api.number())
    }

    /// The certificate of its CA, in a file.
    pub fn ca(&self) -> &Path {
        &self.pki.ca.certificate
    }

    /// Its API, as its administrator.
    pub fn api(&self) -> Api {
        self.api.clone()
    }

    /// The process of a part, to be killed, frozen or looked at.
    pub fn part(&self, part: Part) -> &Process {
        &self.parts[&part]
    }

    /// Starts a part, if it does not run, on its data, and the API where it was: also one that was
    /// killed or left out at first. Returns when it is ready.
    pub fn start_part(&self, part: Part) -> Result<(), Error> {
        start_on_free(|| {
            self.part(part).start()?;
            self.wait_until_ready(part)
        })
    }

    /// A process that belongs to this cluster and does not run yet: an agent, a controller. Its log is
    /// in the cluster's folder; it ends when it is dropped, and at the latest with the cluster.
    pub fn process(&self, name: &str, recipe: Recipe) -> Process {
        Process::new(name, recipe, self.folder(), self.guardian.clone())
    }

    pub(crate) fn binaries(&self) -> &'static Binaries {
        self.binaries
    }

    /// A kubeconfig for a service account, which must exist: whoever uses it may do what RBAC allows
    /// that account, and nothing else.
    pub fn account(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        self.host().account(namespace, name)
    }

    /// What a thread needs of this cluster that may not keep it.
    pub(crate) fn host(&self) -> Host {
        Host {
            name: self.name.clone(),
            api: self.api(),
            port: self.ports.api.number(),
            ca: self.ca().to_owned(),
            folder: self.folder().to_owned(),
            guardian: self.guardian.clone(),
        }
    }

    /// Whether somebody answers on a port, over TLS and with a certificate of this cluster.
    pub(crate) fn answers(&self, port: u16) -> bool {
        Api::new(port, self.identity.clone()).answers("/")
    }

    /// The certificate that servers of this cluster show, and its key.
    pub(crate) fn server_pair(&self) -> (&Path, &Path) {
        (&self.pki.server.certificate, &self.pki.server.key)
    }

    /// Whether a part runs.
    pub fn runs(&self, part: Part) -> bool {
        self.part(part).pid().is_some()
    }

    /// Waits until a part does its work; one that ends instead is an error with its last words.
    pub fn wait_until_ready(&self, part: Part) -> Result<(), Error> {
        let process = self.part(part);
        let look = || match process.check_alive() {
            Ok(()) => self.is_ready(part).then_some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        let what = format!("{} of {}", process.name(), self.name);
        wait_for(&what, START_PATIENCE, look).unwrap_or_else(|late| {
            let (log, tail) = (process.log().to_owned(), process.log_tail());
            Err(Error::NotReady { late, log, tail })
        })
    }

    fn is_ready(&self, part: Part) -> bool {
        let listens_on = match part {
            Part::Etcd => Some(self.ports.etcd.number()),
            Part::ApiServer => Some(self.ports.api.number()),
            Part::ControllerManager | Part::Scheduler | Part::Kwok => self.part(part).port(),
        };
        let Some(at) = listens_on else { return false };
        let (itself, api) = (Api::new(at, self.identity.clone()), self.api());
        match part {
            Part::Etcd | Part::Scheduler | Part::Kwok => itself.serves("/readyz"),
            // The namespace is made just after the server is ready.
            Part::ApiServer => itself.serves("/readyz") && api.serves("/api/v1/namespaces/default"),
            // Without this service account, pods are refused.
            Part::ControllerManager => {
                itself.serves("/healthz")
                    && api.serves("/api/v1/namespaces/default/serviceaccounts/default")
            }
        }
    }
}
