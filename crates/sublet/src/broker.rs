//! `sublet broker`: opens the log in its folder and runs the broker on it.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, Result};
use sublet_broker::config::{Config, Flags};
use sublet_log::embedded::Embedded;

/// Runs until it is told to end.
pub(crate) fn run(flags: &Flags) -> Result<()> {
    let config = Config::resolve(flags)?;
    if flags.print_config {
        let text = toml::to_string(&config).context("cannot write the configuration")?;
        return std::io::stdout().write_all(text.as_bytes()).context("cannot print");
    }
    sublet_broker::logging::init(&config)?;
    std::fs::create_dir_all(&config.data_dir)
        .with_context(|| format!("--data-dir: cannot make {}", config.data_dir.display()))?;
    let log = Embedded::open(&config.data_dir)
        .with_context(|| format!("--data-dir: cannot open {}", config.data_dir.display()))?;
    Ok(sublet_broker::run(&config, Arc::new(log))?)
}
