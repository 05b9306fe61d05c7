//! The one binary: parses the command line and hands over to what was asked for.

mod broker;
mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sublet_broker::config::with_two_dashes;

/// Kubernetes clusters lend each other spare CPU, memory and GPUs.
#[derive(Parser)]
#[command(name = "sublet", version, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the broker: the API for agents over mTLS, on a log in a folder.
    Broker(Box<sublet_broker::config::Flags>),
    /// Play the life of some reservations on the real engine and a real log, and explain it.
    Demo(demo::Args),
}

fn main() -> ExitCode {
    let result = match Args::parse_from(with_two_dashes(std::env::args_os())).command {
        Command::Broker(flags) => broker::run(&flags),
        Command::Demo(args) => demo::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sublet: {error:#}");
            ExitCode::FAILURE
        }
    }
}
