//! Sealing to one reader: X25519 between two keys that are made for one message, HKDF-SHA256, and
//! ChaCha20-Poly1305.
//!
//! The reader makes a [`Key`] and sends its public half in a signed letter; who seals makes one of his
//! own, agrees, and forgets it. Neither is ever written down: what was sealed cannot be opened later,
//! not even with everything that both clusters keep. A key is used once, so the nonce is zero.

use std::fmt;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::SystemRandom;
use serde::{Deserialize, Serialize};

use super::envelope::base64_bytes;
use super::{Error, Header};

/// The length of a public key.
const LENGTH: usize = 32;

/// The public half of a key that something is sealed to, or with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Bytes", into = "Bytes")]
pub struct Public([u8; LENGTH]);

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Bytes(#[serde(with = "base64_bytes")] Vec<u8>);

impl TryFrom<Bytes> for Public {
    type Error = &'static str;

    fn try_from(bytes: Bytes) -> Result<Self, &'static str> {
        bytes.0.try_into().map(Self).map_err(|_| "a key to seal to has 32 bytes")
    }
}

impl From<Public> for Bytes {
    fn from(public: Public) -> Self {
        Self(public.0.to_vec())
    }
}

impl fmt::Debug for Public {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Public(…)")
    }
}

/// Something sealed, and the public half of what it was sealed with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    key: Public,
    /// To which key, if that is said: one that opens once is not tried on what is for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<Public>,
    #[serde(with = "base64_bytes")]
    text: Vec<u8>,
}

/// The secret half, in memory alone: it opens one sealed thing, and is gone.
pub struct Key {
    secret: EphemeralPrivateKey,
    public: Public,
}

/// Says nothing of the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// A new one.
    pub fn generate() -> Result<Self, Error> {
        let failed = |_| Error::Sign("no randomness".to_owned());
        let secret =
            EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(failed)?;
        let public = secret.compute_public_key().map_err(failed)?;
        let public = public.as_ref().try_into().map(Public).map_err(|_| Error::Seal)?;
        Ok(Self { secret, public })
    }

    /// What others seal to.
    pub fn public(&self) -> Public {
        self.public
    }

    /// May it be that this was sealed to it?
    pub fn may_open(&self, sealed: &Sealed) -> bool {
        sealed.to.is_none_or(|to| to == self.public)
    }

    /// Opens what was sealed to it under the header of the letter that brought it.
    pub fn open(self, sealed: &Sealed, header: &Header) -> Result<Vec<u8>, Error> {
        let keys = Keys { reader: self.public, writer: sealed.key };
        let mut text = sealed.text.clone();
        let key = keys.agree(self.secret, sealed.key, header)?;
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let plain = key
            .open_in_place(nonce, Aad::from(labels(header)), &mut text)
            .map_err(|_| Error::Seal)?;
        Ok(plain.to_vec())
    }
}

/// Seals to a public key.
#[derive(Clone, Copy, Debug)]
pub struct Lock(pub Public);

impl Lock {
    /// Seals for whoever has the other half, under the header of the letter that will bring it.
    pub fn seal(self, plain: &[u8], header: &Header) -> Result<Sealed, Error> {
        let own = Key::generate()?;
        let keys = Keys { reader: self.0, writer: own.public };
        let key = keys.agree(own.secret, self.0, header)?;
        let mut text = plain.to_vec();
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        key.seal_in_place_append_tag(nonce, Aad::from(labels(header)), &mut text)
            .map_err(|_| Error::Seal)?;
        Ok(Sealed { key: own.public, to: Some(self.0), text })
    }
}

/// Both public keys, of which the key that encrypts depends.
struct Keys {
    reader: Public,
    writer: Public,
}

impl Keys {
    fn agree(
        self,
        secret: EphemeralPrivateKey,
        other: Public,
        header: &Header,
    ) -> Result<LessSafeKey, Error> {
        let salt = Salt::new(HKDF_SHA256, &[self.reader.0, self.writer.0].concat());
        let names = names(header);
        let derive = |shared: &[u8]| {
            let derived = salt.extract(shared);
            let info = [names.as_slice()];
            derived.expand(&info, &CHACHA20_POLY1305).map(UnboundKey::from).ok()
        };
        // A point of small order is refused by the agreement itself.
        agree_ephemeral(secret, &UnparsedPublicKey::new(&X25519, other.0), derive)
            .ok()
            .flatten()
            .map(LessSafeKey::new)
            .ok_or(Error::Seal)
    }
}

/// Who, to whom, which direction and which link. No name can hold a NUL.
fn names(header: &Header) -> Vec<u8> {
    let Header { from, to, requester, link, .. } = header;
    let parts = ["sublet-seal-v1", from.as_str(), to.as_str(), requester.as_str(), link.as_str()];
    parts.join("\0").into_bytes()
}

/// All of the header.
fn labels(header: &Header) -> Vec<u8> {
    let mut labels = names(header);
    labels.extend(header.expires_at.as_millis().to_be_bytes());
    labels
}
