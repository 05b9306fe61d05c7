//! A real API server takes the definitions, and takes or refuses objects as they say.

use serde_json::{Value, json};
use sublet_crds::FILES;
use sublet_testkit::{Cluster, Error, Setup};

/// One object per line, perhaps with a merge patch to `then` apply to it; the last step is `refused`
/// with these words in the answer, or taken.
const CASES: &str = include_str!("../fixtures/admission.jsonl");
const AGENT: &str = include_str!("../../../../wire/tests/fixtures/go-agent-objects.json");
const BROKER: &str = include_str!("../../../../wire/tests/fixtures/go-broker-objects.json");

fn cluster() -> Cluster {
    let cluster = Cluster::start(Setup::api("rome")).unwrap();
    cluster.apply_crds(&FILES.map(|(_, text)| text).join("---\n")).unwrap();
    cluster
}

/// Where objects of this kind are.
fn collection(object: &Value) -> String {
    let [version, kind] = ["apiVersion", "kind"].map(|name| object[name].as_str().unwrap());
    format!("/apis/{version}/namespaces/default/{}s", kind.to_lowercase())
}

/// What came of one case: the object, or what the API server said.
fn outcome(cluster: &Cluster, case: &Value) -> Result<Value, String> {
    let said = |error: Error| match error {
        Error::Refused { said, .. } => said,
        other => panic!("{}: {other}", case["note"]),
    };
    let collection = collection(&case["object"]);
    let created = cluster.api().create(&collection, &case["object"]);
    if case["then"].is_null() {
        return created.map_err(said);
    }
    let created = created.unwrap_or_else(|error| panic!("{}: {error}", case["note"]));
    let name = created["metadata"]["name"].as_str().unwrap();
    cluster.api().patch(&format!("{collection}/{name}"), &case["then"]).map_err(said)
}

fn without_server_fields(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "finalizers"] {
        metadata.remove(field);
    }
    object
}

#[test]
fn what_is_wrong_is_refused_with_a_sentence_and_what_is_right_is_taken() {
    let cluster = cluster();
    let mut wrong = Vec::new();
    for (number, line) in CASES.lines().enumerate() {
        let mut case: Value = serde_json::from_str(line).unwrap();
        case["object"]["metadata"]["name"] = json!(format!("case-{number}"));
        let outcome = outcome(&cluster, &case);
        let as_expected = match (&outcome, case["refused"].as_str()) {
            (Ok(_), None) => true,
            (Err(said), Some(words)) => said.contains(words),
            _ => false,
        };
        if !as_expected {
            wrong.push(format!("{}: {outcome:?}", case["note"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(CASES.lines().count() > 100);
}

#[test]
fn every_object_of_the_go_system_is_taken_with_its_status_and_shown() {
    let cluster = cluster();
    let lists = [AGENT, BROKER].map(|text| serde_json::from_str::<Value>(text).unwrap());
    let objects = lists.iter().flat_map(|lists| lists.as_object().unwrap().values());
    for object in objects.flat_map(|list| list.as_array().unwrap()) {
        let object = without_server_fields(object.clone());
        let collection = collection(&object);
        let created = cluster.api().create(&collection, &object).unwrap();
        let name = created["metadata"]["name"].as_str().unwrap();
        let status = json!({ "status": object["status"] });
        let path = format!("{collection}/{name}/status");
        let kept = cluster.api().patch(&path, &status).unwrap();
        for part in ["spec", "status"] {
            assert_eq!(kept[part], object[part], "{name}");
        }
    }
    let shown = |arguments: &[&str]| cluster.kubectl(&[&["get"], arguments].concat()).unwrap();
    let scores = shown(&["cadv"]);
    assert!(scores.contains("90.62"), "{scores}");
    let requests = shown(&["rr", "-o", "wide"]);
    assert!(requests.contains("Resources reserved in cluster c2"), "{requests}");
    for kind in ["adv", "rins", "pins", "rsv", "advertisements", "reservations"] {
        assert!(shown(&[kind]).lines().count() > 1, "{kind}");
    }
    assert!(shown(&["sublet"]).contains("resourcerequest.rear.fluidos.eu/ok"));
}

#[test]
fn a_status_is_checked_as_well() {
    let cluster = cluster();
    let request: Value = serde_json::from_str(CASES.lines().next().unwrap()).unwrap();
    let collection = collection(&request["object"]);
    cluster.api().create(&collection, &request["object"]).unwrap();
    let path = format!("{collection}/x/status");
    let say = |status: Value| cluster.api().patch(&path, &json!({ "status": status }));
    // The Go system writes null for a time that was not set; it is dropped.
    let kept = say(json!({ "phase": "Active", "lastUpdateTime": null })).unwrap();
    assert!(kept["status"]["lastUpdateTime"].is_null());
    let ready = |status: &str| {
        json!({ "conditions": [{
            "type": "Ready", "status": status, "reason": "Done", "message": "",
            "lastTransitionTime": "2026-11-15T22:12:00Z", "observedGeneration": 1,
        }] })
    };
    say(ready("True")).unwrap();
    for wrong in [json!({ "phase": "Perhaps" }), ready("Maybe"), json!({ "expiresAt": "later" })] {
        assert!(matches!(say(wrong.clone()), Err(Error::Refused { status: 422, .. })), "{wrong}");
    }
}
