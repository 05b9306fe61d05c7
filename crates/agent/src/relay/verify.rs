//! Opening letters: nothing that the broker says of one counts, only what is signed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use sublet_core::id::ClusterId;
use sublet_core::time::Time;
use sublet_wire::v1::Message;
use webpki::{EndEntityCert, KeyUsage, RawPublicKeyEntity};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::credentials::Folder;
use super::envelope::{Envelope, SCHEMES, Signed};
use super::key::PublicKey;
use super::letter::{Content, Letter, LinkId};
use super::{AHEAD_MAX, Error, SKEW, to_be_signed};
use crate::metrics::Metrics;

/// The organization in the certificates of operators, who speak for no cluster.
const OPERATORS: &str = "sublet:operators";

/// So many refusals of one kind are told one by one, then every so many: whoever sends rubbish must not
/// be able to fill a disk with lines about it.
const TOLD_EACH: u64 = 20;
const TOLD_EVERY: u64 = 100;

/// A letter that is believed to be from whom it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// What it says.
    pub letter: Letter,
    /// The Liqo key that signed it; whether it is the sender's, the pin says.
    pub liqo_key: PublicKey,
}

/// Opens the letters to this cluster, and counts those that it refuses.
#[derive(Clone)]
pub struct Verifier {
    cluster: ClusterId,
    folder: Folder,
    metrics: Arc<Metrics>,
}

impl Verifier {
    /// Of letters to this cluster; `ca.crt` in the folder has the authorities of agents.
    pub fn new(cluster: ClusterId, folder: PathBuf, metrics: Arc<Metrics>) -> Self {
        Self { cluster, folder: Folder(folder), metrics }
    }

    /// Opens a message. What is refused is logged and counted here.
    pub fn open(&self, message: &Message, now: Time) -> Result<Opened, Error> {
        match self.check(message, now) {
            Ok(opened) => {
                self.metrics.letter_opened(opened.letter.content.kind());
                Ok(opened)
            }
            Err(error) => {
                self.refuse(&message.from, &error);
                Err(error)
            }
        }
    }

    /// A letter is not believed: says so, and counts it. Also for what is found out after it was
    /// opened: see [`Opened::of_link`] and [`Opened::pinned_to`].
    pub fn refuse(&self, from: &str, error: &Error) {
        let reason = error.reason().0;
        let count = self.metrics.letter_refused(reason);
        if count > TOLD_EACH && !count.is_multiple_of(TOLD_EVERY) {
            return;
        }
        // The name is the broker's word, which may be anything.
        let from: String = from.chars().take(ClusterId::LENGTH_MAX).collect();
        tracing::warn!(?from, reason, count, %error, "a letter is refused");
    }

    fn check(&self, message: &Message, now: Time) -> Result<Opened, Error> {
        let envelope = Envelope::read(&message.content)?;
        let Signed { letter, liqo_key } = envelope.signed()?;
        let header = &letter.header;
        let chain = envelope.chain();
        let (leaf, others) =
            chain.split_first().ok_or_else(|| Error::Unreadable("no certificate".to_owned()))?;
        let certificate =
            EndEntityCert::try_from(leaf).map_err(|error| Error::Certificate(error.to_string()))?;
        self.check_chain(&certificate, others, now)?;
        check_name(leaf, &header.from)?;
        let bytes = to_be_signed(&envelope.signed);
        let by_agent = |with: &dyn SignatureVerificationAlgorithm| {
            certificate.verify_signature(with, &bytes, &envelope.signature).is_ok()
        };
        if !algorithms(&envelope.scheme).iter().any(|with| by_agent(*with)) {
            return Err(Error::Signature);
        }
        let der = liqo_key.der();
        let key = RawPublicKeyEntity::try_from(&der).map_err(|_| Error::LiqoSignature)?;
        let by_liqo = |with: &dyn SignatureVerificationAlgorithm| {
            key.verify_signature(with, &bytes, &envelope.liqo_signature).is_ok()
        };
        if !algorithms(&envelope.liqo_scheme).iter().any(|with| by_liqo(*with)) {
            return Err(Error::LiqoSignature);
        }
        // From here on, what is wrong was said by the sender, or was meant for somebody else.
        self.check_address(&letter, message)?;
        check_time(header.expires_at, now)?;
        match &letter.content {
            _ if !letter.is_consistent() => Err(Error::Inconsistent),
            Content::TenantOffer(offer) if offer.public_key != liqo_key => Err(Error::OfferedKey),
            _ => Ok(Opened { letter, liqo_key }),
        }
    }

