//! `sublet broker`: opens the log in its folder and runs the broker on it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result};
use sublet_broker::config::{self, Config, Flags};
use sublet_log::Log;
use sublet_log::embedded::Embedded;

use crate::exit::{Exit, Stop};

/// The broker's own flags, and what only whoever starts it as a child needs.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// End at once when standard input does: with the process that holds its other end, however
    /// that one ends.
    #[arg(long, hide = true)]
    end_with_stdin: bool,
}

/// Runs until it is told to end.
pub(crate) fn run(args: &Args) -> Result<()> {
    let flags = &args.flags;
    if args.end_with_stdin {
        thread::spawn(end_with_stdin);
    }
    let wrong = |error: config::Error| Stop::new(Exit::Usage, error.to_string());
    if flags.print_config {
        let text = config::print(flags).map_err(wrong)?;
        return std::io::stdout().write_all(text.as_bytes()).context("cannot print");
    }
    let config = Config::resolve(flags).map_err(wrong)?;
    let _lines = sublet_process::lines::init(config.log_format, config.log_level)?;
    sublet_broker::run(&config, || open(&config.data_dir))
}

fn open(folder: &Path) -> Result<Arc<dyn Log>> {
    let name = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("--data-dir: cannot make {name}"))?;
    let log = Embedded::open(folder);
    Ok(Arc::new(log.with_context(|| format!("--data-dir: cannot open {name}"))?))
}

/// What was promised is in the log, so there is nothing to save.
fn end_with_stdin() {
    drop(std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()));
    std::process::abort();
}
