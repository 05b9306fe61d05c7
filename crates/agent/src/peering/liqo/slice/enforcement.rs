//! Whether what is lent can be kept within its bounds: by Liqo's webhook alone, so it must be there,
//! and it must be told to.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingWebhook, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::ListParams;

use super::ground::{Answer, Ground};
use crate::peering::liqo::names::LIQO_NAMESPACE;

impl Ground {
    /// Makes sure that a consumer gets what it is granted and no more; why that is not so.
    pub(super) async fn unenforced(&self) -> Answer<Option<String>> {
        self.install_policy().await?;
        let hooks = self.all::<ValidatingWebhookConfiguration>();
        let hooks = hooks.list(&ListParams::default()).await?.items;
        if !hooks.iter().flat_map(|list| list.webhooks.iter().flatten()).any(guards_pods) {
            let why = "Liqo's webhook for shadow pods is missing, or is not asked when it fails: \
                       install Liqo's webhook";
            return Ok(Some(why.to_owned()));
        }
        // Liqo may run in another way than by these; then its quotas show how strict it is.
        let webhook = self.arguments("liqo-webhook").await?;
        let enforces = |argument: &String| {
            matches!(
                argument.as_str(),
                "--enable-resource-enforcement" | "--enable-resource-enforcement=true"
            )
        };
        if webhook.is_some_and(|arguments| !arguments.iter().any(enforces)) {
            let why = "Liqo does not enforce quotas: set \
                       controllerManager.config.enableResourceEnforcement=true";
            return Ok(Some(why.to_owned()));
        }
        let manager = self.arguments("liqo-controller-manager").await?.unwrap_or_default();
        let is_lax = |argument: &String| argument == "--default-limits-enforcement=None";
        Ok(manager.iter().any(is_lax).then(|| {
            "Liqo lets pods in that do not say what they take: set \
             controllerManager.config.defaultLimitsEnforcement=Soft, or Hard"
                .to_owned()
        }))
    }

    /// How a part of Liqo was started, if it is a Deployment of that name.
    async fn arguments(&self, name: &str) -> Answer<Option<Vec<String>>> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), LIQO_NAMESPACE);
        let found = deployments.get_opt(name).await?;
        let pod = found.and_then(|found| found.spec?.template.spec);
        Ok(pod.map(|pod| {
            let each = pod.containers.into_iter().flat_map(|container| {
                container.command.into_iter().chain(container.args).flatten()
            });
            each.collect()
        }))
    }
}

/// Is it asked about each shadow pod, and is one refused when it cannot be asked?
fn guards_pods(hook: &ValidatingWebhook) -> bool {
    let is_strict = hook.failure_policy.as_deref().unwrap_or("Fail") == "Fail";
    let names = |list: &Option<Vec<String>>, name: &str| {
        list.iter().flatten().any(|one| one == name || one == "*")
    };
    is_strict
        && hook.rules.iter().flatten().any(|rule| {
            names(&rule.api_groups, "offloading.liqo.io")
                && names(&rule.resources, "shadowpods")
                && names(&rule.operations, "CREATE")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_webhook_counts_if_it_is_asked_about_shadow_pods_and_cannot_be_passed_by() {
        let hook = |policy: Option<&str>, resource: &str| -> ValidatingWebhook {
            let rule = json!({ "apiGroups": ["offloading.liqo.io"], "resources": [resource],
                               "operations": ["CREATE"] });
            serde_json::from_value(json!({
                "name": "a.b.c", "failurePolicy": policy, "rules": [rule], "sideEffects": "None",
                "admissionReviewVersions": ["v1"], "clientConfig": {},
            }))
            .unwrap()
        };
        assert!(guards_pods(&hook(Some("Fail"), "shadowpods")));
        assert!(guards_pods(&hook(None, "*")));
        assert!(!guards_pods(&hook(Some("Ignore"), "shadowpods")));
        assert!(!guards_pods(&hook(Some("Fail"), "resourceslices")));
    }
}
