//! `sublet log`: the records of a log, for people or line by line for scripts.

use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use sublet_core::id::Revision;
use sublet_log::embedded::Embedded;
use sublet_log::{Log, Record, dump};

use super::sentence::{at, sentence};
use crate::exit::{Exit, Stop};
use crate::output;

/// Records per read.
const BATCH: usize = 256;
/// How often a log that is followed is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Of which log, from where on.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The broker's data folder.
    dir: PathBuf,
    /// The first revision to print.
    #[arg(long, value_name = "REVISION", default_value_t = 1)]
    from: u64,
    /// Go on with what is appended, until interrupted.
    #[arg(short, long)]
    follow: bool,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Lines>,
}

/// How a record is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lines {
    /// The record as it is kept, one a line, with its checksums
    Json,
}

/// Prints it.
pub(crate) fn run(args: &Args) -> Result<()> {
    let log = super::look(&args.dir)?;
    let mut out = output::stdout();
    let mut next = print(&log, args, Revision(args.from), &mut out)?;
    if !args.follow {
        return Ok(());
    }
    // Going on would keep the broker that is waited for from starting.
    if !log.is_beside_its_writer() {
        let message = "no broker uses this folder, so nothing will follow: start one first";
        return Err(Stop::new(Exit::Refused, message).into());
    }
    loop {
        log.rest().context("the log cannot be read any more")?;
        out.flush()?;
        thread::sleep(LOOK_AGAIN);
        log.look_again().context("the log cannot be read any more")?;
        next = print(&log, args, next, &mut out)?;
    }
}

/// One line per event, in sentences.
fn tell(record: &Record, out: &mut impl Write) -> Result<()> {
    let (revision, time) = (record.revision(), at(record.time()));
    if record.events().is_empty() {
        writeln!(out, "{revision} {time} nothing")?;
    }
    for event in record.events() {
        writeln!(out, "{revision} {time} {}", sentence(event))?;
    }
    Ok(())
}

/// Prints what there is and says where to go on.
fn print(log: &Embedded, args: &Args, from: Revision, out: &mut impl Write) -> Result<Revision> {
    let mut next = from.max(dump::oldest(log)?);
    loop {
        let records = log.read(next, BATCH)?;
        let Some(last) = records.last() else {
            return Ok(next);
        };
        next = last.revision().next();
        for record in &records {
            match args.output {
                Some(Lines::Json) => writeln!(out, "{}", record.text())?,
                None => tell(record, out)?,
            }
        }
    }
}
