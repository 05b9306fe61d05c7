//! Whether what is lent can be kept within its bounds: by Liqo's webhook alone, so it must be there,
//! and it must be told to.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhook,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ListParams;
use sublet_crds::condition::Reason;

use super::deployed::{MANAGER, Part, Started, WEBHOOK};
use super::ground::{Answer, Ground};
use crate::peering::WhyNot;

impl Ground {
    /// Makes sure that a consumer gets what it is granted and no more; why that is not so. What cannot be
    /// seen is not taken for granted.
    pub(super) async fn unenforced(&self) -> Answer<Option<WhyNot>> {
        self.install_policy().await?;
        if let Some(why) = self.unguarded().await? {
            return Ok(Some(why));
        }
        let webhook = lax(WEBHOOK, &self.started(WEBHOOK).await?, |started| {
            let is_on = started.is_on("--enable-resource-enforcement");
            (!is_on).then_some((Reason::NotEnforced, QUOTAS))
        });
        if webhook.is_some() {
            return Ok(webhook);
        }
        Ok(lax(MANAGER, &self.started(MANAGER).await?, |started| {
            let limits = started.value_of("--default-limits-enforcement");
            let is_strict = matches!(limits, Some("Soft" | "Hard"));
            (!is_strict).then_some((Reason::LimitsNotEnforced, LIMITS))
        }))
    }

    /// Why pods get in that nobody has looked at. One webhook of Liqo's says whose a pod is, the other
    /// whether there is room for it: both are needed.
    async fn unguarded(&self) -> Answer<Option<WhyNot>> {
        let validating = self.all::<ValidatingWebhookConfiguration>();
        let validating = validating.list(&ListParams::default()).await?.items;
        let validating = validating.iter().flat_map(|list| list.webhooks.iter().flatten());
        let mutating = self.all::<MutatingWebhookConfiguration>();
        let mutating = mutating.list(&ListParams::default()).await?.items;
        let mutating = mutating.iter().flat_map(|list| list.webhooks.iter().flatten());
        let is_guarded = validating.map(Hook::from).any(|hook| hook.guards_pods())
            && mutating.map(Hook::from).any(|hook| hook.guards_pods());
        Ok((!is_guarded).then(|| WhyNot::new(Reason::WebhookMissing, HOOKS)))
    }
}

const HOOKS: &str = "Liqo's webhooks for shadow pods are missing, are passed by when they fail, or are not asked \
     about all: install Liqo's webhook, without selectors and conditions of your own";
const QUOTAS: &str =
    "Liqo does not enforce quotas: set controllerManager.config.enableResourceEnforcement=true";
const LIMITS: &str = "Liqo lets pods in that do not say what they take: set \
                      controllerManager.config.defaultLimitsEnforcement=Soft, or Hard";

/// Why a part of Liqo is not as strict as it has to be: one of the Deployments that may be it is not, or
/// there is none.
fn lax(
    part: Part,
    started: &[Started],
    why: impl Fn(&Started) -> Option<(Reason, &'static str)>,
) -> Option<WhyNot> {
    if started.is_empty() {
        return Some(WhyNot::new(Reason::EnforcementUnknown, part.missing()));
    }
    started.iter().find_map(|one| {
        let (reason, text) = why(one)?;
        Some(WhyNot::new(reason, format!("{text} ({} in {})", part.called, one.by)))
    })
}

/// What there is to know of a webhook, of either kind.
struct Hook<'a> {
    policy: Option<&'a str>,
    rules: &'a [RuleWithOperations],
    namespaces: Option<&'a LabelSelector>,
    objects: Option<&'a LabelSelector>,
    has_conditions: bool,
}

macro_rules! hook_from {
    ($($kind:ty),*) => {$(
        impl<'a> From<&'a $kind> for Hook<'a> {
            fn from(hook: &'a $kind) -> Self {
                Self {
                    policy: hook.failure_policy.as_deref(),
                    rules: hook.rules.as_deref().unwrap_or_default(),
                    namespaces: hook.namespace_selector.as_ref(),
                    objects: hook.object_selector.as_ref(),
                    has_conditions: hook.match_conditions.iter().flatten().next().is_some(),
                }
            }
        }
    )*};
}
hook_from!(ValidatingWebhook, MutatingWebhook);

impl Hook<'_> {
    /// Is it asked about each shadow pod, and is one refused when it cannot be asked? Somebody's webhook
    /// for everything is not Liqo's. Labels of a shadow pod are its consumer's own, and what a condition
    /// leaves out is not known, so with either it is not asked about each.
    fn guards_pods(&self) -> bool {
        let names =
            |list: &Option<Vec<String>>, name: &str| list.iter().flatten().any(|one| one == name);
        let either = |list: &Option<Vec<String>>, name: &str| names(list, name) || names(list, "*");
        let is_about_pods = |rule: &RuleWithOperations| {
            names(&rule.api_groups, "offloading.liqo.io")
                && names(&rule.resources, "shadowpods")
                && either(&rule.api_versions, "v1beta1")
                && either(&rule.operations, "CREATE")
                && matches!(rule.scope.as_deref(), None | Some("*" | "Namespaced"))
        };
        self.policy.unwrap_or("Fail") == "Fail"
            && self.rules.iter().any(is_about_pods)
            && !self.has_conditions
            && self.objects.is_none_or(is_for_all)
            && self.namespaces.is_none_or(spares_only_marked)
    }
}

