//! `deploy/agent/deployment.yaml`, as a real API server and the program itself read it.

use serde_json::{Value, json};

use super::member::Member;
use crate::broker::Town;

const DEPLOYMENT: &str = include_str!("../../../../../deploy/agent/deployment.yaml");

/// An API server takes it, nobody warns, and its pods are allowed in the namespace of the role, which
/// wants them restricted.
pub(super) fn is_accepted(member: &Member, town: &Town) {
    let path = member.cluster.folder().join("deployment.yaml");
    std::fs::write(&path, DEPLOYMENT).unwrap();
    let how = ["create", "--dry-run=server", "--validate=strict", "--warnings-as-errors"];
    let file = path.display().to_string();
    let text = member.cluster.kubectl(&[&how[..], &["-o", "json", "-f", &file]].concat()).unwrap();
    let accepted: Value = serde_json::from_str(&text).unwrap();
    let template = &accepted["spec"]["template"];

    let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "spec": template["spec"] });
    pod["metadata"] = json!({ "name": "agent", "namespace": "sublet" });
    let pods = "/api/v1/namespaces/sublet/pods?dryRun=All";
    member.cluster.api().create(pods, &pod).unwrap();
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
    let refused = member.cluster.api().create(pods, &pod).unwrap_err().to_string();
    assert!(refused.contains("PodSecurity"), "nobody looked: {refused}");

    let words = template["spec"]["containers"][0]["args"].as_array().unwrap();
    let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
    let said = town.anna.ok(&format!("{} --print-config", words.join(" ")));
    assert!(said.contains("leader-elect = true"), "{said}");
}
