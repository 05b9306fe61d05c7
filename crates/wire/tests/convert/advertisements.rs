//! Advertisements: rounding, our additions, and every member that can be wrong.

use serde_json::{Value, json};
use sublet_core::books::Books;
use sublet_core::policy::Silence;
use sublet_core::time::Time;
use sublet_wire::v1::Advertisement;
use sublet_wire::{Invalid, encode};

use super::{read, with};

fn whole() -> Value {
    let amounts = |cpu: &str, memory: &str| json!({ "cpu": cpu, "memory": memory });
    json!({
        "clusterID": "c1",
        "clusterName": "cluster-advertisement",
        "resources": {
            "capacity": { "cpu": "8", "memory": "16Gi", "gpu": "2", "example.com/fpga": "3" },
            "allocatable": { "cpu": "7500m", "memory": "15Gi", "gpu": "2", "storage": "1Ti" },
            "allocated": amounts("1", "2Gi"),
            "available": amounts("6500m", "13Gi"),
        },
        "timestamp": "2026-11-15T22:11:16Z",
        "number": { "incarnation": 7, "sequence": 9 },
        "grants": [{
            "id": "rsv-aaaaaaaaaaaaaaaaaaaa",
            "generation": 3,
            "requesterID": "c2",
            "amounts": amounts("500m", "1Gi"),
            "used": amounts("250m", "512Mi"),
            "remaining": "1h0m0s",
        }],
        "labels": { "zone": "a" },
        "cost": { "cpuCost": "0.031000", "memoryCost": "0.004500", "currency": "EUR" },
        "capabilities": {
            "acknowledge": true, "activate": true, "renew": false, "stream": true,
            "backends": ["liqo", "none"],
        },
        "lending": false,
    })
}

fn converted(value: &Value) -> Result<sublet_core::advertisement::Advertisement, Invalid> {
    read::<Advertisement>(value).to_core("c1".parse().expect("a name"))
}

#[test]
fn everything_that_is_said_arrives_and_comes_back() {
    let known = converted(&whole()).expect("it is right");
    assert_eq!(known.grants.as_ref().unwrap()[0].remaining.unwrap().as_millis(), 3_600_000);
    assert_eq!(known.cost.as_ref().unwrap().cpu_micros, 31_000);
    let mut books = Books::default();
    let now: sublet_wire::Timestamp = "2026-11-15T22:11:16Z".parse().unwrap();
    assert!(books.hear(known, now.time(), &Silence::default()));
    let entry = books.market().entry(&"c1".parse().unwrap()).expect("it was heard");
    let shown = Advertisement::of(&books, entry);
    let shown: Value = serde_json::from_slice(&encode(&shown)).unwrap();
    // What is free is ours to say: the ghost of a grant that no ledger knows is subtracted, except
    // for what its pods take already.
    let available = json!({ "cpu": "6250m", "memory": "12800Mi", "gpu": "2", "storage": "1Ti" });
    assert_eq!(shown, with(whole(), "/resources/available", available));
}

#[test]
fn what_is_offered_rounds_down_and_what_is_used_rounds_up() {
    let odd = json!({ "cpu": "1.0005", "memory": "1.5" });
    let mut value = with(whole(), "/resources/allocatable", odd.clone());
    value = with(value, "/resources/allocated", odd);
    value["grants"] = Value::Null;
    let known = converted(&value).expect("it is right");
    assert_eq!((known.allocatable.cpu, known.allocatable.memory), (1000, 1));
    assert_eq!((known.allocated.cpu, known.allocated.memory), (1001, 2));
}

#[test]
fn a_go_agent_says_less_and_is_old() {
    let mut value = whole();
    for name in ["number", "grants", "labels", "cost", "capabilities", "lending"] {
        value.as_object_mut().unwrap().remove(name);
    }
    let known = converted(&value).expect("it is right");
    assert_eq!(known.capabilities, sublet_core::advertisement::Capabilities::default());
    assert!(known.lending && known.grants.is_none() && known.number.is_none());
}

#[test]
fn what_an_agent_says_of_reserved_and_available_is_read_and_not_believed() {
    let odd = json!({ "cpu": "-99", "memory": "99Ei" });
    let value =
        with(with(whole(), "/resources/reserved", odd.clone()), "/resources/available", odd);
    assert_eq!(converted(&value), converted(&whole()));
}

