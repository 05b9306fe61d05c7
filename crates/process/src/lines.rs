//! Log lines: for people or as JSON, on stderr, with what happened and to whom as fields.
//!
//! Decisions and denials go under the target `audit`, whatever the level, so that they can be kept
//! apart. Values from outside are fields, which the formatters escape; no line has two.

use clap::ValueEnum;
use serde::Serialize;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::writer::{Lines, Writing};

/// The target of decisions and denials.
pub const AUDIT: &str = "audit";

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[value(alias = "console")]
    Text,
    /// For programs.
    Json,
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Every step.
    #[value(alias = "trace")]
    Debug,
    /// What happens.
    Info,
    /// What should not happen.
    Warn,
    /// What must not happen.
    #[value(aliases = ["panic", "fatal"])]
    Error,
}

impl Level {
    /// Reads a level as zap does: a word in any case, or a number above 0, which is for more and
    /// more detail.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let is_number = || text.parse::<i64>().is_ok_and(|number| number > 0);
        match <Self as ValueEnum>::from_str(text, true) {
            Ok(level) => Ok(level),
            Err(_) if is_number() => Ok(Self::Debug),
            Err(_) => Err("write debug, info, warn or error, or a number above 0 for debug"),
        }
    }
}

/// Why there are no log lines.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else did it.
    #[error("log lines cannot be set up twice in one process")]
    Twice,
    /// There is no thread for them.
    #[error("the thread that writes log lines cannot start")]
    Thread(#[source] std::io::Error),
}

/// Begins to write log lines, until the end of what it gives back.
pub fn init(format: Format, level: Level) -> Result<Writing, Error> {
    let lines = Lines::new(format == Format::Json);
    let level = match level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    // Other crates' own lines are rarely what somebody looks for.
    let targets = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("sublet", level)
        .with_target(AUDIT, LevelFilter::INFO);
    let layer = layer(format, lines.clone()).with_filter(targets);
    registry().with(layer).try_init().map_err(|_| Error::Twice)?;
    Writing::begin(lines, std::io::stderr()).map_err(Error::Thread)
}

fn layer<S>(format: Format, lines: Lines) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let lines = fmt::layer().with_writer(lines);
    match format {
        Format::Json => lines.json().flatten_event(true).boxed(),
        Format::Text => lines.with_ansi(false).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_zap_reads_them() {
        for (text, level) in [
            ("debug", Level::Debug),
            ("INFO", Level::Info),
            ("error", Level::Error),
            ("panic", Level::Error),
            ("1", Level::Debug),
            ("127", Level::Debug),
            ("warn", Level::Warn),
        ] {
            assert_eq!(Level::read(text), Ok(level), "{text}");
        }
        for text in ["", "0", "-1", "loud", "1.5", "99999999999999999999"] {
            assert!(Level::read(text).is_err(), "{text}");
        }
    }
}
