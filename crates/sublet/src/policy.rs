//! `sublet policy`: what the broker would make of a policy file, before it gets it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;

use crate::exit::{Exit, Stop};
use crate::output::{self, Format};

/// What to do with a policy file.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check a policy file as the broker does.
    Check {
        /// The file.
        file: PathBuf,
        /// Print what it amounts to, defaults included.
        #[arg(short, long, value_enum)]
        output: Option<Format>,
    },
}

impl Command {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::Check { file, output } => check(&file, output),
        }
    }
}

fn check(file: &Path, format: Option<Format>) -> Result<()> {
    let text = fs::read_to_string(file)
        .with_context(|| Stop::new(Exit::NotFound, format!("{} cannot be read", file.display())))?;
    let policy = sublet_broker::policy::parse(&text)
        .map_err(|error| Stop::new(Exit::Unsound, format!("{}: {error}", file.display())))?;
    let mut out = output::stdout();
    match format {
        Some(Format::Json) => output::json(&policy, &mut out),
        Some(Format::Yaml) => output::yaml(&policy, &mut out),
        None | Some(Format::Wide | Format::Name) => {
            let (rules, named) = (policy.lending.len(), policy.requesters.len());
            let file = file.display();
            writeln!(out, "{file} is a policy: {rules} rules of lending, {named} own allowances")?;
            Ok(())
        }
    }
}
