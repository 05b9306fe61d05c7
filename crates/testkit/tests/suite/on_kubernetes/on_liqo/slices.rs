//! Slices and quotas.

use serde_json::json;
use sublet_testkit::{Controller, Liqo, Process};

use super::by_hand::{Pair, condition, until_gone, when};

/// Slices are what the provider grants, also after kill -9 of all controllers.
pub(super) fn a_slice_of_a_class_of_ours_is_what_the_provider_grants(
    pair: Pair<'_>,
    liqo: &[Liqo],
) {
    // What is written while nobody is there is found by those who come back.
    let parts = [Controller::Manager, Controller::Replicator];
    let controllers =
        || liqo.iter().flat_map(|liqo| parts.map(|part| liqo.controller(part).unwrap()));
    controllers().for_each(Process::kill);
    assert!(controllers().all(|controller| controller.pid().is_none()));
    let asked = json!({ "cpu": "4", "memory": "8Gi", "pods": "40", "ephemeral-storage": "10Gi" });
    pair.ask("rsv-bbbb", &asked);
    controllers().for_each(|controller| controller.start().unwrap());

    let (requester, provider) = (pair.requester.api(), pair.provider.api());
    let replica = when(&provider, &pair.replica("rsv-bbbb"), |slice| {
        condition(slice, "Authentication") == Some("Accepted")
    });
    assert_eq!(replica["spec"]["resources"], asked);
    assert_eq!(condition(&replica, "Resources"), None, "Liqo decides about no class but its own");
    assert_eq!(provider.get(&pair.quotas()).unwrap()["items"], json!([]));

    // Less than was asked for: what counts is what was granted.
    let granted = json!({ "cpu": "2", "memory": "4Gi", "pods": "20", "ephemeral-storage": "10Gi" });
    pair.grant("rsv-bbbb", &granted);
    let slice = when(&requester, &pair.slice("rsv-bbbb"), |slice| {
        condition(slice, "Resources") == Some("Accepted")
    });
    assert_eq!(slice["status"]["resources"], granted);
    let quotas = when(&provider, &pair.quotas(), |quotas| !quotas["items"][0].is_null());
    assert_eq!(quotas["items"][0]["spec"]["resources"], granted);
    assert!(quotas["items"][1].is_null());
    requester.delete(&pair.slice("rsv-bbbb")).unwrap();
    when(&requester, &pair.virtual_nodes(), |list| list["items"] == json!([]));
    until_gone(&provider, &pair.replica("rsv-bbbb"));
}
