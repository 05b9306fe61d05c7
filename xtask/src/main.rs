//! The project's own commands: `cargo xtask <verb>`.
//!
//! `test` is what a person and CI run; the other verbs are its parts, for one at a time. Nothing
//! here is shipped.
#![expect(clippy::print_stdout, reason = "these commands talk to a person on a terminal")]

mod repo;
mod process;
mod tools;
mod metadata;
mod source;
mod built;
mod tidy;
mod contract;
mod generated;
mod sim;
mod crash;
mod bench;
mod rig;
mod fuzz;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::repo::Repo;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Everything that must hold before a change lands; CI runs this and nothing else
    Test(test::Args),
    /// The rules of this tree that neither compiler nor clippy can check
    Tidy(tidy::Args),
    /// Writes the generated parts of the tree anew
    Gen,
    /// The simulator, in a release build
    Sim(sim::Args),
    /// The real broker, killed with SIGKILL under load, again and again
    Crash(crash::Args),
    /// A benchmark, in a release build
    Bench(bench::Args),
    /// The fuzz targets, for a bounded time each
    Fuzz(fuzz::Args),
    /// Finds or builds etcd, Kubernetes, kubectl, KWOK and Liqo, which some tests run
    Kube(rig::Wanted),
    /// Real clusters without containers, for a person: `clusters up 3`
    #[command(disable_help_flag = true)]
    Clusters(rig::Args),
}

fn main() -> ExitCode {
    match run(Args::parse().verb) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one verb; `false` means that it ran to its end and found something wrong, which it has
/// already said.
fn run(verb: Verb) -> Result<bool> {
    let repo = Repo::here();
    match verb {
        Verb::Test(args) => test::run(&repo, &args),
        Verb::Tidy(args) => tidy::run(&repo, &args),
        Verb::Gen => generated::write(&repo).map(|()| true),
        Verb::Sim(args) => sim::run(&repo, &args),
        Verb::Crash(args) => crash::run(&repo, &args),
        Verb::Bench(args) => bench::run(&repo, &args),
        Verb::Fuzz(args) => fuzz::run(&repo, &args),
        Verb::Kube(wanted) => rig::kube(&repo, &wanted),
        Verb::Clusters(args) => rig::clusters(&repo, &args),
    }
}
