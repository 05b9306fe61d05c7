//! Everything that joined clusters could leave behind, and in which state.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::PATIENCE;
use crate::api::Api;
use crate::error::Error;
use crate::wait::wait_for;

const COLLECTIONS: [&str; 26] = [
    "/apis/authentication.liqo.io/v1beta1/resourceslices",
    "/apis/authentication.liqo.io/v1beta1/identities",
    "/apis/authentication.liqo.io/v1beta1/tenants",
    "/apis/authentication.liqo.io/v1beta1/renews",
    "/apis/offloading.liqo.io/v1beta1/quotas",
    "/apis/offloading.liqo.io/v1beta1/virtualnodes",
    "/apis/offloading.liqo.io/v1beta1/shadowpods",
    "/apis/offloading.liqo.io/v1beta1/namespacemaps",
    "/apis/offloading.liqo.io/v1beta1/namespaceoffloadings",
    "/apis/core.liqo.io/v1beta1/foreignclusters",
    "/apis/rear.fluidos.eu/v1alpha1/resourcerequests",
    "/apis/rear.fluidos.eu/v1alpha1/reservationinstructions",
    "/apis/rear.fluidos.eu/v1alpha1/providerinstructions",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/apps/v1/deployments",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/api/v1/serviceaccounts",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/pods",
];

/// What there is in a cluster of Liqo's objects, of ours, and of those of Kubernetes that come with
/// them, each as [`described`]. Ours are to be installed there.
pub fn inventory(api: &Api) -> Result<BTreeSet<String>, Error> {
    let mut all = BTreeSet::new();
    for collection in COLLECTIONS {
        // A kind that was just installed is not served at once.
        let list = wait_for(collection, PATIENCE, || api.get(collection).ok())?;
        let items = list["items"].as_array().into_iter().flatten();
        all.extend(items.map(|item| described(collection, item)));
    }
    Ok(all)
}

/// Annotations that change by themselves: how a Deployment was last rolled out, who leads, and for how long a
/// link has not been used.
const PASSING: [&str; 3] =
    ["deployment.kubernetes.io/", "control-plane.alpha.kubernetes.io/", "sublet.io/unused-as-"];

/// An object: its collection, what is to be as it was (labels, annotations, finalizers, spec, what a role allows,
/// who has it, and whether it is being deleted), and last its namespace and name.
pub fn described(collection: &str, object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default();
    let is_going = if metadata["deletionTimestamp"].is_null() { "" } else { "going " };
    // Somebody holds a lease, and renews it all the time.
    let spec = if collection.ends_with("/leases") { &Value::Null } else { &object["spec"] };
    let mut state = json!({
        "labels": metadata["labels"], "finalizers": metadata["finalizers"], "spec": spec,
    });
    for part in ["rules", "roleRef", "subjects"] {
        if !object[part].is_null() {
            state[part] = object[part].clone();
        }
    }
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let lasting: Map<_, _> = annotations
        .filter(|(name, _)| !PASSING.iter().any(|passing| name.starts_with(passing)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !lasting.is_empty() {
        state["annotations"] = lasting.into();
    }
    format!("{collection} {is_going}{state} {}/{}", text("namespace"), text("name"))
}
