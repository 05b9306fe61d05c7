//! The disk fails at every single call, in every way: nothing is acknowledged that is not true.
//!
//! A shim in C is preloaded into a child process and lets the k-th write, sync or truncate of the
//! log's files go wrong, for every k until the child gets through without meeting it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::child::{Ack, OPENED, Task, command};
use crate::process::check_truth;
use crate::scene::quick_folder;

/// The shim, compiled once.
fn shim() -> &'static Path {
    static SHIM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, library) = SHIM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/shim.c");
        let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"];
        let compiled = Command::new("cc").args(flags).arg(&library).arg(&source).status();
        assert!(compiled.unwrap().success(), "the shim needs a C compiler, as SQLite does");
        (folder, library)
    });
    library
}

struct Outcome {
    said: String,
    /// Which call the fault hit.
    hit: Option<String>,
    /// That was before the log was open.
    early: bool,
    acknowledged: Vec<Ack>,
}

impl Outcome {
    fn is_done(&self) -> bool {
        self.said.lines().any(|line| line == "done")
    }
}

/// Runs a child whose call number `at` goes wrong.
fn run(folder: &Path, mode: &str, at: u64, seed: u64) -> Outcome {
    let task = if mode == "clean" { Task::Again } else { Task::Some };
    let output = command(task, folder)
        .env("LD_PRELOAD", shim())
        .env("SHIM_FOLDER", folder)
        .env("SHIM_MODE", mode)
        .env("SHIM_AT", at.to_string())
        .env("SHIM_SEED", seed.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let what = format!("{mode} at {at} seed {seed}: {said}");
    assert!(!said.contains("acknowledged after failure"), "{what}");
    assert!(!said.contains("panicked"), "{what}{}", String::from_utf8_lossy(&output.stderr));
    let complaints = String::from_utf8_lossy(&output.stderr);
    let hit = complaints.lines().find_map(|line| line.strip_prefix("shim: ")).map(str::to_owned);
    let first = complaints.lines().find(|line| line.starts_with("shim: ") || *line == OPENED);
    let early = first.is_some_and(|line| line != OPENED);
    let acknowledged = said.lines().filter_map(Ack::parse).collect();
    Outcome { said, hit, early, acknowledged }
}

/// The few calls whose failure need not stop anything: the process number in the lock is only for
/// people, the journal's name in the folder was synced before by ourselves, what is left of a
/// new database that was written in part is read back before it is used, and a journal for which the
/// disk has no room ahead works without.
fn is_harmless(hit: &str, early: bool, folder: &Path) -> bool {
    let folder = folder.file_name().unwrap().to_string_lossy();
    let harmless = ["write lock", "truncate lock", "write sublet.db.new"];
    let room = early && hit == "write sublet.db-wal";
    harmless.contains(&hit) || room || hit == format!("sync {folder}")
}

/// Lets each call go wrong in turn; returns how many there were.
fn sweep(mode: &str, seeds: &[u64]) -> u64 {
    for at in 1..2000 {
        for seed in seeds {
            let folder = quick_folder();
            let outcome = run(folder.path(), mode, at, *seed);
            let what = format!("{mode} at {at} seed {seed}: {}", outcome.said);
            check_truth(folder.path(), &outcome.acknowledged, &what);
            let Some(hit) = &outcome.hit else {
                assert!(outcome.is_done(), "{what}");
                return at;
            };
            let harmless = is_harmless(hit, outcome.early, folder.path());
            assert!(!outcome.is_done() || harmless, "{hit}: {what}");
        }
    }
    panic!("it never got through");
}

#[test]
fn a_failed_write_or_sync_ends_acknowledgement_and_the_truth_is_found_after_restart() {
    assert!(sweep("eio", &[0]) > 50, "the shim sees too little");
}

#[test]
fn a_full_disk_at_any_write_loses_nothing() {
    assert!(sweep("enospc", &[0]) > 50, "the shim sees too little");
}

#[test]
fn a_write_cut_short_loses_nothing() {
    assert!(sweep("short", &[0]) > 50, "the shim sees too little");
}

#[test]
fn a_power_loss_at_any_moment_loses_nothing_that_was_acknowledged() {
    assert!(sweep("power", &[0, 1, 2]) > 50, "the shim sees too little");
}

#[test]
fn what_is_acknowledged_after_a_failed_sync_and_a_restart_outlives_a_power_loss() {
    assert!(sweep("clean", &[0]) > 50, "the shim sees too little");
}
