//! The outside of a letter: the signed bytes as they are, with both signatures beside them. What is
//! signed is never written anew before it is checked, so that there is one form of it alone.

use rustls::SignatureScheme;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};

use super::Error;
use super::key::PublicKey;
use super::letter::Letter;
use sublet_wire::limits::MESSAGE_CONTENT_MAX;

/// More authorities than that do not stand between an agent and its root.
pub(super) const CHAIN_MAX: usize = 4;

/// The schemes, as they are written; the best first, for those keys that can do several.
pub(super) const SCHEMES: &[(&str, SignatureScheme)] = &[
    ("ed25519", SignatureScheme::ED25519),
    ("ecdsa-p256-sha256", SignatureScheme::ECDSA_NISTP256_SHA256),
    ("ecdsa-p384-sha384", SignatureScheme::ECDSA_NISTP384_SHA384),
    ("rsa-pss-sha256", SignatureScheme::RSA_PSS_SHA256),
];

/// What is signed: the letter, and the Liqo key that signs beside the agent's. Because the agent's
/// signature is over it too, nobody in between can put in another one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Signed {
    #[serde(flatten)]
    pub(super) letter: Letter,
    pub(super) liqo_key: PublicKey,
}

/// The content of a message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope {
    /// A [`Signed`] as JSON.
    #[serde(with = "base64_bytes")]
    pub(super) signed: Vec<u8>,
    /// The sender's certificate first, then what leads to its root.
    pub(super) certificates: Vec<Der>,
    pub(super) scheme: String,
    #[serde(with = "base64_bytes")]
    pub(super) signature: Vec<u8>,
    pub(super) liqo_scheme: String,
    #[serde(with = "base64_bytes")]
    pub(super) liqo_signature: Vec<u8>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Der(#[serde(with = "base64_bytes")] Vec<u8>);

impl From<&CertificateDer<'_>> for Der {
    fn from(der: &CertificateDer<'_>) -> Self {
        Self(der.as_ref().to_vec())
    }
}

impl Envelope {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        let unreadable = |why: String| Error::Unreadable(why);
        if text.len() > MESSAGE_CONTENT_MAX {
            return Err(unreadable(format!("{} bytes are too many", text.len())));
        }
        let read: Self =
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        if read.certificates.is_empty() || read.certificates.len() > CHAIN_MAX {
            return Err(unreadable(format!("{} certificates", read.certificates.len())));
        }
        Ok(read)
    }

    pub(super) fn signed(&self) -> Result<Signed, Error> {
        serde_json::from_slice(&self.signed).map_err(|error| Error::Unreadable(error.to_string()))
    }

    pub(super) fn chain(&self) -> Vec<CertificateDer<'_>> {
        self.certificates.iter().map(|der| der.0.as_slice().into()).collect()
    }

    pub(super) fn write(&self) -> Result<String, Error> {
        let text = serde_json::to_string(self).map_err(|error| Error::Sign(error.to_string()))?;
        if text.len() > MESSAGE_CONTENT_MAX {
            return Err(Error::TooLong(text.len()));
        }
        Ok(text)
    }
}

/// Bytes as base64 in JSON.
pub(super) mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(in crate::relay) fn serialize<S: Serializer>(
        bytes: &Vec<u8>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(in crate::relay) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(de::Error::custom)
    }
}
