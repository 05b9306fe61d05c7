//! Borrowing from the shell, on a real broker.

use std::io::{BufRead, BufReader, Lines, Read};
use std::process::{ChildStderr, Stdio};

use crate::broker::{Owned, Town, signal, wait_for};

#[test]
fn capacity_is_asked_for_used_changed_and_given_back() {
    let town = Town::new();
    town.edge_has(8);
    let asked = "request --cpu 2 --memory 1Gi --duration 1h --key job-1";
    let id = town.ok_as("shop", &format!("{asked} -o name")).trim().to_owned();
    assert_eq!(town.ok_as("shop", &format!("{asked} -o name")).trim(), id, "a repeat is harmless");
    let table = town.ok_as("shop", "get reservations");
    let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row[..7], [&id, "Reserved", "shop", "edge", "2", "1Gi", "-"]);

    let told = town.ok_as("edge", "get instructions");
    assert!(told.contains(&id) && told.contains("Provider") && told.contains("Keep"), "{told}");
    town.ok_as("edge", &format!("acknowledge {id} --generation 1"));
    assert!(town.ok_as("shop", &format!("activate {id}")).contains("Active"));
    assert!(town.ok_as("shop", &format!("explain {id}")).starts_with("edge"));

    let renewed = town.ok_as("shop", &format!("renew {id} --duration 3h -o json"));
    assert!(renewed.contains("expiresAt"), "{renewed}");
    town.ok_as("shop", &format!("resize {id} --cpu 3 --memory 1Gi"));
    assert_eq!(town.reservation(&id)["requestedResources"]["cpu"], "3");

    assert!(town.ok_as("shop", &format!("release {id}")).contains("Releasing"));
    let generation = town.reservation(&id)["generation"].to_string();
    town.ok_as("edge", &format!("acknowledge {id} --generation {generation}"));
    assert_eq!(town.reservation(&id)["status"]["phase"], "Released");
    assert_eq!(town.ok_as("shop", "get reservations --phase Active -o json"), "[]\n");
    assert_eq!(town.ok_as("shop", "get reservations"), "nothing found\n");
    assert!(town.ok_as("shop", "get reservations --all").contains("Released"));
    let again = town.run_as("shop", asked);
    assert_eq!(again.status, 3, "{again:?}");
    assert!(again.err.contains("is over: use another key"), "{again:?}");
}

#[test]
fn a_decision_is_explained_before_and_after() {
    let town = Town::new();
    town.edge_has(8);
    let dry = town.ok_as("shop", "request --cpu 2 --memory 1Gi --dry-run");
    assert!(dry.starts_with("edge would lend this now; nothing was reserved\nwhy: edge"), "{dry}");
    assert_eq!(town.anna.ok("get reservations"), "nothing found\n");
    let made = town.ok_as("shop", "request --cpu 2 --memory 1Gi --explain");
    let why: Vec<_> = made.lines().skip(2).collect();
    assert!(why[0].starts_with("why: edge") && why[1].contains("largest share free"), "{made}");
    assert!(why[2].contains("shown to operators alone"), "{made}");
    let id = made.lines().nth(1).unwrap().split(' ').next().unwrap();
    let seen = town.anna.ok(&format!("explain {id}"));
    assert!(seen.contains("% cpu") && !seen.contains("not shown"), "{seen}");
    let yaml = town.anna.ok("get reservations -o yaml");
    assert!(yaml.contains("targetClusterID: edge"), "{yaml}");
    let candidates = town.anna.ok("get candidates --for shop --cpu 99 --memory 1Gi");
    let row = candidates.lines().find(|line| line.starts_with("edge")).unwrap();
    assert!(row.contains("no") && row.contains("cpu=93"), "{candidates}");
}

