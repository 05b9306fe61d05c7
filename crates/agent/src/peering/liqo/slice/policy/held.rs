//! Rules against holding on to what is over, in CEL: by a finalizer, or by what belongs to it. Whatever a consumer may
//! write here, it could keep, and with it the namespace that it is in.

use serde_json::{Value, json};

use super::{unless_deleted, validation, written};
use crate::peering::liqo::names::{ORGANIZATION, REMOTE_CLUSTER_ID};

/// What Kubernetes itself sets on each volume claim, as whoever makes it, and takes off by itself.
const PROTECTED: &str = "kubernetes.io/pvc-protection";

/// No finalizer that was not there before.
pub(super) fn no_new_finalizers() -> &'static str {
    "!has(object.metadata.finalizers) || object.metadata.finalizers.all(name, \
     oldObject != null && has(oldObject.metadata.finalizers) && \
     name in oldObject.metadata.finalizers)"
}

/// Whatever is deleted goes with all that belongs to it.
pub(super) fn no_orphans() -> &'static str {
    "request.operation != 'DELETE' || !has(request.options) || \
     ((!has(request.options.propagationPolicy) || request.options.propagationPolicy != 'Orphan') && \
     (!has(request.options.orphanDependents) || request.options.orphanDependents != true))"
}

/// What waits for what belongs to it is still there after it was deleted. It can be deleted again, and whoever holds
/// what belongs to it holds it too.
pub(super) fn in_the_background() -> &'static str {
    "request.operation != 'DELETE' || !has(request.options) || \
     !has(request.options.propagationPolicy) || \
     request.options.propagationPolicy != 'Foreground'"
}

/// About all else that other clusters may write: in their tenant namespace, and in the namespaces that Liqo has made
/// for them, where a cluster's name is the group of its users. Of everybody else nothing is asked there.
pub(super) fn copies() -> Value {
    let of_a_peer = format!(
        "'{ORGANIZATION}' in request.userInfo.groups || \
         namespaceObject.metadata.labels['{REMOTE_CLUSTER_ID}'] in request.userInfo.groups"
    );
    let by_others = |rule: &str| format!("!variables.isPeer || ({rule})");
    let held = format!(
        "(request.resource.resource == 'persistentvolumeclaims' && \
         object.?metadata.?finalizers.orValue([]) == ['{PROTECTED}']) || {}",
        no_new_finalizers()
    );
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {
                "matchExpressions": [{ "key": REMOTE_CLUSTER_ID, "operator": "Exists" }],
            },
            "resourceRules": [
                written("", &["configmaps", "events", "persistentvolumeclaims", "secrets", "services"]),
                written("networking.k8s.io", &["ingresses"]),
                written("offloading.liqo.io", &["namespacemaps", "shadowendpointslices"]),
                written("authentication.liqo.io", &["renews"]),
            ],
        },
        "variables": [{ "name": "isPeer", "expression": of_a_peer }],
        "validations": [
            validation(&by_others(&unless_deleted(&held)),
                       "a consumer may not hold on to what it has here with a finalizer"),
            validation(&by_others(no_orphans()), "a consumer may not leave anything behind"),
        ],
    })
}
