//! What a letter says. Whatever is read from one is of a type that cannot be wrong.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use sublet_core::id::ClusterId;
use sublet_core::time::Time;

use super::key::PublicKey;
use super::seal::{Public, Sealed};

/// A nonce of Liqo's has 88 characters.
const NONCE_MAX: usize = 256;
const NONCE_MIN: usize = 16;

/// Between whom, about what, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Who wrote it.
    pub from: ClusterId,
    /// Whom it is for.
    pub to: ClusterId,
    /// Which of the two borrows: both directions of a pair have their own link.
    pub requester: ClusterId,
    /// Which link; none before there is one.
    pub link: LinkId,
    /// After that it is waste paper.
    pub expires_at: Time,
}

/// What one agent tells another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Letter {
    /// Between whom, about what, and until when.
    #[serde(flatten)]
    pub header: Header,
    /// What it says.
    pub content: Content,
}

/// What is read of a text for people, in characters.
const LINE_MAX: usize = 300;

/// A text of somebody else's that is shown to people: no control characters, and not too many others.
fn line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    Ok(text.chars().filter(|c| !c.is_control()).take(LINE_MAX).collect())
}

/// What a letter says. R is the requester of the link, P its provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum Content {
    /// R→P: I need a link, or have lost it: tell me the nonce.
    Call,
    /// P→R: sign this.
    Nonce {
        /// Made by P's Liqo.
        nonce: Nonce,
    },
    /// R→P: this is who I am to be in your cluster.
    TenantOffer(TenantOffer),
    /// P→R: this is how you get in; for R's eyes alone.
    IdentityOffer {
        /// What to open with the key whose public half was in the offer.
        sealed: Sealed,
    },
    /// P→R: that will not do.
    Refusal {
        /// Why.
        reason: Objection,
        /// For people: a line, and not a long one.
        #[serde(deserialize_with = "line")]
        message: String,
    },
    /// R→P: I am about to take the link down.
    Unlink,
    /// Either way: it is gone at my side.
    Unlinked,
}

/// What R offers to P.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantOffer {
    /// R's Liqo key: the one that the letter is signed with.
    pub public_key: PublicKey,
    /// For a certificate of R's in P's cluster, as PEM.
    pub csr: String,
    /// Of the nonce, by R's Liqo.
    #[serde(with = "super::envelope::base64_bytes")]
    pub signature: Vec<u8>,
    /// What the answer is to be sealed to, made for this one.
    pub seal_key: Public,
}

/// Why P does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Objection {
    /// The signature of the nonce is not one of that key.
    BadSignature,
    /// The cluster has another Liqo key than the one that is pinned for it.
    KeyNotPinned,
    /// The request for a certificate is not as Liqo wants it.
    InvalidCsr,
    /// Liqo keeps another request for a certificate from before.
    CsrChanged,
    /// The nonce is not the one of this link any more: ask for it again.
    LinkUnknown,
    /// Nothing is lent to that cluster.
    NothingLent,
    /// Liqo in P's cluster does not do its part.
    LiqoFailed,
    /// Said by a later version.
    #[serde(other)]
    Other,
}

impl Content {
    /// What kind it is, as metrics and logs say it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Nonce { .. } => "nonce",
            Self::TenantOffer(_) => "tenant_offer",
            Self::IdentityOffer { .. } => "identity_offer",
            Self::Refusal { .. } => "refusal",
            Self::Unlink => "unlink",
            Self::Unlinked => "unlinked",
        }
    }
}

impl Header {
    /// The other one of the two, which lends; none if the requester is neither.
    pub fn provider(&self) -> Option<&ClusterId> {
        match (self.requester == self.from, self.requester == self.to) {
            (true, false) => Some(&self.to),
            (false, true) => Some(&self.from),
            _ => None,
        }
    }

    /// A letter under this header.
    pub fn letter(self, content: Content) -> Letter {
        Letter { header: self, content }
    }
}

impl Letter {
    /// Does it make sense: two clusters, one of them the requester, the right one of them speaking,
    /// and the link that its nonce makes?
    pub fn is_consistent(&self) -> bool {
        let Header { from, requester, link, .. } = &self.header;
        let Some(provider) = self.header.provider() else { return false };
        let by_requester = from == requester;
        match &self.content {
            Content::Call => by_requester && link.is_none(),
            Content::TenantOffer(_) | Content::Unlink => by_requester && !link.is_none(),
            Content::Nonce { nonce } => {
                !by_requester && *link == LinkId::derive(requester, provider, nonce)
            }
            Content::IdentityOffer { .. } => !by_requester && !link.is_none(),
            // A call is refused before there is a link.
            Content::Refusal { .. } => !by_requester,
            Content::Unlinked => !link.is_none(),
        }
    }
}

/// What Liqo gives out to be signed: base64 text and nothing else. Whoever chooses it has it signed
/// with the other's Liqo key, so it must never look like anything else that is signed with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Nonce(String);

/// Why a text is no nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a nonce has {NONCE_MIN} to {NONCE_MAX} characters of base64")]
pub struct NotANonce;

impl Nonce {
    /// The nonce as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Nonce {
    type Err = NotANonce;

    fn from_str(text: &str) -> Result<Self, NotANonce> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for Nonce {
    type Error = NotANonce;

    fn try_from(text: String) -> Result<Self, NotANonce> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b);
        let fits = (NONCE_MIN..=NONCE_MAX).contains(&text.len()) && text.bytes().all(plain);
        if fits { Ok(Self(text)) } else { Err(NotANonce) }
    }
}

impl From<Nonce> for String {
    fn from(nonce: Nonce) -> Self {
        nonce.0
    }
}

/// Which link: a hash of the two clusters and the nonce, which lives in Liqo's Secrets on both sides
/// and is fresh for each link. So both sides know it after a restart, and an old letter is told apart
/// without anything of ours being kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinkId(String);

/// Why a text is no link's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the id of a link has {} characters of a-z and 2-7", LinkId::LENGTH)]
pub struct NotALink;

impl LinkId {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    const LENGTH: usize = 20;

    /// No link yet.
    pub fn none() -> Self {
        Self::default()
    }

    /// Is it none?
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The link with this requester and this provider that began with this nonce.
    pub fn derive(requester: &ClusterId, provider: &ClusterId, nonce: &Nonce) -> Self {
        // None of the parts can hold a NUL.
        let parts = ["sublet-link", requester.as_str(), provider.as_str(), nonce.as_str()];
        let hash = Sha256::digest(parts.join("\0"));
        let bits = hash.iter().take(13).fold(0, |sum: u128, byte| (sum << 8) | u128::from(*byte));
        let digit = |at: usize| {
            // 104 bits, of which the last four are left out.
            let five = usize::try_from((bits >> (104 - 5 * (at + 1))) & 31).unwrap_or_default();
            Self::ALPHABET.get(five).copied().map_or('a', char::from)
        };
        Self((0..Self::LENGTH).map(digit).collect())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LinkId {
    type Err = NotALink;

    fn from_str(text: &str) -> Result<Self, NotALink> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for LinkId {
    type Error = NotALink;

    fn try_from(text: String) -> Result<Self, NotALink> {
        let fits = text.len() == Self::LENGTH && text.bytes().all(|b| Self::ALPHABET.contains(&b));
        if text.is_empty() || fits { Ok(Self(text)) } else { Err(NotALink) }
    }
}

impl From<LinkId> for String {
    fn from(link: LinkId) -> Self {
        link.0
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if self.is_none() { "none" } else { &self.0 })
    }
}
