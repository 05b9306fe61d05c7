//! `sublet policy`: what the broker would make of a policy file, before it gets it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;
use sublet_broker::policy;
use sublet_process::file;

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

fn is_too_large(error: &policy::Error) -> bool {
    matches!(error, policy::Error::Read(file::Error::TooLarge { .. }))
}

fn check(file: &Path, format: Option<Format>) -> Result<()> {
    let text = policy::read(file).map_err(|error| {
        let exit = if is_too_large(&error) { Exit::Unsound } else { Exit::NotFound };
        anyhow::Error::new(error).context(Stop::new(exit, "nothing that a broker could use"))
    })?;
    let found = policy::parse(&text)
        .map_err(|error| Stop::new(Exit::Unsound, format!("{}: {error}", file.display())))?;
    let mut out = output::stdout();
    match format {
        Some(Format::Json) => output::json(&found, &mut out),
        Some(Format::Yaml) => output::yaml(&found, &mut out),
        None | Some(Format::Wide | Format::Name) => {
            let (rules, named) = (found.lending.len(), found.requesters.len());
            let file = file.display();
            writeln!(out, "{file} is a policy: {rules} rules of lending, {named} own allowances")?;
            if policy::is_empty(&text) {
                writeln!(
                    out,
                    "it says nothing, so everybody may do everything; a running broker takes it only \
                     in place of one that says nothing either"
                )?;
            }
            Ok(())
        }
    }
}
