//! `cargo xtask bench core`: what a decision, a durable reservation, a start and a byte cost.
//!
//! Every figure stands beside the one that it is to be compared with, measured in the same run:
//! machines and their neighbours differ, ratios much less. Times are medians of several short
//! rounds. `docs/performance.md` says what is measured and keeps the table of one run.

mod clock;
mod report;
mod fleet;
mod decision;
mod whole;
mod waiting;
mod callers;
mod engine;
mod history;
mod load;
mod memory;
mod parts;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use report::Report;

/// What a decision, a durable reservation, a start and a byte cost.
#[derive(Parser)]
struct Args {
    /// Only these parts
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Fewer sizes and shorter rounds: under 40 seconds
    #[arg(long)]
    quick: bool,
    /// One JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// What this process is to fill its memory with, when it is asked how much that takes
    #[arg(long, hide = true, num_args = 2)]
    probe: Option<Vec<String>>,
    /// Cargo says so to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// The index beside the naive scan, and the whole decision on the books
    Decision,
    /// Trying those who wait again
    Waiting,
    /// Reservations per second, beside plain appends
    Engine,
    /// Loading live reservations from the embedded log
    Load,
    /// Bytes per cluster and per reservation
    Memory,
    /// What the steps of one reservation cost
    Parts,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(probe) = &args.probe {
        return memory::probe(probe);
    }
    let wanted = |part| args.parts.is_empty() || args.parts.contains(&part);
    let mut report = Report::new(args.json);
    if wanted(Part::Decision) {
        decision::run(&mut report, args.quick);
        whole::run(&mut report, args.quick);
    }
    if wanted(Part::Waiting) {
        waiting::run(&mut report, args.quick);
    }
    if wanted(Part::Parts) {
        parts::run(&mut report, args.quick)?;
    }
    if wanted(Part::Engine) {
        engine::run(&mut report, args.quick)?;
    }
    if wanted(Part::Load) {
        load::run(&mut report, args.quick)?;
    }
    if wanted(Part::Memory) {
        memory::run(&mut report, args.quick)?;
    }
    report.finish();
    Ok(())
}
