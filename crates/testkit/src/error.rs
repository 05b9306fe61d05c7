//! What a test is told when something of its clusters does not work.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::binaries::Missing;
use crate::wait::Late;

/// Why something was not done.
#[derive(thiserror::Error)]
pub enum Error {
    /// The programs are not on this machine.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file, a socket or a process was not to be had.
    #[error("{what}: {source}")]
    Io {
        /// What was being tried.
        what: String,
        /// Why it did not work.
        source: io::Error,
    },
    /// A key or a certificate could not be made or used.
    #[error("certificates: {0}")]
    Certificate(String),
    /// A process ended that should run.
    #[error("{process} ended with {status}; {} ends so:\n{tail}", .log.display())]
    Ended {
        /// Its name.
        process: String,
        /// How it ended.
        status: ExitStatus,
        /// Where all of its output is.
        log: PathBuf,
        /// The end of it.
        tail: String,
    },
    /// A process runs and does not become ready.
    #[error("{late}; {} ends so:\n{tail}", .log.display())]
    NotReady {
        /// For what.
        late: Late,
        /// Where all of its output is.
        log: PathBuf,
        /// The end of it.
        tail: String,
    },
    /// A process was asked for something, and does not run.
    #[error("{process} does not run")]
    NotRunning {
        /// Its name.
        process: String,
    },
    /// kubectl failed.
    #[error("kubectl {arguments}: {status}\n{said}")]
    Kubectl {
        /// What it was asked.
        arguments: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        said: String,
    },
    /// The API server refused.
    #[error("{request}: {status}: {said}")]
    Refused {
        /// What it was asked.
        request: String,
        /// The HTTP status.
        status: u16,
        /// What it said.
        said: String,
    },
    /// Liqo's chart is not as expected.
    #[error("Liqo's chart: {0}")]
    Chart(String),
    /// Pods were to be put on nodes, and there are none.
    #[error("there is no node to put pods on: add nodes first")]
    NoNodes,
    /// A condition did not come true.
    #[error(transparent)]
    Late(#[from] Late),
}

/// As people read it, because this is what `unwrap` shows; logs have many lines.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// The HTTP status, if the API server refused.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// Says what was being tried.
pub(crate) fn during(what: impl FnOnce() -> String) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { what: what(), source }
}
