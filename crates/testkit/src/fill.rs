//! Nodes and workloads that exist in the API alone, kept alive by KWOK.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::{creating, exchange, patching};
use crate::cluster::{Cluster, KWOK_NODE, Part};
use crate::error::Error;
use crate::wait::{START_PATIENCE, wait_for};

/// Nodes of one shape: `worker-0`, `worker-1`, …
#[derive(Clone, Debug)]
pub struct Nodes {
    name: String,
    count: usize,
    amounts: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    attended: bool,
}

impl Nodes {
    /// So many nodes of 8 cores and 32 GiB.
    pub fn new(name: impl Into<String>, count: usize) -> Self {
        let amounts = [("cpu", "8"), ("memory", "32Gi"), ("pods", "110")];
        let (amounts, labels) = (owned(&amounts), BTreeMap::new());
        Self { name: name.into(), count, amounts, labels, attended: true }
    }

    /// With so many cores.
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.resource("cpu", amount)
    }

    /// With so much memory.
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.resource("memory", amount)
    }

    /// With so much of any resource: `nvidia.com/gpu`.
    #[must_use]
    pub fn resource(mut self, name: &str, amount: &str) -> Self {
        self.amounts.insert(name.to_owned(), amount.to_owned());
        self
    }

    /// With a label.
    #[must_use]
    pub fn label(mut self, name: &str, value: &str) -> Self {
        self.labels.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Left alone by KWOK, which makes every node of its own Ready again at once: for tests of nodes
    /// that are not. Pods on them do not begin to run by themselves.
    #[must_use]
    pub fn unattended(mut self) -> Self {
        self.attended = false;
        self
    }

    fn objects(&self) -> Vec<Value> {
        (0..self.count).map(|number| self.object(&format!("{}-{number}", self.name))).collect()
    }

    fn object(&self, name: &str) -> Value {
        let mut labels = self.labels.clone();
        labels.insert("kubernetes.io/hostname".to_owned(), name.to_owned());
        let annotations: BTreeMap<_, _> = self.attended.then_some(KWOK_NODE).into_iter().collect();
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": name, "labels": labels, "annotations": annotations },
            "status": {
                "capacity": self.amounts,
                "allocatable": self.amounts,
                "conditions": [{ "type": "Ready", "status": "True", "reason": "Simulated" }],
            },
        })
    }
}

/// Pods of one shape, with the label `app` that says their name.
#[derive(Clone, Debug)]
pub struct Pods {
    name: String,
    count: usize,
    namespace: String,
    requests: BTreeMap<String, String>,
    nodes: Vec<String>,
}

impl Pods {
    /// So many pods in the namespace `default` that ask for nothing.
    pub fn new(name: impl Into<String>, count: usize) -> Self {
        Self {
            name: name.into(),
            count,
            namespace: "default".to_owned(),
            requests: BTreeMap::new(),
            nodes: Vec::new(),
        }
    }

    /// In a namespace, which must exist.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// That ask for so many cores.
    #[must_use]
    pub fn cpu(self, amount: &str) -> Self {
        self.resource("cpu", amount)
    }

    /// That ask for so much memory.
    #[must_use]
    pub fn memory(self, amount: &str) -> Self {
        self.resource("memory", amount)
    }

    /// That ask for so much of any resource.
    #[must_use]
    pub fn resource(mut self, name: &str, amount: &str) -> Self {
        self.requests.insert(name.to_owned(), amount.to_owned());
        self
    }

    /// On these nodes, in turn; without this, on all nodes that KWOK plays.
    #[must_use]
    pub fn on(mut self, nodes: &[&str]) -> Self {
        self.nodes = nodes.iter().map(|&node| node.to_owned()).collect();
        self
    }

    /// What is in a pod. Extended resources must be limits as well, and for others it does no harm.
    fn spec(&self) -> Value {
        let amounts = json!({ "requests": self.requests, "limits": self.requests });
        json!({ "containers": [{ "name": "main", "image": "simulated", "resources": amounts }] })
    }

    fn labels(&self) -> Value {
        json!({ "app": self.name })
    }

