//! The step that runs on real clusters, where there are programs to make them of.
//!
//! A test that starts clusters is in a module called `on_kubernetes`, in the `tests` folder of its
//! crate. The step `tests` leaves those out, so that what is left out here is left out altogether: on
//! a machine that has no way to the programs, by name in the summary; never in CI.

use anyhow::Result;

use super::{Outcome, Tally};
use crate::process;
use crate::repo::{self, Repo};
use crate::rig::{self, Programs};

/// The module, as it stands in the path of a test.
pub(super) const MODULE: &str = "on_kubernetes::";
/// Clusters that start at once take the cores from each other.
const THREADS: &str = "--test-threads=2";

/// Runs the tests, or says which were left out.
pub(super) fn run(repo: &Repo) -> Result<Outcome> {
    if rig::programs(repo)? == Programs::Here {
        return tests(repo).map(Outcome::Ran);
    }
    if repo::is_ci() {
        println!("in CI nothing is left out");
        return Ok(Outcome::Ran(Tally::one(false)));
    }
    let names = names(repo)?;
    Ok(Outcome::LeftOut {
        why: "no Kubernetes here: `cargo xtask kube` says what to install",
        names,
    })
}

fn tests(repo: &Repo) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut command = cargo_test();
    command.arg(THREADS);
    let passed = process::passes_seen(repo.root(), command, |line| tally.read(line))?;
    Ok(tally.and_the_program(passed))
}

/// The tests that are not run.
fn names(repo: &Repo) -> Result<Vec<String>> {
    let mut command = cargo_test();
    command.arg("--list");
    Ok(listed(&process::answer(repo.root(), command)?))
}

/// What a test program lists: `module::name: test`.
fn listed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Cargo with these tests, up to what is meant for the test programs. Of the whole workspace, although
/// few crates have such: so nothing is built that the step `tests` has not built.
fn cargo_test() -> std::process::Command {
    let mut command = process::cargo(["test", "--locked", "--workspace", "--no-fail-fast"]);
    command.args(["--tests", "--", MODULE]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_named_as_the_test_program_lists_it() {
        let text =
            "on_kubernetes::crash::a: test\non_kubernetes::b: test\n\n2 tests, 0 benchmarks\n";
        assert_eq!(listed(text), ["on_kubernetes::crash::a", "on_kubernetes::b"]);
    }
}
