//! The steps that run on real clusters, where there are programs to make them of.
//!
//! A test that starts clusters is in a module called `on_kubernetes`, in the `tests` folder of its
//! crate; one that wants Liqo on them is in a module called `on_liqo` below that, and has a step of its
//! own, so that the summary says how long peering takes to prove. The step `tests` leaves both out, so that
//! what is left out here is left out altogether: on a machine that has no way to the programs, by name in
//! the summary; never in CI.

use anyhow::Result;

use super::again::{self, Seen};
use super::pool::Line;
use super::{Extent, Outcome, Tally};
use crate::process;
use crate::repo::{self, Repo};
use crate::rig::{self, Kit, Programs};

/// The module, as it stands in the path of a test.
pub(super) const MODULE: &str = "on_kubernetes::";
/// The module of those that want Liqo as well.
const LIQO_MODULE: &str = "on_liqo::";
/// Clusters that start at once take the cores from each other.
const THREADS: &str = "--test-threads=2";
/// With Liqo on them they wait much of the time, for its pauses and for their own deadlines.
const LIQO_AT_ONCE: usize = 6;
/// Those with Liqo that take longest, the longest first: whoever begins last ends last.
const LONGEST: [&str; 11] = [
    "::two_clusters_are_linked",
    "::an_end_comes",
    "::a_reservation_ends",
    "::a_link_that_goes",
    "::entire::",
    "::a_pair_has_one_slice",
    "::a_slice_is_exactly",
    "::what_somebody_breaks",
    "::crowd::",
    "::liqoctl_is_not_believed",
    "::killed::",
];
/// What tells the programs of Kubernetes and Liqo to collect garbage less often: a fifth of what a pair costs to
/// start, for memory that is there.
const SELDOM: (&str, &str) = ("GOGC", "400");
/// What tells a test to run all of its cases.
const ALL: &str = "SUBLET_TEST_ALL";
const NO_KUBERNETES: &str = "no Kubernetes here: `cargo xtask kube` says what to install";
const NO_LIQO: &str = "no Liqo here: `cargo xtask kube` says what to install";

/// Runs the tests that want no Liqo, or says which were left out.
pub(super) fn run(repo: &Repo, extent: Extent) -> Result<Outcome> {
    if !are_here(repo, &[Kit::Kubernetes])? {
        return left_out(NO_KUBERNETES, || names(repo, |name| !name.contains(LIQO_MODULE)));
    }
    tests(repo, &[MODULE, "--skip", LIQO_MODULE, THREADS], extent).map(Outcome::Ran)
}

/// Runs those that do, likewise.
pub(super) fn run_with_liqo(repo: &Repo, extent: Extent) -> Result<Outcome> {
    if !are_here(repo, &[Kit::Kubernetes, Kit::Liqo, Kit::Liqoctl])? {
        return left_out(NO_LIQO, || names(repo, |name| name.contains(LIQO_MODULE)));
    }
    let environment = environment(extent);
    let line = Line {
        module: LIQO_MODULE,
        first: &LONGEST,
        at_once: LIQO_AT_ONCE,
        environment: &environment,
    };
    let (seen, passed) = line.run(repo)?;
    let mut again = again::programs();
    again.envs(environment);
    seen.settle(repo, passed, again).map(Outcome::Ran)
}

/// What the programs and the tests are told.
fn environment(extent: Extent) -> Vec<(&'static str, &'static str)> {
    let all = (extent == Extent::All).then_some((ALL, "1"));
    std::iter::once(SELDOM).chain(all).collect()
}

fn are_here(repo: &Repo, kits: &[Kit]) -> Result<bool> {
    for kit in kits {
        if rig::programs(repo, *kit)? == Programs::Missing {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Nothing ran: what would have is named, and in CI that is a failure.
fn left_out(why: &'static str, names: impl FnOnce() -> Result<Vec<String>>) -> Result<Outcome> {
    if repo::is_ci() {
        println!("in CI nothing is left out");
        return Ok(Outcome::Ran(Tally::one(false)));
    }
    Ok(Outcome::LeftOut { why, names: names()? })
}

fn tests(repo: &Repo, which: &[&str], extent: Extent) -> Result<Tally> {
    let mut seen = Seen::default();
    let [mut command, mut again] = [cargo_test(), again::programs()];
    command.args(which).envs(environment(extent));
    again.envs(environment(extent));
    let passed = process::passes_seen(repo.root(), command, |line| seen.read(line))?;
    seen.settle(repo, passed, again)
}

/// Those of these tests that are not run.
fn names(repo: &Repo, is_meant: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut command = cargo_test();
    command.args([MODULE, "--list"]);
    let mut names = listed(&process::answer(repo.root(), command)?);
    names.retain(|name| is_meant(name));
    Ok(names)
}

/// What a test program lists: `module::name: test`.
fn listed(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Cargo with these tests, up to what is meant for the test programs. Of the whole workspace, although
/// few crates have such: so nothing is built that the step `tests` has not built.
fn cargo_test() -> std::process::Command {
    let mut command = process::cargo(["test", "--locked", "--workspace", "--no-fail-fast"]);
    command.args(["--tests", "--"]);
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
