//! The objects that Liqo's installation puts into a cluster, without those of pods that do not run
//! here: accounts, roles, who has them, and settings.

use serde_json::{Map, Value, json};

use super::NAMESPACE;
use super::chart::Chart;
use crate::error::Error;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Those of Liqo's programs that talk to the API, each under an account of its own.
const ACCOUNTS: [&str; 3] = ["controller-manager", "crd-replicator", "webhook"];

/// The roles that Liqo gives to its programs, to virtual kubelets and to other clusters.
const CLUSTER_ROLES: [&str; 8] = [
    "controller-manager",
    "crd-replicator",
    "webhook",
    "remote-controlplane",
    "virtual-kubelet-local",
    "virtual-kubelet-remote",
    "virtual-kubelet-remote-clusterwide",
    "peering-user-tenant-ns",
];

/// Who has which role: the binding, the role, the accounts. Whoever gives a role must have it.
const BINDINGS: [(&str, &str, &[&str]); 7] = [
    ("controller-manager", "controller-manager", &["controller-manager"]),
    ("crd-replicator", "crd-replicator", &["crd-replicator"]),
    ("webhook", "webhook", &["webhook"]),
    ("remote-controlplane", "remote-controlplane", &["controller-manager", "crd-replicator"]),
    (
        "controller-manager-grant-virtual-kubelet-local",
        "virtual-kubelet-local",
        &["controller-manager"],
    ),
    (
        "controller-manager-grant-virtual-kubelet-remote",
        "virtual-kubelet-remote",
        &["controller-manager"],
    ),
    (
        "controller-manager-grant-virtual-kubelet-remote-clusterwide",
        "virtual-kubelet-remote-clusterwide",
        &["controller-manager"],
    ),
];

/// The roles in Liqo's own namespace.
const ROLES: [&str; 2] = ["crd-replicator", "peering-user-liqo-ns"];

/// What is reflected by so many workers, in the settings and in the template alike.
const REFLECTED: &str = "/offloading/reflection";
const REFLECTORS: [&str; 9] = [
    "pod",
    "service",
    "endpointslice",
    "ingress",
    "configmap",
    "secret",
    "serviceaccount",
    "persistentvolumeclaim",
    "event",
];

/// The template of virtual kubelets, by the name that the chart gives it.
pub(super) const VIRTUAL_KUBELET_OPTIONS: &str = "virtual-kubelet-default";

/// An object, and the collection that it belongs to.
pub(super) struct Object {
    pub(super) collection: String,
    pub(super) value: Value,
}

/// The name that the chart gives to something of its own.
pub(super) fn prefixed(name: &str) -> String {
    format!("liqo-{name}")
}

/// All of them but the namespace, for a cluster with this id.
pub(super) fn objects(chart: &Chart, cluster: &str) -> Result<Vec<Object>, Error> {
    let mut objects: Vec<_> = ACCOUNTS.into_iter().map(account).collect();
    for role in CLUSTER_ROLES {
        let rules = chart.rules(&format!("{}-ClusterRole", prefixed(role)))?;
        objects.push(rbac("ClusterRole", [role, role], json!({ "rules": rules })));
    }
    for role in ROLES {
        let rules = chart.rules(&format!("{}-Role", prefixed(role)))?;
        objects.push(rbac("Role", [role, role], json!({ "rules": rules })));
    }
    for (name, role, accounts) in BINDINGS {
        let binding = binding("ClusterRole", role, accounts);
        objects.push(rbac("ClusterRoleBinding", [name, accounts[0]], binding));
    }
    let binding = binding("Role", "crd-replicator", &["crd-replicator"]);
    objects.push(rbac("RoleBinding", ["crd-replicator"; 2], binding));
    objects.push(cluster_id(cluster));
    objects.push(storage_class(chart)?);
    objects.push(runtime_class(chart)?);
    objects.push(virtual_kubelet_options(chart)?);
    Ok(objects)
}

/// The labels by which Liqo's own tools look for some of them.
pub(super) fn metadata(name: &str, component: &str) -> Value {
    json!({ "name": name, "labels": {
        "app.kubernetes.io/name": component,
        "app.kubernetes.io/instance": prefixed(component),
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "liqo",
    }})
}

