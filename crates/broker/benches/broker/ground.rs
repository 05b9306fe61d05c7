//! What a run stands on: a folder on a real disk, an authority, and the program to measure.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;

/// What a process needs besides its streams: files of the log, listeners, the runtime's own.
const FILES_BESIDES: u64 = 200;
const CA_KEY: &str = "ca.key";
const CLIENT_KEY: &str = "client.key";

/// What a run stands on.
pub(crate) struct Ground {
    scratch: TempDir,
    pub(crate) sublet: PathBuf,
    pub(crate) quick: bool,
    files: u64,
}

impl Ground {
    pub(crate) fn new(sublet: Option<&Path>, quick: bool) -> Result<Self> {
        // On the disk that the build is on, which is no memory in disguise.
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        Authority::found(scratch.path())?;
        let sublet = match sublet {
            Some(path) => path.to_owned(),
            // This is target/release/deps/broker-….
            None => std::env::current_exe()?.with_file_name("../sublet"),
        };
        ensure!(
            sublet.exists(),
            "{} is not there: use cargo xtask bench broker, or build it with cargo build --release \
             --package sublet",
            sublet.display()
        );
        Ok(Self { scratch, sublet, quick, files: raise_files() })
    }

    /// A folder that holds certificates, and everything else in folders of its own.
    pub(crate) fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// As many streams as one process may have of these.
    pub(crate) fn streams(&self, wanted: u64) -> u64 {
        wanted.min(self.files.saturating_sub(FILES_BESIDES))
    }
}

/// Raises the number of files that this process and its children may open, as far as it goes.
fn raise_files() -> u64 {
    let hard = getrlimit(Resource::Nofile).maximum;
    // A limit that cannot be raised shows in what can be opened, and in the report.
    setrlimit(Resource::Nofile, Rlimit { current: hard, maximum: hard }).ok();
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The authority of a run; the load generator opens it again to be any cluster.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    client: KeyPair,
    pub(crate) root: CertificateDer<'static>,
}

impl Authority {
    /// Makes one, and a broker's certificate beside it.
    fn found(folder: &Path) -> Result<()> {
        let (key, params) = (KeyPair::generate()?, root_params());
        fs::write(folder.join("ca.crt"), params.self_signed(&key)?.pem())?;
        fs::write(folder.join(CA_KEY), key.serialize_pem())?;
        fs::write(folder.join(CLIENT_KEY), KeyPair::generate()?.serialize_pem())?;
        let (issuer, server) = (Issuer::new(params, key), KeyPair::generate()?);
        let params = leaf_params("broker", ExtendedKeyUsagePurpose::ServerAuth)?;
        fs::write(folder.join("tls.crt"), params.signed_by(&server, &issuer)?.pem())?;
        fs::write(folder.join("tls.key"), server.serialize_pem())?;
        Ok(())
    }

    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let key = |name| -> Result<KeyPair> {
            Ok(KeyPair::from_pem(&fs::read_to_string(folder.join(name))?)?)
        };
        let root = CertificateDer::from_pem_file(folder.join("ca.crt")).context("the authority")?;
        Ok(Self {
            issuer: Issuer::new(root_params(), key(CA_KEY)?),
            client: key(CLIENT_KEY)?,
            root,
        })
    }

    /// A certificate of a cluster. They share a key, because ten thousand would take their time.
    pub(crate) fn issue(
        &self,
        cluster: &str,
    ) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
        let params = leaf_params(cluster, ExtendedKeyUsagePurpose::ClientAuth)?;
        let certificate = params.signed_by(&self.client, &self.issuer)?;
        let key = PrivateKeyDer::from_pem_slice(self.client.serialize_pem().as_bytes())?;
        Ok((certificate.der().clone(), key))
    }
}

fn root_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = named("sublet benchmark");
    params
}

fn leaf_params(name: &str, usage: ExtendedKeyUsagePurpose) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    params.distinguished_name = named(name);
    params.extended_key_usages = vec![usage];
    Ok(params)
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}
