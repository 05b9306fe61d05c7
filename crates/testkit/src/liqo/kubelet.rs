//! Plays kubelet for Liqo: a thread that starts a virtual kubelet for each Deployment that Liqo makes
//! for one, stops it when the Deployment is gone, and starts again what ended by itself, on another port:
//! somebody may have taken the one that it had.
//!
//! What a test has killed stays dead until the test starts it again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::api::Api;
use crate::cluster::Host;
use crate::error::{Error, during};
use crate::http::Connection;
use crate::process::{Process, Recipe, Signal};
use crate::wait::{Stopwatch, pause};

/// How often it looks at its processes, and whether the Deployments have changed.
const LOOK_AGAIN: Duration = Duration::from_millis(40);
/// How soon what ended by itself is started again.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// How long one that shall end may take before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// The Deployments of virtual kubelets, in all namespaces.
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments\
     ?labelSelector=offloading.liqo.io%2Fcomponent%3Dvirtual-kubelet";

/// A process that runs because it was started, and since when.
#[derive(Debug)]
struct Attended {
    process: Arc<Process>,
    since: Stopwatch,
}

impl Attended {
    /// Starts it again if it ended by itself, and not just now.
    fn attend(&mut self) -> Result<(), Error> {
        if self.process.ended().is_some() && self.since.elapsed() >= RESTART_AFTER {
            self.since = Stopwatch::start();
            self.process.start()?;
        }
        Ok(())
    }
}

/// A virtual kubelet, and which Deployment, in which form, it was started for.
#[derive(Debug)]
struct VirtualKubelet {
    attended: Attended,
    wanted: Wanted,
}

/// What a Deployment asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    uid: String,
    name: String,
    namespace: String,
    account: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
}

type Running = Mutex<BTreeMap<String, VirtualKubelet>>;

/// The thread, which ends with this value.
#[derive(Debug)]
pub(super) struct Kubelet {
    running: Arc<Running>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Kubelet {
    /// Begins, with controllers that are to be started again when they end.
    pub(super) fn start(host: Host, program: PathBuf, controllers: Vec<Arc<Process>>) -> Self {
        let (running, stop) = (Arc::new(Running::default()), Arc::new(AtomicBool::new(false)));
        let attend = |process| Attended { process, since: Stopwatch::start() };
        let mut duty = Duty {
            host,
            program,
            controllers: controllers.into_iter().map(attend).collect(),
            running: running.clone(),
            leaving: Vec::new(),
            deployments: Deployments::default(),
        };
        let ends = stop.clone();
        let thread = thread::spawn(move || {
            let mut said = String::new();
            while !ends.load(Ordering::Relaxed) {
                if let Err(error) = duty.look() {
                    duty.deployments = Deployments::default();
                    duty.note(&error, &mut said);
                }
                pause(LOOK_AGAIN);
            }
        });
        Self { running, stop, thread: Some(thread) }
    }

    /// The virtual kubelet of a Deployment in any namespace, while there is one.
    pub(super) fn virtual_kubelet(&self, deployment: &str) -> Option<Arc<Process>> {
        let running = lock(&self.running);
        let found = running.values().find(|running| running.wanted.name == deployment)?;
        Some(found.attended.process.clone())
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If it panicked, that has been printed.
            drop(thread.join());
        }
    }
}

fn lock(running: &Running) -> MutexGuard<'_, BTreeMap<String, VirtualKubelet>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread has.
struct Duty {
    host: Host,
    program: PathBuf,
    controllers: Vec<Attended>,
    running: Arc<Running>,
    /// Those that were asked to end, and when.
    leaving: Vec<(Arc<Process>, Stopwatch)>,
    deployments: Deployments,
}

impl Duty {
    /// One look at everything. The first error ends it; the next look comes soon.
    fn look(&mut self) -> Result<(), Error> {
        let still = |(process, since): &(Arc<Process>, Stopwatch)| {
            let there = process.pid().is_some() && since.elapsed() < GRACE;
            if !there {
                process.kill();
            }
            there
        };
        self.leaving.retain(still);
        self.controllers.iter_mut().try_for_each(Attended::attend)?;
        self.deployments.refresh(&self.host.api)?;
        self.stop_others();
        let wanted = &self.deployments.wanted;
        wanted.iter().try_for_each(|(key, wanted)| self.ensure(key, wanted))
    }

    /// Stops those that nobody asks for any more, and those that were asked for differently.
    fn stop_others(&mut self) {
        let mut running = lock(&self.running);
        let others = running.extract_if(.., |key, running| {
            self.deployments.wanted.get(key).is_none_or(|wanted| *wanted != running.wanted)
        });
        for (_, other) in others {
            let process = other.attended.process;
            // One that is gone already needs no signal.
            drop(process.signal(Signal::TERM));
            self.leaving.push((process, Stopwatch::start()));
        }
    }

