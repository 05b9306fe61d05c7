//! A second look at what failed on real programs.
//!
//! Tests that start brokers, API servers and Liqo's controllers share two cores with all of them. One
//! that fails may have found a bug that shows once in a hundred times, or a machine that stood still:
//! its own words do not tell. So it is run once more, alone. What fails again has failed; what passes
//! is named in the summary as failed once, and is a defect to look for, in the test or behind it.
//!
//! Nothing else is given a second chance. Property tests draw other cases each time, so that passing
//! the second time says nothing about the case that failed; they stand in other test programs, but for
//! one of the log's, which keeps the case that failed and tries it first.

use anyhow::Result;

use super::Tally;
use crate::process;
use crate::repo::Repo;

/// Beyond this many, it is not the machine.
const FAILED_MAX: usize = 5;

/// The test programs that start programs or wait for threads.
const TARGETS: [&str; 8] =
    ["broker", "client", "edge", "engine", "engine_disk", "faults", "stream", "suite"];

/// Cargo with these test programs, up to what is meant for them.
pub(super) fn programs() -> std::process::Command {
    let mut command = process::cargo(["test", "--locked", "--workspace", "--no-fail-fast"]);
    for target in TARGETS {
        command.args(["--test", target]);
    }
    command.arg("--");
    command
}

/// What ran, as far as its output says.
#[derive(Debug, Default)]
pub(super) struct Seen {
    tally: Tally,
    failed: Vec<String>,
    /// Test programs that began and did not say how they ended.
    unfinished: u64,
}

impl Seen {
    /// Takes a line of a test program's output in.
    pub(super) fn read(&mut self, line: &str) {
        self.tally.read(line);
        if line.starts_with("running ") && line.trim_end_matches('s').ends_with(" test") {
            self.unfinished = self.unfinished.saturating_add(1);
        } else if line.starts_with("test result: ") {
            self.unfinished = self.unfinished.saturating_sub(1);
        }
        // `test module::name ... FAILED`
        let name = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
        self.failed.extend(name.map(str::to_owned));
    }

    /// Runs what failed once more, if that may tell anything; `command` is cargo up to the names.
    pub(super) fn settle(
        self,
        repo: &Repo,
        passed: bool,
        mut command: std::process::Command,
    ) -> Result<Tally> {
        let is_worth_a_look = self.is_worth_a_look();
        let first = self.tally.and_the_program(passed);
        if !is_worth_a_look {
            return Ok(first);
        }
        println!("\nonce more, alone: {}", self.failed.join(", "));
        command.args(["--test-threads=1", "--exact"]).args(&self.failed);
        let mut again = Tally::default();
        let passed = process::passes_seen(repo.root(), command, |line| again.read(line))?;
        Ok(judged(first, &again.and_the_program(passed), self.failed))
    }

    /// A program that died has not named what failed in it.
    fn is_worth_a_look(&self) -> bool {
        let named = self.failed.len() as u64 == self.tally.failed && self.unfinished == 0;
        (1..=FAILED_MAX).contains(&self.failed.len()) && named
    }
}

/// All or nothing: which of several passed is not worth knowing while one of them fails.
fn judged(first: Tally, again: &Tally, names: Vec<String>) -> Tally {
    if again.failed > 0 || again.passed != names.len() as u64 {
        return first;
    }
    Tally { passed: first.passed + again.passed, failed: 0, failed_once: names, ..first }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &[&str]) -> Seen {
        let mut seen = Seen::default();
        for line in lines {
            seen.read(line);
        }
        seen
    }

    const ONE: [&str; 4] = [
        "running 2 tests",
        "test on_kubernetes::crash::a ... ok",
        "test on_kubernetes::crash::b ... FAILED",
        "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured",
    ];

    #[test]
    fn what_passes_the_second_time_is_named_and_does_not_fail() {
        let one = seen(&ONE);
        assert!(one.is_worth_a_look());
        let passed = Tally { passed: 1, ..Tally::default() };
        let tally = judged(one.tally, &passed, one.failed);
        assert_eq!((tally.passed, tally.failed), (2, 0));
        assert_eq!(tally.failed_once, ["on_kubernetes::crash::b"]);
    }

    #[test]
    fn what_fails_twice_or_is_not_found_again_has_failed() {
        for again in [Tally::one(false), Tally::default()] {
            let one = seen(&ONE);
            let tally = judged(one.tally, &again, one.failed);
            assert_eq!((tally.passed, tally.failed, tally.failed_once.len()), (1, 1, 0));
        }
    }

    #[test]
    fn a_program_that_died_and_one_where_much_fails_get_no_second_look() {
        assert!(!seen(&["test a ... FAILED"]).is_worth_a_look(), "it never came to its result");
        let mut beside = seen(&ONE);
        beside.read("running 1 test");
        assert!(!beside.is_worth_a_look(), "another one died beside it");
        assert!(!seen(&[]).is_worth_a_look());
        let all: Vec<_> = (0..=FAILED_MAX).map(|n| format!("test a{n} ... FAILED")).collect();
        let mut many = seen(&all.iter().map(String::as_str).collect::<Vec<_>>());
        many.read(&format!("test result: FAILED. 0 passed; {} failed; 0 ignored", all.len()));
        assert!(!many.is_worth_a_look());
    }

    #[test]
    fn every_named_test_program_is_there() {
        let repo = Repo::here();
        let crates = std::fs::read_dir(repo.root().join("crates")).unwrap();
        let folders: Vec<_> = crates.map(|entry| entry.unwrap().path().join("tests")).collect();
        for target in TARGETS {
            let is_there = folders.iter().any(|folder| {
                folder.join(target).join("main.rs").is_file()
                    || folder.join(format!("{target}.rs")).is_file()
            });
            assert!(is_there, "no test program is called {target}");
        }
    }
}
