//! `sublet completion`: a script that teaches a shell our commands.

use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

/// For which shell.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// For example: source <(sublet completion bash)
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Args::command(), "sublet", &mut script);
    Ok(std::io::stdout().lock().write_all(&script)?)
}
