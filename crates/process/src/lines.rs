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
    /// Every step; also any of zap's numbers.
    #[value(aliases = ["trace", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"])]
    Debug,
    /// What happens.
    Info,
    /// What should not happen.
    Warn,
    /// What must not happen.
    #[value(aliases = ["panic", "fatal"])]
    Error,
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
    let lines = Lines::default();
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
