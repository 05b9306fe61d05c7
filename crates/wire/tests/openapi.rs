//! The description covers every route and says nothing that is not there.

use std::collections::BTreeSet;

use serde_json::Value;
use sublet_wire::openapi::{document, text};
use sublet_wire::{Body, Code, OPENAPI, ROUTES};

#[test]
fn every_route_is_described_and_nothing_else() {
    let document = document();
    let described: BTreeSet<_> = document["paths"]
        .as_object()
        .expect("paths")
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().expect("methods").keys().map(move |m| (path.clone(), m.clone()))
        })
        .collect();
    let routes: BTreeSet<_> = ROUTES
        .iter()
        .map(|route| (route.path.to_owned(), route.method.as_str().to_ascii_lowercase()))
        .collect();
    assert_eq!(described, routes);
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 30, "{found:?}");
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("a local one");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for route in ROUTES {
        let named = route.answers.iter().map(|(_, body)| *body).chain([route.request]);
        for body in named {
            if let Body::Json(name) | Body::List(name) | Body::Lines(name) = body {
                assert!(document["components"]["schemas"][name].is_object(), "{name}");
            }
        }
    }
}

#[test]
fn a_body_is_required_where_the_broker_does_not_do_without_it() {
    let document = document();
    let optional = ROUTES.iter().filter(|route| {
        let method = route.method.as_str().to_ascii_lowercase();
        document["paths"][route.path][method]["requestBody"]["required"] == false
    });
    assert_eq!(optional.map(|route| route.name).collect::<Vec<_>>(), ["renew", "fail"]);
}

#[test]
fn every_code_is_in_it() {
    let document = document();
    let codes = document["components"]["schemas"]["Code"]["oneOf"].as_array().expect("codes");
    let names: Vec<_> = codes.iter().map(|code| code["const"].as_str().expect("a name")).collect();
    let known: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(names, known);
}

#[test]
fn the_file_that_is_served_is_up_to_date() {
    assert!(OPENAPI == text(), "run `cargo xtask gen`");
}