#[test]
fn every_member_that_is_wrong_is_named() {
    for (pointer, value, field) in [
        ("/resources/capacity/cpu", json!("eight"), "resources.capacity.cpu"),
        ("/resources/capacity/cpu", json!(""), "resources.capacity"),
        ("/resources/allocatable", json!(null), "resources.allocatable"),
        ("/resources/allocatable/memory", json!("-1"), "resources.allocatable.memory"),
        ("/resources/allocatable/gpu", json!("1e30"), "resources.allocatable.gpu"),
        ("/resources/allocated/cpu", json!("1 "), "resources.allocated.cpu"),
        ("/resources/available/cpu", json!("x"), "resources.available.cpu"),
        ("/resources/reserved", json!({ "cpu": "x" }), "resources.reserved.cpu"),
        ("/resources/capacity/a b", json!("1"), "resources.capacity.a b"),
        ("/resources/capacity/nvidia.com~1gpu", json!("1"), "resources.capacity.nvidia.com/gpu"),
        ("/timestamp", json!(null), "timestamp"),
        ("/timestamp", json!("0001-01-01T00:00:00Z"), "timestamp"),
        ("/grants/0/id", json!("rsv-1"), "grants[0].id"),
        ("/grants/0/requesterID", json!("C2"), "grants[0].requesterID"),
        ("/grants/0/amounts", json!({}), "grants[0].amounts"),
        ("/grants/0/used/cpu", json!("-1"), "grants[0].used.cpu"),
        ("/grants/0/used/cpu", json!("2"), "grants"),
        ("/grants/0/remaining", json!("1d"), "grants[0].remaining"),
        ("/cost/cpuCost", json!("cheap"), "cost.cpuCost"),
        ("/cost/memoryCost", json!("0.0000001"), "cost.memoryCost"),
        ("/cost/memoryCost", json!("."), "cost.memoryCost"),
        ("/cost/memoryCost", json!("99999999999999999999"), "cost.memoryCost"),
        ("/cost/currency", json!("E".repeat(64)), "labels"),
        ("/labels/zone", json!("z".repeat(64)), "labels"),
        ("/capabilities/backends", json!(["carrier-pigeon"]), "capabilities.backends"),
    ] {
        let pointer = pointer.replace("~1", "/");
        let wrong = if pointer.ends_with("nvidia.com/gpu") {
            with(
                whole(),
                "/resources/capacity",
                json!({
                    "cpu": "1", "memory": "1", "gpu": "1", "nvidia.com/gpu": "1",
                }),
            )
        } else {
            with(whole(), &pointer, value)
        };
        let invalid = converted(&wrong).expect_err(&pointer);
        assert_eq!(invalid.field, field, "{invalid}");
        assert!(invalid.message.starts_with(&format!("{field}: ")), "{invalid}");
    }
}

#[test]
fn prices_are_decimals_of_at_most_six_places() {
    for (text, micros) in
        [("", 0), ("0", 0), ("1.5", 1_500_000), (".25", 250_000), ("2.", 2_000_000)]
    {
        let known = converted(&with(whole(), "/cost/cpuCost", json!(text))).expect(text);
        assert_eq!(known.cost.unwrap().cpu_micros, micros, "{text}");
    }
}

#[test]
fn a_backend_of_the_future_beside_one_of_today_is_passed_over() {
    let value = with(whole(), "/capabilities/backends", json!(["liqo", "carrier-pigeon"]));
    assert_eq!(converted(&value).unwrap().capabilities.backends.iter().count(), 1);
}

#[test]
fn age_is_counted_from_when_the_broker_heard_it() {
    let mut books = Books::default();
    let heard = Time::from_millis(1_794_780_000_123);
    books.hear(converted(&whole()).unwrap(), heard, &Silence::default());
    let entry = books.market().entry(&"c1".parse().unwrap()).unwrap();
    let shown = Advertisement::of(&books, entry);
    assert_eq!(shown.timestamp.unwrap().time(), Time::from_millis(1_794_780_000_000));
}
