//! The README's first command, as a new user runs it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::broker::{Owned, wait_for};
use crate::program::Person;

#[test]
fn the_demo_plays_to_its_end_and_checks_itself() {
    let text = Person::new().ok("demo --fast --once");
    for line in [
        "Three clusters publish",
        "why: hub",
        "hub is told: keep cpu 2, memory 4Gi for shop",
        "shop is told: use cpu 2, memory 4Gi on hub",
        "9 others were refused",
        "is Released: ",
        "all 20 have an answer",
        "nothing to object",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
}

#[test]
fn it_stays_up_for_pasted_commands_and_leaves_nothing_behind() {
    let anna = Person::new();
    let child = anna.command(&["demo", "--fast"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut demo = Owned(child);
    let mut lines = BufReader::new(demo.0.stdout.take().unwrap()).lines();
    let mut find = |begin: &str| -> String {
        let mut lines = lines.by_ref().map(Result::unwrap);
        let line = lines.find_map(|line| Some(line.trim().strip_prefix(begin)?.to_owned()));
        line.unwrap_or_else(|| panic!("{begin:?} did not come"))
    };
    let config = find("export SUBLET_CONFIG=");
    let pid = find("kill -9 ");
    let pid = pid.split_whitespace().next().unwrap();
    find("What the clusters hear");

    let run = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let output = anna.command(&words).env("SUBLET_CONFIG", &config).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run("get clusters").contains("hub"));
    let id = run("request --cpu 1 --memory 1Gi --context shop -o name");
    assert!(find("hub is told: keep cpu 1").contains(id.trim()));

    signal("-KILL", pid);
    find("the broker was gone, and is back");
    assert!(run("get reservations -o name").contains(id.trim()));

    let folder = Path::new(&config).parent().unwrap().to_owned();
    assert!(folder.exists());
    signal("-INT", &demo.0.id().to_string());
    assert!(demo.0.wait().unwrap().success());
    assert!(!folder.exists(), "{} was left behind", folder.display());
    let rest = Command::new("pgrep").args(["-f", &folder.display().to_string()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&rest.stdout), "", "a process was left behind");
}

#[test]
fn a_killed_demo_takes_its_broker_along() {
    let anna = Person::new();
    let child = anna.command(&["demo", "--fast"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut demo = Owned(child);
    let mut lines = BufReader::new(demo.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("The broker is process")).unwrap();
    let pid = line.split_whitespace().find_map(|word| word.parse::<u32>().ok()).unwrap();
    demo.0.kill().unwrap();
    // One that has ended may stay in the table until whoever inherited it looks.
    let is_there = || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        state.is_ok_and(|state| !state.contains(") Z "))
    };
    wait_for("the end of the broker", || (!is_there()).then_some(()));
}

fn signal(which: &str, pid: &str) {
    assert!(Command::new("kill").args([which, pid]).status().unwrap().success());
}
