//! The steps of `cargo xtask test`, in their order.

use anyhow::{Result, ensure};

use super::again::{self, Seen};
use super::{Extent, Outcome, Tally, kubernetes};
use crate::repo::{self, Repo};
use crate::sim::{self, Run};
use crate::{fuzz, generated, process, tidy};

/// One step.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    /// What it makes sure of, for the person who watches.
    pub(crate) about: &'static str,
    /// Whether it makes no sense when the code does not compile.
    pub(crate) builds: bool,
    pub(crate) run: Work,
}

/// What a step does.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// It counts.
    Counts(fn(&Repo) -> Result<Tally>),
    /// It may be left out, by name.
    MayBeLeftOut(fn(&Repo, Extent) -> Result<Outcome>),
}

const fn reads(name: &'static str, about: &'static str, run: fn(&Repo) -> Result<Tally>) -> Step {
    Step { name, about, builds: false, run: Work::Counts(run) }
}

const fn builds(name: &'static str, about: &'static str, run: fn(&Repo) -> Result<Tally>) -> Step {
    Step { name, about, builds: true, run: Work::Counts(run) }
}

/// The tests on real clusters.
const KUBERNETES: Step = Step {
    name: "kubernetes",
    about: "the tests on real clusters; the first time, the programs are built",
    builds: true,
    run: Work::MayBeLeftOut(kubernetes::run),
};

/// Those with Liqo on them.
const LIQO: Step = Step {
    name: "liqo",
    about: "the tests on real clusters with Liqo; the first time, its programs are built",
    builds: true,
    run: Work::MayBeLeftOut(kubernetes::run_with_liqo),
};

/// All of them.
pub(crate) const STEPS: [Step; 12] = [
    reads("format", "every file is as rustfmt writes it", format),
    reads("clippy", "no warning, in any target", clippy),
    reads("tidy", "stages, arrows, lengths, markers, names, links, error pages, licences", tidy),
    builds("core", "the core compiles alone, without the standard library", core),
    builds("docs", "the documentation has no warning", docs),
    builds("tests", "unit, property, golden, conformance and documentation tests", tests),
    KUBERNETES,
    LIQO,
    builds("sim", "the simulator, on fixed seeds and on random ones", simulator),
    builds("bugs", "the simulator catches every planted bug", bugs),
    builds("fuzz", "every fuzz target, for a few seconds", fuzzing),
    reads("generated", "generated files are up to date", up_to_date),
];

/// The target that has no standard library to fall back on.
const BARE_TARGET: &str = "x86_64-unknown-none";
const NOT_BARE: &str = "x86_64-unknown-none is not installed and rustup could not add it, so a \
     dependency may use the standard library unseen: rustup target add x86_64-unknown-none";

/// The same history every time; with [`SIM_RANDOM`], a million operations.
const SIM_FIXED: Run = Run { ops: 10_000, seed: 1, seeds: 80 };
/// A new history every time; the seed is replaced.
const SIM_RANDOM: Run = Run { ops: 10_000, seed: 0, seeds: 20 };

const FUZZ_SECONDS: u64 = 3;

/// Whether everything compiles, warnings or not.
pub(crate) fn compiles(repo: &Repo) -> Result<bool> {
    process::passes(
        repo.root(),
        process::cargo(["check", "--locked", "--workspace", "--all-targets"]),
    )
}

fn format(repo: &Repo) -> Result<Tally> {
    let mut passed = process::passes(repo.root(), process::cargo(["fmt", "--all", "--check"]))?;
    if let Some(fuzz) = fuzz::folder(repo) {
        passed &= process::passes(&fuzz, process::cargo(["fmt", "--check"]))?;
    }
    Ok(Tally::one(passed))
}

fn clippy(repo: &Repo) -> Result<Tally> {
    let arguments = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::passes(repo.root(), process::cargo(arguments)).map(Tally::one)
}

fn tidy(repo: &Repo) -> Result<Tally> {
    Ok(Tally::one(tidy::report(&tidy::violations(repo)?)))
}

fn core(repo: &Repo) -> Result<Tally> {
    let mut command = process::cargo(["check", "--locked", "--package", "sublet-core"]);
    let bare = has_bare_target();
    if bare {
        println!("for {BARE_TARGET}, which has no standard library");
        command.args(["--target", BARE_TARGET]);
    }
    // Nobody reads the remarks of a run that passed.
    ensure!(bare || !repo::is_ci(), "{NOT_BARE}");
    let tally = Tally::one(process::passes(repo.root(), command)?);
    Ok(Tally { weak: (!bare).then_some(NOT_BARE), ..tally })
}

/// Whether the bare target is there, after an attempt to add it; rustup does nothing when it is.
fn has_bare_target() -> bool {
    process::works("rustup".as_ref(), &["target", "add", BARE_TARGET])
}

fn docs(repo: &Repo) -> Result<Tally> {
    let mut command = process::cargo(["doc", "--locked", "--no-deps", "--workspace"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    process::passes(repo.root(), command).map(Tally::one)
}

fn tests(repo: &Repo) -> Result<Tally> {
    let mut seen = Seen::default();
    let mut command = process::cargo(["test", "--locked", "--workspace", "--no-fail-fast"]);
    command.args(["--", "--skip", kubernetes::MODULE]);
    let passed = process::passes_seen(repo.root(), command, |line| seen.read(line))?;
    seen.settle(repo, passed, again::programs())
}

fn simulator(repo: &Repo) -> Result<Tally> {
    let mut tally = Tally::default();
    for run in [SIM_FIXED, Run { seed: sim::random_seed(), ..SIM_RANDOM }] {
        tally += Tally::one(sim::simulate(repo, &run)?);
    }
    Ok(tally)
}

fn bugs(repo: &Repo) -> Result<Tally> {
    sim::bugs(repo).map(Tally::one)
}

fn fuzzing(repo: &Repo) -> Result<Tally> {
    let mut tally = Tally::default();
    for passed in fuzz::every_target(repo, FUZZ_SECONDS)? {
        tally += Tally::one(passed);
    }
    Ok(tally)
}

fn up_to_date(repo: &Repo) -> Result<Tally> {
    Ok(Tally::one(tidy::report(&generated::stale(repo)?)))
}
