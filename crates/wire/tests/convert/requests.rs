//! Requests of clusters and of operators.

use serde_json::{Value, json};
use sublet_core::advertisement::Backend;
use sublet_core::decision::{Match, Strategy};
use sublet_core::event::Subject;
use sublet_core::reservation::Ask;
use sublet_core::resources::Kind;
use sublet_wire::Invalid;
use sublet_wire::v1::{Cap, Renewal, ReservationRequest, Resizing, Revocation};

use super::{read, with};

fn whole() -> Value {
    json!({
        "requestedResources": {
            "cpu": "1500u", "memory": "1.5", "gpu": "1", "storage": "10Gi", "example.com/fpga": "2",
        },
        "priority": -3,
        "duration": "1.5h",
        "targetClusterID": "c2",
        "constraints": [
            { "key": "zone", "operator": "In", "values": ["a", "b"] },
            { "key": "spot", "operator": "DoesNotExist" },
        ],
        "strategy": "cost",
        "wait": "10m",
        "explain": true,
        "activates": true,
        "backends": ["liqo"],
    })
}

fn asked(value: &Value) -> Result<Ask, Invalid> {
    read::<ReservationRequest>(value).to_core()
}

#[test]
fn everything_that_is_asked_arrives_and_rounds_up() {
    let ask = asked(&whole()).expect("it is right");
    assert_eq!((ask.resources.cpu, ask.resources.memory, ask.resources.gpu), (2, 2, 1));
    assert_eq!(ask.resources.storage, 10 << 30);
    assert_eq!(ask.resources.get(&"example.com/fpga".parse().unwrap()), 2);
    assert_eq!((ask.priority, ask.duration.unwrap().as_millis()), (-3, 5_400_000));
    assert_eq!(ask.target.unwrap().as_str(), "c2");
    assert_eq!(ask.constraints[0].is, Match::In(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(ask.constraints[1].is, Match::Absent);
    assert_eq!((ask.strategy, ask.wait.unwrap().as_millis()), (Some(Strategy::Cost), 600_000));
    assert!(ask.activates && ask.backends.contains(Backend::Liqo));
}

#[test]
fn empty_texts_are_as_good_as_none() {
    let mut value = whole();
    for name in ["duration", "targetClusterID", "strategy", "wait"] {
        value[name] = json!("");
    }
    value["requestedResources"]["gpu"] = json!("");
    let ask = asked(&value).expect("it is right");
    assert_eq!((ask.duration, ask.target, ask.strategy, ask.wait), (None, None, None, None));
    assert_eq!(ask.resources.gpu, 0);
}

#[test]
fn every_member_that_is_wrong_is_named_and_go_s_words_come_first() {
    for (pointer, value, field, begins) in [
        ("/requestedResources/cpu", json!(""), "requestedResources", "requestedResources.cpu and"),
        ("/requestedResources/cpu", json!("x"), "requestedResources.cpu", "Invalid CPU quantity: "),
        ("/requestedResources/memory", json!("1GB"), "requestedResources.memory", "Invalid memory"),
        ("/requestedResources/memory", json!("-1"), "requestedResources", "Requested CPU and"),
        ("/requestedResources/cpu", json!("1e40"), "requestedResources.cpu", "requestedRes"),
        (
            "/requestedResources/gpu",
            json!("-1"),
            "requestedResources.gpu",
            "requestedResources.gpu",
        ),
        ("/requestedResources/gpu", json!("some"), "requestedResources.gpu", "requestedResources"),
        ("/duration", json!("1 day"), "duration", "Invalid duration: \" day\""),
        ("/duration", json!("-1h"), "duration", "Invalid duration: it must be longer than 0"),
        ("/duration", json!("0"), "duration", "Invalid duration: it must be longer than 0"),
        ("/duration", json!("5"), "duration", "Invalid duration: a duration needs a unit"),
        ("/wait", json!("-1s"), "wait", "wait: "),
        ("/targetClusterID", json!("../x"), "targetClusterID", "targetClusterID: "),
        ("/strategy", json!("random"), "strategy", "strategy: there is no such"),
        ("/constraints/0/values", json!([]), "constraints[0]", "constraints[0]: In and NotIn"),
        ("/constraints/0/key", json!(""), "constraints[0]", "constraints[0]: a constraint needs"),
        ("/constraints/1/values", json!(["x"]), "constraints[1]", "constraints[1]: Exists and"),
        ("/backends", json!(["smoke"]), "backends", "backends: none of these"),
    ] {
        let invalid = asked(&with(whole(), pointer, value)).expect_err(pointer);
        assert_eq!(invalid.field, field, "{invalid}");
        assert!(invalid.message.starts_with(begins), "{invalid}");
    }
}

#[test]
fn the_go_broker_s_order_decides_which_of_two_mistakes_is_told() {
    let bad = json!({ "requestedResources": { "cpu": "x", "memory": "y" }, "duration": "z" });
    assert_eq!(asked(&bad).unwrap_err().field, "requestedResources.cpu");
    let bad = json!({ "requestedResources": { "cpu": "0", "memory": "y" }, "duration": "z" });
    assert_eq!(asked(&bad).unwrap_err().field, "requestedResources.memory");
    let bad = json!({ "requestedResources": { "cpu": "0", "memory": "1" }, "duration": "z" });
    assert!(asked(&bad).unwrap_err().message.ends_with("must be greater than zero"));
}

#[test]
fn a_renewal_and_a_new_size_are_checked_alike() {
    assert_eq!(read::<Renewal>(&json!({})).to_core(), Ok(None));
    assert!(read::<Renewal>(&json!({ "duration": "0s" })).to_core().is_err());
    let size = json!({ "requestedResources": { "cpu": "2", "memory": "1Gi" } });
    assert_eq!(read::<Resizing>(&size).to_core().unwrap().cpu, 2000);
    assert!(read::<Resizing>(&json!({})).to_core().is_err());
}

#[test]
fn a_cap_bounds_what_it_names() {
    let cap = json!({ "limits": { "cpu": "4", "nvidia.com/gpu": "1" }, "why": "maintenance" });
    let limits = read::<Cap>(&cap).to_core().expect("it is right");
    assert_eq!(limits.0.get(&Kind::Cpu), Some(&4000));
    assert_eq!(limits.0.get(&Kind::Gpu), Some(&1));
    let bad = read::<Cap>(&json!({ "limits": { "cpu": "many" } })).to_core();
    assert_eq!(bad.unwrap_err().field, "limits.cpu");
    let many: serde_json::Map<_, _> =
        (0..33).map(|n| (format!("example.com/r{n}"), json!("1"))).collect();
    assert_eq!(read::<Cap>(&json!({ "limits": many })).to_core().unwrap_err().field, "limits");
}

#[test]
fn a_revocation_names_a_cluster_or_a_serial_number() {
    let subject = |value: Value| read::<Revocation>(&value).to_core().map_err(|bad| bad.field);
    let cluster = Subject::Cluster("c1".parse().unwrap());
    assert_eq!(subject(json!({ "clusterID": "c1" })), Ok(cluster));
    let serial = json!({ "serial": "00:AB:0c" });
    assert_eq!(subject(serial), Ok(Subject::Serial("ab0c".to_owned())));
    for zero in ["0", "00:00"] {
        assert_eq!(subject(json!({ "serial": zero })), Ok(Subject::Serial("0".to_owned())));
    }
    let longest = "1".repeat(128);
    assert_eq!(subject(json!({ "serial": longest })), Ok(Subject::Serial(longest)));
    for (wrong, field) in [
        (json!({}), "clusterID"),
        (json!({ "clusterID": "c1", "serial": "1" }), "clusterID"),
        (json!({ "clusterID": "C1" }), "clusterID"),
        (json!({ "serial": "" }), "serial"),
        (json!({ "serial": ":" }), "serial"),
        (json!({ "serial": "xyz" }), "serial"),
        (json!({ "serial": "1".repeat(129) }), "serial"),
    ] {
        assert_eq!(subject(wrong), Err(field.to_owned()));
    }
}
