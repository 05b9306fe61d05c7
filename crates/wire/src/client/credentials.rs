//! What the client shows, and whom it believes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::error::CredentialsError as Error;

/// A certificate with its key, and the authorities whose brokers are believed; each as PEM.
#[derive(Clone)]
pub struct Credentials {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Vec<u8>,
    /// Where they are from, in this order, if they are from files.
    files: Option<[PathBuf; 3]>,
}

/// Says nothing of the key.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// From the bytes of the three files.
    pub fn from_pem(certificate: Vec<u8>, key: Vec<u8>, authorities: Vec<u8>) -> Self {
        Self { certificate, key, authorities, files: None }
    }

    /// From a folder with `tls.crt`, `tls.key` and `ca.crt`, as a Secret is mounted.
    pub fn from_folder(folder: &Path) -> Result<Self, Error> {
        Self::from_files(["tls.crt", "tls.key", "ca.crt"].map(|name| folder.join(name)))
    }

    /// From three files: the certificate, its key, the authorities. A client uses them as they are
    /// when it connects: it notices when they are renewed.
    pub fn from_files(files: [PathBuf; 3]) -> Result<Self, Error> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|source| Error::Read { path: path.clone(), source })
        };
        let [certificate, key, authorities] =
            [read(&files[0])?, read(&files[1])?, read(&files[2])?];
        Ok(Self { certificate, key, authorities, files: Some(files) })
    }

    /// The same from the files as they are now; none if nothing has changed, or they cannot be read.
    pub(super) fn renewed(&self) -> Option<Self> {
        let now = Self::from_files(self.files.clone()?).ok()?;
        let parts =
            |all: &Self| [all.certificate.clone(), all.key.clone(), all.authorities.clone()];
        (parts(&now) != parts(self)).then_some(now)
    }

    pub(super) fn config(&self) -> Result<ClientConfig, Error> {
        let parsed = |what| move |source| Error::Parse { what, source };
        let certificates = |pem: &[u8]| CertificateDer::pem_slice_iter(pem).collect();
        let chain: Vec<_> =
            Result::<_, _>::map_err(certificates(&self.certificate), parsed("certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(parsed("key"))?;
        let authorities: Vec<_> =
            Result::<_, _>::map_err(certificates(&self.authorities), parsed("CA"))?;
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority).map_err(Error::Authority)?;
        }
        if chain.is_empty() || roots.is_empty() {
            return Err(Error::Empty);
        }
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder.with_root_certificates(roots).with_client_auth_cert(chain, key)
            })
            .map_err(Error::Refused)
    }
}
