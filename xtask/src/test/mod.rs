//! `cargo xtask test`: everything that must hold before a change lands. CI runs it and nothing
//! else.
//!
//! Every step is announced, its output passed through, and its time taken. One that fails does not
//! keep the others from running, unless the code does not compile: then what needs it is left out,
//! and said to be.

mod tally;
mod again;
mod summary;
mod pool;
mod kubernetes;
mod steps;

use anyhow::{Result, ensure};
use clap::builder::PossibleValuesParser;

use crate::repo::Repo;
use crate::{process, tools};
use steps::{STEPS, Step, Work};
use summary::{Outcome, Row, Summary};
use tally::Tally;

/// What `cargo xtask test` is asked to do; without a flag, everything.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run this step only; may be given several times
    #[arg(long, value_name = "STEP", value_parser = PossibleValuesParser::new(names()))]
    only: Vec<String>,
    /// Also what takes long: everybody killed at every step of a reservation, liqoctl's rarer ways
    #[arg(long)]
    all: bool,
}

/// How much of the tests is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Each thing once, and a sample of what has many cases.
    Sample,
    /// All cases.
    All,
}

fn names() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.name)
}

/// Runs the steps, prints the summary, and says whether all of them passed.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    let missing = tools::missing();
    ensure!(missing.is_empty(), "this machine cannot run the tests:\n  {}", missing.join("\n  "));
    let chosen =
        |step: &&Step| args.only.is_empty() || args.only.iter().any(|name| name == step.name);
    let steps: Vec<_> = STEPS.iter().filter(chosen).collect();
    let extent = if args.all { Extent::All } else { Extent::Sample };
    let mut summary = Summary(Vec::new());
    let mut broken = false;
    for (number, step) in (1..).zip(&steps) {
        println!("\n[{number}/{}] {} — {}", steps.len(), step.name, step.about);
        let row = if broken && step.builds { skipped(step) } else { ran(repo, step, extent) };
        // Clippy compiles everything first: when it fails, its own opinion may not be the reason.
        broken |= step.name == "clippy" && !row.passed() && !steps::compiles(repo)?;
        summary.0.push(row);
    }
    print!("\n{summary}");
    Ok(summary.passed())
}

fn ran(repo: &Repo, step: &Step, extent: Extent) -> Row {
    let (result, took) = process::timed(|| match step.run {
        Work::Counts(run) => run(repo).map(Outcome::Ran),
        Work::MayBeLeftOut(run) => run(repo, extent),
    });
    let outcome = result.unwrap_or_else(Outcome::Broke);
    if let Outcome::Broke(error) = &outcome {
        println!("error: {error:#}");
    }
    Row { step: step.name, outcome, took }
}

fn skipped(step: &Step) -> Row {
    println!("skipped: the code does not compile");
    Row { step: step.name, outcome: Outcome::Skipped, took: std::time::Duration::ZERO }
}
