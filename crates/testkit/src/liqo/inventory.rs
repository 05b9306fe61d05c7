//! Everything that joined clusters could leave behind, and in which state.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::served::collections;
use crate::api::Api;
use crate::error::Error;
use crate::wait::{PATIENCE, wait_for};

/// Everything there is in a cluster, of whatever kind, each with what is compared of it.
pub fn inventory(api: &Api) -> Result<BTreeSet<String>, Error> {
    let mut all = BTreeSet::new();
    for collection in collections(api)? {
        all.extend(listed(api, &collection)?);
    }
    Ok(all)
}

/// What is not as it was, of everything for which that matters; nothing if everything is. It is looked no further than the
/// first kind of which that is so: whoever waits for the end of it asks again and again.
pub fn differences(
    api: &Api,
    before: &BTreeSet<String>,
    matters: impl Fn(&str) -> bool,
) -> Result<Vec<String>, Error> {
    let mut before: BTreeSet<_> = before.iter().filter(|object| matters(object)).cloned().collect();
    for collection in collections(api)? {
        let prefix = format!("{collection} ");
        let was = before.extract_if(.., |object| object.starts_with(&prefix)).collect();
        let mut is = listed(api, &collection)?;
        is.retain(|object| matters(object));
        if is != was {
            return Ok(is.symmetric_difference(&was).cloned().collect());
        }
    }
    // What is left is of kinds that are not served any more.
    Ok(before.into_iter().collect())
}

fn listed(api: &Api, collection: &str) -> Result<BTreeSet<String>, Error> {
    // Whoever was killed comes back, and a kind that was just installed is not served at once.
    let list = wait_for(collection, PATIENCE, || api.get(collection).ok())?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.map(|item| described(collection, item)).collect())
}

/// Annotations that change by themselves: how a Deployment was last rolled out, who leads, and for how long a
/// link has not been used.
const PASSING: [&str; 3] =
    ["deployment.kubernetes.io/", "control-plane.alpha.kubernetes.io/", "sublet.io/unused-as-"];
/// What is in the names of all that is Liqo's or ours, or in the labels and annotations that they give.
const THEIRS: [&str; 3] = ["liqo", "sublet", "fluidos.eu"];

/// Kinds of which the spec is what somebody says all the time: that he still holds a lease, or what is free.
const SPOKEN: [&str; 2] = ["/leases", "/advertisements"];
/// What of an object is told elsewhere, is no state of it, or is not to be printed.
const UNTOLD: [&str; 6] = ["apiVersion", "kind", "metadata", "status", "data", "spec"];

/// An object: its collection, what is to be as it was, and last its namespace and name. Of what is Liqo's or ours
/// that is labels, annotations, finalizers, spec, what a role allows, who has it, which webhook is asked; of everything, whether it is being
/// deleted. Kubernetes' own controllers complete what is theirs whenever they come to it, so of the rest nothing more.
fn described(collection: &str, object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default();
    let is_going = if metadata["deletionTimestamp"].is_null() { "" } else { "going " };
    let theirs = is_theirs(collection, metadata).then(|| format!("{} ", state(collection, object)));
    let theirs = theirs.unwrap_or_default();
    format!("{collection} {is_going}{theirs}{}/{}", text("namespace"), text("name"))
}

/// Is it Liqo's or ours, or has one of them put something on it?
fn is_theirs(collection: &str, metadata: &Value) -> bool {
    let words = [&metadata["namespace"], &metadata["name"]].map(Value::as_str);
    let keys = [&metadata["labels"], &metadata["annotations"]];
    let keys = keys.into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    let mut all = words.into_iter().flatten().chain(keys.map(String::as_str)).chain([collection]);
    all.any(|word| THEIRS.iter().any(|mark| word.contains(mark)))
}

fn state(collection: &str, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let is_spoken = SPOKEN.iter().any(|kind| collection.ends_with(kind));
    let spec = if is_spoken { &Value::Null } else { &object["spec"] };
    let mut state = json!({
        "labels": metadata["labels"], "finalizers": metadata["finalizers"], "spec": spec,
    });
    let parts = object.as_object().into_iter().flatten();
    for (name, part) in parts.filter(|(name, _)| !UNTOLD.contains(&name.as_str())) {
        state[name] = part.clone();
    }
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    let lasting: Map<_, _> = annotations
        .filter(|(name, _)| !PASSING.iter().any(|passing| name.starts_with(passing)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !lasting.is_empty() {
        state["annotations"] = lasting.into();
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

    fn role(name: &str, verb: &str, annotations: &Value) -> String {
        let object = json!({
            "metadata": { "name": name, "annotations": annotations },
            "rules": [{ "verbs": [verb] }],
        });
        described(ROLES, &object)
    }

    #[test]
    fn what_is_liqos_or_ours_is_compared_with_all_that_is_to_last() {
        for name in ["liqo-webhook", "sublet-agent"] {
            assert_ne!(role(name, "get", &json!({})), role(name, "delete", &json!({})));
            let touched = json!({ "liqo.io/cordon": "true" });
            assert_ne!(role(name, "get", &json!({})), role(name, "get", &touched));
            let passing = json!({ "sublet.io/unused-as-provider": "now" });
            assert_eq!(role(name, "get", &json!({})), role(name, "get", &passing));
        }
    }

    #[test]
    fn what_is_kubernetes_own_is_compared_by_name_until_somebody_of_ours_touches_it() {
        let before = role("admin", "get", &json!({}));
        assert_eq!(before, format!("{ROLES} /admin"));
        assert_eq!(
            before,
            role("admin", "delete", &json!({ "node.alpha.kubernetes.io/ttl": "0" }))
        );
        assert_ne!(before, role("admin", "get", &json!({ "liqo.io/cordon": "true" })));
    }

    #[test]
    fn what_is_being_deleted_is_not_as_before() {
        let there = json!({ "metadata": { "name": "worker" } });
        let going = json!({ "metadata": { "name": "worker", "deletionTimestamp": "now" } });
        assert_ne!(described("/api/v1/nodes", &there), described("/api/v1/nodes", &going));
    }
}
