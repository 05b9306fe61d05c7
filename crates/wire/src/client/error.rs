//! Why a call has no answer, or not the one that was hoped for.

use std::path::PathBuf;
use std::time::Duration;
use std::{error, io};

use rustls::pki_types::pem;
use sublet_core::id::Key;

use crate::{Code, Problem, decode};

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not PEM, or not of this kind.
    #[error("the {what} is not valid PEM")]
    Parse {
        /// Which of the three.
        what: &'static str,
        /// Why.
        source: pem::Error,
    },
    /// A file without a certificate in it.
    #[error("tls.crt and ca.crt must hold a certificate each")]
    Empty,
    /// An authority that cannot be one.
    #[error("ca.crt holds a certificate that cannot be an authority")]
    Authority(#[source] rustls::Error),
    /// Certificate and key do not go together, or are of a kind that is not known.
    #[error("certificate and key cannot be used together")]
    Refused(#[source] rustls::Error),
}

/// Why a call has no answer, or not the one that was hoped for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client cannot be made.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// An address that cannot be one.
    #[error("{0:?} is not the address of a broker: write https://host:port")]
    Url(String),
    /// No address at all.
    #[error("no broker is named: give at least one https://host:port")]
    NoUrl,
    /// The broker said no, and why.
    #[error("{problem}")]
    Problem {
        /// The HTTP status.
        status: u16,
        /// What it said.
        problem: Problem,
    },
    /// The system has no random numbers, so there is no key that nobody else has.
    #[error("the system gives no random numbers: send a key of your own")]
    NoRandomness,
    /// One side does not believe the other's certificate, so nothing was carried out.
    #[error("no trust between {url} and us: check certificate, key and CA on both sides")]
    Tls {
        /// Whom.
        url: String,
        /// Why.
        source: rustls::Error,
    },
    /// No connection, so nothing was sent.
    #[error("cannot connect to {url}")]
    Unreachable {
        /// Whom.
        url: String,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },
    /// Something was sent, and the connection broke before the answer.
    #[error("the connection to {url} broke before the answer came")]
    Broken {
        /// Whom.
        url: String,
        /// Why.
        source: Box<dyn error::Error + Send + Sync>,
    },
    /// Something may have been sent, and no answer came in time.
    #[error("{url} did not answer within {} ms", after.as_millis())]
    Timeout {
        /// Who.
        url: String,
        /// Within which time.
        after: Duration,
    },
    /// An answer that is no answer.
    #[error("{url} answered with something that is not understood")]
    Answer {
        /// Who.
        url: String,
        /// Why.
        source: decode::Error,
    },
    /// An answer that was longer than is read.
    #[error("{url} answered with more than is read")]
    TooLong {
        /// Who.
        url: String,
    },
    /// Whether it was reserved is not known, and the key could not be released either.
    #[error(
        "it is not known whether it was reserved: ask again, or release it, with the key {key}"
    )]
    InDoubt {
        /// The key under which it was asked for.
        key: Key,
        /// What happened last.
        source: Box<Error>,
    },
    /// Whether it was reserved was not known; the key was released, so nothing is.
    #[error("it was not known whether it was reserved, so it was released again")]
    Released(#[source] Box<Error>),
    /// A stream said nothing for too long.
    #[error("the stream of {url} was silent for {} ms", after.as_millis())]
    Silent {
        /// Whose.
        url: String,
        /// For how long.
        after: Duration,
    },
    /// A broker that has no stream: an old one, which lists instead.
    #[error("{url} has no stream of instructions")]
    NoStream {
        /// Who.
        url: String,
    },
    /// A stream ended without a word.
    #[error("{url} closed the stream")]
    Closed {
        /// Who.
        url: String,
    },
    /// The broker goes away in order.
    #[error("{url} is going away")]
    Goodbye {
        /// Who.
        url: String,
        /// Not before so many seconds.
        retry_after: Option<u32>,
    },
}

impl Error {
    /// The code, where the broker gave one that we know.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Problem { problem, .. } => problem.code(),
            _ => None,
        }
    }

    /// What the broker said, if it said anything.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Problem { problem, .. } => Some(problem),
            Self::InDoubt { source, .. } | Self::Released(source) => source.problem(),
            _ => None,
        }
    }

    /// Might the same call succeed a little later?
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Problem { status, .. } => matches!(status, 408 | 429 | 500..),
            Self::Unreachable { .. }
            | Self::Broken { .. }
            | Self::Timeout { .. }
            | Self::InDoubt { .. }
            | Self::Released(_)
            | Self::Silent { .. }
            | Self::NoStream { .. }
            | Self::Closed { .. }
            | Self::Goodbye { .. }
            // A proxy may have answered in the broker's place.
            | Self::Answer { .. } => true,
            Self::Credentials(_)
            | Self::Url(_)
            | Self::NoUrl
            | Self::NoRandomness
            | Self::Tls { .. }
            | Self::TooLong { .. } => false,
        }
    }

    /// May the broker have done what was asked?
    pub(super) fn leaves_doubt(&self) -> bool {
        match self {
            Self::Broken { .. }
            | Self::Timeout { .. }
            | Self::Answer { .. }
            | Self::TooLong { .. } => true,
            // What has no code of ours was said by somebody in between.
            Self::Problem { status, problem } => match problem.code() {
                Some(code) => matches!(code, Code::OutcomeUnknown | Code::Internal),
                None => *status >= 500,
            },
            _ => false,
        }
    }

    /// Is one side's certificate not believed by the other?
    pub(super) fn is_tls(&self) -> bool {
        matches!(self, Self::Tls { .. })
    }

    /// Is another broker a better choice for the next try?
    pub(super) fn moves_on(&self) -> bool {
        match self {
            Self::Problem { status, .. } => *status >= 500,
            _ => true,
        }
    }

    /// How long the broker wants to be left alone.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let seconds = match self {
            Self::Problem { problem, .. } => problem.details.retry_after,
            Self::Goodbye { retry_after, .. } => *retry_after,
            _ => None,
        };
        seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }
}
