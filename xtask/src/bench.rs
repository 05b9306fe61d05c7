//! `cargo xtask bench`: the benchmarks, always in a release build.

use anyhow::Result;
use clap::ValueEnum;

use crate::process;
use crate::repo::Repo;

/// Which benchmark to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    suite: Suite,
    /// What is passed on to the benchmark itself: `--quick`, `--json`, `--help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Suite {
    /// Decisions, the engine on its logs, loading
    Core,
}

/// Runs one benchmark; its table goes to the terminal.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    let (package, bench) = match args.suite {
        Suite::Core => ("sublet-broker", "core"),
    };
    let mut command = process::cargo(["bench", "--locked", "--package", package, "--bench", bench]);
    if !args.rest.is_empty() {
        command.arg("--").args(&args.rest);
    }
    process::passes(repo.root(), command)
}
