//! What was recorded from the running Go system is what the programs in the field send and expect:
//! it never changes, and a test that no longer passes is not helped by changing it.

use sha2::{Digest, Sha256};

/// Each file, and its SHA-256.
const RECORDED: [(&str, &[u8], &str); 4] = [
    (
        "go-agent-objects.json",
        include_bytes!("fixtures/go-agent-objects.json"),
        "59e987dc08febc57d3bd279d5379b1ce2d5921a6e2888fdc78310804a3b4b5b3",
    ),
    (
        "go-agent-requests.jsonl",
        include_bytes!("fixtures/go-agent-requests.jsonl"),
        "2cb118482264f2f0599d800907dc6b073f9d17fe7972e6264d138d2a92d10943",
    ),
    (
        "go-broker-exchanges.jsonl",
        include_bytes!("fixtures/go-broker-exchanges.jsonl"),
        "6fdd44ac3a4d18a07eca661a5e75220b4b771fdc7ee9028942a538a6fabca30e",
    ),
    (
        "go-broker-objects.json",
        include_bytes!("fixtures/go-broker-objects.json"),
        "c10dd2a582d51f01b9b8adb659ca1bd65c998dc251c89bf306231b83dcc50264",
    ),
];

#[test]
fn what_was_recorded_from_the_go_system_never_changes() {
    for (name, bytes, expected) in RECORDED {
        let digits = |byte: &u8| format!("{byte:02x}");
        let found: Vec<_> = Sha256::digest(bytes).iter().map(digits).collect();
        let found = found.concat();
        assert_eq!(found, expected, "{name} was changed: put it back, or record it again");
    }
}

#[test]
fn every_recorded_file_is_guarded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    for entry in std::fs::read_dir(folder).expect("the folder of fixtures") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        let known = RECORDED.iter().any(|(known, _, _)| *known == name);
        assert!(known || name == "README.md", "{name} has no sum");
    }
}
