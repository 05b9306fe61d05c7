//! `cargo xtask bench`: the benchmarks, always in a release build.

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::repo::Repo;
use crate::rig::{self, Kit, Programs};
use crate::{built, process};

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
    /// How quickly clusters are joined by Liqo and parted again, beside `liqoctl peer`
    Peering,
}

/// Runs one benchmark; its table goes to the terminal.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    let (package, bench) = match args.suite {
        Suite::Core => ("sublet-broker", "core"),
        Suite::Broker => ("sublet-broker", "broker"),
        Suite::Agent => return on_clusters(repo, "footprint", &[Kit::Kubernetes], &args.rest),
        Suite::Peering => {
            let kits = [Kit::Kubernetes, Kit::Liqo, Kit::Liqoctl];
            return on_clusters(repo, "peering", &kits, &args.rest);
        }
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

/// What is measured on real clusters is measured by the testkit's program, and is the program as it is
/// shipped, unless another one is named.
fn on_clusters(repo: &Repo, verb: &str, kits: &[Kit], rest: &[String]) -> Result<bool> {
    for kit in kits {
        if rig::programs(repo, *kit)? == Programs::Missing {
            return Ok(false);
        }
    }
    let mut command = rig::rig(repo)?;
    command.arg(verb);
    if !rest.iter().any(|word| word.starts_with("--sublet")) {
        let mut build = process::cargo(["build", "--locked", "--release", "--package", "sublet"]);
        build.arg("--message-format=json-render-diagnostics");
        let said = process::answer(repo.root(), build)?;
        let found = said.lines().find_map(|line| built::executable(line, "sublet", "bin"));
        command.arg("--sublet").arg(found.context("cargo did not say where sublet is")?);
    }
    command.args(rest);
    process::passes(repo.root(), command)
}