    fn bound(&self, number: usize, nodes: &[String]) -> Value {
        let mut spec = self.spec();
        spec["nodeName"] = json!(nodes[number % nodes.len()]);
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": format!("{}-{number}", self.name), "labels": self.labels() },
            "spec": spec,
        })
    }

    fn deployment(&self) -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": self.name },
            "spec": {
                "replicas": self.count,
                "selector": { "matchLabels": self.labels() },
                "template": { "metadata": { "labels": self.labels() }, "spec": self.spec() },
            },
        })
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }
}

impl Cluster {
    /// Adds nodes that are Ready; KWOK keeps them so.
    pub fn add_nodes(&self, nodes: &Nodes) -> Result<(), Error> {
        self.api().create_all("/api/v1/nodes", &nodes.objects())
    }

    /// Adds pods, each bound to a node, and returns when all of them run. KWOK makes them run;
    /// without it they are said to.
    pub fn add_pods(&self, pods: &Pods) -> Result<(), Error> {
        let nodes =
            if pods.nodes.is_empty() { self.simulated_nodes()? } else { pods.nodes.clone() };
        if nodes.is_empty() {
            return Err(Error::NoNodes);
        }
        let (path, by_hand) = (pods.path(), !self.runs(Part::Kwok));
        let mut objects: Vec<_> =
            (0..pods.count).map(|number| pods.bound(number, &nodes)).collect();
        for object in objects.iter_mut().filter(|_| by_hand) {
            // Nobody would end it in peace.
            object["spec"]["terminationGracePeriodSeconds"] = json!(0);
        }
        self.api().each(&objects, |connection, object| {
            exchange(connection, creating(&path, object.to_string().as_bytes()))?;
            if by_hand {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let path = format!("{path}/{name}/status");
                exchange(connection, patching(&path, running().to_string().as_bytes()))?;
            }
            Ok(())
        })?;
        self.wait_until_running(&pods.namespace, &pods.name, pods.count)
    }

    /// Adds a deployment of these pods; it does not wait for them.
    pub fn deploy(&self, pods: &Pods) -> Result<(), Error> {
        let path = format!("/apis/apps/v1/namespaces/{}/deployments", pods.namespace);
        self.api().create(&path, &pods.deployment()).map(drop)
    }

    /// Waits until every pod of a deployment is ready.
    pub fn wait_until_deployed(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let (api, path) =
            (self.api(), format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"));
        let what = format!("the deployment {name} of {}", self.name());
        Ok(wait_for(&what, START_PATIENCE, || {
            let found = api.get(&path).ok()?;
            let status = &found["status"];
            let seen = status["observedGeneration"] == found["metadata"]["generation"];
            // None is not said to be ready, rather than said to be none.
            let ready = status["readyReplicas"].as_u64().unwrap_or(0);
            (seen && found["spec"]["replicas"] == ready).then_some(())
        })?)
    }

    /// Waits until exactly so many pods with this label `app` are there, and all of them run; 0 waits
    /// until they are gone.
    pub fn wait_until_running(
        &self,
        namespace: &str,
        app: &str,
        count: usize,
    ) -> Result<(), Error> {
        let api = self.api();
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{app}");
        let what = format!("{count} pods {app} of {}", self.name());
        Ok(wait_for(&what, START_PATIENCE, || {
            let found = api.get(&path).ok()?;
            let pods = found["items"].as_array()?;
            let all_run = pods.iter().all(|pod| pod["status"]["phase"] == "Running");
            (pods.len() == count && all_run).then_some(())
        })?)
    }

    /// The names of the nodes that KWOK plays.
    fn simulated_nodes(&self) -> Result<Vec<String>, Error> {
        let found = self.api().get("/api/v1/nodes")?;
        let (annotation, value) = KWOK_NODE;
        let nodes = found["items"].as_array().into_iter().flatten();
        let simulated = nodes.filter(|node| node["metadata"]["annotations"][annotation] == value);
        let names = simulated.filter_map(|node| node["metadata"]["name"].as_str());
        Ok(names.map(str::to_owned).collect())
    }
}

/// The status of a pod that runs.
fn running() -> Value {
    json!({ "status": {
        "phase": "Running",
        "conditions": [{ "type": "Ready", "status": "True" }],
    }})
}

fn owned(amounts: &[(&str, &str)]) -> BTreeMap<String, String> {
    amounts.iter().map(|&(name, amount)| (name.to_owned(), amount.to_owned())).collect()
}
