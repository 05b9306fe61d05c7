//! The ways of Go's reader that clients rely on, and what we refuse more clearly.

use super::{Error, decode};
use crate::limits::{LIST_MAX, NAMES_MAX};
use crate::v1::{Advertisement, Quantities, ReservationRequest};
use crate::{Code, Problem};

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

#[test]
fn no_more_is_made_of_a_list_than_may_be_in_it_however_short_its_items_are() {
    let read = |text: String| decode::<Advertisement>(text.as_bytes());
    let too_many = |path: &str, most| Err(Error::TooMany { path: path.to_owned(), most });
    let grants = |many: usize| format!(r#"{{"grants":[{}{{}}]}}"#, "{},".repeat(many - 1));
    let whole = read(grants(4096)).map(|known| known.grants.unwrap().len());
    assert_eq!(whole, Ok(4096));
    assert_eq!(read(grants(4097)), too_many("grants", 4096));
    assert_eq!(read(grants(1_398_000)), too_many("grants", 4096));
    let backends =
        |many| format!(r#"{{"capabilities":{{"backends":[{}""]}}}}"#, "\"\",".repeat(many));
    assert!(read(backends(LIST_MAX - 1)).is_ok());
    assert_eq!(read(backends(LIST_MAX)), too_many("capabilities.backends", LIST_MAX));
    // What was read is never more than that either, also when it comes twice.
    let twice = format!(r#"{{"grants":[{{}}],"grants":{}"#, &grants(4096)[10..]);
    assert_eq!(read(twice).map(|known| known.grants.unwrap().len()), Ok(4096));
}

#[test]
fn no_more_is_made_of_free_names_than_may_be_there() {
    let read = |text: String| decode::<Advertisement>(text.as_bytes());
    let too_many = |path: &str| Err(Error::TooMany { path: path.to_owned(), most: NAMES_MAX });
    let names = |many| (0..many).map(|n| format!(r#""{n}":"""#)).collect::<Vec<_>>().join(",");
    let labels = |many| read(format!(r#"{{"labels":{{{}}}}}"#, names(many)));
    assert_eq!(labels(NAMES_MAX).map(|known| known.labels.len()), Ok(NAMES_MAX));
    assert_eq!(labels(NAMES_MAX + 1), too_many("labels"));
    let amounts = |many| read(format!(r#"{{"resources":{{"capacity":{{{}}}}}}}"#, names(many)));
    let read_whole = amounts(NAMES_MAX).map(|known| known.resources.capacity.others.len());
    assert_eq!(read_whole, Ok(NAMES_MAX));
    assert_eq!(amounts(NAMES_MAX + 1), too_many("resources.capacity"));
    // The same name again is no other one.
    let again = format!(r#"{{"labels":{{{}}}}}"#, [r#""a":"b""#; NAMES_MAX + 1].join(","));
    assert_eq!(read(again).map(|known| known.labels.len()), Ok(1));
}

#[test]
fn who_sends_too_many_is_told_which_and_how_many_there_may_be() {
    let long = format!(r#"{{"grants":[{}{{}}]}}"#, "{},".repeat(4096));
    let problem = Problem::from(decode::<Advertisement>(long.as_bytes()).unwrap_err());
    assert_eq!(problem.code(), Some(Code::InvalidField));
    assert_eq!(problem.details.field.as_deref(), Some("grants"));
    assert_eq!(problem.details.limit.as_deref(), Some("4096"));
    assert_eq!(problem.error, "grants: more than the 4096 that are read: leave some out");
}
