//! Liqo on a cluster: its own controllers, unpatched, as processes beside the control plane.
//!
//! There are two tiers. *Fast* is the controller manager and the replicator: handshakes, slices and
//! quotas are real, and virtual nodes remain objects. *Full* has the webhook as well, and for each
//! virtual node a virtual kubelet: there are nodes, and quotas are enforced. The network between
//! clusters is switched off: the kernel of a container lacks what it needs.

mod by_hand;
mod chart;
mod controllers;
mod inventory;
mod kubelet;
mod objects;
mod served;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

pub use by_hand::link_by_hand;
pub use controllers::Controller;
pub use inventory::{differences, inventory};

use crate::api::Api;
use crate::binaries::{Binaries, Kit, Program};
use crate::cluster::{Cluster, Part};
use crate::error::{Error, during};
use crate::port::{Port, start_on_free};
use crate::process::Process;
use crate::wait::{START_PATIENCE, wait_for};
use chart::Chart;
use controllers::Controllers;
use kubelet::Kubelet;

/// Where Liqo lives in its cluster.
pub(crate) const NAMESPACE: &str = "liqo";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/liqo/deployments";
const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
/// Where the controller manager puts the key of its cluster, which it makes when it starts.
const KEYS: &str = "/api/v1/namespaces/liqo/secrets/authentication-keys";

/// How much of Liqo runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Controller manager and replicator.
    Fast,
    /// The webhook and virtual kubelets as well.
    Full,
}

/// Liqo on one cluster. Everything ends with this value, and at the latest with the cluster.
#[derive(Debug)]
pub struct Liqo {
    // Before the processes, so that it does not start them again.
    kubelet: Kubelet,
    controllers: BTreeMap<Controller, Arc<Process>>,
    /// Where the webhook listens, also after a restart: the lists of webhooks say so.
    _webhook: Port,
}

impl Liqo {
    /// Installs Liqo on a cluster, and returns when it is at work. The cluster's name is its id; it
    /// is one of [`Setup::for_liqo`](crate::Setup::for_liqo) or
    /// [`Setup::whole_for_liqo`](crate::Setup::whole_for_liqo).
    pub fn start(cluster: &Cluster, tier: Tier) -> Result<Self, Error> {
        let binaries = Binaries::of_this_machine(Kit::Liqo)?;
        let chart = Chart::read(binaries.path(Program::LiqoChart))?;
        Installation { cluster, tier, binaries, chart: &chart }.run()
    }

    /// Installs Liqo on some clusters at once.
    pub fn start_all(clusters: &[Cluster], tier: Tier) -> Result<Vec<Self>, Error> {
        let binaries = Binaries::of_this_machine(Kit::Liqo)?;
        let chart = &Chart::read(binaries.path(Program::LiqoChart))?;
        thread::scope(|scope| {
            let install = |cluster| Installation { cluster, tier, binaries, chart };
            let starts: Vec<_> = clusters
                .iter()
                .map(|cluster| scope.spawn(move || install(cluster).run()))
                .collect();
            let joined = starts
                .into_iter()
                .map(|start| start.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.collect()
        })
    }

    /// The process of a controller, to be killed, frozen or looked at; there is no webhook in the
    /// fast tier. One that is killed stays dead until it is started; one that ends in any other way is
    /// started again after a second, as in a real cluster.
    pub fn controller(&self, controller: Controller) -> Option<&Process> {
        self.controllers.get(&controller).map(Arc::as_ref)
    }

    /// The virtual kubelet of a virtual node, while there is one; likewise.
    pub fn virtual_kubelet(&self, node: &str) -> Option<Arc<Process>> {
        self.kubelet.virtual_kubelet(&format!("vk-{node}"))
    }
}

/// How Liqo gets onto a cluster.
struct Installation<'a> {
    cluster: &'a Cluster,
    tier: Tier,
    binaries: &'static Binaries,
    chart: &'a Chart,
}

