//! Which collections an API server has, by its own word: a kind that is added is looked at too, and nobody has to
//! remember it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::Api;
use crate::error::Error;
use crate::wait::{PATIENCE, wait_for};

/// Everything that is served, in one answer for each of the two roots.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What is not looked at: what was said of something is not something that is left, a component is no object, and
/// a definition is as large as everything else together while what it defines is served, which is looked at.
const IGNORED: [&str; 3] = ["events", "componentstatuses", "customresourcedefinitions"];

/// Every collection that can be listed, each in the version that its group prefers.
pub(super) fn collections(api: &Api) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    for root in ["/api", "/apis"] {
        let groups = wait_for(root, PATIENCE, || api.get_as(DISCOVERY, root).ok())?;
        all.extend(array(&groups["items"]).flat_map(|group| of_group(root, group)));
    }
    Ok(all)
}

fn of_group(root: &str, group: &Value) -> Vec<String> {
    // The group of the oldest kinds has no name.
    let name = group["metadata"]["name"].as_str().map(|name| format!("/{name}"));
    let base = format!("{root}{}", name.unwrap_or_default());
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    // The preferred version comes first; a kind that only another one has is found there.
    for version in array(&group["versions"]) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let listed = array(&version["resources"]).filter(|kind| can_be_listed(kind));
        for kind in listed.map(|kind| text(&kind["resource"])) {
            if !IGNORED.contains(&kind.as_str()) && known.insert(kind.clone()) {
                all.push(format!("{base}/{}/{kind}", text(&version["version"])));
            }
        }
    }
    all
}

fn can_be_listed(kind: &Value) -> bool {
    array(&kind["verbs"]).any(|verb| verb == "list")
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(name: &str, verbs: &[&str]) -> Value {
        json!({ "resource": name, "verbs": verbs })
    }

    #[test]
    fn every_kind_that_can_be_listed_is_looked_at_once() {
        let both = &["get", "list"][..];
        let group = json!({
            "metadata": { "name": "offloading.liqo.io" },
            "versions": [
                { "version": "v1beta1", "resources": [kind("quotas", both), kind("asked", &["create"])] },
                { "version": "v1alpha1", "resources": [kind("quotas", both), kind("older", both)] },
            ],
        });
        assert_eq!(
            of_group("/apis", &group),
            ["/apis/offloading.liqo.io/v1beta1/quotas", "/apis/offloading.liqo.io/v1alpha1/older"]
        );
    }

    #[test]
    fn the_oldest_kinds_have_no_group_and_what_was_said_is_not_looked_at() {
        let all = [kind("pods", &["list"]), kind("events", &["list"])];
        let group = json!({ "metadata": {}, "versions": [{ "version": "v1", "resources": all }] });
        assert_eq!(of_group("/api", &group), ["/api/v1/pods"]);
    }
}