#[test]
fn every_kind_of_no_has_its_status() {
    let mut town = Town::new();
    town.edge_has(4);
    town.fails_as("shop", "request --cpu 100 --memory 1Gi", 3, "96 cores less");
    town.fails_as("shop", "request --cpu x --memory 1Gi", 2, "--cpu");
    town.fails_as("shop", "request --cpu 0 --memory 1Gi", 2, "greater than zero");
    town.fails_as("shop", "request --cpu -1 --memory 1Gi", 2, "greater than zero");
    town.fails_as("shop", "request --cpu 1 --memory -1Gi", 2, "greater than zero");
    town.fails_as("shop", "release", 2, "--key");
    town.fails_as("shop", "release rsv-aaaaaaaaaaaaaaaaaaaa", 4, "not found");
    town.fails_as("shop", "get clusters edge", 4, "not found");
    town.fails_as("shop", "cordon edge --why test", 6, "operator's certificate");
    let said = town.ok_as("shop", "release --key job-9");
    assert_eq!(said, "nothing was reserved under this key, and nothing will be\n");
    for (format, nothing) in [("json", "[]\n"), ("yaml", "[]\n"), ("name", "")] {
        assert_eq!(town.ok_as("shop", &format!("release --key job-9 -o {format}")), nothing);
    }
    town.fails_as("shop", "request --cpu 1 --memory 1Gi --key job-9", 3, "key");
    town.anna.fails("--context nobody get clusters", 4, "there are anna, edge, shop");
    town.fails_as("nobody", "get clusters", 4, "there are anna, edge, shop");
    town.stop();
    town.fails_as("shop", "get clusters", 5, "sublet config get-contexts");
    // The first look has to succeed.
    town.fails_as("shop", "get instructions --watch", 5, "sublet config get-contexts");
}

#[test]
fn a_refusal_is_said_once_and_programs_read_it_as_json() {
    let town = Town::new();
    town.edge_has(4);
    let line = "request --cpu 100 --memory 1Gi";
    let ended = town.run_as("shop", line);
    let told = ended.err.to_lowercase();
    assert_eq!(told.matches("no cluster can lend this").count(), 1, "{ended:?}");
    assert!(!told.contains("suitable") && ended.out.is_empty(), "{ended:?}");
    let ended = town.run_as("shop", &format!("{line} -o json"));
    assert_eq!(ended.status, 3, "{ended:?}");
    let problem: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(problem["code"], "NoSuitableCluster");
    assert_eq!(problem["explanation"]["refused"]["clusters"], 1);
    let ended = town.run_as("shop", "release rsv-aaaaaaaaaaaaaaaaaaaa -o json");
    let problem: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.status, &problem["code"]), (4, &"NoSuchReservation".into()));
}

#[test]
fn a_target_that_nobody_knows_is_told_apart_from_those_that_are_counted() {
    let town = Town::new();
    town.edge_has(4);
    let line = "request --cpu 1 --memory 1Gi --target nowhere";
    town.fails_as("shop", line, 3, "the target is unknown here; of 1 cluster 1 ");
}

#[test]
fn without_a_context_the_next_step_is_named() {
    let anna = crate::program::Person::new();
    anna.fails("get clusters", 2, "sublet config set-context");
}

#[test]
fn flags_stand_in_for_a_context() {
    let town = Town::new();
    town.edge_has(4);
    let line = format!("get clusters -o name --cert-path certs/edge --broker-url {}", town.url);
    assert_eq!(town.anna.ok(&line), "edge\n");
    let mut command = town.anna.command(&["get", "clusters", "-o", "name"]);
    let output = command.env("SUBLET_CONTEXT", "edge").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "edge\n");
    assert_eq!(town.anna.ok("--context edge get clusters -o name"), "edge\n");
}

