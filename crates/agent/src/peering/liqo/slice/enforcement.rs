//! Whether what is lent can be kept within its bounds: by Liqo's webhook alone, so it must be there,
//! and it must be told to.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
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
        if let Some(why) = self.unguarded().await? {
            return Ok(Some(why));
        }
        // Liqo may run in another way than by these; then its quotas show how strict it is.
        let webhook = self.arguments("liqo-webhook").await?;
        if webhook.is_some_and(|arguments| !is_on(&arguments, "--enable-resource-enforcement")) {
            let why = "Liqo does not enforce quotas: set \
                       controllerManager.config.enableResourceEnforcement=true";
            return Ok(Some(why.to_owned()));
        }
        let manager = self.arguments("liqo-controller-manager").await?;
        let is_strict = manager.is_none_or(|arguments| {
            matches!(value_of(&arguments, "--default-limits-enforcement"), Some("Soft" | "Hard"))
        });
        Ok((!is_strict).then(|| {
            "Liqo lets pods in that do not say what they take: set \
             controllerManager.config.defaultLimitsEnforcement=Soft, or Hard"
                .to_owned()
        }))
    }

    /// Why pods get in that nobody has looked at. One webhook of Liqo's says whose a pod is, the other
    /// whether there is room for it: both are needed.
    async fn unguarded(&self) -> Answer<Option<String>> {
        let validating = self.all::<ValidatingWebhookConfiguration>();
        let validating = validating.list(&ListParams::default()).await?.items;
        let validating = validating.iter().flat_map(|list| list.webhooks.iter().flatten());
        let mutating = self.all::<MutatingWebhookConfiguration>();
        let mutating = mutating.list(&ListParams::default()).await?.items;
        let mutating = mutating.iter().flat_map(|list| list.webhooks.iter().flatten());
        let is_guarded = validating
            .into_iter()
            .any(|hook| guards_pods(hook.failure_policy.as_deref(), hook.rules.as_deref()))
            && mutating
                .into_iter()
                .any(|hook| guards_pods(hook.failure_policy.as_deref(), hook.rules.as_deref()));
        Ok((!is_guarded).then(|| {
            "Liqo's webhooks for shadow pods are missing, or are not asked when they fail: install \
             Liqo's webhook"
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

/// Is it asked about each shadow pod, and is one refused when it cannot be asked? Somebody's webhook for
/// everything is not Liqo's.
fn guards_pods(policy: Option<&str>, rules: Option<&[RuleWithOperations]>) -> bool {
    let names =
        |list: &Option<Vec<String>>, name: &str| list.iter().flatten().any(|one| one == name);
    policy.unwrap_or("Fail") == "Fail"
        && rules.unwrap_or_default().iter().any(|rule| {
            names(&rule.api_groups, "offloading.liqo.io")
                && names(&rule.resources, "shadowpods")
                && (names(&rule.operations, "CREATE") || names(&rule.operations, "*"))
        })
}

/// What a flag was set to, in one argument or in two; the last one counts.
fn value_of<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let mut all = arguments.iter().enumerate().rev();
    all.find_map(|(at, argument)| match argument.strip_prefix(flag)? {
        "" => arguments.get(at + 1).map(String::as_str),
        rest => rest.strip_prefix('='),
    })
}

/// Is a flag set that needs no value?
fn is_on(arguments: &[String], flag: &str) -> bool {
    let all = arguments.iter().rev().filter_map(|argument| argument.strip_prefix(flag));
    let mut said = all.filter(|rest| rest.is_empty() || rest.starts_with('='));
    matches!(said.next(), Some("" | "=true" | "=True" | "=TRUE" | "=t" | "=T" | "=1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_webhook_counts_if_it_is_asked_about_shadow_pods_and_cannot_be_passed_by() {
        let guards = |policy: Option<&str>, group: &str, resource: &str| {
            let rule = json!({ "apiGroups": [group], "resources": [resource],
                               "operations": ["CREATE"] });
            guards_pods(policy, Some(&[serde_json::from_value(rule).unwrap()]))
        };
        let liqo = "offloading.liqo.io";
        assert!(guards(Some("Fail"), liqo, "shadowpods"));
        assert!(guards(None, liqo, "shadowpods"));
        assert!(!guards(Some("Ignore"), liqo, "shadowpods"));
        assert!(!guards(Some("Fail"), liqo, "resourceslices"));
        // Somebody else's, for everything.
        assert!(!guards(Some("Fail"), "*", "*"));
        assert!(!guards(Some("Fail"), liqo, "*"));
        assert!(!guards_pods(None, None));
    }

    #[test]
    fn a_flag_is_read_as_liqo_reads_it() {
        let list = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let limits = "--default-limits-enforcement";
        for (all, value) in [
            (&["--default-limits-enforcement=Soft"][..], Some("Soft")),
            (&["--default-limits-enforcement", "None"], Some("None")),
            (
                &["--default-limits-enforcement=Soft", "--default-limits-enforcement", "None"],
                Some("None"),
            ),
            (&["--default-limits-enforcement-x=Soft"], None),
            (&["--default-limits-enforcement"], None),
            (&[], None),
        ] {
            assert_eq!(value_of(&list(all), limits), value, "{all:?}");
        }
        let enforce = "--enable-resource-enforcement";
        assert!(is_on(&list(&[enforce]), enforce));
        assert!(is_on(&list(&["--enable-resource-enforcement=true"]), enforce));
        assert!(!is_on(&list(&[enforce, "--enable-resource-enforcement=false"]), enforce));
        assert!(!is_on(&list(&["--enable-resource-enforcement-x"]), enforce));
    }
}
