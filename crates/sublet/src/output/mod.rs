//! What people and scripts read: tables, JSON, YAML, names.
//!
//! Everything goes through [`stdout`], which drops colours where nobody can see them: not a
//! terminal, or `NO_COLOR`. Figures for people are short; figures for scripts are exact.

mod table;
mod watch;
mod words;

use std::io::{StdoutLock, Write};

use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::Serialize;
use sublet_core::time::Time;

pub(crate) use table::{Cell, Column};
pub(crate) use watch::Watch;
pub(crate) use words::{age, left, or_dash, others, paint};

/// Standard output without what it cannot show.
pub(crate) type Stdout = anstream::AutoStream<StdoutLock<'static>>;

/// Standard output, locked, so that lines of one answer stay together.
pub(crate) fn stdout() -> Stdout {
    anstream::AutoStream::auto(std::io::stdout().lock())
}

/// How an answer is printed; a table where none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table with more columns
    Wide,
    /// JSON, as the broker sent it
    Json,
    /// The same as YAML
    Yaml,
    /// Names alone, one a line
    Name,
}

/// The flag.
#[derive(clap::Args)]
pub(crate) struct Output {
    /// How to print it.
    #[arg(short = 'o', long = "output", value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
}

/// Something that is listed.
pub(crate) trait Row: Serialize {
    /// The columns, from left to right.
    const COLUMNS: &'static [Column];

    /// What is in them; one cell per column.
    fn cells(&self, now: Time) -> Vec<Cell>;

    /// What scripts call it by.
    fn name(&self) -> String;
}

/// Prints a list.
pub(crate) fn list<R: Row>(
    rows: &[R],
    format: Option<Format>,
    now: Time,
    out: &mut impl Write,
) -> Result<()> {
    match format {
        Some(Format::Json) => json(&rows, out),
        Some(Format::Yaml) => yaml(&rows, out),
        Some(Format::Name) => {
            rows.iter().try_for_each(|row| writeln!(out, "{}", row.name()))?;
            Ok(())
        }
        None | Some(Format::Wide) if rows.is_empty() => Ok(writeln!(out, "nothing found")?),
        None | Some(Format::Wide) => {
            let mut table = table::Table::new(R::COLUMNS, format == Some(Format::Wide));
            Ok(table.print(rows.iter().map(|row| row.cells(now)).collect(), out)?)
        }
    }
}

/// Prints one thing.
pub(crate) fn one<R: Row>(
    row: &R,
    format: Option<Format>,
    now: Time,
    out: &mut impl Write,
) -> Result<()> {
    match format {
        Some(Format::Json) => json(row, out),
        Some(Format::Yaml) => yaml(row, out),
        _ => list(std::slice::from_ref(row), format, now, out),
    }
}

/// Prints JSON for people and scripts alike.
pub(crate) fn json(value: &impl Serialize, out: &mut impl Write) -> Result<()> {
    let text =
        serde_json::to_string_pretty(value).context("the answer cannot be written as JSON")?;
    Ok(writeln!(out, "{text}")?)
}

/// Prints YAML.
pub(crate) fn yaml(value: &impl Serialize, out: &mut impl Write) -> Result<()> {
    // Through JSON's model, so that both formats say the same.
    let value = serde_json::to_value(value).context("the answer cannot be written as YAML")?;
    let text = serde_saphyr::to_string(&value).context("the answer cannot be written as YAML")?;
    Ok(writeln!(out, "{}", text.trim_end())?)
}
