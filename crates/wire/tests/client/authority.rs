//! A development CA, and what it issues.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use sublet_wire::client::Credentials;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// A development CA.
pub(crate) struct Authority {
    pem: String,
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test CA");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a CA");
        Self { pem: certificate.pem(), certificate, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("good names");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, &self.issuer).expect("a certificate"), key)
    }

    /// The three files of a cluster: certificate, key, CA.
    pub(crate) fn files(&self, cluster: &str) -> [(&'static str, String); 3] {
        let (certificate, key) = self.issue(cluster);
        [
            ("tls.crt", certificate.pem()),
            ("tls.key", key.serialize_pem()),
            ("ca.crt", self.pem.clone()),
        ]
    }

    /// What a cluster shows, and whom it believes.
    pub(crate) fn credentials(&self, cluster: &str) -> Credentials {
        let [certificate, key, ca] = self.files(cluster).map(|(_, text)| text.into_bytes());
        Credentials::from_pem(certificate, key, ca)
    }

    /// A server that believes only clients of this CA.
    pub(crate) fn server(&self, protocol: &str) -> Arc<ServerConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).expect("a CA");
        let provider = Arc::new(ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                .build()
                .expect("a verifier");
        let (certificate, key) = self.issue("broker");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the usual versions")
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a certificate with its key");
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Arc::new(config)
    }
}
