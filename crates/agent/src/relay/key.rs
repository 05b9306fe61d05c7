//! Liqo keys: the one of this cluster, which signs, and those of others, which are pinned.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::SigningKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Error;

/// An RSA key of 4096 bits has 800 characters.
const PEM_MAX: usize = 4096;
const LINE: usize = 64;

/// The public half of a cluster's Liqo key. Two are equal if the keys are, however they are written.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey(Vec<u8>);

/// Why a text is no public key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a public key as PEM")]
pub struct NotAKey;

impl PublicKey {
    pub(super) fn der(&self) -> SubjectPublicKeyInfoDer<'_> {
        self.0.as_slice().into()
    }

    /// What people compare: as ssh writes the fingerprints of keys.
    pub fn fingerprint(&self) -> String {
        format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&self.0)))
    }

    /// As Go writes it, and so as Liqo keeps it.
    pub fn to_pem(&self) -> String {
        let text = STANDARD.encode(&self.0);
        let lines: Vec<&str> =
            text.as_bytes().chunks(LINE).filter_map(|line| str::from_utf8(line).ok()).collect();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
    }
}

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(pem: &str) -> Result<Self, NotAKey> {
        if pem.len() > PEM_MAX {
            return Err(NotAKey);
        }
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).map_err(|_| NotAKey)?;
        webpki::RawPublicKeyEntity::try_from(&der).map_err(|_| NotAKey)?;
        Ok(Self(der.as_ref().to_vec()))
    }
}

impl TryFrom<String> for PublicKey {
    type Error = NotAKey;

    fn try_from(pem: String) -> Result<Self, NotAKey> {
        pem.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_pem()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fingerprint())
    }
}

/// The Liqo key of this cluster: `liqo/authentication-keys`, Ed25519 or, in Liqo's compatible mode,
/// RSA.
#[derive(Clone)]
pub struct LiqoKey {
    key: Arc<dyn SigningKey>,
    public: PublicKey,
}

/// Says nothing of the key.
impl fmt::Debug for LiqoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LiqoKey").field(&self.public).finish()
    }
}

impl LiqoKey {
    /// Reads the private key as Liqo keeps it: PKCS #8 as PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        let refuse = |why: &dyn fmt::Display| Error::LiqoKey(why.to_string());
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| refuse(&error))?;
        let key = ring::sign::any_supported_type(&key).map_err(|error| refuse(&error))?;
        let public = key.public_key().ok_or_else(|| refuse(&"it has no public half"))?;
        let public = PublicKey(public.as_ref().to_vec());
        Ok(Self { key, public })
    }

    /// Its public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(super) fn key(&self) -> &dyn SigningKey {
        self.key.as_ref()
    }
}
