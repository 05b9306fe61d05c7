//! What a requester asks to be certified as, in the provider's cluster.
//!
//! Liqo looks at the first organization and at the common name alone; whoever signs makes a group of
//! *every* organization. So a request with one more would make its owner an administrator here. What
//! is written into a Tenant is therefore read first, and says exactly what it must and nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use sublet_core::id::ClusterId;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::prelude::FromDer;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use super::super::names;
use super::keys;
use crate::relay::TenantOffer;

/// A request of an RSA key with 4096 bits has 1.7 thousand.
const LENGTH_MAX: usize = 4096;
const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";

/// Why a request for a certificate is not passed on to Liqo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    #[error("it is longer than {LENGTH_MAX} characters")]
    TooLong,
    #[error("it is not one request for a certificate as PEM")]
    Unreadable,
    #[error("it does not name the cluster, in the organization liqo.io, and nothing else")]
    Subject,
    #[error("it asks for more than a name")]
    Extensions,
    #[error("it is for another key than the one that is offered")]
    Key,
}

/// Does the request say that its cluster is to be a tenant, and nothing else?
pub(super) fn check(offer: &TenantOffer, requester: &ClusterId) -> Result<(), Unfit> {
    let der = decode(&offer.csr)?;
    let (rest, csr) = X509CertificationRequest::from_der(&der).map_err(|_| Unfit::Unreadable)?;
    if !rest.is_empty() {
        return Err(Unfit::Unreadable);
    }
    let info = &csr.certification_request_info;
    if !is_tenant(&info.subject, requester) {
        return Err(Unfit::Subject);
    }
    if !info.attributes().is_empty() {
        return Err(Unfit::Extensions);
    }
    match keys::public_key(info.subject_pki.raw) {
        Some(key) if key == offer.public_key => Ok(()),
        _ => Err(Unfit::Key),
    }
}

/// One block and nothing around it or in it, so that everybody who reads it reads the same.
fn decode(pem: &str) -> Result<Vec<u8>, Unfit> {
    if pem.len() > LENGTH_MAX {
        return Err(Unfit::TooLong);
    }
    let body = pem.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
    let text: String = body.ok_or(Unfit::Unreadable)?.lines().collect();
    BASE64.decode(text).map_err(|_| Unfit::Unreadable)
}

