//! `cargo xtask bench`: the benchmarks, always in a release build.

use anyhow::Result;
use clap::ValueEnum;

use crate::process;
use crate::repo::Repo;
use crate::rig::{self, Kit, Programs};

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
    /// The real broker over mTLS, beside a handler that does nothing and one fsync
    Broker,
    /// What an agent takes on a cluster of 50 nodes and 1 000 pods, idle and under churn
    Agent,
}

/// Runs one benchmark; its table goes to the terminal.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    let (package, bench) = match args.suite {
        Suite::Core => ("sublet-broker", "core"),
        Suite::Broker => ("sublet-broker", "broker"),
        Suite::Agent => return agent(repo),
    };
    if matches!(args.suite, Suite::Broker) {
        // What is measured is the program itself; cargo makes it beside the benchmark.
        let build = process::cargo(["build", "--locked", "--release", "--package", "sublet"]);
        if !process::passes(repo.root(), build)? {
            return Ok(false);
        }
    }
    let mut command = process::cargo(["bench", "--locked", "--package", package, "--bench", bench]);
    if !args.rest.is_empty() {
        command.arg("--").args(&args.rest);
    }
    process::passes(repo.root(), command)
}

/// The agent is measured on a real cluster, by the testkit's program.
fn agent(repo: &Repo) -> Result<bool> {
    let build = process::cargo(["build", "--locked", "--release", "--package", "sublet"]);
    if !process::passes(repo.root(), build)?
        || rig::programs(repo, Kit::Kubernetes)? == Programs::Missing
    {
        return Ok(false);
    }
    let run = ["run", "--locked", "--quiet", "--release", "--package", "sublet-testkit"];
    let mut command = process::cargo(run);
    command.args(["--example", "rig", "--", "footprint"]);
    process::passes(repo.root(), command)
}
