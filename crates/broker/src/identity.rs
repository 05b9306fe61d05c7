//! Who is calling: the certificate of the peer, read once per connection.
//!
//! The CN *is* the cluster; nothing in a body or a header can say otherwise. As in the Go system the
//! last CN counts where there are several. A certificate with `O=sublet:operators` is an operator's,
//! and its CN is that person's name: the two roles never mix. Serial and end of validity are kept
//! because both are looked at with every request, not only when the connection was made.

use std::fmt;

use rustls::pki_types::CertificateDer;
use sublet_core::event::Subject;
use sublet_core::id::{self, ClusterId};
use sublet_core::time::Time;
use sublet_wire::v1::Revocation;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::X509Name;

/// The organization in the certificates of operators.
pub const OPERATORS: &str = "sublet:operators";
/// What the log keeps of an operator's name.
const NAME_MAX: usize = 128;
/// RFC 5280 allows 20 bytes; what is longer than this, nobody could revoke.
const SERIAL_BYTES_MAX: usize = Revocation::SERIAL_MAX / 2;

/// Why a certificate names nobody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a certificate, or one that nobody should make.
    #[error("the client certificate cannot be read: issue a new one")]
    Unreadable,
    /// The Go broker's words.
    #[error("Invalid certificate: no cluster ID in CN")]
    NoName,
    /// A CN that cannot be a cluster.
    #[error("Invalid certificate: {0}")]
    Name(#[from] id::Error),
    /// A CN that cannot be a person's name.
    #[error(
        "Invalid certificate: the CN of an operator has at most {NAME_MAX} printable characters"
    )]
    Operator,
}

/// Who is calling, and in which role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Caller {
    /// A cluster's agent.
    Cluster(ClusterId),
    /// A person, by name.
    Operator(String),
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(cluster) => cluster.fmt(f),
            Self::Operator(name) => write!(f, "operator {name}"),
        }
    }
}

/// A caller and the certificate that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who.
    pub caller: Caller,
    /// The serial number in lower-case hex, as revocations name it.
    pub serial: String,
    /// The end of its validity.
    pub expires_at: Time,
}

impl Identity {
    /// Reads the certificate at the end of a chain that was verified already.
    pub fn of(leaf: &CertificateDer<'_>) -> Result<Self, Error> {
        let (_, certificate) =
            X509Certificate::from_der(leaf.as_ref()).map_err(|_| Error::Unreadable)?;
        let serial = serial_text(certificate.raw_serial()).ok_or(Error::Unreadable)?;
        let seconds = certificate.validity().not_after.timestamp();
        let expires_at =
            Time::from_millis(u64::try_from(seconds).unwrap_or(0).saturating_mul(1000));
        let caller = caller(certificate.subject())?;
        Ok(Self { caller, serial, expires_at })
    }

    /// What would have to be revoked to shut it out: its certificate, or its cluster.
    pub fn subjects(&self) -> impl Iterator<Item = Subject> {
        let cluster = match &self.caller {
            Caller::Cluster(cluster) => Some(Subject::Cluster(cluster.clone())),
            Caller::Operator(_) => None,
        };
        [Subject::Serial(self.serial.clone())].into_iter().chain(cluster)
    }
}

fn caller(subject: &X509Name<'_>) -> Result<Caller, Error> {
    let name = subject.iter_common_name().last().and_then(|name| name.as_str().ok());
    let name = name.filter(|name| !name.is_empty()).ok_or(Error::NoName)?;
    let operator = subject.iter_organization().any(|o| o.as_str() == Ok(OPERATORS));
    if !operator {
        return Ok(Caller::Cluster(name.parse()?));
    }
    // It goes into logs and into the log for ever.
    if name.len() > NAME_MAX || name.chars().any(char::is_control) {
        return Err(Error::Operator);
    }
    Ok(Caller::Operator(name.to_owned()))
}

/// A serial number as revocations name it: lower-case hex without leading zeros.
fn serial_text(raw: &[u8]) -> Option<String> {
    let significant = raw.iter().position(|byte| *byte != 0).unwrap_or(raw.len());
    let bytes = raw.get(significant..)?;
    if bytes.len() > SERIAL_BYTES_MAX {
        return None;
    }
    let hex = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    let digits: String = bytes.iter().flat_map(|byte| [hex(byte >> 4), hex(byte & 15)]).collect();
    let digits = digits.trim_start_matches('0');
    Some(if digits.is_empty() { "0".to_owned() } else { digits.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SerialNumber};

    fn certificate(names: &[(DnType, &str)], serial: &[u8]) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.serial_number = Some(SerialNumber::from_slice(serial));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn caller_of(names: &[(DnType, &str)]) -> Result<Caller, Error> {
        Identity::of(&certificate(names, &[1])).map(|identity| identity.caller)
    }

    #[test]
    fn the_common_name_is_the_cluster() {
        let cluster = Caller::Cluster("edge-7".parse().unwrap());
        assert_eq!(caller_of(&[(DnType::CommonName, "edge-7")]), Ok(cluster));
    }

    #[test]
    fn the_organization_makes_an_operator() {
        let names = [(DnType::OrganizationName, OPERATORS), (DnType::CommonName, "Ada L.")];
        assert_eq!(caller_of(&names), Ok(Caller::Operator("Ada L.".into())));
        let names = [(DnType::OrganizationName, "others"), (DnType::CommonName, "ada")];
        assert_eq!(caller_of(&names), Ok(Caller::Cluster("ada".parse().unwrap())));
    }

    #[test]
    fn a_certificate_without_a_usable_name_names_nobody() {
        assert_eq!(caller_of(&[]), Err(Error::NoName));
        assert_eq!(caller_of(&[(DnType::CommonName, "")]), Err(Error::NoName));
        for bad in ["A", "../x", "a b", "a\n", &"x".repeat(51)] {
            let found = caller_of(&[(DnType::CommonName, bad)]);
            assert!(matches!(found, Err(Error::Name(_))), "{bad:?}: {found:?}");
        }
        let long = "x".repeat(129);
        let names = [(DnType::OrganizationName, OPERATORS), (DnType::CommonName, &*long)];
        assert_eq!(caller_of(&names), Err(Error::Operator));
    }

    #[test]
    fn bytes_that_are_no_certificate_name_nobody() {
        let rubbish = CertificateDer::from(vec![0x30, 0x82, 0xff]);
        assert_eq!(Identity::of(&rubbish), Err(Error::Unreadable));
    }

    #[test]
    fn a_serial_is_lower_case_hex_without_padding() {
        let serial = |raw: &[u8]| serial_text(raw).unwrap();
        assert_eq!(serial(&[0x00, 0xAB, 0x01]), "ab01");
        assert_eq!(serial(&[0x0A, 0x01]), "a01");
        assert_eq!(serial(&[0]), "0");
        assert_eq!(serial_text(&[7; 65]), None);
    }

    #[test]
    fn every_serial_that_is_believed_can_be_revoked() {
        let serials: [&[u8]; 5] = [&[0], &[0, 0], &[1], &[0x7f; 20], &[0xff; 64]];
        for raw in serials {
            let serial = serial_text(raw).unwrap();
            let typed = Revocation { serial: Some(serial.clone()), ..Revocation::default() };
            assert_eq!(typed.to_core().unwrap(), Subject::Serial(serial));
        }
    }
}
