//! Nodes and pods as the API server sends them, and of them only what is looked at.
//!
//! An agent sees every pod of its cluster, and a pod is ten kilobytes of which we need a few numbers.
//! These types read those and pass over the rest, so that nothing else is ever kept. They can be
//! watched like the full types. Every field may be absent: one object that cannot be read would stop
//! the watch.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};
use sublet_crds::Quantity;

/// Amounts by the name of their resource.
pub type ResourceList = BTreeMap<String, Quantity>;

/// What of a node is looked at.
#[derive(Clone, Debug, Default, Deserialize, kube::Resource)]
#[resource(inherit = "v1::Node")]
pub struct Node {
    /// Name and labels.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// What was asked of it.
    #[serde(default)]
    pub spec: NodeSpec,
    /// What it is.
    #[serde(default)]
    pub status: NodeStatus,
}

impl Node {
    /// What the fold knows it by: its name.
    pub fn key(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

/// What was asked of a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeSpec {
    /// Cordoned.
    pub unschedulable: bool,
    /// What keeps pods away.
    pub taints: Vec<Taint>,
}

/// What keeps pods away.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// How strongly.
    pub effect: String,
}

/// What a node is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// What it has.
    pub capacity: ResourceList,
    /// What of that is for pods.
    pub allocatable: ResourceList,
    /// Whether it is ready, and more.
    pub conditions: Vec<Condition>,
}

/// What is true of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// What.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether.
    pub status: String,
    /// Why.
    pub reason: String,
}

/// What of a pod is looked at.
#[derive(Clone, Debug, Default, Deserialize, kube::Resource)]
#[resource(inherit = "v1::Pod")]
pub struct Pod {
    /// Name and labels.
    #[serde(deserialize_with = "slim")]
    pub metadata: ObjectMeta,
    /// What was asked.
    #[serde(default)]
    pub spec: PodSpec,
    /// What became of it.
    #[serde(default)]
    pub status: PodStatus,
}

impl Pod {
    /// What the fold knows it by: namespace and name.
    pub fn key(&self) -> String {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}/{}", text(&self.metadata.namespace), text(&self.metadata.name))
    }
}

/// What was asked for a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Where it was bound to; empty before that.
    pub node_name: String,
    /// Those that run together.
    pub containers: Vec<Container>,
    /// Those that run first, one after the other, and sidecars, which stay.
    pub init_containers: Vec<Container>,
    /// What the runtime takes beside.
    pub overhead: ResourceList,
    /// For the pod as a whole.
    pub resources: Requirements,
}

/// One container of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Its name.
    pub name: String,
    /// `Always` makes a sidecar of an init container.
    pub restart_policy: String,
    /// What it asks for.
    pub resources: Requirements,
}

/// What a container or a pod asks for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Requirements {
    /// What is set aside for it.
    pub requests: ResourceList,
}

/// What became of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Where it stands.
    pub phase: String,
    /// A resize that cannot be done, and more.
    pub conditions: Vec<Condition>,
    /// What each container really has.
    pub container_statuses: Vec<ContainerStatus>,
    /// The same of init containers.
    pub init_container_statuses: Vec<ContainerStatus>,
}

/// What a container really has, while it is being resized.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// What runs; not there on nodes that do not say.
    pub resources: Option<Requirements>,
    /// What the node has agreed to.
    pub allocated_resources: ResourceList,
}

/// Of the metadata, what names the object and who owns it, and how long it takes to end; above all not the managed
/// fields, which are often the larger part of an object.
fn slim<'de, D: Deserializer<'de>>(reader: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Slim {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        labels: Option<BTreeMap<String, String>>,
        deletion_grace_period_seconds: Option<i64>,
    }
    let Slim { name, namespace, uid, resource_version, labels, deletion_grace_period_seconds } =
        Slim::deserialize(reader)?;
    Ok(ObjectMeta {
        name,
        namespace,
        uid,
        resource_version,
        labels,
        deletion_grace_period_seconds,
        ..ObjectMeta::default()
    })
}
