//! The ways of Go's reader that clients rely on, and what we refuse more clearly.

use super::{Error, decode};
use crate::v1::{Advertisement, Quantities, ReservationRequest};

fn request(text: &str) -> ReservationRequest {
    decode(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn wrong(text: &str) -> (String, String) {
    match decode::<ReservationRequest>(text.as_bytes()) {
        Err(Error::Malformed { path, what }) => (path, what),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn names_match_in_any_case_and_an_exact_name_needs_no_luck() {
    let odd = request(r#"{"REQUESTEDRESOURCES":{"CPU":"1","MeMoRy":"2"},"Priority":3}"#);
    let plain = request(r#"{"requestedResources":{"cpu":"1","memory":"2"},"priority":3}"#);
    assert_eq!(odd, plain);
}

#[test]
fn the_two_other_letters_that_unicode_folds_to_ascii_match_too() {
    let odd = request("{\"reque\u{17f}tedResource\u{17f}\":{\"cpu\":\"1\"}}");
    assert_eq!(odd.requested_resources.cpu, "1");
    let constraint = request("{\"constraints\":[{\"\u{212a}ey\":\"zone\"}]}");
    assert_eq!(constraint.constraints[0].key, "zone");
}

#[test]
fn what_follows_the_first_value_is_ignored() {
    for rest in [" trailing", "{\"priority\":9}", "\u{0}", "}}}"] {
        assert_eq!(request(&format!("{{\"priority\":1}}{rest}")).priority, 1);
    }
}

#[test]
fn unknown_members_are_ignored_however_deep() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(request(&format!("{{\"x\":{deep},\"priority\":1}}")).priority, 1);
}

#[test]
fn the_last_of_two_texts_wins_and_objects_are_merged() {
    let twice = request(
        r#"{"requestedResources":{"cpu":"1","memory":"1"},"priority":1,
            "REQUESTEDRESOURCES":{"memory":"2"},"priority":2}"#,
    );
    assert_eq!((twice.requested_resources.cpu.as_str(), twice.priority), ("1", 2));
    assert_eq!(twice.requested_resources.memory, "2");
}

#[test]
fn null_leaves_plain_values_and_empties_optional_ones() {
    assert_eq!(request("null"), ReservationRequest::default());
    let null = request(
        r#"{"priority":4,"priority":null,"duration":"1h","duration":null,
            "requestedResources":{"cpu":"1","cpu":null,"gpu":"1","gpu":null,"a/b":null},
            "requestedResources":null,"constraints":null,"backends":null}"#,
    );
    assert_eq!(null.priority, 4);
    assert_eq!(null.duration, None);
    let cpu = Quantities { cpu: "1".to_owned(), ..Quantities::default() };
    assert_eq!(null.requested_resources, cpu);
    let maps = br#"{"labels":{"a":"b"},"labels":null,"grants":[],"resources":null}"#;
    let advertisement: Advertisement = decode(maps).expect("reads");
    assert!(advertisement.labels.is_empty());
    assert_eq!(advertisement.grants, Some(Vec::new()));
}

#[test]
fn an_error_names_the_member() {
    for (text, path) in [
        (r#"{"requestedResources":{"cpu":1}}"#, "requestedResources.cpu"),
        (r#"{"REQUESTEDRESOURCES":{"GPU":1}}"#, "requestedResources.gpu"),
        (r#"{"requestedResources":[]}"#, "requestedResources"),
        (r#"{"requestedResources":"1"}"#, "requestedResources"),
        (r#"{"constraints":[{},{"values":["a",1]}]}"#, "constraints[1].values[1]"),
        (r#"{"constraints":{}}"#, "constraints"),
        (r#"{"constraints":[{"operator":"Like"}]}"#, "constraints[0].operator"),
        (r#"{"priority":3000000000}"#, "priority"),
        (r#"{"priority":"10"}"#, "priority"),
        (r#"{"priority":1.5}"#, "priority"),
        (r#"{"priority":1e400}"#, "priority"),
        (r#"{"explain":1}"#, "explain"),
        (r#"{"duration":60}"#, "duration"),
    ] {
        assert_eq!(wrong(text).0, path, "{text}: {}", wrong(text).1);
    }
}

#[test]
fn what_is_not_json_or_no_object_is_refused() {
    for text in ["", " ", "{", "{nope", "[]", "1", "\"x\"", "true", "{\"a\"}", "\u{feff}{}", "NaN"]
    {
        assert_eq!(wrong(text).0, "", "{text}");
    }
    for bytes in [&b"{\"duration\":\"\xff\"}"[..], br#"{"duration":"\ud800"}"#] {
        assert!(decode::<ReservationRequest>(bytes).is_err());
    }
}

#[test]
fn depth_and_length_have_an_end() {
    let deep = format!("{{\"constraints\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(wrong(&deep).0, "constraints[0]");
    let long = vec![b' '; crate::limits::DOCUMENT_MAX + 1];
    assert_eq!(decode::<Quantities>(&long), Err(Error::TooLong { length: long.len() }));
}