    fn ensure(&self, key: &str, wanted: &Wanted) -> Result<(), Error> {
        if let Some(running) = lock(&self.running).get_mut(key) {
            return running.attended.attend();
        }
        let process = Arc::new(self.host.process(&wanted.name, self.recipe(wanted)?));
        process.start()?;
        let attended = Attended { process, since: Stopwatch::start() };
        let running = VirtualKubelet { attended, wanted: wanted.clone() };
        lock(&self.running).insert(key.to_owned(), running);
        Ok(())
    }

    /// As its container would be started, but on loopback, and with a certificate that it makes.
    fn recipe(&self, wanted: &Wanted) -> Result<Recipe, Error> {
        let Wanted { name, namespace, account, arguments, variables, .. } = wanted;
        let kubeconfig = self.host.account(namespace, account)?;
        let recipe = Recipe::new(&self.program)
            .args(arguments.iter().cloned())
            .arg(format!("--home-kubeconfig={}", kubeconfig.display()))
            .arg("--certificate-type=self-signed")
            .port("--listen-port=")
            // The same for every start: it is the name under which it holds its lease.
            .env("POD_NAME", name)
            .env("POD_NAMESPACE", namespace)
            .env("POD_IP", "127.0.0.1")
            .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .env("KUBERNETES_SERVICE_PORT", self.host.port.to_string());
        let set = |recipe: Recipe, (name, value): &(String, String)| recipe.env(name, value);
        Ok(variables.iter().fold(recipe, set))
    }

    /// Writes down what went wrong, once for as long as it stays the same.
    fn note(&self, error: &Error, said: &mut String) {
        let now = error.to_string();
        if *said == now {
            return;
        }
        let path = self.host.folder.join("kubelet.log");
        let log = File::options().create(true).append(true).open(path);
        // A note that is not written is no reason for a test to end.
        drop(log.and_then(|mut log| writeln!(log, "{now}")));
        *said = now;
    }
}

/// The Deployments, listed again when a watch of them says anything. To list them with every look would
/// keep the API server of an idle cluster as busy as many a test does.
#[derive(Default)]
struct Deployments {
    /// What they ask for, by namespace and name.
    wanted: BTreeMap<String, Wanted>,
    watch: Option<Connection>,
}

impl Deployments {
    fn refresh(&mut self, api: &Api) -> Result<(), Error> {
        if self.watch.as_mut().is_some_and(|watch| !watch.has_more()) {
            return Ok(());
        }
        let found = api.get(DEPLOYMENTS)?;
        let items = found["items"].as_array().into_iter().flatten();
        let named = |wanted: Wanted| (format!("{}/{}", wanted.namespace, wanted.name), wanted);
        self.wanted = items.filter_map(Wanted::read).map(named).collect();
        let version = found["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let mut watch = api.connect()?;
        let path = format!("{DEPLOYMENTS}&watch=1&resourceVersion={version}");
        watch.begin(&path).map_err(during(|| format!("watching {DEPLOYMENTS}")))?;
        self.watch = Some(watch);
        Ok(())
    }
}

impl Wanted {
    /// What a Deployment says; nothing if it is none of a virtual kubelet.
    fn read(deployment: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (metadata, pod) = (&deployment["metadata"], &deployment["spec"]["template"]["spec"]);
        let container = pod["containers"].get(0)?;
        let arguments = container["args"].as_array()?.iter().filter_map(Value::as_str);
        let variables = container["env"].as_array().into_iter().flatten();
        let literal =
            |variable: &Value| Some((text(&variable["name"])?, text(&variable["value"])?));
        Some(Self {
            uid: text(&metadata["uid"])?,
            name: text(&metadata["name"])?,
            namespace: text(&metadata["namespace"])?,
            account: text(&pod["serviceAccountName"])?,
            arguments: arguments.map(|word| word.replace("$(POD_IP)", "127.0.0.1")).collect(),
            variables: variables.filter_map(literal).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deployment_says_how_its_program_is_started() {
        let deployment = json!({
            "metadata": { "name": "vk-rsv", "namespace": "liqo-tenant-milan", "uid": "1" },
            "spec": { "template": { "spec": { "serviceAccountName": "rsv", "containers": [{
                "args": ["--nodename=rsv", "--node-ip=$(POD_IP)"],
                "env": [
                    { "name": "POD_IP", "valueFrom": { "fieldRef": {} } },
                    { "name": "VIRTUALNODE_NAME", "value": "rsv" },
                ],
            }] } } },
        });
        let wanted = Wanted::read(&deployment).unwrap();
        assert_eq!(wanted.account, "rsv");
        assert_eq!(wanted.arguments, ["--nodename=rsv", "--node-ip=127.0.0.1"]);
        assert_eq!(wanted.variables, [("VIRTUALNODE_NAME".to_owned(), "rsv".to_owned())]);
        assert_eq!(Wanted::read(&json!({ "metadata": {} })), None);
    }
}
