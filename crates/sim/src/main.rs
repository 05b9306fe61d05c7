//! `sublet-sim`: plays seeds, and says which failed, why, and how shortly it can be said.

#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::thread;

use clap::{Parser, Subcommand};
use sublet_sim::run::{self, Plan, Summary};
use sublet_sim::setup::Part;
use sublet_sim::sometimes::BRANCHES;
use sublet_sim::{Violation, shrink};

/// A run of this size must have reached every branch of the list.
const LONG_RUN_OPS: u64 = 500_000;
/// More of a history than this is not read, unless somebody asks for it.
const LINES_SHOWN: usize = 60;

/// The whole system in one thread from one seed, judged by an auditor
#[derive(Parser)]
#[command(name = "sublet-sim")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play seeds
    Run(Args),
    /// Plant each known bug in turn; each must be caught
    #[cfg(feature = "bugs")]
    Bugs,
}

#[derive(clap::Args)]
struct Args {
    /// Operations per seed: messages taken in by a broker or a cluster, and steps from outside
    #[arg(long, default_value_t = 10_000)]
    ops: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Play only these steps of one seed, as a failure prints them
    #[arg(long, value_delimiter = ',')]
    steps: Option<Vec<u64>>,
    /// Leave out parts of the world: net, disk, brokers, old
    #[arg(long, value_delimiter = ',', value_parser = part)]
    without: Vec<Part>,
    /// Print what happens
    #[arg(long)]
    verbose: bool,
    /// How many lines of it
    #[arg(long, default_value_t = LINES_SHOWN)]
    lines: usize,
}

impl Args {
    /// Is one history asked for, and not many?
    fn is_one_history(&self) -> bool {
        self.steps.is_some() || self.verbose || !self.without.is_empty()
    }
}

/// The part of that name.
fn part(name: &str) -> Result<Part, String> {
    let found = Part::ALL.into_iter().find(|part| part.name() == name);
    found.ok_or_else(|| format!("there are only {}", Part::ALL.map(Part::name).join(", ")))
}

fn main() -> ExitCode {
    let passed = match Cli::parse().command {
        Command::Run(args) if args.is_one_history() => play_one(args),
        Command::Run(args) => play(&args),
        #[cfg(feature = "bugs")]
        Command::Bugs => bugs(),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn play(args: &Args) -> bool {
    let summary = run::seeds(args.seed, args.seeds, args.ops, threads());
    println!("{} operations over {} seeds from {}", summary.ops, args.seeds, args.seed);
    if let Some((plan, violation)) = &summary.failed {
        report(plan, violation);
        return false;
    }
    reached_everything(&summary, args.seeds)
}

fn reached_everything(summary: &Summary, seeds: u64) -> bool {
    for branch in BRANCHES {
        println!("  {:>8}  {branch}", summary.sometimes.count(branch));
    }
    println!("  {} of {seeds} seeds had two kinds of faults or more", summary.overlapping);
    let missing: Vec<_> = summary.sometimes.missing().collect();
    let long = summary.ops >= LONG_RUN_OPS;
    if long && !missing.is_empty() {
        println!("never reached: {}", missing.join(", "));
    }
    !long || missing.is_empty()
}

fn report(plan: &Plan, violation: &Violation) {
    println!("\nseed {} violates {}: {}", plan.seed, violation.invariant, violation.found);
    println!("looking for the shortest history that still does …");
    let short = shrink::shortest(plan, violation.invariant);
    show(&short, LINES_SHOWN);
    println!("\nagain:  {}", short.command_line());
}

fn show(plan: &Plan, lines: usize) -> bool {
    let outcome = plan.play(true);
    let skipped = outcome.lines.len().saturating_sub(lines);
    for step in &outcome.steps {
        println!("step {:>6} at {:>9} ms: {:?}", step.number, step.at_ms, step.act);
    }
    println!("… the last lines of its history:");
    for line in outcome.lines.iter().skip(skipped) {
        println!("{}", line.chars().take(400).collect::<String>());
    }
    if let Some(violation) = &outcome.violation {
        println!("\n{} after {} operations: {}", violation.invariant, outcome.ops, violation.found);
    }
    outcome.violation.is_none()
}

fn play_one(args: Args) -> bool {
    let without = args.without;
    let only = args.steps.map(|steps| steps.into_iter().collect::<BTreeSet<_>>());
    show(&Plan { seed: args.seed, ops: args.ops, only, without }, args.lines)
}

#[cfg(feature = "bugs")]
fn bugs() -> bool {
    use sublet_sim::bugs::{TABLE, clean, hunt, shortens};
    if let Err(violation) = clean(threads()) {
        println!("without any bug, {} is violated: {}", violation.invariant, violation.found);
        return false;
    }
    println!("{:<56} {:>9} {:>5}  invariant", "bug", "ops", "seed");
    let mut all = true;
    for (bug, about) in TABLE {
        if let Some(caught) = hunt(Some(bug)) {
            let invariant = caught.violation.invariant;
            println!("{about:<56} {:>9} {:>5}  {invariant}", caught.ops, caught.plan.seed);
        } else {
            println!("{about:<56} not caught");
            all = false;
        }
    }
    println!("\nlooking for the shortest history of one of them …");
    let Some(short) = shortens() else {
        println!("none was found that is shorter and still fails");
        return false;
    };
    println!("{} of {} steps are enough for {}", short.after, short.before, short.invariant);
    all
}
