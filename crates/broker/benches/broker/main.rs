//! `cargo xtask bench broker`: what the real `sublet broker` process does over mTLS, on a real disk.
//!
//! Every figure stands beside what it is to be compared with, from the same run: a handler that does
//! nothing, on the same accept loop, TLS and router; and one write with its fdatasync. Broker,
//! comparison and load generator are processes of their own. `docs/performance.md` says what is
//! measured and how to read it. Modules are listed in the order in which they are needed.

mod clock;
#[path = "../core/report.rs"]
mod report;
mod ground;
mod process;
mod disk;
mod null;
mod connection;
mod requests;
mod order;
mod flood;
mod held;
mod agents;
mod reservations;
mod advertisements;
mod idle;
mod cadence;
mod restart;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use ground::Ground;
use report::Report;

/// What the broker does over mTLS, on a real disk.
#[derive(Parser)]
struct Args {
    /// Only these parts
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Fewer and shorter turns, and a tenth of the streams
    #[arg(long)]
    quick: bool,
    /// One JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// The program that is measured; without it, the one that the same build made
    #[arg(long)]
    sublet: Option<std::path::PathBuf>,
    /// This process is to be the handler that does nothing, with what is in this folder
    #[arg(long, hide = true)]
    null: Option<std::path::PathBuf>,
    /// This process is to make load, as this order says
    #[arg(long, hide = true)]
    load: Option<String>,
    /// Cargo says so to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// Durable reservations, beside the null handler and one fsync
    Reservations,
    /// Advertisements, beside the null handler
    Advertisements,
    /// Idle streams, and how soon a provider is told
    Streams,
    /// A hundred agents, as the Go agents ask and as ours do
    Agents,
    /// A start with many reservations, after a kill
    Restart,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(folder) = &args.null {
        return null::serve(folder);
    }
    if let Some(order) = &args.load {
        return order::obey(order);
    }
    let wanted = |part| args.parts.is_empty() || args.parts.contains(&part);
    let ground = Ground::new(args.sublet.as_deref(), args.quick)?;
    let mut report = Report::new(args.json);
    if wanted(Part::Reservations) {
        reservations::run(&mut report, &ground)?;
    }
    if wanted(Part::Advertisements) {
        advertisements::run(&mut report, &ground)?;
    }
    if wanted(Part::Streams) {
        idle::run(&mut report, &ground)?;
    }
    if wanted(Part::Agents) {
        cadence::run(&mut report, &ground)?;
    }
    if wanted(Part::Restart) {
        restart::run(&mut report, &ground)?;
    }
    report.finish();
    Ok(())
}
