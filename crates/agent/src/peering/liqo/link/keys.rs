//! The Liqo key of this cluster: what it signs for the link, and how what Liqo signed is judged.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use sublet_core::id::ClusterId;
use webpki::RawPublicKeyEntity;

use super::super::names;
use super::trouble::{Reason, Trouble};
use crate::relay::{LiqoKey, PublicKey};

/// The key, and what can be done with it.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) liqo: LiqoKey,
    private: String,
}

/// Says nothing of the key.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.liqo.fmt(f)
    }
}

impl Keys {
    /// Reads the private key as Liqo keeps it.
    pub(super) fn read(private: &[u8]) -> Result<Self, Trouble> {
        let unusable = |why: String| Trouble::new(Reason::KeyUnusable, why);
        let liqo = LiqoKey::from_pem(private).map_err(|error| unusable(error.to_string()))?;
        let private = String::from_utf8(private.to_vec());
        let private = private.map_err(|error| unusable(error.to_string()))?;
        Ok(Self { liqo, private })
    }

    pub(super) fn public(&self) -> &PublicKey {
        self.liqo.public()
    }

    /// A request for a certificate in the provider's cluster. Always the same bytes for the same key:
    /// Liqo refuses another request for a tenant that it knows.
    pub(super) fn csr(&self, cluster: &ClusterId) -> Result<String, Trouble> {
        let unusable = |error: rcgen::Error| Trouble::new(Reason::KeyUnusable, error.to_string());
        let key = KeyPair::from_pem(&self.private).map_err(unusable)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, names::ORGANIZATION);
        params.distinguished_name.push(DnType::CommonName, cluster.as_str());
        params.serialize_request(&key).and_then(|csr| csr.pem()).map_err(unusable)
    }

    /// Has this key signed that text?
    pub(super) fn has_signed(&self, text: &str, signature: &[u8]) -> bool {
        let pem = self.public().to_pem();
        let Ok(der) = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()) else { return false };
        let Ok(key) = RawPublicKeyEntity::try_from(&der) else { return false };
        let known = ring::default_provider().signature_verification_algorithms.all;
        known.iter().any(|with| key.verify_signature(*with, text.as_bytes(), signature).is_ok())
    }
}

/// A public key from its DER form.
pub(super) fn public_key(der: &[u8]) -> Option<PublicKey> {
    let pem =
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64.encode(der));
    pem.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Keys {
        let pair = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        Keys::read(pair.serialize_pem().as_bytes()).unwrap()
    }

    #[test]
    fn a_request_for_a_certificate_is_always_the_same() {
        let (keys, cluster) = (key(), "rome".parse().unwrap());
        assert_eq!(keys.csr(&cluster).unwrap(), keys.csr(&cluster).unwrap());
        assert_ne!(keys.csr(&cluster).unwrap(), key().csr(&cluster).unwrap());
    }

    #[test]
    fn what_another_key_signed_is_not_ours() {
        let keys = key();
        let pair = KeyPair::from_pem(&keys.private).unwrap();
        let signature = rcgen::SigningKey::sign(&pair, b"nonce").unwrap();
        assert!(keys.has_signed("nonce", &signature));
        assert!(!keys.has_signed("another", &signature));
        assert!(!key().has_signed("nonce", &signature));
    }

    #[test]
    fn what_is_no_key_is_said_to_be_unusable() {
        assert_eq!(Keys::read(b"rubbish").unwrap_err().reason, Reason::KeyUnusable);
    }
}
