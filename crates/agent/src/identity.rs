//! Who this cluster is: by flag, else by its certificate, else by the UID of `kube-system`.
//!
//! To the broker, the CN of the certificate *is* the cluster. A flag that says otherwise would be
//! refused with every request, so it is an error at the start.

use std::path::{Path, PathBuf};
use std::{fs, io};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use sublet_core::id::{self, ClusterId};
use x509_parser::error::{PEMError, X509Error};
use x509_parser::nom;
use x509_parser::pem::parse_x509_pem;

/// The namespace that every cluster has, and no two have the same.
const KUBE_SYSTEM: &str = "kube-system";

/// Why it is not known who this cluster is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not there.
    #[error("--broker-cert-path: cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no certificate.
    #[error("--broker-cert-path: {} is not a certificate", path.display())]
    Parse {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The certificate is nobody's.
    #[error("--broker-cert-path: the certificate in {} has no CN", path.display())]
    NoName {
        /// Which.
        path: PathBuf,
    },
    /// Not the name of a cluster.
    #[error("{what} is {name:?}, which cannot be the name of a cluster")]
    Name {
        /// What said so.
        what: &'static str,
        /// What it said.
        name: String,
        /// Why it cannot.
        source: id::Error,
    },
    /// Two names.
    #[error(
        "--cluster-id is {flag}, but the certificate is that of {certificate}: to the broker the \
         certificate decides, so leave --cluster-id out, or have a certificate issued for {flag}"
    )]
    Mismatch {
        /// What the flag says.
        flag: ClusterId,
        /// What the certificate says.
        certificate: ClusterId,
    },
    /// The API server did not say.
    #[error(
        "the UID of the namespace {KUBE_SYSTEM}, which names the cluster when neither --cluster-id \
         nor a certificate does, cannot be read"
    )]
    KubeSystem(#[source] kube::Error),
}

/// Whom a certificate in this folder names, as Secrets are mounted.
pub fn certified(folder: &Path) -> Result<ClusterId, Error> {
    let path = folder.join("tls.crt");
    let read = fs::read(&path);
    let pem = read.map_err(|source| Error::Read { path: path.clone(), source })?;
    let name = common_name(&pem).map_err(|source| Error::Parse { path: path.clone(), source })?;
    parsed("the CN of the certificate", name.ok_or(Error::NoName { path })?)
}

/// What the flag and the certificate agree on; none if neither says anything.
pub fn agreed(
    flag: Option<&ClusterId>,
    certificate: Option<ClusterId>,
) -> Result<Option<ClusterId>, Error> {
    match (flag.cloned(), certificate) {
        (Some(flag), Some(certificate)) if flag != certificate => {
            Err(Error::Mismatch { flag, certificate })
        }
        (flag, certificate) => Ok(certificate.or(flag)),
    }
}

/// What the cluster itself says.
pub async fn of_cluster(client: &Client) -> Result<ClusterId, Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let found = namespaces.get(KUBE_SYSTEM).await.map_err(Error::KubeSystem)?;
    parsed("the UID of kube-system", found.metadata.uid.unwrap_or_default())
}

fn parsed(what: &'static str, name: String) -> Result<ClusterId, Error> {
    name.parse().map_err(|source| Error::Name { what, name, source })
}

/// The CN of the first certificate, which is our own.
fn common_name(pem: &[u8]) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
    let (_, block) = parse_x509_pem(pem).map_err(plain::<PEMError>)?;
    let certificate = block.parse_x509().map_err(plain::<X509Error>)?;
    let name = certificate.subject().iter_common_name().next();
    Ok(name.map(|name| name.as_str().map(str::to_owned)).transpose()?)
}

/// The parser's error without what it did not read.
fn plain<E: ToString>(error: nom::Err<E>) -> String {
    match error {
        nom::Err::Incomplete(_) => "it ends too early".to_owned(),
        nom::Err::Error(error) | nom::Err::Failure(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ClusterId {
        name.parse().unwrap()
    }

    #[test]
    fn a_flag_and_a_certificate_that_disagree_are_an_error_that_names_both() {
        let said = agreed(Some(&id("rome")), Some(id("milan"))).unwrap_err().to_string();
        assert!(said.contains("rome") && said.contains("milan"), "{said}");
        assert_eq!(agreed(Some(&id("rome")), Some(id("rome"))).unwrap(), Some(id("rome")));
        assert_eq!(agreed(Some(&id("rome")), None).unwrap(), Some(id("rome")));
        assert_eq!(agreed(None, Some(id("milan"))).unwrap(), Some(id("milan")));
        assert_eq!(agreed(None, None).unwrap(), None);
    }

    #[test]
    fn a_folder_without_a_certificate_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let said = certified(folder.path()).unwrap_err().to_string();
        assert!(said.contains("tls.crt"), "{said}");
        fs::write(folder.path().join("tls.crt"), "not a certificate").unwrap();
        let said = certified(folder.path()).unwrap_err().to_string();
        assert!(said.contains("is not a certificate"), "{said}");
    }

    #[test]
    fn the_name_is_the_cn() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "rome");
        let folder = tempfile::tempdir().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        fs::write(folder.path().join("tls.crt"), pem).unwrap();
        assert_eq!(certified(folder.path()).unwrap(), id("rome"));
    }
}
