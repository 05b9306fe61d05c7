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
    simulate(repo, &Run { ops: args.ops, seed, seeds: args.seeds })
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
    use super::random_seed;

    #[test]
    fn random_seeds_are_short_and_differ() {
        let (one, other) = (random_seed(), random_seed());
        assert!(one != other && u32::try_from(one).is_ok());
    }
}
