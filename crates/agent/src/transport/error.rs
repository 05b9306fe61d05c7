//! Why the broker did not do what it was asked to.

use std::time::Duration;

use sublet_wire::{Code, Problem, client};

/// Why the broker did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It said no, and why. Asking again makes no difference by itself.
    #[error("{0}")]
    Refused(Refusal),
    /// It was not reached, or could not answer: asking again later may help.
    #[error("the broker cannot be asked now: {why}")]
    Transient {
        /// What happened, with its causes.
        why: String,
        /// Not before so long.
        retry_after: Option<Duration>,
    },
    /// The two do not believe each other's certificate, or the certificate is not for this cluster.
    #[error("the broker does not accept who we are: {0}")]
    Identity(String),
    /// It may have been done, and asking again might do it twice: an old broker takes no keys.
    #[error("whether the broker has reserved it is not known, and it cannot be asked twice: {0}")]
    Unknown(String),
    /// An old broker, which knows nothing of messages: the clusters cannot be joined through it.
    #[error(
        "this broker cannot carry messages between clusters, which this way of peering needs: \
         upgrade the broker, or use --peering=none"
    )]
    NoMessages,
    /// There is no broker, by configuration.
    #[error("no broker is configured")]
    NoBroker,
}

/// What a broker said when it said no.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The stable name, of a broker that has them.
    pub code: Option<Code>,
    /// For people; with what would have been granted, where that is known.
    pub message: String,
    /// The reservation that it is about.
    pub reservation: Option<String>,
}

impl Error {
    /// May asking again later help, without anybody changing anything here?
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Transient { .. })
    }

    /// How long the broker wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Transient { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Did the broker say that there is no such reservation, or, an old one, no such route?
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Refused(no) => match no.code {
                Some(code) => code == Code::NoSuchReservation,
                None => matches!(no.status, 404 | 405),
            },
            _ => false,
        }
    }

    /// Did the broker say that nothing is left to release?
    pub(crate) fn is_released(&self) -> bool {
        use Code::{KeyReleased, NoSuchReservation};
        matches!(self, Self::Refused(no) if matches!(no.code, Some(NoSuchReservation | KeyReleased)))
    }

    /// What an old broker said: it has no codes, so whatever it says is its own word.
    pub(super) fn of_old(error: client::Error) -> Self {
        match error {
            client::Error::Problem { status, problem }
                if problem.code().is_none()
                    && matches!(status, 400..500)
                    && !matches!(status, 401 | 408 | 429)
                    && is_gos(status, &problem) =>
            {
                Self::refused(status, &problem)
            }
            error => error.into(),
        }
    }

    fn refused(status: u16, problem: &Problem) -> Self {
        let (message, code) = (problem.error.clone(), problem.code());
        let reservation = problem.details.reservation_id.clone();
        Self::Refused(Refusal { status, code, message, reservation })
    }
}

/// Ours has a code for everything it says. What has none was said by somebody in between, who knows
/// nothing of reservations: it is no word of the broker's, unless that is known to be an old one
/// (`Error::of_old`).
impl From<client::Error> for Error {
    fn from(error: client::Error) -> Self {
        match &error {
            client::Error::Problem { status: 401, .. } => Self::Identity(chain(&error)),
            client::Error::Problem { problem, .. } if is_about_identity(problem.code()) => {
                Self::Identity(chain(&error))
            }
            client::Error::Problem { status, problem }
                if !error.is_retryable() && problem.code().is_some() =>
            {
                Self::refused(*status, problem)
            }
            client::Error::Tls { .. } | client::Error::Credentials(_) => {
                Self::Identity(chain(&error))
            }
            _ => {
                let seconds = error.problem().and_then(|problem| problem.details.retry_after);
                let retry_after = seconds.map(|seconds| Duration::from_secs(seconds.into()));
                Self::Transient { why: chain(&error), retry_after }
            }
        }
    }
}

/// What is not there, the Go program says in its own words.
fn is_gos(status: u16, problem: &Problem) -> bool {
    let said = problem.error.as_str();
    !matches!(status, 404 | 405) || matches!(said, "404 page not found" | "Method Not Allowed")
}

fn is_about_identity(code: Option<Code>) -> bool {
    use Code::{CertificateRequired, CertificateRevoked, ClusterMismatch, InvalidIdentity};
    let about = [CertificateRequired, CertificateRevoked, ClusterMismatch, InvalidIdentity];
    code.is_some_and(|code| about.contains(&code))
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        // Many an error repeats its cause.
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, problem: Problem) -> Error {
        client::Error::Problem { status, problem }.into()
    }

    fn old(status: u16, problem: Problem) -> Error {
        Error::of_old(client::Error::Problem { status, problem })
    }

    #[test]
    fn a_refusal_a_bad_moment_and_a_bad_identity_are_told_apart() {
        let refused = problem(409, Problem::new(Code::NoSuitableCluster, "nobody fits"));
        assert_eq!(refused.to_string(), "nobody fits");
        assert!(matches!(&refused, Error::Refused(no) if no.code == Some(Code::NoSuitableCluster)));
        let busy = problem(503, Problem::new(Code::Overloaded, "busy").retry_after(7));
        assert!(busy.is_transient());
        assert_eq!(busy.retry_after(), Some(Duration::from_secs(7)));
        let shut = problem(403, Problem::new(Code::CertificateRevoked, "revoked"));
        assert!(matches!(shut, Error::Identity(_)));
        let plain =
            Problem { error: "Cluster ID does not match certificate".into(), ..Problem::default() };
        assert!(problem(403, plain.clone()).is_transient(), "said by somebody in between");
        assert!(matches!(old(403, plain), Error::Refused(_)));
    }

    #[test]
    fn only_a_broker_can_say_that_something_is_not_there() {
        let said = |text: &str| Problem { error: text.to_owned(), ..Problem::default() };
        for (status, text) in [(404, "404 page not found"), (405, "Method Not Allowed")] {
            assert!(old(status, said(text)).is_absence());
            assert!(problem(status, said(text)).is_transient(), "many a proxy says {text}");
        }
        assert!(problem(404, Problem::new(Code::NoSuchReservation, "no")).is_absence());
        assert!(!problem(404, Problem::new(Code::NoSuchRoute, "no")).is_absence());
        for answer in [problem, old] {
            assert!(answer(404, said("<h1>default backend</h1>")).is_transient());
            assert!(answer(429, said("slowly")).is_transient());
            assert!(answer(502, said("nobody there")).is_transient());
        }
    }

    #[test]
    fn only_two_refusals_mean_that_nothing_is_left_to_release() {
        for code in [Code::NoSuchReservation, Code::KeyReleased] {
            assert!(problem(409, Problem::new(code, "no")).is_released());
        }
        assert!(!problem(403, Problem::new(Code::Forbidden, "no")).is_released());
        assert!(
            !old(404, Problem { error: "404 page not found".into(), ..Problem::default() })
                .is_released()
        );
    }

    #[test]
    fn what_has_no_answer_is_transient() {
        let url = "https://b".to_owned();
        let error = client::Error::Unreachable { url, source: "connection refused".into() };
        let error = Error::from(error);
        assert!(error.is_transient());
        assert!(error.to_string().ends_with("cannot connect to https://b: connection refused"));
    }
}
