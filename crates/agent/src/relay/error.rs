//! Why a letter was not written, or not believed.

use std::io;
use std::path::PathBuf;

use sublet_core::id::ClusterId;

use super::letter::LinkId;
use super::{AHEAD_MAX, SKEW};

/// Why a letter was not written, or not believed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the agent's credentials is not there.
    #[error("--broker-cert-path: cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The agent's credentials cannot be used; while they are being renewed, that passes.
    #[error("--broker-cert-path: {0}")]
    Credentials(String),
    /// Not a private key that can sign.
    #[error("the Liqo key cannot be used: {0}")]
    LiqoKey(String),
    /// It does not fit into a message.
    #[error("the letter is too long to be sent: {0} bytes")]
    TooLong(usize),
    /// Nothing could be signed or sealed.
    #[error("the letter cannot be signed or sealed: {0}")]
    Sign(String),
    /// Not an envelope, or not a letter, as this version writes them.
    #[error("the letter cannot be read: {0}")]
    Unreadable(String),
    /// It is for somebody else.
    #[error("the letter is for {to}, not for this cluster")]
    Misdirected {
        /// For whom.
        to: ClusterId,
    },
    /// The broker says that somebody else sent it.
    #[error("the broker says that {said:?} sent it, but it was written by {from}")]
    Sender {
        /// What the broker says.
        said: String,
        /// What is written.
        from: ClusterId,
    },
    /// It contradicts itself: who may say what to whom about which link.
    #[error("the letter contradicts itself")]
    Inconsistent,
    /// Its time is over.
    #[error("the letter has expired, by {0} ms and the {SKEW} that clocks may be apart")]
    Expired(u64),
    /// It is to live for too long.
    #[error("the letter expires more than {AHEAD_MAX} from now: are the clocks right?")]
    TooFarAhead,
    /// No authority that is believed here has issued the certificate, or not for this use, or not for
    /// this time.
    #[error("the certificate of the sender is not believed: {0}")]
    Certificate(String),
    /// The certificate is that of another cluster.
    #[error("the certificate is that of {certificate:?}, but the letter is from {from}")]
    Name {
        /// Whom it names.
        certificate: String,
        /// What is written.
        from: ClusterId,
    },
    /// The certificate is that of a person.
    #[error("the certificate is an operator's, who cannot speak for a cluster")]
    Operator,
    /// The signature of the agent's key is not one.
    #[error("the agent's signature is wrong")]
    Signature,
    /// The signature of the Liqo key is not one.
    #[error("the signature of the Liqo key is wrong")]
    LiqoSignature,
    /// The key that is offered is not the one that signed.
    #[error("the Liqo key that is offered is not the one that signed the letter")]
    OfferedKey,
    /// What is to be certified is more than, or other than, who sent it.
    #[error("the request for a certificate in the letter is not passed on: {0}")]
    Request(String),
    /// The key is not the one that is pinned.
    #[error(
        "the Liqo key of {from} is {found}, but {pinned} is pinned for it: if its key was changed \
         on purpose, change the pin"
    )]
    Pin {
        /// Whose.
        from: ClusterId,
        /// The fingerprint of what signed.
        found: String,
        /// The fingerprint of what is pinned.
        pinned: String,
    },
    /// It is about another link, an earlier one perhaps.
    #[error("the letter is about the link {found}, not about {expected}")]
    OtherLink {
        /// About which it is.
        found: LinkId,
        /// About which it should be.
        expected: LinkId,
    },
    /// It was sent before one that was read.
    #[error("the letter is older than one that was read")]
    Stale,
    /// There are too many.
    #[error("there are more letters than are kept; whoever wants an answer sends it again")]
    Overflow,
    /// It cannot be unsealed.
    #[error("what is sealed in the letter cannot be opened")]
    Seal,
}

/// Why a letter was refused, as the metric says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reason(pub &'static str);

impl Error {
    /// Why, in a word.
    pub fn reason(&self) -> Reason {
        Reason(match self {
            Self::Read { .. } | Self::Credentials(_) => "credentials",
            Self::LiqoKey(_) | Self::TooLong(_) | Self::Sign(_) => "unwritten",
            Self::Unreadable(_) => "unreadable",
            Self::Misdirected { .. } => "misdirected",
            Self::Sender { .. } => "sender",
            Self::Inconsistent => "inconsistent",
            Self::Expired(_) => "expired",
            Self::TooFarAhead => "too_far_ahead",
            Self::Certificate(_) => "certificate",
            Self::Name { .. } => "name",
            Self::Operator => "operator",
            Self::Signature => "signature",
            Self::LiqoSignature => "liqo_signature",
            Self::OfferedKey => "offered_key",
            Self::Request(_) => "csr",
            Self::Pin { .. } => "pin",
            Self::OtherLink { .. } => "other_link",
            Self::Stale => "stale",
            Self::Overflow => "overflow",
            Self::Seal => "seal",
        })
    }
}
