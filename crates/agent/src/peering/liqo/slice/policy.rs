//! What keeps a consumer within what it was given. Its certificates let it write the status of its
//! slices here, choose Liqo's own class, which grants whatever is asked, pose as another cluster in
//! labels or with a [longer](measured) request for a certificate, [hold on](held) with finalizers to what is taken
//! back, and send pods that take more than Liqo's quota [counts](counted).

mod counted;
mod held;
mod measured;

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use self::held::{in_the_background, no_new_finalizers, no_orphans};
use super::ground::{Answer, Ground};
use crate::peering::liqo::names::{
    CLASS, COPY_POLICY, ORGANIZATION, ORIGIN_ID, POD_POLICY, POLICY, RECLAIMED_SINCE,
    REMOTE_CLUSTER_ID, REPLICATED, REPLICATION, TENANT_PREFIX, WRITER,
};

/// How long the name of a slice may be.
const NAME_MAX: usize = 50;

impl Ground {
    /// Installs the policies, or puts them right; which they are then. Nothing is written where nothing is to be put
    /// right.
    pub(super) async fn install_policy(&self) -> Answer<BTreeSet<Edition>> {
        let writer = PatchParams::apply(WRITER).force();
        let policies = self.all::<ValidatingAdmissionPolicy>();
        let bindings = self.all::<ValidatingAdmissionPolicyBinding>();
        let mut editions = BTreeSet::new();
        let all = [(POLICY, slices()), (POD_POLICY, pods()), (COPY_POLICY, held::copies())];
        for (name, spec) in all {
            let policy = policies.patch(name, &writer, &Patch::Apply(&policy(name, &spec))).await?;
            let binding = bindings.patch(name, &writer, &Patch::Apply(&binding(name))).await?;
            editions.extend([edition(&policy), edition(&binding)]);
        }
        Ok(editions)
    }
}

/// An object, and how often what is wanted of it was changed: unlike its version, that stays when Kubernetes notes
/// something in its status.
pub(super) type Edition = (Option<String>, Option<i64>);

pub(super) fn edition<K: ResourceExt>(object: &K) -> Edition {
    (object.uid(), object.meta().generation)
}

/// About the slices that other clusters have here.
fn slices() -> Value {
    let is_theirs = |value: &str| format!("{value} == request.userInfo.username");
    let names = [
        format!("{} == 'true'", label(REPLICATED)),
        format!("{} != 'true'", label(REPLICATION)),
        is_theirs(&label(ORIGIN_ID)),
        is_theirs(&label(REMOTE_CLUSTER_ID)),
        format!(
            "(!has(object.spec.consumerClusterID) || {})",
            is_theirs("object.spec.consumerClusterID")
        ),
        format!("request.namespace == '{TENANT_PREFIX}' + request.userInfo.username"),
    ];
    let (new, old) = (mark("object"), mark("oldObject"));
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [
            written("authentication.liqo.io", &["resourceslices", "resourceslices/status"]),
        ]},
        "matchConditions": [{
            "name": "from-a-peer",
            "expression": format!("'{ORGANIZATION}' in request.userInfo.groups"),
        }],
        "variables": measured::variables(),
        "validations": [
            validation("!has(request.subResource) || request.subResource != 'status'",
                       "a consumer may not write the status of a ResourceSlice"),
            validation(&unless_deleted(&format!("has(object.spec.class) && object.spec.class == '{CLASS}'")),
                       "only slices of reservations are served here"),
            validation(&unless_deleted(&format!("{new} == {old}")),
                       "since when a slice is taken back is the provider's to say"),
            validation(&unless_deleted(&names.join(" && ")),
                       "a consumer has slices in its own name alone, in its own namespace"),
            validation(&unless_deleted(&short_names()),
                       "a slice has a name of at most 50 letters, digits and dashes"),
            validation(&unless_deleted(&bounded()), "a slice says no more than a slice has to say"),
            validation(&unless_deleted(measured::rule()),
                       "a request for a certificate is as long as one of an Ed25519 key for the slice's user \
                        and its cluster alone, and not longer"),
            validation(&unless_deleted(no_new_finalizers()),
                       "a consumer may not hold on to a slice with a finalizer"),
            validation(no_orphans(), "a consumer may not leave anything behind"),
            validation(in_the_background(),
                       "a consumer deletes a slice in the background: else what belongs to it would hold it"),
        ],
    })
}

/// About the pods that they have here. Liqo and the parts of Kubernetes are `system:` users.
fn pods() -> Value {
    let mut validations = vec![
        validation(
            &unless_deleted(no_new_finalizers()),
            "a consumer may not hold on to a pod with a finalizer",
        ),
        validation(no_orphans(), "a consumer may not leave pods behind"),
    ];
    let counted = counted::rules();
    validations.extend(counted.iter().map(|(rule, message)| validation(rule, message)));
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [written("offloading.liqo.io", &["shadowpods"])] },
        "matchConditions": [{
            "name": "from-outside",
            "expression": "!request.userInfo.username.startsWith('system:') && \
                           !('system:masters' in request.userInfo.groups)",
        }],
        "variables": counted::variables(),
        "validations": validations,
    })
}

/// Whenever one of these is written or deleted.
fn written(group: &str, resources: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": resources,
    })
}

/// A rule for what is written.
fn unless_deleted(rule: &str) -> String {
    format!("request.operation == 'DELETE' || ({rule})")
}

fn validation(expression: &str, message: &str) -> Value {
    json!({ "expression": expression, "message": message })
}

/// Of the name, and what Liqo appends to it, labels and the user of a certificate are made.
fn short_names() -> String {
    format!("size(object.metadata.name) <= {NAME_MAX} && !object.metadata.name.contains('.')")
}

/// Whoever looks at slices has them in memory.
fn bounded() -> String {
    let few = |path: &str, most: usize| format!("(!has({path}) || size({path}) <= {most})");
    let short = |path: &str, key: usize, value: usize| {
        let (key, value) =
            (format!("size(key) <= {key}"), format!("size(string({path}[key])) <= {value}"));
        format!("(!has({path}) || {path}.all(key, {key} && {value}))")
    };
    let (notes, resources) = ("object.metadata.annotations", "object.spec.resources");
    [
        few("object.metadata.labels", 16),
        few("object.metadata.ownerReferences", 4),
        few("object.metadata.managedFields", 16),
        few("object.spec.providerClusterID", 63),
        few(notes, 16),
        short(notes, 317, 1024),
        few(resources, 16),
        short(resources, 317, 64),
    ]
    .join(" && ")
}

/// What a label says; nothing if it is not there.
fn label(name: &str) -> String {
    format!(
        "(has(object.metadata.labels) && '{name}' in object.metadata.labels ? \
         object.metadata.labels['{name}'] : '')"
    )
}

/// Since when an object is being taken back; nothing if it is not.
fn mark(object: &str) -> String {
    format!(
        "({object} != null && has({object}.metadata.annotations) && \
         '{RECLAIMED_SINCE}' in {object}.metadata.annotations ? \
         {object}.metadata.annotations['{RECLAIMED_SINCE}'] : '')"
    )
}

fn policy(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": spec,
    })
}

fn binding(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        // What is refused is counted by the API server, and is in its audit log where it has one.
        "spec": { "policyName": name, "validationActions": ["Deny", "Audit"] },
    })
}
