//! The agent's certificate, key and authorities, read anew for each letter: letters are few, and what
//! was renewed or replaced counts at once.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, TrustAnchor};
use rustls::sign::CertifiedKey;

use super::Error;

/// A folder with `tls.crt`, `tls.key` and `ca.crt`, as a Secret is mounted.
#[derive(Clone, Debug)]
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// What this agent signs with. The two files may be of two issues while they are being replaced.
    pub(super) fn own(&self) -> Result<CertifiedKey, Error> {
        let refuse = |why: String| Error::Credentials(why);
        let chain = certificates(&self.0.join("tls.crt"))?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.0.join("tls.key"))?)
            .map_err(|error| refuse(format!("tls.key: {error}")))?;
        let key =
            ring::sign::any_supported_type(&key).map_err(|error| refuse(error.to_string()))?;
        let pair = CertifiedKey::new(chain, key);
        pair.keys_match().map_err(|error| refuse(error.to_string()))?;
        Ok(pair)
    }

    /// Whose certificates are believed.
    pub(super) fn authorities(&self) -> Result<Vec<TrustAnchor<'static>>, Error> {
        let mut roots = RootCertStore::empty();
        for authority in certificates(&self.0.join("ca.crt"))? {
            roots.add(authority).map_err(|error| Error::Credentials(error.to_string()))?;
        }
        Ok(roots.roots)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let refuse = |why: String| Error::Credentials(format!("{}: {why}", path.display()));
    let pem = read(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.map_err(|error| refuse(error.to_string()))?;
    if all.is_empty() { Err(refuse("it has no certificate".to_owned())) } else { Ok(all) }
}
