//! The one binary: parses the command line and hands over to what was asked for.

mod exit;
mod environment;
mod clock;
mod output;
mod progress;
mod config;
mod ca;
mod data;
mod policy;
mod completion;
mod version;
mod demo;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Kubernetes clusters lend each other spare CPU, memory and GPUs.
#[derive(Parser)]
#[command(name = "sublet", version, arg_required_else_help = true, after_help = exit::HELP)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// See it work: a broker, three clusters and the life of some reservations, explained.
    Demo(demo::Args),
    /// A development CA: certificates for brokers, clusters and operators.
    #[command(subcommand)]
    Ca(ca::Command),
    /// Contexts: which broker, and as whom.
    #[command(subcommand)]
    Config(config::Command),
    /// Print the records of a log.
    Log(data::log::Args),
    /// Check a log: every record, every sum, every promise.
    Fsck(data::fsck::Args),
    /// Copy a log into one file, also while its broker runs.
    Backup(data::backup::Args),
    /// Make a new log from a backup.
    Restore(data::restore::Args),
    /// Look at policy files.
    #[command(subcommand)]
    Policy(policy::Command),
    /// Print the completion script of a shell.
    Completion(completion::Args),
    /// Print which version this is.
    Version(version::Args),
}

impl Command {
    fn run(self) -> Result<()> {
        match self {
            Self::Demo(args) => demo::run(&args),
            Self::Ca(command) => command.run(),
            Self::Config(command) => command.run(),
            Self::Log(args) => data::log::run(&args),
            Self::Fsck(args) => data::fsck::run(&args),
            Self::Backup(args) => data::backup::run(&args),
            Self::Restore(args) => data::restore::run(&args),
            Self::Policy(command) => command.run(),
            Self::Completion(args) => completion::run(&args),
            Self::Version(args) => version::run(&args),
        }
    }
}

fn main() -> ExitCode {
    exit::report(Args::parse().command.run())
}
