//! What Milan's API server has written down of what our policies refused: an agent does not see that.

use serde_json::Value;

use super::world::World;
use crate::on_kubernetes::until::until;

/// With this the API server says in an event which policies were broken, and what they said.
const FAILURES: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Waits until it is written that this policy refused something to this user, and why.
pub(super) async fn is_audited(world: &World<'_>, user: &str, policy: &str, why: &str) {
    let log = world.rig.clusters[1].audit_log();
    let found = || async {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.lines().any(|line| tells(line, user, policy, why)).then_some(())
    };
    until(&format!("in the audit log, that {policy} refused it to {user}: {why}"), found).await;
}

/// Waits until it is written that something was refused to this user about an object of that namespace, by whomever, and
/// why.
pub(super) async fn is_refused(world: &World<'_>, user: &str, namespace: &str, why: &str) {
    let log = world.rig.clusters[1].audit_log();
    let is_this = |line: &str| {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return false };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        event["responseStatus"]["code"] == 403
            && text(&event["user"]["username"]).starts_with(user)
            && event["objectRef"]["namespace"] == namespace
            && text(&event["responseStatus"]["message"]).contains(why)
    };
    let found = || async {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.lines().any(is_this).then_some(())
    };
    until(&format!("in the audit log, that it was refused to {user}: {why}"), found).await;
}

fn tells(line: &str, user: &str, policy: &str, why: &str) -> bool {
    // The last line may not be whole yet.
    let Ok(event) = serde_json::from_str::<Value>(line) else { return false };
    let by = event["user"]["username"].as_str().unwrap_or_default();
    let failures = event["annotations"][FAILURES].as_str().unwrap_or_default();
    let failures = serde_json::from_str::<Value>(failures).unwrap_or_default();
    let is_this = |failure: &Value| {
        let said = failure["message"].as_str().unwrap_or_default();
        failure["policy"] == policy && said.contains(why)
    };
    let is_refused = event["responseStatus"]["code"].as_u64().is_some_and(|code| code >= 400);
    by.starts_with(user) && is_refused && failures.as_array().into_iter().flatten().any(is_this)
}