#[test]
fn a_patient_request_stays_until_it_is_decided() {
    let town = Town::new();
    town.edge_has(2);
    let ended = town.run_as("shop", "request --cpu 3 --memory 1Gi --wait 1s");
    assert_eq!(ended.status, 3, "{ended:?}");
    assert!(ended.err.contains("was not granted"), "{ended:?}");
    let said = ended.err.lines().next().unwrap();
    assert!(said.contains("waits until 20") && said.contains("1 core more free on edge"), "{said}");
    let waits = town.ok_as("shop", "request --cpu 3 --memory 1Gi --wait 10m --key w --detach");
    assert!(waits.contains("Pending") && waits.contains("waits 10m"), "{waits}");
    assert!(town.ok_as("shop", "get reservations --phase pending").contains("waits "));
    let mut patient = town.follow("shop", "request --cpu 3 --memory 1Gi --wait 10m --key w");
    town.edge_has(4);
    assert!(patient.0.wait().unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(patient.0.stdout.as_mut().unwrap(), &mut said).unwrap();
    assert!(said.contains("Reserved") && said.contains("edge"), "{said}");
}

#[test]
fn what_changes_is_printed_as_it_comes() {
    let town = Town::new();
    town.edge_has(8);
    let mut watched = town.follow("anna", "get reservations -w -o json");
    let mut told = town.follow("edge", "get instructions --watch");
    let mut lines = BufReader::new(watched.0.stdout.take().unwrap()).lines();
    let id = town.ok_as("shop", "request --cpu 1 --memory 1Gi -o name").trim().to_owned();
    let mut next =
        || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!(
        (&first["id"], &first["status"]["phase"]),
        (&id.as_str().into(), &"Reserved".into())
    );
    town.ok_as("shop", &format!("activate {id}"));
    assert_eq!(next()["status"]["phase"], "Active");

    let mut instructions = BufReader::new(told.0.stdout.take().unwrap()).lines();
    let mut next = || instructions.next().unwrap().unwrap();
    assert!(next().starts_with("RESERVATION"));
    assert!(next().starts_with(&id));
}

#[test]
fn news_of_one_instruction_says_nothing_of_the_others() {
    let town = Town::new();
    town.edge_has(8);
    let ask = "request --cpu 1 --memory 1Gi -o name";
    let ids = [(); 2].map(|()| town.ok_as("shop", ask).trim().to_owned());
    let mut told = town.follow("edge", "get instructions --watch");
    let mut lines = BufReader::new(told.0.stdout.take().unwrap()).lines();
    let mut said = vec![];
    let mut until = |id: &str, duty: &str| loop {
        let line = lines.next().unwrap().unwrap();
        let is_it = line.starts_with(id) && line.contains(duty);
        said.push(line);
        if is_it {
            return;
        }
    };
    let mut sorted = ids.clone();
    sorted.sort();
    until(&sorted[1], "Keep");
    for id in &ids {
        town.ok_as("shop", &format!("release {id}"));
        until(id, "TakeDown");
        let generation = town.reservation(id)["generation"].to_string();
        town.ok_as("edge", &format!("acknowledge {id} --generation {generation}"));
        until(id, "Gone");
    }
    assert!(!said.iter().any(|line| line.contains("gone")), "{said:#?}");
    let distinct: std::collections::BTreeSet<_> = said.iter().collect();
    assert_eq!(distinct.len(), said.len(), "{said:#?}");
}

/// What a process complains about, line by line.
type Complaints = Lines<BufReader<ChildStderr>>;

fn complaints(process: &mut Owned) -> Complaints {
    BufReader::new(process.0.stderr.take().unwrap()).lines()
}

/// Reads on until it says this.
#[track_caller]
fn complains(complaints: &mut Complaints, saying: &str) {
    let found = complaints.any(|line| line.is_ok_and(|line| line.contains(saying)));
    assert!(found, "it never said {saying:?}");
}

#[test]
fn whoever_watches_or_waits_goes_on_when_the_broker_was_away() {
    let mut town = Town::new();
    town.edge_has(2);
    let id = town.ok_as("shop", "request --cpu 1 --memory 1Gi -o name").trim().to_owned();
    let start = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let mut command = town.anna.command(&words);
        Owned(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let mut watched = start("get reservations -w -o json --context anna");
    let mut waits = start("request --cpu 3 --memory 1Gi --wait 10m -o name --context shop");
    let mut told = start("get instructions -w -o json --context edge");
    let mut seen = BufReader::new(watched.0.stdout.take().unwrap()).lines();
    assert!(seen.any(|line| line.unwrap().contains(&id)));
    let mut instructions = BufReader::new(told.0.stdout.take().unwrap()).lines();
    assert!(instructions.any(|line| line.unwrap().contains(&id)));
    let (mut of_watch, mut of_wait) = (complaints(&mut watched), complaints(&mut waits));
    complains(&mut of_wait, "waits until");
    town.stop();
    complains(&mut of_watch, "trying again");
    complains(&mut of_wait, "trying again");
    town.restart();
    town.edge_has(8);
    assert!(waits.0.wait().unwrap().success());
    let mut granted = String::new();
    waits.0.stdout.take().unwrap().read_to_string(&mut granted).unwrap();
    let is_seen = |line: std::io::Result<String>| {
        let line = line.unwrap();
        line.contains(granted.trim()) && line.contains("Reserved")
    };
    assert!(seen.any(is_seen), "the watch ended");
    assert!(instructions.any(|line| line.unwrap().contains(granted.trim())), "the stream ended");
    told.0.kill().unwrap();
    let all: Vec<_> = complaints(&mut told).map_while(Result::ok).collect();
    let tries = all.iter().filter(|line| line.contains("trying again")).count();
    assert_eq!(tries, 1, "{all:#?}");
}

#[test]
fn who_gives_up_waiting_is_told_what_is_left_and_how_to_end_it() {
    let town = Town::new();
    town.edge_has(2);
    let words = "request --cpu 3 --memory 1Gi --wait 10m --context shop";
    let mut command = town.anna.command(&words.split(' ').collect::<Vec<_>>());
    let mut waits = Owned(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut said = complaints(&mut waits);
    complains(&mut said, "waits until");
    town.anna.ok("revoke --cluster shop --why test");
    let id = town.anna.ok("get reservations -o name").trim().to_owned();
    complains(&mut said, &format!("end it with: sublet release {id}"));
    assert_eq!(waits.0.wait().unwrap().code(), Some(6));
}

#[test]
fn what_was_released_is_printed_also_where_the_next_one_cannot_be() {
    let town = Town::new();
    town.edge_has(8);
    let id = town.ok_as("shop", "request --cpu 1 --memory 1Gi -o name").trim().to_owned();
    let unknown = "rsv-aaaaaaaaaaaaaaaaaaaa";
    let ended = town.run_as("shop", &format!("release {id} {unknown} {unknown} -o json"));
    let list: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&list[0]["id"], list.as_array().unwrap().len()), (&id.as_str().into(), 1));
    assert_eq!(ended.status, 4, "{ended:?}");
    assert!(ended.err.contains(&format!("{unknown} and what comes after it")), "{ended:?}");
}

/// Does this process listen to SIGINT by itself?
fn listens(pid: u32) -> Option<()> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
    let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
    (caught & 0b10 != 0).then_some(())
}

#[test]
fn a_request_without_a_key_that_is_interrupted_leaves_nothing_behind() {
    let town = Town::new();
    town.edge_has(8);
    town.signal("-STOP");
    let words = "request --cpu 1 --memory 1Gi --context shop";
    let mut command = town.anna.command(&words.split(' ').collect::<Vec<_>>());
    let mut asks = Owned(command.stderr(Stdio::piped()).spawn().unwrap());
    let pid = asks.0.id();
    wait_for("the request", || listens(pid));
    signal(&asks.0, "-INT");
    town.signal("-CONT");
    let status = asks.0.wait().unwrap();
    let mut said = String::new();
    asks.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("interrupted: nothing is reserved"), "{said}");
    let held = town.anna.ok("get reservations");
    assert_eq!(held, "nothing found\n");
}
