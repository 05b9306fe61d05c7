//! `sublet restore`: a new log from a backup. It goes back in time, so it says what that means.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use sublet_core::event::Note;
use sublet_core::reservation::Actor;
use sublet_log::Writer;
use sublet_log::embedded::restore::{Restorer, restore};

use crate::environment::Environment;
use crate::exit::{Exit, Stop};
use crate::progress::Progress;
use crate::{clock, output};

/// From what, to where.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The backup.
    file: PathBuf,
    /// The new data folder; it must be empty.
    dir: PathBuf,
    /// Why, for the log.
    #[arg(long, default_value = "restored from a backup")]
    why: String,
}

/// Restores it.
pub(crate) fn run(args: &Args) -> Result<()> {
    let file = File::open(&args.file).with_context(|| {
        Stop::new(Exit::NotFound, format!("{} cannot be opened", args.file.display()))
    })?;
    let progress = Progress::start(format!("restoring into {}", args.dir.display()));
    let operator = Environment::read().user.unwrap_or_else(|| "sublet restore".into());
    let restorer = Restorer {
        writer: writer()?,
        now: clock::now(),
        note: Note { by: Actor::Operator(operator), why: args.why.clone() },
    };
    let head = restore(BufReader::new(file), &args.dir, restorer)?;
    drop(progress);
    let mut out = output::stdout();
    writeln!(out, "restored into {} up to revision {}", args.dir.display(), head.revision)?;
    writeln!(
        out,
        "promises made after the backup are forgotten: a provider lends again only when it"
    )?;
    writeln!(out, "has reported what it holds; see who has not yet with: sublet get clusters")?;
    Ok(())
}

/// A random name for this process in the log.
fn writer() -> Result<Writer> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("there is no source of randomness")?;
    Ok(Writer(u128::from_be_bytes(bytes)))
}
