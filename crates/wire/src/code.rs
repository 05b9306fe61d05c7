//! Every error that a client can get: its stable name, its HTTP status, what it means.
//!
//! A code never changes its meaning. Each has a page in docs/errors, which `cargo xtask tidy`
//! checks. The status is chosen here and nowhere else.

use std::fmt;

use serde::Serialize;

/// Lists the codes once: name, status, meaning.
macro_rules! codes {
    ($($name:ident = $status:literal, $meaning:literal;)*) => {
        /// A stable name for what went wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// All of them, by status.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name, as it is on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The HTTP status that it comes with.
            pub fn status(self) -> u16 {
                match self {
                    $(Self::$name => $status,)*
                }
            }

            /// What it means, in a line.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }
    };
}

codes! {
    InvalidBody = 400, "The body is not JSON, or a member has the wrong type.";
    InvalidField = 400, "A member of the body has a value that cannot be right.";
    InvalidParameter = 400, "A part of the path or of the query has a value that cannot be right.";
    InvalidKey = 400, "The idempotency key is empty, too long, or not visible ASCII.";
    TooLong = 400, "The duration or the wait is longer than the operator allows.";
    CertificateRequired = 401, "No client certificate was sent.";
    InvalidIdentity = 403, "The certificate names no cluster: its CN is missing or is not a valid name.";
    CertificateRevoked = 403, "The certificate, or every certificate of the cluster, was revoked.";
    ClusterMismatch = 403, "The body speaks for another cluster than the certificate.";
    Forbidden = 403, "The role of the certificate does not allow this.";
    Strangers = 403, "The two clusters share no reservation, now or lately.";
    NoSuchRoute = 404, "There is nothing under this path.";
    NoAdvertisement = 404, "The cluster has not advertised, or is not yours to see.";
    NoSuchReservation = 404, "There is no such reservation, or it is not yours to see.";
    NoSuchCluster = 404, "There is no such cluster, or it is not yours to see.";
    MethodNotAllowed = 405, "The path is right, the method is not.";
    RequestTimeout = 408, "The request did not arrive in time.";
    NoSuitableCluster = 409, "No cluster can lend this now.";
    KeyReused = 409, "The idempotency key was used for another request.";
    KeyReleased = 409, "The idempotency key was released before its request arrived.";
    WrongPhase = 409, "The reservation is in a phase in which this is not possible.";
    UnknownGeneration = 409, "The generation that is acknowledged was never issued.";
    InUse = 409, "Pods use more than the reservation is to be shrunk to.";
    ProviderTooOld = 409, "The provider's agent cannot change a running reservation.";
    TooManyReservations = 409, "The cluster has as many live reservations as it may have.";
    TooManyKeys = 409, "The cluster has as many remembered keys as it may have.";
    TooManyWaiting = 409, "As many requests wait already as may wait.";
    BodyTooLarge = 413, "The body is longer than is read.";
    UriTooLong = 414, "The path and query are longer than is read.";
    RateLimited = 429, "The cluster sends more requests than its share.";
    TooManyMessages = 429, "As many messages are kept as may be.";
    HeadersTooLarge = 431, "The headers are longer than is read.";
    Internal = 500, "The broker made a mistake.";
    ProvidersOverdue = 503, "Only clusters whose advertisement is overdue could lend this.";
    Overloaded = 503, "The broker is too busy; nothing was done.";
    Unavailable = 503, "The broker cannot write its log; nothing was done.";
    OutcomeUnknown = 503, "It may or may not have been done.";
}

impl Code {
    /// The code of this name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn names_lead_back_to_their_codes_and_are_listed_by_status() {
        assert!(Code::ALL.iter().all(|code| Code::named(code.as_str()) == Some(*code)));
        assert!(Code::ALL.is_sorted_by_key(|code| code.status()));
        assert_eq!(Code::named("nothing"), None);
    }
}
