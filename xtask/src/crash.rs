//! `cargo xtask crash`: the real broker killed under load, as often as one likes.

use anyhow::Result;

use crate::process;
use crate::repo::Repo;

/// What `cargo xtask crash` is asked to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How often the broker is killed; the test command does it 50 times
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    cycles: u32,
}

/// The test that kills it, by its name.
const TEST: &str = "crash::nothing_acknowledged_is_lost_however_often_the_broker_is_killed";

/// Runs the test alone, with what it says at the end.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    let mut command = process::cargo(["test", "--locked", "--package", "sublet"]);
    command.args(["--test", "suite", "--", "--exact", TEST, "--nocapture"]);
    command.env("SUBLET_CRASH_CYCLES", args.cycles.to_string());
    process::passes(repo.root(), command)
}
