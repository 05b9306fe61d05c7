//! What keeps a consumer from granting itself something: its certificate lets it write the status of
//! its slices here, and choose Liqo's own class, which grants whatever is asked.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::ground::{Answer, Ground};
use crate::peering::liqo::names::{CLASS, POLICY, RECLAIMED_SINCE, WRITER};

impl Ground {
    /// Installs the policy, or puts it right.
    pub(super) async fn install_policy(&self) -> Answer<()> {
        let writer = PatchParams::apply(WRITER).force();
        let policies = self.all::<ValidatingAdmissionPolicy>();
        policies.patch(POLICY, &writer, &Patch::Apply(&policy())).await?;
        let bindings = self.all::<ValidatingAdmissionPolicyBinding>();
        bindings.patch(POLICY, &writer, &Patch::Apply(&binding())).await?;
        Ok(())
    }
}

fn policy() -> Value {
    let mark = |object: &str| {
        format!(
            "({object} != null && has({object}.metadata.annotations) && \
             '{RECLAIMED_SINCE}' in {object}.metadata.annotations ? \
             {object}.metadata.annotations['{RECLAIMED_SINCE}'] : '')"
        )
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": POLICY },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["authentication.liqo.io"],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["resourceslices", "resourceslices/status"],
            }]},
            "matchConditions": [{
                "name": "from-a-peer",
                "expression": "'liqo.io' in request.userInfo.groups",
            }],
            "validations": [
                {
                    "expression": "!has(request.subResource) || request.subResource != 'status'",
                    "message": "a consumer may not write the status of a ResourceSlice",
                },
                {
                    "expression": format!("has(object.spec.class) && object.spec.class == '{CLASS}'"),
                    "message": "only slices of reservations are served here",
                },
                {
                    "expression": format!("{} == {}", mark("object"), mark("oldObject")),
                    "message": "since when a slice is taken back is the provider's to say",
                },
            ],
        },
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": POLICY },
        "spec": { "policyName": POLICY, "validationActions": ["Deny"] },
    })
}
