//! The one binary: parses the command line and hands over to what was asked for.

mod exit;
mod environment;
mod clock;
mod output;
mod progress;
mod config;
mod connect;
mod get;
mod borrow;
mod operate;
mod ca;
mod data;
mod policy;
mod crds;
mod completion;
mod version;
mod broker;
mod agent;
mod demo;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use sublet_process::dashes;

use operate::Decision;

/// Kubernetes clusters lend each other spare CPU, memory and GPUs.
#[derive(Parser)]
#[command(name = "sublet", version, arg_required_else_help = true, after_help = exit::HELP)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the broker: the API for agents over mTLS, on a log in a folder.
    Broker(Box<broker::Args>),
    /// Run the agent of a cluster: what is free is advertised, what was reserved is done.
    Agent(Box<agent::Args>),
    /// See it work: a broker, three clusters and the life of some reservations, explained.
    Demo(demo::Args),
    /// Look at clusters, reservations, instructions.
    #[command(subcommand)]
    Get(get::Command),
    /// Ask for capacity.
    Request(borrow::request::Args),
    /// Give capacity back, or take it back.
    Release(borrow::release::Args),
    /// Let a reservation run for longer.
    Renew(borrow::keep::RenewArgs),
    /// Change the amounts of a reservation.
    Resize(borrow::keep::ResizeArgs),
    /// Say why a reservation is where it is, or why it waits.
    Explain(borrow::explain::Args),
    /// Confirm as the requester that the capacity is usable.
    Activate(borrow::keep::ActivateArgs),
    /// Confirm as the provider that an instruction was carried out.
    Acknowledge(borrow::keep::AcknowledgeArgs),
    /// Operators: grant nothing new on a cluster.
    Cordon(operate::ClusterArgs),
    /// Operators: let a cluster take part again.
    Uncordon(operate::ClusterArgs),
    /// Operators: also take back what a cluster lends.
    Drain(operate::ClusterArgs),
    /// Operators: the most that a cluster lends in all.
    Cap(operate::CapArgs),
    /// Operators: give a cluster up.
    Lost(operate::ClusterArgs),
    /// Operators: let a cluster lend after a restore although it has not reported.
    Vouch(operate::ClusterArgs),
    /// Operators: believe a certificate no longer.
    Revoke(operate::RevokeArgs),
    /// Operators: believe a certificate again.
    Reinstate(operate::RevokeArgs),
    /// Operators: the wall clock that is far ahead is right.
    ConfirmClock(operate::ClockArgs),
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
    /// Print the definitions of our kinds, for kubectl apply.
    Crds(crds::Args),
    /// Print the completion script of a shell.
    Completion(completion::Args),
    /// Print which version this is.
    Version(version::Args),
}

impl Command {
    fn run(self) -> Result<()> {
        match self {
            Self::Broker(args) => broker::run(&args),
            Self::Agent(args) => agent::run(&args),
            Self::Demo(args) => demo::run(&args),
            Self::Get(command) => command.run(),
            Self::Request(args) => borrow::request::run(&args),
            Self::Release(args) => borrow::release::run(&args),
            Self::Renew(args) => borrow::keep::renew(&args),
            Self::Resize(args) => borrow::keep::resize(&args),
            Self::Explain(args) => borrow::explain::run(&args),
            Self::Activate(args) => borrow::keep::activate(&args),
            Self::Acknowledge(args) => borrow::keep::acknowledge(&args),
            Self::Cordon(args) => operate::decide(Decision::Cordon, &args),
            Self::Uncordon(args) => operate::decide(Decision::Uncordon, &args),
            Self::Drain(args) => operate::decide(Decision::Drain, &args),
            Self::Cap(args) => operate::cap(&args),
            Self::Lost(args) => operate::decide(Decision::Lost, &args),
            Self::Vouch(args) => operate::decide(Decision::Vouch, &args),
            Self::Revoke(args) => operate::revoke(&args),
            Self::Reinstate(args) => operate::reinstate(&args),
            Self::ConfirmClock(args) => operate::confirm_clock(&args),
            Self::Ca(command) => command.run(),
            Self::Config(command) => command.run(),
            Self::Log(args) => data::log::run(&args),
            Self::Fsck(args) => data::fsck::run(&args),
            Self::Backup(args) => data::backup::run(&args),
            Self::Restore(args) => data::restore::run(&args),
            Self::Policy(command) => command.run(),
            Self::Crds(args) => crds::run(&args),
            Self::Completion(args) => completion::run(&args),
            Self::Version(args) => version::run(&args),
        }
    }
}

/// `--context` may stand before the command as well as after it, as kubectl has it; each command
/// that talks to a broker shows it and takes it from there.
fn command_line() -> clap::Command {
    let context = Arg::new("context").long("context").value_name("NAME");
    Args::command().arg(context.global(true).hide(true))
}

fn main() -> ExitCode {
    // Go's programs take their flags with one dash too, and so do those of ours that replace them.
    let as_in_go = [sublet_broker::config::command(), sublet_agent::config::command()];
    let typed = dashes::doubled(std::env::args_os(), &as_in_go);
    let matches = command_line().get_matches_from(typed);
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    exit::report(args.command.run())
}