    fn check_chain(
        &self,
        leaf: &EndEntityCert<'_>,
        others: &[CertificateDer<'_>],
        now: Time,
    ) -> Result<(), Error> {
        let authorities = self.folder.authorities()?;
        let now = UnixTime::since_unix_epoch(Duration::from_millis(now.as_millis()));
        let usage = KeyUsage::client_auth();
        leaf.verify_for_usage(supported().all, &authorities, others, now, usage, None, None)
            .map(drop)
            .map_err(|error| Error::Certificate(error.to_string()))
    }

    fn check_address(&self, letter: &Letter, message: &Message) -> Result<(), Error> {
        let (from, to) = (&letter.header.from, &letter.header.to);
        if *to != self.cluster {
            return Err(Error::Misdirected { to: to.clone() });
        }
        if message.from != from.as_str() {
            let said = message.from.chars().take(ClusterId::LENGTH_MAX).collect();
            return Err(Error::Sender { said, from: from.clone() });
        }
        Ok(())
    }
}

impl Opened {
    /// Is it still to be read, now?
    pub fn in_time(&self, now: Time) -> Result<(), Error> {
        check_time(self.letter.header.expires_at, now)
    }

    /// The letter, if it is about this link and no earlier one.
    pub fn of_link(self, expected: &LinkId) -> Result<Letter, Error> {
        let found = &self.letter.header.link;
        if found == expected {
            return Ok(self.letter);
        }
        Err(Error::OtherLink { found: found.clone(), expected: expected.clone() })
    }

    /// The same, if this is the key that is pinned for the sender.
    pub fn pinned_to(self, pinned: &PublicKey) -> Result<Self, Error> {
        if self.liqo_key == *pinned {
            return Ok(self);
        }
        let (from, found) = (self.letter.header.from, self.liqo_key.fingerprint());
        Err(Error::Pin { from, found, pinned: pinned.fingerprint() })
    }
}

fn supported() -> WebPkiSupportedAlgorithms {
    ring::default_provider().signature_verification_algorithms
}

/// What can check a signature of this scheme: a curve is part of some schemes, and not of others.
fn algorithms(name: &str) -> &'static [&'static dyn SignatureVerificationAlgorithm] {
    let known = SCHEMES.iter().find(|(known, _)| *known == name);
    let found = known.and_then(|(_, wanted)| {
        supported().mapping.iter().find(|(scheme, _)| scheme == wanted).map(|(_, with)| *with)
    });
    found.unwrap_or_default()
}

/// As to the broker: the last CN is the cluster, and operators are none.
fn check_name(leaf: &CertificateDer<'_>, from: &ClusterId) -> Result<(), Error> {
    let (_, certificate) = X509Certificate::from_der(leaf.as_ref())
        .map_err(|_| Error::Certificate("it cannot be read".to_owned()))?;
    let subject = certificate.subject();
    if subject.iter_organization().any(|o| o.as_str() == Ok(OPERATORS)) {
        return Err(Error::Operator);
    }
    let name = subject.iter_common_name().last().and_then(|name| name.as_str().ok());
    if name == Some(from.as_str()) {
        return Ok(());
    }
    let certificate = name.unwrap_or_default().chars().take(ClusterId::LENGTH_MAX).collect();
    Err(Error::Name { certificate, from: from.clone() })
}

fn check_time(expires_at: Time, now: Time) -> Result<(), Error> {
    let late = now.since(expires_at);
    if late > SKEW {
        return Err(Error::Expired(late.as_millis()));
    }
    let most = AHEAD_MAX.checked_add(SKEW).unwrap_or(AHEAD_MAX);
    if expires_at.since(now) > most { Err(Error::TooFarAhead) } else { Ok(()) }
}
