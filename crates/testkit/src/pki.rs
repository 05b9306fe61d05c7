//! The keys and certificates of one cluster, all signed by its own CA, so that no client or server of
//! one cluster believes those of another.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};

use crate::error::{Error, during};

/// Whoever is in this group may do everything.
const MASTERS: &str = "system:masters";
/// Names by which programs call the API server from inside.
const SERVER_NAMES: [&str; 3] = ["localhost", "kubernetes", "kubernetes.default.svc"];

/// A certificate and its key, in files.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The two halves of a key, in files.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    pub(crate) private: PathBuf,
    pub(crate) public: PathBuf,
}

/// Everything that the processes of a cluster are given.
#[derive(Clone, Debug)]
pub(crate) struct Pki {
    /// The CA; the controller manager signs with its key.
    pub(crate) ca: Pair,
    /// What every server of the cluster shows.
    pub(crate) server: Pair,
    /// What the API server shows to etcd, and people to the API server.
    pub(crate) admin: Pair,
    /// The key that service account tokens are signed with, and the one that they are checked with.
    pub(crate) accounts: Accounts,
}

impl Pki {
    /// Makes all of it in a folder.
    pub(crate) fn make(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(during(|| format!("making {}", folder.display())))?;
        let place = Place(folder);
        let (params, key) = (ca_params(), KeyPair::generate()?);
        let ca = place.pair("ca", &params.self_signed(&key)?.pem(), &key)?;
        let issuer = Issuer::new(params, key);
        let issue = |name: &str, params: CertificateParams| {
            let key = KeyPair::generate()?;
            place.pair(name, &params.signed_by(&key, &issuer)?.pem(), &key)
        };
        let server = issue("server", server_params()?)?;
        let admin = issue("admin", admin_params())?;
        let key = KeyPair::generate()?;
        let accounts = Accounts {
            private: place.file("accounts.key", &key.serialize_pem())?,
            public: place.file("accounts.pub", &key.public_key_pem())?,
        };
        Ok(Self { ca, server, admin, accounts })
    }
}

fn ca_params() -> CertificateParams {
    let mut params = named("testkit CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

fn server_params() -> Result<CertificateParams, Error> {
    let mut params = named("server");
    let names = SERVER_NAMES.map(|name| name.try_into().map(SanType::DnsName));
    params.subject_alt_names = names.into_iter().collect::<Result<_, _>>()?;
    params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    // etcd is a client of itself.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn admin_params() -> CertificateParams {
    let mut params = named("admin");
    params.distinguished_name.push(DnType::OrganizationName, MASTERS);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

/// Valid for ever, as far as tests are concerned: no clock is asked.
fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params
}

struct Place<'a>(&'a Path);

impl Place<'_> {
    fn pair(&self, name: &str, certificate: &str, key: &KeyPair) -> Result<Pair, Error> {
        Ok(Pair {
            certificate: self.file(&format!("{name}.crt"), certificate)?,
            key: self.file(&format!("{name}.key"), &key.serialize_pem())?,
        })
    }

    fn file(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        fs::write(&path, text).map_err(during(|| format!("writing {}", path.display())))?;
        Ok(path)
    }
}

impl From<rcgen::Error> for Error {
    fn from(error: rcgen::Error) -> Self {
        Self::Certificate(error.to_string())
    }
}
