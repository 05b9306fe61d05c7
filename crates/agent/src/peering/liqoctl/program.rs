//! Runs a program: by its path and never by a shell, with nothing of our environment but what was
//! named, within a time, and whatever it prints.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::future::join;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How much of what it prints is kept: the end, where it says what went wrong.
const TAIL_MAX: usize = 4096;
/// How much of that is passed on to people.
const LINES_MAX: usize = 3;
const TEXT_MAX: usize = 400;
/// How long it is listened to what a program has printed that has ended. Something that it started, and
/// left behind, may hold its outputs open for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What came of a run, other than success.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// There is no such program.
    #[error("{} was not found", program.display())]
    Missing {
        /// Which.
        program: PathBuf,
    },
    /// It could not be started.
    #[error("{} could not be started: {source}", program.display())]
    NotStarted {
        /// Which.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It could not be waited for.
    #[error("what became of liqoctl is not known: {0}")]
    Lost(#[source] io::Error),
    /// It ended, and says that it failed.
    #[error("liqoctl {verb} failed ({status}){}", said(text))]
    Failed {
        /// What it was to do.
        verb: String,
        /// How it ended.
        status: ExitStatus,
        /// Its last words.
        text: String,
    },
    /// It did not end, and was ended.
    #[error("liqoctl {verb} was ended after {}s{}", after.as_secs(), said(text))]
    TimedOut {
        /// What it was to do.
        verb: String,
        /// When.
        after: Duration,
        /// Its last words.
        text: String,
    },
}

impl Failure {
    /// As metrics have it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::NotStarted { .. } => "not_started",
            Self::Failed { .. } | Self::Lost(_) => "failed",
            Self::TimedOut { .. } => "timed_out",
        }
    }
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

/// A program, and how it is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Where it is; a mere name is looked for on the `PATH` of its environment.
    pub path: PathBuf,
    /// Its environment, all of it.
    pub environment: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub timeout: Duration,
}

impl Program {
    /// Runs it to its end. It is ended when that takes too long, and when the future is dropped.
    pub(super) async fn run(&self, arguments: &[OsString]) -> Result<(), Failure> {
        let verb = arguments.first().map(|verb| verb.to_string_lossy().into_owned());
        let verb = verb.unwrap_or_default();
        let mut child = self.start(arguments)?;
        let (mut out, mut err) = (Tail::default(), Tail::default());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = {
            let mut reading = pin!(join(out.follow(stdout), err.follow(stderr)));
            let mut is_read = false;
            let ended = timeout(self.timeout, async {
                loop {
                    tokio::select! {
                        status = child.wait() => return status,
                        _ = &mut reading, if !is_read => is_read = true,
                    }
                }
            });
            let ended = ended.await;
            if ended.is_err() {
                // That it is gone already is as good.
                drop(child.kill().await);
            }
            if !is_read {
                drop(timeout(LAST_WORDS, &mut reading).await);
            }
            ended
        };
        // What went wrong is on one or the other.
        let text = Some(err.text()).filter(|text| !text.is_empty()).unwrap_or_else(|| out.text());
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(Failure::Failed { verb, status, text }),
            Ok(Err(error)) => Err(Failure::Lost(error)),
            Err(_) => Err(Failure::TimedOut { verb, after: self.timeout, text }),
        }
    }

    fn start(&self, arguments: &[OsString]) -> Result<Child, Failure> {
        let mut command = Command::new(&self.path);
        command.args(arguments).env_clear().envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().map_err(|source| {
            let program = self.path.clone();
            match source.kind() {
                io::ErrorKind::NotFound => Failure::Missing { program },
                _ => Failure::NotStarted { program, source },
            }
        })
    }
}

/// The end of what was printed.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    /// Reads everything, so that nobody waits to be read, and keeps the end of it.
    async fn follow(&mut self, source: Option<impl AsyncRead + Unpin>) {
        let Some(mut source) = source else { return };
        let mut chunk = vec![0; TAIL_MAX];
        while let Ok(count @ 1..) = source.read(&mut chunk).await {
            self.0.extend_from_slice(chunk.get(..count).unwrap_or_default());
            let excess = self.0.len().saturating_sub(TAIL_MAX);
            self.0.drain(..excess);
        }
    }

    /// The last lines, for people: without colours, and not too long.
    fn text(&self) -> String {
        let plain = plain(&String::from_utf8_lossy(&self.0));
        let lines = plain.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut last: Vec<_> = lines.rev().take(LINES_MAX).collect();
        last.reverse();
        let text = last.join("; ");
        let skipped = text.chars().count().saturating_sub(TEXT_MAX);
        text.chars().skip(skipped).collect()
    }
}

/// Without what is meant for a terminal. A line that was written over and over is its last version.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => {
                // `ESC [ … letter`, or `ESC` and one more.
                if rest.next() == Some('[') {
                    while rest.next().is_some_and(|next| !next.is_ascii_alphabetic()) {}
                }
            }
            '\r' => plain.push('\n'),
            '\n' => plain.push(next),
            '\u{fffd}' => {}
            next if next.is_control() => {}
            next => plain.push(next),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
