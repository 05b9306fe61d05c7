//! Writing letters: signed with the agent's key and with the Liqo key, over the same bytes.

use std::path::PathBuf;

use rustls::sign::SigningKey;

use super::credentials::Folder;
use super::envelope::{CHAIN_MAX, Der, Envelope, SCHEMES, Signed};
use super::key::LiqoKey;
use super::letter::Letter;
use super::{Error, to_be_signed};

/// Writes letters as this cluster.
#[derive(Clone, Debug)]
pub struct Signer {
    folder: Folder,
}

impl Signer {
    /// With the credentials in this folder, as they are whenever a letter is written.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder: Folder(folder) }
    }

    /// The content of a message. The Liqo key is given each time, because it can change.
    pub fn write(&self, letter: &Letter, liqo: &LiqoKey) -> Result<String, Error> {
        let own = self.folder.own()?;
        let signed = Signed { letter: letter.clone(), liqo_key: liqo.public().clone() };
        let signed = serde_json::to_vec(&signed).map_err(|error| Error::Sign(error.to_string()))?;
        let bytes = to_be_signed(&signed);
        let (scheme, signature) = sign(own.key.as_ref(), &bytes)?;
        let (liqo_scheme, liqo_signature) = sign(liqo.key(), &bytes)?;
        let certificates = own.cert.iter().take(CHAIN_MAX).map(Der::from).collect();
        Envelope { signed, certificates, scheme, signature, liqo_scheme, liqo_signature }.write()
    }
}

fn sign(key: &dyn SigningKey, bytes: &[u8]) -> Result<(String, Vec<u8>), Error> {
    let failed = |why: &str| Error::Sign(why.to_owned());
    let offered: Vec<_> = SCHEMES.iter().map(|(_, scheme)| *scheme).collect();
    let signer = key.choose_scheme(&offered).ok_or_else(|| failed("no known scheme"))?;
    let name = SCHEMES.iter().find(|(_, scheme)| *scheme == signer.scheme());
    let (name, _) = name.ok_or_else(|| failed("no known scheme"))?;
    let signature = signer.sign(bytes).map_err(|error| Error::Sign(error.to_string()))?;
    Ok(((*name).to_owned(), signature))
}
