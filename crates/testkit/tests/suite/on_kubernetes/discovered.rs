//! What is compared before and after is every kind that there is.

use serde_json::json;
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Cluster, Setup, differences, inventory, wait_for};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TRACES: &str = "/apis/later.liqo.io/v1/namespaces/default/traces";

#[test]
fn a_kind_that_nobody_knew_of_is_compared_as_soon_as_it_is_there() {
    let cluster = Cluster::start(Setup::api("rome")).unwrap();
    let api = cluster.api();
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "traces.later.liqo.io" },
        "spec": {
            "group": "later.liqo.io", "scope": "Namespaced",
            "names": { "plural": "traces", "singular": "trace", "kind": "Trace" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                           "schema": { "openAPIV3Schema": schema } }],
        },
    });
    api.create(DEFINITIONS, &definition).unwrap();
    let all = |_: &str| true;
    let found = |object: &str| {
        wait_for(object, PATIENCE, || {
            inventory(&api).unwrap().iter().any(|found| found.ends_with(object)).then_some(())
        })
    };
    // An API service is what says that its group is served.
    found(" /v1.later.liqo.io").unwrap();
    let before = inventory(&api).unwrap();
    let kinds = [
        (TRACES, json!({ "apiVersion": "later.liqo.io/v1", "kind": "Trace" })),
        ("/api/v1/namespaces/default/resourcequotas", json!({})),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
            json!({ "spec": { "policyName": "left", "validationActions": ["Deny"] } }),
        ),
    ];
    for (path, object) in kinds {
        let mut object = object;
        object["metadata"] = json!({ "name": "left" });
        wait_for(path, PATIENCE, || api.create(path, &object).ok()).unwrap();
        found("/left").unwrap();
        let differs = differences(&api, &before, all).unwrap();
        let plural = path.rsplit('/').next().unwrap();
        assert!(matches!(&differs[..], [one] if one.contains(plural)), "{differs:?}");
        api.delete(&format!("{path}/left")).unwrap();
        wait_for("everything as before", PATIENCE, || {
            differences(&api, &before, all).unwrap().is_empty().then_some(())
        })
        .unwrap();
    }
}
