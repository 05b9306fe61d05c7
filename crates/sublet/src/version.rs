//! `sublet version`.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use crate::output::{self, Format};

/// How to print it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// What this binary is, and what it reads and writes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About {
    version: &'static str,
    /// The format of the log's records and of backups.
    log_format: u32,
    api: &'static str,
}

/// Prints it.
pub(crate) fn run(args: &Args) -> Result<()> {
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        log_format: sublet_log::frame::FORMAT,
        api: "v1",
    };
    let mut out = output::stdout();
    match args.output {
        Some(Format::Json) => output::json(&about, &mut out),
        Some(Format::Yaml) => output::yaml(&about, &mut out),
        Some(Format::Name) => Ok(writeln!(out, "{}", about.version)?),
        None | Some(Format::Wide) => {
            let About { version, log_format, api } = about;
            Ok(writeln!(out, "sublet {version} (API {api}, log format {log_format})")?)
        }
    }
}