fn account(name: &str) -> Object {
    Object {
        collection: format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"),
        value: json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(&prefixed(name), name),
        }),
    }
}

/// A role or a binding: its name, whom it is for, and what else it has.
fn rbac(kind: &str, [name, component]: [&str; 2], rest: Value) -> Object {
    let plural = format!("{}s", kind.to_lowercase());
    let place = if kind.starts_with("Cluster") {
        plural
    } else {
        format!("namespaces/{NAMESPACE}/{plural}")
    };
    let mut value = rest;
    value["apiVersion"] = json!(format!("{RBAC}/v1"));
    value["kind"] = json!(kind);
    value["metadata"] = metadata(&prefixed(name), component);
    Object { collection: format!("/apis/{RBAC}/v1/{place}"), value }
}

fn binding(kind: &str, role: &str, accounts: &[&str]) -> Value {
    let subject = |account: &&str| json!({ "kind": "ServiceAccount", "name": prefixed(account), "namespace": NAMESPACE });
    json!({
        "roleRef": { "apiGroup": RBAC, "kind": kind, "name": prefixed(role) },
        "subjects": accounts.iter().map(subject).collect::<Vec<_>>(),
    })
}

fn cluster_id(cluster: &str) -> Object {
    let name = "clusterid-configmap";
    Object {
        collection: format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
        value: json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(&prefixed(name), name),
            "data": { "CLUSTER_ID": cluster },
        }),
    }
}

fn storage_class(chart: &Chart) -> Result<Object, Error> {
    Ok(Object {
        collection: "/apis/storage.k8s.io/v1/storageclasses".to_owned(),
        value: json!({
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": { "name": chart.value("/storage/virtualStorageClassName")? },
            "provisioner": "liqo.io/storage",
            "volumeBindingMode": "WaitForFirstConsumer",
        }),
    })
}

fn runtime_class(chart: &Chart) -> Result<Object, Error> {
    let setting = |name: &str| chart.value(&format!("/offloading/runtimeClass/{name}"));
    Ok(Object {
        collection: "/apis/node.k8s.io/v1/runtimeclasses".to_owned(),
        value: json!({
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": { "name": setting("name")? },
            "handler": setting("handler")?,
            "scheduling": {
                "nodeSelector": setting("nodeSelector/labels")?,
                "tolerations": setting("tolerations/tolerations")?,
            },
        }),
    })
}

/// How virtual kubelets are to be started. The image is never fetched, but must be named.
fn virtual_kubelet_options(chart: &Chart) -> Result<Object, Error> {
    let mut reflectors = Map::new();
    for name in REFLECTORS {
        let setting = |field: &str| chart.value(&format!("{REFLECTED}/{name}/{field}"));
        let mut config = json!({ "workers": setting("workers")? });
        if let Ok(kind) = setting("type") {
            config["type"] = kind.clone();
        }
        reflectors.insert(name.to_owned(), config);
    }
    let options = json!({
        "replicas": chart.value("/virtualKubelet/replicas")?,
        "createNode": chart.value("/offloading/createNode")?,
        "disableNetworkCheck": chart.value("/offloading/disableNetworkCheck")?,
        "containerImage": chart.value("/virtualKubelet/image/name")?,
        "metricsEnabled": false,
        "annotationsNotReflected": chart.value(&format!("{REFLECTED}/skip/annotations"))?,
        "pullPolicy": chart.value("/pullPolicy")?,
        "reflectorsConfig": reflectors,
        "extraArgs": ["--enable-apiserver-support=true"],
    });
    Ok(Object {
        collection: format!(
            "/apis/offloading.liqo.io/v1beta1/namespaces/{NAMESPACE}/vkoptionstemplates"
        ),
        value: json!({
            "apiVersion": "offloading.liqo.io/v1beta1",
            "kind": "VkOptionsTemplate",
            "metadata": metadata(VIRTUAL_KUBELET_OPTIONS, "virtual-kubelet"),
            "spec": options,
        }),
    })
}
