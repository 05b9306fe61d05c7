//! `sublet agent`: runs the agent of the cluster that the kubeconfig leads to.

use std::io::Write;

use anyhow::{Context, Result};
use sublet_agent::config::{Config, Flags};

/// The agent's own flags.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
}

/// Runs until it is told to end.
pub(crate) fn run(args: &Args) -> Result<()> {
    let config = Config::resolve(&args.flags)?;
    if args.flags.print_config {
        let text = toml::to_string(&config).context("cannot write the configuration")?;
        return std::io::stdout().write_all(text.as_bytes()).context("cannot print");
    }
    let _lines = sublet_process::lines::init(config.log_format, config.log_level)?;
    Ok(sublet_agent::run(&config)?)
}
