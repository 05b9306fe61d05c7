//! `sublet fsck`: reads everything, believes nothing, writes nothing.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use sublet_log::embedded::{Embedded, Error};
use sublet_log::fsck::{self, Report, Severity};

use crate::exit::{Exit, Stop};
use crate::output::{self, Format};
use crate::progress::Progress;

/// Of which log.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The broker's data folder; a copy will do, and so will the one that a broker uses.
    dir: PathBuf,
    /// How to print it.
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// The report for scripts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed {
    sound: bool,
    records: u64,
    oldest: u64,
    head: u64,
    /// The first whose decisions were judged; those before it were checked for damage and order.
    #[serde(skip_serializing_if = "Option::is_none")]
    judged_from: Option<u64>,
    /// Equal on every sound copy of the same log.
    state: Option<String>,
    findings: Vec<Found>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    severity: &'static str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    what: String,
}

impl From<Report> for Printed {
    fn from(report: Report) -> Self {
        let findings = report.findings.into_iter().map(|finding| Found {
            severity: word(finding.severity),
            code: finding.code,
            revision: finding.revision.map(|revision| revision.0),
            what: finding.found,
        });
        let findings: Vec<_> = findings.collect();
        Self {
            sound: findings.is_empty(),
            records: report.records,
            oldest: report.oldest.0,
            judged_from: report.judged_from.map(|revision| revision.0),
            head: report.head.revision.0,
            state: report.state.map(|state| state.to_string()),
            findings,
        }
    }
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Broken => "broken",
        Severity::Corrupt => "corrupt",
    }
}

/// Checks it and says what was found.
pub(crate) fn run(args: &Args) -> Result<()> {
    let progress = Progress::start(format!("checking {}", args.dir.display()));
    let log = open(args)?;
    let report = fsck::check(&log).context("the log could not be checked")?;
    drop(progress);
    let worst = report.severity();
    print(report.into(), args.output)?;
    match worst {
        None | Some(Severity::Warning) => Ok(()),
        Some(worst) => {
            let advice = "keep the folder as it is and restore a backup into another one";
            Err(Stop::new(Exit::Unsound, format!("the log is {}: {advice}", word(worst))).into())
        }
    }
}

/// A folder that its home refuses is itself the finding.
fn open(args: &Args) -> Result<Embedded> {
    super::look(&args.dir).map_err(|error| {
        let home = error.chain().find_map(|cause| cause.downcast_ref::<Error>());
        match home {
            Some(Error::MissingFile { .. } | Error::HeadBehind { .. } | Error::Corrupt { .. }) => {
                error.context(Stop::new(Exit::Unsound, "the log is not sound"))
            }
            _ => error,
        }
    })
}

fn print(report: Printed, format: Option<Format>) -> Result<()> {
    let mut out = output::stdout();
    match format {
        Some(Format::Json) => return output::json(&report, &mut out),
        Some(Format::Yaml) => return output::yaml(&report, &mut out),
        None | Some(Format::Wide | Format::Name) => {}
    }
    for Found { severity, code, revision, what } in &report.findings {
        let place = revision.map_or_else(String::new, |revision| format!(" at {revision}"));
        writeln!(out, "{severity} {code}{place}: {what}")?;
    }
    let Printed { records, oldest, head, judged_from, state, .. } = report;
    writeln!(out, "{records} records read, revisions {oldest} to {head}")?;
    let judged_from = judged_from.unwrap_or(head.saturating_add(1));
    if judged_from > oldest && oldest <= head {
        let last = judged_from.saturating_sub(1);
        writeln!(
            out,
            "revisions {oldest} to {last} were checked for damage and order only: what their \
             decisions stood on is no longer kept"
        )?;
    }
    if let Some(state) = state {
        writeln!(out, "state {state}: equal on every sound copy of this log")?;
    }
    Ok(())
}
