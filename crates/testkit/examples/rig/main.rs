//! The testkit for people: what `cargo xtask kube` and `cargo xtask clusters` run.
#![expect(clippy::print_stdout, reason = "these commands talk to a person on a terminal")]

mod agents;
mod broker;
mod clusters;
mod footprint;
mod kube;
mod latency;
mod peering;
mod used;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Kubernetes control planes without containers.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Find or build etcd, Kubernetes, kubectl, KWOK and Liqo
    Kube(kube::Args),
    /// Clusters that stay up
    #[command(subcommand)]
    Clusters(clusters::Verb),
    /// Measure what an agent costs, and how quick it is
    Footprint(footprint::Args),
    /// Measure how quickly clusters are joined, beside liqoctl
    Peering(peering::Args),
}

/// What `cargo xtask test` takes for "not on this machine", unlike "does not work".
const NO_PROGRAMS: u8 = 3;

fn main() -> ExitCode {
    match Args::parse().verb {
        Verb::Kube(args) => match kube::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => said(&error.into(), NO_PROGRAMS),
        },
        Verb::Clusters(verb) => match verb.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => said(&error, 1),
        },
        Verb::Footprint(args) => match footprint::run(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => said(&error, 1),
        },
        Verb::Peering(args) => match peering::run(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => said(&error, 1),
        },
    }
}

fn said(error: &anyhow::Error, status: u8) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::from(status)
}
