//! `cargo xtask sim`: the simulator, always in a release build. How it is called is said here and
//! nowhere else.

use std::hash::{BuildHasher, RandomState};
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::repo::Repo;

/// What `cargo xtask sim` is asked to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Operations per seed
    #[arg(long, default_value_t = 1_000_000)]
    ops: u64,
    /// The seed, or the first of several; without it a random one, which is printed
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds, one after the other
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Plant each known bug in turn and show how soon, and by which invariant, it is caught
    #[arg(long, conflicts_with_all = ["ops", "seed", "seeds"])]
    bugs: bool,
    /// Play only these steps of one seed, as a failure prints them
    #[arg(long, value_delimiter = ',', requires = "seed")]
    steps: Vec<u64>,
    /// Leave out parts of the world, as a failure prints them
    #[arg(long, value_delimiter = ',', requires = "seed")]
    without: Vec<String>,
    /// Print so many of the last lines of one seed's history
    #[arg(long, requires = "seed")]
    lines: Option<u64>,
}

/// A run over consecutive seeds.
pub(crate) struct Run {
    /// Operations per seed.
    pub(crate) ops: u64,
    /// The first seed.
    pub(crate) seed: u64,
    /// How many.
    pub(crate) seeds: u64,
}

/// Runs the simulator as asked.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    if args.bugs {
        return bugs(repo);
    }
    let seed = args.seed.unwrap_or_else(random_seed);
    let one = one_history(args);
    if !one.is_empty() {
        let mut command = simulator(&[]);
        command.arg("run").args(["--ops", &args.ops.to_string(), "--seed", &seed.to_string()]);
        command.args(one);
        return process::passes(repo.root(), command);
    }
    simulate(repo, &Run { ops: args.ops, seed, seeds: args.seeds })
}

/// What the simulator is told about the one history that is asked for, if it is only one.
fn one_history(args: &Args) -> Vec<String> {
    let mut one = Vec::new();
    if !args.steps.is_empty() {
        let steps: Vec<_> = args.steps.iter().map(u64::to_string).collect();
        one.extend(["--steps".into(), steps.join(",")]);
    }
    if !args.without.is_empty() {
        one.extend(["--without".into(), args.without.join(",")]);
    }
    if let Some(lines) = args.lines {
        one.extend(["--verbose".into(), "--lines".into(), lines.to_string()]);
    }
    one
}

/// Runs the system as it is; it must survive.
pub(crate) fn simulate(repo: &Repo, run: &Run) -> Result<bool> {
    let mut command = simulator(&[]);
    command.arg("run");
    for (flag, value) in [("--ops", run.ops), ("--seed", run.seed), ("--seeds", run.seeds)] {
        command.args([flag, &value.to_string()]);
    }
    process::passes(repo.root(), command)
}

/// Runs the system with one planted bug after the other; each must be caught.
pub(crate) fn bugs(repo: &Repo) -> Result<bool> {
    let mut command = simulator(&["--features", "bugs"]);
    command.arg("bugs");
    process::passes(repo.root(), command)
}

/// The simulator's program, up to its own arguments.
fn simulator(options: &[&str]) -> Command {
    let mut command = process::cargo(["run", "--locked", "--release", "--package", "sublet-sim"]);
    command.args(options).arg("--");
    command
}

/// A seed that nobody chose, short enough to be typed.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one("seed") >> 32
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Args, one_history, random_seed};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_command_that_a_failure_prints_is_passed_on() {
        let line = "sim --seed 7 --ops 6000 --without net,old --steps 3,5";
        let Cli { args } = Cli::parse_from(line.split(' '));
        assert_eq!((args.seed, args.ops), (Some(7), 6000));
        assert_eq!(one_history(&args).join(" "), "--steps 3,5 --without net,old");
    }

    #[test]
    fn random_seeds_are_short_and_differ() {
        let (one, other) = (random_seed(), random_seed());
        assert!(one != other && u32::try_from(one).is_ok());
    }
}
