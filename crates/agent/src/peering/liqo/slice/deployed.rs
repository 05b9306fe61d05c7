//! How the parts of Liqo are started here that decide how strict it is. They are Deployments, which a chart
//! may have given other names, so they are known by name, by label or by what they run.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde::Deserialize;
use serde_json::Value;

use super::ground::{Answer, Ground};
use crate::peering::liqo::names::LIQO_NAMESPACE;

/// The label that says what a part of Liqo is, whatever its installation is called.
const COMPONENT: &str = "app.kubernetes.io/name";

/// A part of Liqo, and what it is known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// For people.
    pub(super) called: &'static str,
    name: &'static str,
    component: &'static str,
    program: &'static str,
}

/// Enforces quotas.
pub(super) const WEBHOOK: Part = Part {
    called: "Liqo's webhook",
    name: "liqo-webhook",
    component: "webhook",
    program: "webhook",
};

/// Says in each quota how strict that is.
pub(super) const MANAGER: Part = Part {
    called: "Liqo's controller manager",
    name: "liqo-controller-manager",
    component: "controller-manager",
    program: "liqo-controller-manager",
};

impl Part {
    /// What to do where nobody can say how it is started.
    pub(super) fn missing(self) -> String {
        let Self { called, name, component, program } = self;
        format!(
            "how {called} was started cannot be seen: no Deployment in the namespace {LIQO_NAMESPACE} is \
             called {name}, has the label {COMPONENT}={component} or runs {program}; install Liqo by its \
             chart in that namespace, or give its Deployment that label"
        )
    }
}

/// A Deployment of which little is looked at: the whole type would be a third of a megabyte of program.
#[derive(Clone, Debug, Deserialize, kube::Resource)]
#[resource(inherit = "v1::Deployment")]
struct Deployment {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

/// How a part was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Started {
    /// The Deployment, for people.
    pub(super) by: String,
    /// The commands and arguments of its containers.
    pub(super) words: Vec<String>,
}

impl Ground {
    /// How a part of Liqo was started, by each Deployment that may be it. One that has the name that Liqo's
    /// chart gives it is the only one.
    pub(super) async fn started(&self, part: Part) -> Answer<Vec<Started>> {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), LIQO_NAMESPACE);
        if let Some(found) = deployments.get_opt(part.name).await? {
            return Ok(vec![Started::of(&found)]);
        }
        let all = deployments.list(&ListParams::default()).await?.items;
        let found = all.iter().filter(|one| is(part, one.labels(), &one.spec));
        Ok(found.map(Started::of).collect())
    }
}

impl Started {
    fn of(deployment: &Deployment) -> Self {
        let by = format!("{LIQO_NAMESPACE}/{}", deployment.name_any());
        let each = containers(&deployment.spec);
        let words = each.iter().flat_map(|one| [texts(&one["command"]), texts(&one["args"])]);
        Self { by, words: words.flatten().collect() }
    }

    /// What a flag was set to, in one argument or in two; the last one counts.
    pub(super) fn value_of(&self, flag: &str) -> Option<&str> {
        let mut all = self.words.iter().enumerate().rev();
        all.find_map(|(at, word)| match word.strip_prefix(flag)? {
            "" => self.words.get(at + 1).map(String::as_str),
            rest => rest.strip_prefix('='),
        })
    }

    /// Is a flag set that needs no value?
    pub(super) fn is_on(&self, flag: &str) -> bool {
        let all = self.words.iter().rev().filter_map(|word| word.strip_prefix(flag));
        let mut said = all.filter(|rest| rest.is_empty() || rest.starts_with('='));
        matches!(said.next(), Some("" | "=true" | "=True" | "=TRUE" | "=t" | "=T" | "=1"))
    }
}

/// May a Deployment be this part, by its label or by what it runs?
fn is(part: Part, labels: &BTreeMap<String, String>, spec: &Value) -> bool {
    let runs = |container: &Value| {
        let first = texts(&container["command"]).into_iter().next();
        first.is_some_and(|path| path.rsplit('/').next() == Some(part.program))
    };
    labels.get(COMPONENT).is_some_and(|is| is == part.component)
        || containers(spec).iter().any(runs)
}

fn containers(spec: &Value) -> Vec<Value> {
    let found = spec.pointer("/template/spec/containers").and_then(Value::as_array);
    found.cloned().unwrap_or_default()
}

fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    all.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(labels: &Value, containers: &Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": { "name": "borders", "labels": labels },
            "spec": { "replicas": 1, "template": { "spec": { "containers": containers } } },
        }))
        .unwrap()
    }

    fn started(words: &[&str]) -> Started {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Started { by: String::new(), words }
    }

    #[test]
    fn a_part_is_known_by_its_label_or_by_what_it_runs_whatever_its_name() {
        let known = |part: Part, labels: Value, command: Value| {
            let found = deployment(&labels, &json!([{ "name": "a" }, { "command": command }]));
            is(part, found.labels(), &found.spec)
        };
        let (nothing, shell) = (json!({}), json!(["/bin/sh", "webhook"]));
        assert!(known(WEBHOOK, json!({ COMPONENT: "webhook" }), shell.clone()));
        assert!(known(WEBHOOK, nothing.clone(), json!(["/usr/bin/webhook"])));
        assert!(known(MANAGER, nothing.clone(), json!(["liqo-controller-manager", "--x"])));
        assert!(known(MANAGER, json!({ COMPONENT: "controller-manager" }), Value::Null));
        for other in [shell, json!([]), json!(["/usr/bin/webhook-certs"]), Value::Null] {
            assert!(!known(WEBHOOK, json!({ COMPONENT: "ipam" }), other.clone()), "{other}");
            assert!(!known(MANAGER, nothing.clone(), other.clone()), "{other}");
        }
        assert!(!is(WEBHOOK, &BTreeMap::new(), &Value::Null));
    }

    #[test]
    fn a_deployment_says_how_its_containers_are_started() {
        let containers = json!([{ "name": "a", "command": ["/bin/liqo"], "args": ["--x", "1"] }, { "name": "b" }]);
        let said = Started::of(&deployment(&json!({}), &containers));
        assert_eq!(said.by, "liqo/borders");
        assert_eq!(said.words, ["/bin/liqo", "--x", "1"]);
        assert!(Started::of(&deployment(&json!({}), &Value::Null)).words.is_empty());
    }

    #[test]
    fn a_flag_is_read_as_liqo_reads_it() {
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
            assert_eq!(started(all).value_of(limits), value, "{all:?}");
        }
        let enforce = "--enable-resource-enforcement";
        assert!(started(&[enforce]).is_on(enforce));
        assert!(started(&["--enable-resource-enforcement=true"]).is_on(enforce));
        assert!(!started(&[enforce, "--enable-resource-enforcement=false"]).is_on(enforce));
        assert!(!started(&["--enable-resource-enforcement-x"]).is_on(enforce));
    }
}
