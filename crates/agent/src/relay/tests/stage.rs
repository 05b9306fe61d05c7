//! An authority, clusters with their credentials in folders, and their Liqo keys.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SignatureAlgorithm,
};
use serde_json::Value;
use sublet_core::id::ClusterId;
use sublet_core::time::{Span, Time};
use sublet_wire::v1::Message;
use tempfile::TempDir;

use crate::metrics::Metrics;
use crate::relay::{
    Content, Header, Letter, LinkId, LiqoKey, Nonce, Opened, Signer, TenantOffer, Verifier, seal,
};

/// In the middle of the certificates' time.
pub(super) const NOW: Time = Time::from_millis(1_800_000_000_000);

pub(super) fn id(name: &str) -> ClusterId {
    name.parse().unwrap()
}

/// An authority of agents.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// What a certificate is for.
#[derive(Clone, Copy)]
pub(super) enum Use {
    Agent,
    Server,
    Operator,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// The credentials of a cluster, with a Liqo key of its own.
    pub(super) fn cluster(&self, name: &str) -> Cluster {
        self.issue(name, Use::Agent, &PKCS_ECDSA_P256_SHA256)
    }

    pub(super) fn issue(
        &self,
        name: &str,
        purpose: Use,
        algorithm: &'static SignatureAlgorithm,
    ) -> Cluster {
        let mut params = named(name);
        params.extended_key_usages = vec![match purpose {
            Use::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Use::Agent | Use::Operator => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        if let Use::Operator = purpose {
            params.distinguished_name.push(DnType::OrganizationName, "sublet:operators");
        }
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        write("tls.crt", certificate.pem());
        write("tls.key", key.serialize_pem());
        write("ca.crt", self.pem.clone());
        let liqo = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let liqo_key = LiqoKey::from_pem(liqo.serialize_pem().as_bytes()).unwrap();
        let metrics = Arc::new(Metrics::new());
        Cluster { id: id(name), folder, liqo: liqo_key, metrics }
    }
}

pub(super) fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// A cluster that writes and reads letters.
pub(super) struct Cluster {
    pub(super) id: ClusterId,
    pub(super) folder: TempDir,
    pub(super) liqo: LiqoKey,
    pub(super) metrics: Arc<Metrics>,
}

impl Cluster {
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(super) fn write(&self, letter: &Letter) -> Message {
        let content = Signer::new(self.path()).write(letter, &self.liqo).unwrap();
        let (from, to) = (self.id.to_string(), letter.header.to.to_string());
        Message { from, to, slot: "link".into(), content, ttl: None }
    }

    pub(super) fn open(&self, message: &Message) -> Result<Opened, &'static str> {
        self.open_at(message, NOW)
    }

    /// Opens it, or says with which reason it was refused: the one that was counted.
    pub(super) fn open_at(&self, message: &Message, now: Time) -> Result<Opened, &'static str> {
        let verifier = Verifier::new(self.id.clone(), self.path(), Arc::clone(&self.metrics));
        verifier.open(message, now).map_err(|error| {
            let reason = error.reason().0;
            let line = format!("sublet_agent_letters_refused_total{{reason=\"{reason}\"}}");
            assert!(self.metrics.page().contains(&line), "{error} is not counted");
            reason
        })
    }
}

pub(super) fn nonce() -> Nonce {
    "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=".parse().unwrap()
}

pub(super) fn link() -> LinkId {
    LinkId::derive(&id("rome"), &id("milan"), &nonce())
}

/// From rome, which borrows, to milan.
pub(super) fn asking(content: Content) -> Letter {
    let link = if content == Content::Call { LinkId::none() } else { link() };
    header("rome", "milan", link).letter(content)
}

/// From milan, which lends, to rome.
pub(super) fn answering(content: Content) -> Letter {
    header("milan", "rome", link()).letter(content)
}

fn header(from: &str, to: &str, link: LinkId) -> Header {
    let expires_at = NOW.checked_add(Span::from_secs(120)).unwrap();
    Header { from: id(from), to: id(to), requester: id("rome"), link, expires_at }
}

/// What `of` offers, to be answered to the key.
pub(super) fn offer(of: &Cluster, key: &seal::Key) -> Content {
    Content::TenantOffer(TenantOffer {
        public_key: of.liqo.public().clone(),
        csr: "-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n"
            .into(),
        signature: vec![7; 64],
        seal_key: key.public(),
    })
}

/// The same message with something changed in its envelope.
pub(super) fn meddled(message: &Message, how: impl FnOnce(&mut Value)) -> Message {
    let mut envelope: Value = serde_json::from_str(&message.content).unwrap();
    how(&mut envelope);
    Message { content: envelope.to_string(), ..message.clone() }
}

/// The same message with something changed in what was signed.
pub(super) fn forged(message: &Message, how: impl FnOnce(&mut Value)) -> Message {
    meddled(message, |envelope| {
        let bytes = STANDARD.decode(envelope["signed"].as_str().unwrap()).unwrap();
        let mut signed: Value = serde_json::from_slice(&bytes).unwrap();
        how(&mut signed);
        envelope["signed"] = STANDARD.encode(signed.to_string()).into();
    })
}