fn is_for_all(selector: &LabelSelector) -> bool {
    let labels = selector.match_labels.iter().flatten().count();
    labels + selector.match_expressions.iter().flatten().count() == 0
}

/// Does it leave out no namespaces but those that somebody marked for that? Some hosted clusters leave out
/// their own in every webhook. What Liqo or Kubernetes write on each namespace is no such mark.
fn spares_only_marked(selector: &LabelSelector) -> bool {
    let is_a_mark = |key: &str| {
        !key.split('/').next().is_some_and(|owner| owner.ends_with("liqo.io"))
            && key != "kubernetes.io/metadata.name"
    };
    selector.match_labels.iter().flatten().count() == 0
        && selector.match_expressions.iter().flatten().all(|term| {
            matches!(term.operator.as_str(), "NotIn" | "DoesNotExist") && is_a_mark(&term.key)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Liqo's own, changed in some way.
    fn guards(change: serde_json::Value) -> bool {
        let mut hook = json!({
            "name": "shadowpod.validate.liqo.io", "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "clientConfig": {}, "failurePolicy": "Fail",
            "rules": [{ "apiGroups": ["offloading.liqo.io"], "apiVersions": ["v1beta1"],
                        "resources": ["shadowpods"], "operations": ["CREATE", "UPDATE"] }],
        });
        hook.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let validating: ValidatingWebhook = serde_json::from_value(hook.clone()).unwrap();
        let mutating: MutatingWebhook = serde_json::from_value(hook).unwrap();
        let guards = Hook::from(&validating).guards_pods();
        assert_eq!(guards, Hook::from(&mutating).guards_pods());
        guards
    }

    #[test]
    fn a_webhook_counts_if_it_is_asked_about_shadow_pods_and_cannot_be_passed_by() {
        let rule = |group: &str, resource: &str, version: &str| {
            json!({ "rules": [{ "apiGroups": [group], "resources": [resource],
                                "apiVersions": [version], "operations": ["*"] }] })
        };
        let liqo = "offloading.liqo.io";
        assert!(guards(json!({})));
        assert!(guards(json!({ "failurePolicy": null })));
        assert!(guards(rule(liqo, "shadowpods", "*")));
        assert!(!guards(json!({ "failurePolicy": "Ignore" })));
        assert!(!guards(json!({ "rules": null })));
        assert!(!guards(rule(liqo, "resourceslices", "v1beta1")));
        assert!(!guards(rule(liqo, "shadowpods", "v1alpha1")));
        // Somebody else's, for everything.
        assert!(!guards(rule("*", "*", "*")));
        assert!(!guards(rule(liqo, "*", "*")));
    }

    #[test]
    fn a_webhook_counts_if_nobody_is_left_out() {
        let term = |key: &str, operator: &str| json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": ["a"] }] });
        for nothing in
            [json!(null), json!({}), json!({ "matchLabels": {}, "matchExpressions": [] })]
        {
            assert!(guards(json!({ "namespaceSelector": nothing, "objectSelector": nothing })));
        }
        // As some hosted clusters write it into every webhook.
        for spared in [term("control-plane", "DoesNotExist"), term("example.com/own", "NotIn")] {
            assert!(guards(json!({ "namespaceSelector": spared })), "{spared}");
            assert!(!guards(json!({ "objectSelector": spared })), "{spared}");
        }
        for some in [
            json!({ "matchLabels": { "a": "b" } }),
            term("example.com/guarded", "Exists"),
            term("liqo.io/remote-cluster-id", "DoesNotExist"),
            term("kubernetes.io/metadata.name", "NotIn"),
        ] {
            assert!(!guards(json!({ "namespaceSelector": some })), "{some}");
        }
        let condition =
            json!({ "name": "not-rome", "expression": "request.namespace != 'a-rome'" });
        assert!(!guards(json!({ "matchConditions": [condition] })));
    }

    #[test]
    fn what_cannot_be_seen_is_not_taken_for_strict() {
        let started = |by: &str| Started { by: by.to_owned(), words: Vec::new() };
        let judge = |all: &[Started]| {
            lax(WEBHOOK, all, |one| {
                (one.by == "liqo/lax").then_some((Reason::NotEnforced, "it is not strict"))
            })
        };
        let unknown = judge(&[]).unwrap();
        assert_eq!(unknown.reason, Reason::EnforcementUnknown);
        assert!(unknown.message.contains("app.kubernetes.io/name=webhook"), "{unknown:?}");
        assert_eq!(judge(&[started("liqo/strict")]), None);
        let some = judge(&[started("liqo/strict"), started("liqo/lax")]).unwrap();
        assert_eq!(some.reason, Reason::NotEnforced);
        assert_eq!(some.message, "it is not strict (Liqo's webhook in liqo/lax)");
    }
}
