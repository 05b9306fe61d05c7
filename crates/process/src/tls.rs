//! The server's certificate and key and the authority of its clients, from a folder, reloaded
//! without a restart.
//!
//! The folder holds `tls.crt`, `tls.key` and `ca.crt`, as cert-manager and `sublet ca` write them.
//! It is read again on a timer, because a Kubernetes Secret changes by a symlink swap that file
//! watching misses. The three files are read until two readings agree, so that no half-swapped set
//! is used; a set that cannot be used is refused and the old one kept. Each set has its own store of
//! resumable sessions, so that no session outlives the authority that let it in.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerSessionMemoryCache, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, version};
use sublet_core::time::Time;
use tokio::sync::watch;
use x509_parser::prelude::{FromDer, X509Certificate};

/// How often the files are read until two readings agree.
const READINGS_MAX: usize = 5;
/// More than any bundle of authorities; a file beyond it is not one.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a folder's certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that cannot be what it should be.
    #[error("{} is larger than {FILE_BYTES_MAX} bytes: is it the right file?", .0.display())]
    TooLarge(PathBuf),
    /// Somebody is writing.
    #[error("the files in {} change while they are read", .0.display())]
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
    #[error("tls.crt and tls.key in {} cannot be used together", folder.display())]
    Pair {
        /// Where.
        folder: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// The bytes of the three files.
#[derive(Clone, PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

impl Files {
    const CERTIFICATE: &'static str = "tls.crt";
    const KEY: &'static str = "tls.key";
    const AUTHORITY: &'static str = "ca.crt";

    fn read(folder: &Path) -> Result<Self, Error> {
        let mut last = Self::read_once(folder)?;
        for _ in 1..READINGS_MAX {
            let again = Self::read_once(folder)?;
            if again == last {
                return Ok(again);
            }
            last = again;
        }
        Err(Error::Unsettled(folder.to_owned()))
    }

    fn read_once(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            certificate: read_file(&folder.join(Self::CERTIFICATE))?,
            key: read_file(&folder.join(Self::KEY))?,
            authority: read_file(&folder.join(Self::AUTHORITY))?,
        })
    }

    fn chain(&self, folder: &Path, now: Time) -> Result<Vec<CertificateDer<'static>>, Error> {
        let path = folder.join(Self::CERTIFICATE);
        let chain = certificates(&path, &self.certificate)?;
        match chain.first().map(|leaf| X509Certificate::from_der(leaf.as_ref())) {
            Some(Ok((_, leaf))) if has_expired(&leaf, now) => Err(Error::Expired(path)),
            // What cannot be read at all, rustls refuses with a better reason.
            _ => Ok(chain),
        }
    }

    fn roots(&self, folder: &Path) -> Result<RootCertStore, Error> {
        let path = folder.join(Self::AUTHORITY);
        let mut roots = RootCertStore::empty();
        for authority in certificates(&path, &self.authority)? {
            let add = roots.add(authority);
            add.map_err(|source| Error::Authority { path: path.clone(), source })?;
        }
        Ok(roots)
    }

    fn config(&self, folder: &Path, sessions: usize, now: Time) -> Result<ServerConfig, Error> {
        let chain = self.chain(folder, now)?;
        let pair = |source| Error::Pair { folder: folder.to_owned(), source };
        let path = folder.join(Self::KEY);
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|source| Error::Pem { path, source })?;
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(self.roots(folder)?);
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

fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > FILE_BYTES_MAX {
        return Err(Error::TooLarge(path.to_owned()));
    }
    std::fs::read(path).map_err(failed)
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

/// What a look at the folder found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// What is in use already.
    Same,
    /// Another set, which is in use from now on.
    New,
}

/// The set that is in use, and where it comes from.
pub struct Tls {
    folder: PathBuf,
    sessions: usize,
    current: ArcSwap<Current>,
    /// Counts the authorities that were in use: whoever was let in by an earlier one must come again.
    authorities: watch::Sender<u64>,
}

impl Tls {
    /// Reads the folder for the first time.
    pub fn open(folder: &Path, sessions: usize, now: Time) -> Result<Self, Error> {
        let files = Files::read(folder)?;
        let config = Arc::new(files.config(folder, sessions, now)?);
        let current = ArcSwap::from_pointee(Current { config, files });
        let (authorities, _) = watch::channel(0);
        Ok(Self { folder: folder.to_owned(), sessions, current, authorities })
    }

    /// What new connections are made with.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().config)
    }

    /// Tells when the authority of clients was changed.
    pub fn authorities(&self) -> watch::Receiver<u64> {
        self.authorities.subscribe()
    }

    /// Looks at the folder again. After an error, the set that was in use still is.
    pub fn reload(&self, now: Time) -> Result<Reload, Error> {
        let files = Files::read(&self.folder)?;
        let before = self.current.load_full();
        if files == before.files {
            return Ok(Reload::Same);
        }
        let config = Arc::new(files.config(&self.folder, self.sessions, now)?);
        let moved = files.authority != before.files.authority;
        self.current.store(Arc::new(Current { config, files }));
        if moved {
            self.authorities.send_modify(|count| *count += 1);
        }
        Ok(Reload::New)
    }
}
