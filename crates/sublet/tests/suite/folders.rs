//! `sublet log`, `fsck`, `backup` and `restore` on data folders, in use or not.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use sublet_core::event::{Event, Note};
use sublet_core::reservation::Actor;
use sublet_core::time::Time;
use sublet_log::{Body, Embedded, Log, Record, Writer};

use crate::broker::Owned;
use crate::program::Person;

/// Appends records, each of which cordons a cluster.
fn grow(log: &Embedded, count: u64) {
    for _ in 0..count {
        let head = log.head().unwrap();
        let number = head.revision.0 + 1;
        let note = Note { by: Actor::Operator("anna".into()), why: "maintenance".into() };
        let cluster = format!("edge-{number}").parse().unwrap();
        let event = Event::Cordoned { cluster, drain: false, note };
        let time = Time::from_millis(1_000 * number);
        let body = Body::of([event]).unwrap();
        log.append(&Record::seal(&head, Writer(7), time, body).unwrap()).unwrap();
    }
}

fn with_log(count: u64) -> Person {
    let anna = Person::new();
    grow(&Embedded::open(&anna.path("data")).unwrap(), count);
    anna
}

fn head(folder: &Path) -> u64 {
    Embedded::open_read_only(folder).unwrap().head().unwrap().revision.0
}

#[test]
fn the_log_is_printed_for_people_and_for_scripts() {
    let anna = with_log(3);
    let lines = anna.ok("log data");
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.starts_with("1 1970-01-01T00:00:01Z "), "{lines}");
    assert!(lines.contains(" edge-3 cordoned by "), "{lines}");
    assert_eq!(anna.ok("log data --from 3").lines().count(), 1);
    let json = anna.ok("log data --from 2 -o json");
    let records: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records[1]["revision"], 3);
    assert_eq!(records[1]["events"][0]["cordoned"]["note"]["why"], "maintenance");
}

#[test]
fn a_log_is_followed_while_it_is_written() {
    let anna = Person::new();
    let log = Embedded::open(&anna.path("data")).unwrap();
    grow(&log, 2);
    let command = anna.command(&["log", "data", "--follow"]).stdout(Stdio::piped()).spawn();
    let mut follower = Owned(command.unwrap());
    let mut lines = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().starts_with("1 ") && next().starts_with("2 "));
    grow(&log, 1);
    assert!(next().starts_with("3 "));
    drop((follower, log));
    let alone = anna.run("log data --follow");
    assert_eq!((alone.status, alone.out.lines().count()), (3, 3), "{alone:?}");
    assert!(alone.err.contains("no broker uses this folder"), "{alone:?}");
}

#[test]
fn a_sound_log_has_the_same_state_as_its_copy() {
    let anna = with_log(5);
    let said = anna.ok("fsck data");
    assert!(said.contains("5 records read, revisions 1 to 5"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&anna.ok("fsck data -o json")).unwrap();
    assert_eq!((&json["sound"], &json["head"]), (&true.into(), &5.into()));
    assert!(said.contains(json["state"].as_str().unwrap()));
}

#[test]
fn a_damaged_log_is_not_sound_and_is_left_as_it_is() {
    let anna = with_log(5);
    std::fs::remove_file(anna.path("data/head")).unwrap();
    anna.fails("fsck data", 7, "head is missing");
    anna.fails("fsck nowhere", 4, "--data-dir");
    assert!(!anna.path("data/head").exists());
}

#[test]
fn a_backup_is_made_while_a_broker_writes_and_gives_the_same_log_again() {
    let anna = Person::new();
    let log = Embedded::open(&anna.path("data")).unwrap();
    grow(&log, 40);
    let said = anna.ok("backup data copy.sublet");
    assert!(said.contains("up to revision 40") && said.contains("verified"), "{said}");
    assert!(anna.ok("fsck data").contains("revisions 1 to 40"));
    grow(&log, 1);
    anna.fails("backup data copy.sublet", 1, "is not written over");
    let said = anna.ok("restore copy.sublet again --why disk-gone");
    assert!(said.contains("promises made after the backup are forgotten"), "{said}");
    assert_eq!(head(&anna.path("again")), 41, "forty records, and that it was restored");
    let last = anna.ok("log again --from 41");
    assert!(last.contains("restored") && last.contains("disk-gone"), "{last}");
    assert!(last.contains("by operator anna"), "{last}");
    let first =
        |folder: &str| anna.ok(&format!("log {folder}")).lines().take(40).collect::<String>();
    assert_eq!(first("data"), first("again"));
}

#[test]
fn a_torn_backup_restores_nothing() {
    let anna = with_log(9);
    anna.ok("backup data copy.sublet");
    let text = anna.read("copy.sublet");
    std::fs::write(anna.path("torn.sublet"), &text[..text.len() - 10]).unwrap();
    anna.fails("restore torn.sublet again", 1, "nothing was restored");
    assert!(!anna.path("again/sublet.db").exists());
    anna.fails("restore missing.sublet again", 4, "missing.sublet");
    anna.fails("restore copy.sublet data", 1, "data");
    assert_eq!(head(&anna.path("data")), 9);
}
