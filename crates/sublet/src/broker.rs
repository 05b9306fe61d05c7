//! `sublet broker`: opens the log in its folder and runs the broker on it.

use std::io::Write;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result};
use sublet_broker::config::{Config, Flags};
use sublet_log::embedded::Embedded;

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
    let config = Config::resolve(flags)?;
    if flags.print_config {
        let text = toml::to_string(&config).context("cannot write the configuration")?;
        return std::io::stdout().write_all(text.as_bytes()).context("cannot print");
    }
    sublet_process::lines::init(config.log_format, config.log_level)?;
    std::fs::create_dir_all(&config.data_dir)
        .with_context(|| format!("--data-dir: cannot make {}", config.data_dir.display()))?;
    let log = Embedded::open(&config.data_dir)
        .with_context(|| format!("--data-dir: cannot open {}", config.data_dir.display()))?;
    Ok(sublet_broker::run(&config, Arc::new(log))?)
}

/// What was promised is in the log, so there is nothing to save.
fn end_with_stdin() {
    drop(std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()));
    std::process::abort();
}