impl Installation<'_> {
    fn run(&self) -> Result<Liqo, Error> {
        let api = self.cluster.api();
        self.install_kinds(&api)?;
        // Not before: the garbage collector would learn of the kinds late.
        self.cluster.part(Part::ControllerManager).start()?;
        self.install_objects(&api)?;
        let (webhook, controllers) = start_on_free(|| self.start_controllers())?;
        if self.tier == Tier::Full {
            self.install_webhooks(&api, webhook.number())?;
        }
        let program = self.binaries.path(Program::LiqoVirtualKubelet).to_owned();
        let attended = controllers.values().cloned().collect();
        let kubelet = Kubelet::start(self.cluster.host(), program, attended);
        Ok(Liqo { kubelet, controllers, _webhook: webhook })
    }

    /// Starts the controllers, and returns when they are at work; and where the webhook listens.
    fn start_controllers(&self) -> Result<(Port, BTreeMap<Controller, Arc<Process>>), Error> {
        let port = Port::reserve()?;
        let webhook = port.number();
        let controllers = Controllers { cluster: self.cluster, binaries: self.binaries, webhook };
        let processes = controllers.processes(self.tier)?;
        processes.values().try_for_each(|process| process.start())?;
        self.cluster.start_part(Part::ControllerManager)?;
        for (controller, process) in &processes {
            self.wait_until_at_work(*controller, process, webhook)?;
        }
        // Not before: they say on which port the webhook listens.
        self.cluster.api().create_all(DEPLOYMENTS, &controllers.deployments(self.tier))?;
        Ok((port, processes))
    }

    /// Liqo's kinds; returns when all of them are served and known to be, which is not the same: a
    /// controller asks once, when it starts, and does without what it was not told.
    fn install_kinds(&self, api: &Api) -> Result<(), Error> {
        api.create_all(DEFINITIONS, self.chart.kinds())?;
        for kind in self.chart.kinds() {
            let spec = &kind["spec"];
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (group, plural) = (word(&spec["group"]), word(&spec["names"]["plural"]));
            let version = word(&spec["versions"][0]["name"]);
            let path = format!("/apis/{group}/{version}");
            wait_for(&format!("{plural} of {}", self.cluster.name()), START_PATIENCE, || {
                let known = api.get(&path).ok()?;
                let mut known = known["resources"].as_array()?.iter();
                known.find(|resource| resource["name"] == plural)?;
                api.serves(&format!("{path}/{plural}?limit=1")).then_some(())
            })?;
        }
        Ok(())
    }

    fn install_objects(&self, api: &Api) -> Result<(), Error> {
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        api.create("/api/v1/namespaces", &namespace)?;
        let objects = objects::objects(self.chart, self.cluster.name())?;
        api.each(&objects, |connection, object| {
            let body = object.value.to_string();
            let request = crate::api::creating(&object.collection, body.as_bytes());
            crate::api::exchange(connection, request).map(drop)
        })
    }

    /// The lists of webhooks, which name this machine instead of a service in the cluster. Only when
    /// the webhook answers: without it, what they are about is refused.
    fn install_webhooks(&self, api: &Api, port: u16) -> Result<(), Error> {
        let ca = self.cluster.ca();
        let ca = fs::read(ca).map_err(during(|| format!("reading {}", ca.display())))?;
        let ca = BASE64.encode(ca);
        for mut list in self.chart.webhooks()? {
            for webhook in list["webhooks"].as_array_mut().into_iter().flatten() {
                let client = &mut webhook["clientConfig"];
                let path = client["service"]["path"].as_str().unwrap_or_default().to_owned();
                *client =
                    json!({ "url": format!("https://127.0.0.1:{port}{path}"), "caBundle": ca });
            }
            let kind = list["kind"].as_str().unwrap_or_default().to_lowercase();
            api.create(&format!("{ADMISSION}/{kind}s"), &list)?;
        }
        Ok(())
    }

    /// Waits until a controller shows that it does something; one that ends instead is an error.
    fn wait_until_at_work(
        &self,
        controller: Controller,
        process: &Process,
        webhook: u16,
    ) -> Result<(), Error> {
        let api = self.cluster.api();
        let at_work = || match controller {
            Controller::Manager => {
                api.get(KEYS).is_ok_and(|keys| keys["data"]["privateKey"].is_string())
            }
            // It shows nothing until there is something to replicate.
            Controller::Replicator => true,
            Controller::Webhook => self.cluster.answers(webhook),
        };
        let look = || match process.check_alive() {
            Ok(()) => at_work().then_some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        let what = format!("{} of {}", process.name(), self.cluster.name());
        wait_for(&what, START_PATIENCE, look).unwrap_or_else(|late| {
            let (log, tail) = (process.log().to_owned(), process.log_tail());
            Err(Error::NotReady { late, log, tail })
        })
    }
}
