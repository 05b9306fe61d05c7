//! Certificates for a test.

use std::net::SocketAddr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};
use sublet_wire::client::{Credentials, Options};

/// A certificate authority of the test.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate and its key.
    pub(crate) fn issue(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let mut whom = DistinguishedName::new();
        whom.push(DnType::CommonName, name);
        self.certify(whom, usage)
    }

    fn certify(&self, whom: DistinguishedName, usage: ExtendedKeyUsagePurpose) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = whom;
        params.extended_key_usages = vec![usage];
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// How a cluster reaches a broker.
    pub(crate) fn options(&self, name: &str, broker: SocketAddr) -> Options {
        let (certificate, key) = self.issue(name, ExtendedKeyUsagePurpose::ClientAuth);
        self.reaching(broker, certificate, key)
    }

    /// How an operator reaches it.
    pub(crate) fn operator(&self, name: &str, broker: SocketAddr) -> Options {
        let mut whom = DistinguishedName::new();
        whom.push(DnType::CommonName, name);
        whom.push(DnType::OrganizationName, "sublet:operators");
        let (certificate, key) = self.certify(whom, ExtendedKeyUsagePurpose::ClientAuth);
        self.reaching(broker, certificate, key)
    }

    fn reaching(&self, broker: SocketAddr, certificate: String, key: String) -> Options {
        let bytes = |text: String| text.into_bytes();
        let credentials =
            Credentials::from_pem(bytes(certificate), bytes(key), bytes(self.pem.clone()));
        let mut options =
            Options::new(vec![format!("https://localhost:{}", broker.port())], credentials);
        // The controllers have patience of their own.
        options.attempts = 2;
        options.patience = Duration::from_secs(2);
        options.pause_max = Duration::from_millis(500);
        options
    }
}
