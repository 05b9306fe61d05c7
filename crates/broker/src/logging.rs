//! Log lines: for people or as JSON, on stderr, with what happened and to whom as fields.
//!
//! Decisions and denials go under the target `audit`, whatever the level, so that they can be kept
//! apart. Values from outside are fields, which the formatters escape; no line has two.

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::config::{Config, Format, Level};
use crate::lines::{Lines, Writing};

/// The target of decisions and denials.
pub const AUDIT: &str = "audit";

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
pub fn init(config: &Config) -> Result<Writing, Error> {
    let lines = Lines::default();
    let level = match config.log_level {
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
    let layer = layer(config, lines.clone()).with_filter(targets);
    registry().with(layer).try_init().map_err(|_| Error::Twice)?;
    Writing::begin(lines, std::io::stderr()).map_err(Error::Thread)
}

fn layer<S>(config: &Config, lines: Lines) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let lines = fmt::layer().with_writer(lines);
    match config.log_format {
        Format::Json => lines.json().flatten_event(true).boxed(),
        Format::Text => lines.with_ansi(false).boxed(),
    }
}
