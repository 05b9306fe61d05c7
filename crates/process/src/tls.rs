//! The server's certificate and key and the authority of its clients, from a folder, reloaded
//! without a restart.
//!
//! The folder holds `tls.crt`, `tls.key` and `ca.crt`, as cert-manager and `sublet ca` write them;
//! that of metrics may have other names and no authority. It is read again on a timer, because a Kubernetes Secret changes by a symlink swap that file
//! watching misses. The three files are read until two readings agree, so that no half-swapped set
//! is used; a set that cannot be used is refused and the old one kept. Each set has its own store of
//! resumable sessions, so that no session outlives the authority that let it in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerSessionMemoryCache, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, version};
use serde::Serialize;
use sublet_core::time::Time;
use tokio::sync::watch;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::file;

/// How often the files are read until two readings agree.
const READINGS_MAX: usize = 5;
/// More than any bundle of authorities; a file beyond it is not one.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a folder's certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] file::Error),
    /// Somebody is writing.
    #[error("{} and the files beside it change while they are read", .0.display())]
    Unsettled(PathBuf),
    /// Not PEM, or nothing of the wanted kind in it.
    #[error("{} holds no usable PEM", path.display())]
    Pem {
        /// Which.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// Its time is over.
    #[error("the certificate in {} has expired: issue a new one", .0.display())]
    Expired(PathBuf),
    /// Not an authority.
    #[error("{} holds a certificate that cannot be an authority", path.display())]
    Authority {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// No verifier can be made of the authorities.
    #[error("clients cannot be verified with these authorities")]
    Verifier(#[from] VerifierBuilderError),
    /// Key and certificate do not belong together, or are of a kind that is not supported.
    #[error("{} and {} cannot be used together", .places.certificate.display(), .places.key.display())]
    Pair {
        /// Which.
        places: Box<Places>,
        /// Why.
        source: rustls::Error,
    },
}

/// Where a server's certificate, its key and the authority of its clients are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Places {
    /// The certificate, with its chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Whose certificates are believed.
    pub authority: PathBuf,
}

impl Places {
    /// As a Kubernetes TLS secret has them.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
            authority: folder.join("ca.crt"),
        }
    }

    /// The same, with the authority of others where these have none.
    #[must_use]
    pub fn or_authority_of(mut self, others: &Self) -> Self {
        if !self.authority.exists() {
            self.authority.clone_from(&others.authority);
        }
        self
    }
}

/// The bytes of the three files.
#[derive(Clone, PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

impl Files {
    fn read(places: &Places) -> Result<Self, Error> {
        let mut last = Self::read_once(places)?;
        for _ in 1..READINGS_MAX {
            let again = Self::read_once(places)?;
            if again == last {
                return Ok(again);
            }
            last = again;
        }
        Err(Error::Unsettled(places.certificate.clone()))
    }

    fn read_once(places: &Places) -> Result<Self, Error> {
        let read = |path: &Path| file::read(path, FILE_BYTES_MAX);
        Ok(Self {
            certificate: read(&places.certificate)?,
            key: read(&places.key)?,
            authority: read(&places.authority)?,
        })
    }

    fn chain(&self, path: &Path, now: Time) -> Result<Vec<CertificateDer<'static>>, Error> {
        let chain = certificates(path, &self.certificate)?;
        match chain.first().map(|leaf| X509Certificate::from_der(leaf.as_ref())) {
            Some(Ok((_, leaf))) if has_expired(&leaf, now) => Err(Error::Expired(path.to_owned())),
            // What cannot be read at all, rustls refuses with a better reason.
            _ => Ok(chain),
        }
    }

    fn roots(&self, path: &Path) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        for authority in certificates(path, &self.authority)? {
            let add = roots.add(authority);
            add.map_err(|source| Error::Authority { path: path.to_owned(), source })?;
        }
        Ok(roots)
    }

    fn config(&self, places: &Places, sessions: usize, now: Time) -> Result<ServerConfig, Error> {
        let chain = self.chain(&places.certificate, now)?;
        let pair = |source| Error::Pair { places: Box::new(places.clone()), source };
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|source| Error::Pem { path: places.key.clone(), source })?;
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(self.roots(&places.authority)?);
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .map_err(pair)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(pair)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.session_storage = ServerSessionMemoryCache::new(sessions);
        Ok(config)
    }
}

fn certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let refuse = |source| Error::Pem { path: path.to_owned(), source };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let found = found.map_err(refuse)?;
    if found.is_empty() { Err(refuse(pem::Error::NoItemsFound)) } else { Ok(found) }
}

fn has_expired(certificate: &X509Certificate<'_>, now: Time) -> bool {
    let end = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
    end < now.as_millis() / 1000
}

struct Current {
    config: Arc<ServerConfig>,
    files: Files,
}

/// What a look at the files found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// What is in use already.
    Same,
    /// Another set, which is in use from now on.
    New,
}

/// The set that is in use, and where it comes from.
pub struct Tls {
    places: Places,
    sessions: usize,
    current: ArcSwap<Current>,
    /// Counts the authorities that were in use: whoever was let in by an earlier one must come again.
    authorities: watch::Sender<u64>,
}

impl Tls {
    /// Reads the files for the first time.
    pub fn open(places: Places, sessions: usize, now: Time) -> Result<Self, Error> {
        let files = Files::read(&places)?;
        let config = Arc::new(files.config(&places, sessions, now)?);
        let current = ArcSwap::from_pointee(Current { config, files });
        let (authorities, _) = watch::channel(0);
        Ok(Self { places, sessions, current, authorities })
    }

    /// What new connections are made with.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().config)
    }

    /// Tells when the authority of clients was changed.
    pub fn authorities(&self) -> watch::Receiver<u64> {
        self.authorities.subscribe()
    }

    /// Looks at the files again. After an error, the set that was in use still is.
    pub fn reload(&self, now: Time) -> Result<Reload, Error> {
        let files = Files::read(&self.places)?;
        let before = self.current.load_full();
        if files == before.files {
            return Ok(Reload::Same);
        }
        let config = Arc::new(files.config(&self.places, self.sessions, now)?);
        let moved = files.authority != before.files.authority;
        self.current.store(Arc::new(Current { config, files }));
        if moved {
            self.authorities.send_modify(|count| *count += 1);
        }
        Ok(Reload::New)
    }
}