fn is_tenant(subject: &X509Name<'_>, requester: &ClusterId) -> bool {
    let mut parts: Vec<_> = subject.iter_attributes().collect();
    parts.sort_by_key(|part| *part.attr_type() == OID_X509_COMMON_NAME);
    let is = |part: &AttributeTypeAndValue<'_>, wanted: &str| part.as_str() == Ok(wanted);
    match parts.as_slice() {
        [organization, name] => {
            *organization.attr_type() == OID_X509_ORGANIZATION_NAME
                && *name.attr_type() == OID_X509_COMMON_NAME
                && is(organization, names::ORGANIZATION)
                && is(name, requester.as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::super::keys::Keys;
    use super::*;
    use crate::relay::seal;

    const TENANT: [(DnType, &str); 2] =
        [(DnType::OrganizationName, "liqo.io"), (DnType::CommonName, "rome")];

    fn key() -> KeyPair {
        KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()
    }

    fn subject(names: &[(DnType, &str)]) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params
    }

    fn offer(key: &KeyPair, csr: String) -> TenantOffer {
        let public_key = key.public_key_pem().parse().unwrap();
        let seal_key = seal::Key::generate().unwrap().public();
        TenantOffer { public_key, csr, signature: Vec::new(), seal_key }
    }

    fn judged(params: &CertificateParams) -> Result<(), Unfit> {
        let key = key();
        let csr = params.serialize_request(&key).unwrap().pem().unwrap();
        check(&offer(&key, csr), &"rome".parse().unwrap())
    }

    /// A request whose subject has these parts; rcgen cannot write one of a kind twice.
    fn by_hand(key: &KeyPair, parts: &[(u8, &str)]) -> String {
        let node = |tag: u8, content: &[u8]| {
            let length = u8::try_from(content.len()).unwrap();
            let length = if length < 128 { vec![length] } else { vec![0x81, length] };
            [vec![tag], length, content.to_vec()].concat()
        };
        let part = |(kind, text): &(u8, &str)| {
            let oid = node(6, &[0x55, 4, *kind]);
            let pair = node(0x30, &[oid, node(12, text.as_bytes())].concat());
            node(0x31, &pair)
        };
        let subject = node(0x30, &parts.iter().flat_map(part).collect::<Vec<_>>());
        let spki = rcgen::PublicKeyData::subject_public_key_info(key);
        let info = node(0x30, &[node(2, &[0]), subject, spki, node(0xa0, &[])].concat());
        let scheme = node(0x30, &node(6, &[0x2b, 0x65, 0x70]));
        let signature = rcgen::SigningKey::sign(key, &info).unwrap();
        let signature = node(3, &[vec![0], signature].concat());
        let csr = node(0x30, &[info, scheme, signature].concat());
        format!("{BEGIN}\n{}\n{END}\n", BASE64.encode(csr))
    }

    #[test]
    fn what_our_agents_write_is_fit_and_liqos_order_does_not_matter() {
        let key = key();
        let keys = Keys::read(key.serialize_pem().as_bytes()).unwrap();
        let rome = "rome".parse().unwrap();
        assert_eq!(check(&offer(&key, keys.csr(&rome).unwrap()), &rome), Ok(()));
        assert_eq!(judged(&subject(&TENANT)), Ok(()));
        let [organization, name] = TENANT;
        assert_eq!(judged(&subject(&[name, organization])), Ok(()));
    }

    #[test]
    fn a_request_for_one_more_group_is_unfit() {
        let (key, rome) = (key(), "rome".parse().unwrap());
        let judged = |parts: &[(u8, &str)]| check(&offer(&key, by_hand(&key, parts)), &rome);
        let (tenant, name) = ((10, "liqo.io"), (3, "rome"));
        assert_eq!(judged(&[tenant, name]), Ok(()), "the forger writes what is fit, too");
        for more in [(10, "system:masters"), (10, "liqo.io"), (3, "rome"), (3, "milan"), (11, "x")]
        {
            assert_eq!(judged(&[tenant, more, name]), Err(Unfit::Subject), "{more:?}");
            assert_eq!(judged(&[tenant, name, more]), Err(Unfit::Subject), "{more:?}");
        }
        assert_eq!(judged(&[name, (10, "system:masters")]), Err(Unfit::Subject));
    }

    #[test]
    fn a_request_for_another_name_or_none_is_unfit() {
        let [organization, _] = TENANT;
        let venice = (DnType::CommonName, "venice");
        assert_eq!(judged(&subject(&[organization.clone(), venice])), Err(Unfit::Subject));
        assert_eq!(judged(&subject(&[organization])), Err(Unfit::Subject));
        assert_eq!(judged(&subject(&[])), Err(Unfit::Subject));
    }

    #[test]
    fn a_request_for_more_than_a_name_is_unfit() {
        let mut params = subject(&TENANT);
        params.subject_alt_names = vec![SanType::DnsName("kubernetes".try_into().unwrap())];
        assert_eq!(judged(&params), Err(Unfit::Extensions));
    }

    #[test]
    fn a_request_for_another_key_is_unfit() {
        let (own, other) = (key(), key());
        let csr = subject(&TENANT).serialize_request(&other).unwrap().pem().unwrap();
        assert_eq!(check(&offer(&own, csr), &"rome".parse().unwrap()), Err(Unfit::Key));
    }

    #[test]
    fn what_others_might_read_differently_is_unfit() {
        let (key, rome) = (key(), "rome".parse().unwrap());
        let csr = subject(&TENANT).serialize_request(&key).unwrap().pem().unwrap();
        let judged = |csr: String| check(&offer(&key, csr), &rome);
        assert_eq!(judged(format!("{csr}{csr}")), Err(Unfit::Unreadable));
        assert_eq!(judged(format!("{BEGIN}\n{csr}")), Err(Unfit::Unreadable));
        assert_eq!(judged(csr.replacen('\n', "\nProc-Type: x\n\n", 1)), Err(Unfit::Unreadable));
        assert_eq!(judged(csr.replace("CERTIFICATE REQUEST", "X")), Err(Unfit::Unreadable));
        assert_eq!(judged(format!("{csr}{}", " ".repeat(LENGTH_MAX))), Err(Unfit::TooLong));
    }
}
