//! The definitions themselves: bounded, described, and with columns that show something.

use serde_json::Value;
use sublet_crds::{FILES, all, file_name};

fn definitions() -> Vec<Value> {
    all().iter().map(|definition| serde_json::to_value(definition).unwrap()).collect()
}

fn top(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Walks all fields of a schema, with their paths.
fn walk(path: &str, schema: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    for (below, name) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[below].is_object() {
            walk(&format!("{path}{name}"), &schema[below], visit);
        }
    }
}

#[test]
fn the_files_are_those_of_the_kinds_and_sublet_prints_them() {
    let names: Vec<_> = all().iter().map(file_name).collect();
    assert_eq!(names, FILES.map(|(name, _)| name));
    for ((_, text), definition) in FILES.iter().zip(all()) {
        let name = definition.metadata.name.unwrap();
        assert!(text.contains(&format!("\n  name: {name}\n")), "{name}");
    }
}

#[test]
fn kinds_are_named_as_in_the_go_system_and_have_a_status() {
    let expected = [
        "rear.fluidos.eu Advertisement advertisements",
        "rear.fluidos.eu ResourceRequest resourcerequests",
        "rear.fluidos.eu ReservationInstruction reservationinstructions",
        "rear.fluidos.eu ProviderInstruction providerinstructions",
        "broker.fluidos.eu ClusterAdvertisement clusteradvertisements",
        "broker.fluidos.eu Reservation reservations",
    ];
    for (definition, expected) in definitions().iter().zip(expected) {
        let spec = &definition["spec"];
        let [group, kind, plural] =
            [&spec["group"], &spec["names"]["kind"], &spec["names"]["plural"]]
                .map(|text| text.as_str().unwrap());
        assert_eq!(format!("{group} {kind} {plural}"), expected);
        assert_eq!(spec["scope"], "Namespaced");
        let [version] = &spec["versions"].as_array().unwrap()[..] else { panic!("one version") };
        assert_eq!(version["name"], "v1alpha1");
        assert!(version["subresources"]["status"].is_object(), "{kind}");
    }
}

#[test]
fn every_field_says_what_it_is() {
    for definition in definitions() {
        walk("", top(&definition), &mut |path, schema| {
            let is_inner = path.ends_with("[]") || path.ends_with("{}");
            let about = schema["description"].as_str().unwrap_or_default();
            assert!(is_inner || !about.is_empty(), "{}{path}", definition["metadata"]["name"]);
        });
    }
}

#[test]
fn every_text_list_and_map_has_a_limit() {
    for definition in definitions() {
        walk("", top(&definition), &mut |path, schema| {
            let known_length = schema["format"] == "date-time" || schema["enum"].is_array();
            let limited = match schema["type"].as_str() {
                Some("string") => known_length || schema["maxLength"].is_u64(),
                Some("array") => schema["maxItems"].is_u64(),
                Some("object") if !schema["additionalProperties"].is_null() => {
                    schema["maxProperties"].is_u64()
                }
                _ => true,
            };
            assert!(limited, "{}{path}", definition["metadata"]["name"]);
            assert!(schema["nullable"].is_null(), "{}{path}", definition["metadata"]["name"]);
        });
    }
}

#[test]
fn every_column_shows_a_field_that_is_there() {
    for definition in definitions() {
        let mut paths = vec![".metadata.creationTimestamp".to_owned()];
        walk("", top(&definition), &mut |path, _| paths.push(path.to_owned()));
        let columns = &definition["spec"]["versions"][0]["additionalPrinterColumns"];
        for column in columns.as_array().unwrap() {
            let path = column["jsonPath"].as_str().unwrap();
            assert!(paths.iter().any(|known| known == path), "{column}");
        }
    }
}

#[test]
fn the_columns_of_the_go_system_come_first_and_in_its_order() {
    let expected = [
        "ClusterID Allocatable-CPU Available-CPU Allocatable-Mem Available-Mem Published Age",
        "CPU Memory Target Phase Age",
        "Reservation Target CPU Memory",
        "Reservation Requester CPU Memory",
        "ClusterID Available-CPU Available-Memory Score Active Age",
        "Target-Cluster CPU Memory Phase Age",
    ];
    for (definition, expected) in definitions().iter().zip(expected) {
        let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array();
        let names: Vec<_> =
            columns.unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
        let expected: Vec<_> = expected.split(' ').collect();
        assert_eq!(names[..expected.len()], expected);
    }
}
