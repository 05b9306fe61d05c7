//! The Go system's objects are read and written back as they were, and its fields are all there
//! with its types: so what we write, its programs read.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sublet_crds::{
    Advertisement, ClusterAdvertisement, ProviderInstruction, Reservation, ReservationInstruction,
    ReservationPhase, ResourceRequest, all,
};

/// What a Go agent had in its cluster after a minute, and what the Go broker keeps.
const AGENT: &str = include_str!("../../../wire/tests/fixtures/go-agent-objects.json");
const BROKER: &str = include_str!("../../../wire/tests/fixtures/go-broker-objects.json");

fn recorded(text: &str, list: &str) -> Vec<Value> {
    let lists: Value = serde_json::from_str(text).unwrap();
    let objects = lists[list].as_array().unwrap_or_else(|| panic!("{list}")).clone();
    assert!(!objects.is_empty(), "{list}");
    objects
}

/// Reads each object as `T`, and sees that nothing of it gets lost or changed on the way.
fn round<T: DeserializeOwned + Serialize>(text: &str, list: &str) -> Vec<T> {
    let there_and_back = |object: Value| {
        let read: T = serde_json::from_value(object.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), object, "{list}");
        read
    };
    recorded(text, list).into_iter().map(there_and_back).collect()
}

#[test]
fn every_object_of_the_go_system_is_read_and_written_back_unchanged() {
    round::<Advertisement>(AGENT, "advertisements.rear.fluidos.eu");
    round::<ReservationInstruction>(AGENT, "reservationinstructions");
    round::<ClusterAdvertisement>(BROKER, "clusteradvertisements");
    let requests = round::<ResourceRequest>(AGENT, "resourcerequests");
    for request in requests {
        let ask = request.spec.ask().unwrap();
        assert_eq!((ask.priority, ask.duration.unwrap().as_millis()), (10, 3_600_000));
    }
    let [instruction] = &round::<ProviderInstruction>(AGENT, "providerinstructions")[..] else {
        panic!("one was recorded");
    };
    assert_eq!(instruction.spec.requester().unwrap().as_str(), "c2");
    assert_eq!(instruction.spec.amounts.resources().unwrap().cpu, 1000);
    assert!(instruction.status.as_ref().unwrap().enforced);
}

#[test]
fn a_reservation_of_the_go_system_means_the_same_here() {
    let phase = |object: &Reservation| object.status.as_ref().unwrap().phase.unwrap();
    for object in round::<Reservation>(BROKER, "reservations") {
        let name = object.metadata.name.as_deref().unwrap();
        let ask = object.spec.ask().unwrap();
        assert!(ask.resources.cpu > 0 && ask.resources.memory > 0);
        match name {
            "nobody" => assert!(object.spec.requester().is_err()),
            "targeted" => assert_eq!(ask.target.unwrap().as_str(), "c3"),
            "too-big" => assert_eq!(phase(&object), ReservationPhase::Failed),
            _ => assert_eq!(phase(&object), ReservationPhase::Reserved),
        }
    }
}

#[test]
fn our_instructions_say_what_the_go_agent_says() {
    let recorded = recorded(AGENT, "reservationinstructions").remove(0)["spec"].clone();
    let amounts = sublet_core::resources::Resources::new(500, 256 << 20);
    let ours = sublet_crds::ReservationInstructionSpec::new(
        "rsv-c1-1794780000001",
        &"c2".parse().unwrap(),
        &amounts,
        None,
    );
    assert_eq!(serde_json::to_value(ours).unwrap(), recorded);
    let recorded = self::recorded(AGENT, "providerinstructions").remove(0);
    let ours = sublet_crds::ProviderInstructionSpec::new(
        "rsv-c2-1794780000000",
        &"c2".parse().unwrap(),
        &sublet_core::resources::Resources::new(1000, 1 << 30),
        Some(sublet_core::time::Time::from_millis(1_797_336_000_000)),
    );
    assert_eq!(serde_json::to_value(ours).unwrap(), recorded["spec"]);
    let name = sublet_crds::ProviderInstructionSpec::object_name("rsv-c2-1794780000000");
    assert_eq!(json!(name), recorded["metadata"]["name"]);
}

#[test]
fn what_is_null_or_unknown_to_us_does_not_stop_a_watch() {
    let mut object = recorded(AGENT, "resourcerequests").remove(0);
    object["status"]["phase"] = json!("Negotiating");
    object["status"]["lastUpdateTime"] = Value::Null;
    object["spec"]["constraints"] = json!([{ "key": "a", "operator": "Near" }]);
    object["spec"]["invented"] = json!({ "later": true });
    let read: ResourceRequest = serde_json::from_value(object).unwrap();
    assert_eq!(read.spec.ask().unwrap_err().field, "spec.constraints[0].operator");
    assert!(read.status.unwrap().last_update_time.is_none());
}

/// The Go system's fields (seed-contract §2): kind, path, type, required. `quantity` is a number or
/// a text, `time` a text with a date.
const FIELDS: &str = include_str!("fixtures/go-fields.txt");

#[test]
fn every_field_of_the_go_system_is_there_with_its_type() {
    let mut checked = 0;
    for line in FIELDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [kind, path, form, required] = line
            .split_whitespace()
            .collect::<Vec<_>>()
            .try_into()
            .unwrap_or_else(|_| panic!("{line}"));
        let (schema, is_required) = field(kind, path);
        assert_eq!(type_of(&schema), form, "{kind} {path}");
        assert_eq!(is_required, required == "required", "{kind} {path}");
        checked += 1;
    }
    assert!(checked > 100, "only {checked} fields");
}

/// The schema of one field, and whether the one above it requires it.
fn field(kind: &str, path: &str) -> (Value, bool) {
    let definitions = all().map(|definition| serde_json::to_value(definition).unwrap());
    let of_kind = |one: &&Value| one["spec"]["names"]["kind"] == kind;
    let definition = definitions.iter().find(of_kind).unwrap_or_else(|| panic!("{kind}"));
    let top = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    path.split('.').fold((top, true), |(schema, _), name| {
        let next = schema["properties"][name].clone();
        assert!(!next.is_null(), "{kind} has no {path}");
        let required = schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
        (next, required)
    })
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "quantity".to_owned();
    }
    match (schema["type"].as_str().unwrap_or("none"), schema["format"].as_str()) {
        ("string", Some("date-time")) => "time".to_owned(),
        ("integer", Some(format)) => format.to_owned(),
        (plain, _) => plain.to_owned(),
    }
}
