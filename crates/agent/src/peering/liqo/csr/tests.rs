//! Requests that are fit, and all the ways not to be.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

use super::*;

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

fn judged(params: &CertificateParams) -> Result<(), Unfit> {
    fit(&params.serialize_request(&key()).unwrap().pem().unwrap())
}

fn fit(csr: &str) -> Result<(), Unfit> {
    check(csr, "rome", "liqo.io").map(drop)
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
fn what_says_one_name_and_one_organization_is_fit_in_either_order_and_tells_its_key() {
    let key = key();
    let csr = subject(&TENANT).serialize_request(&key).unwrap().pem().unwrap();
    let spki = rcgen::PublicKeyData::subject_public_key_info(&key);
    assert_eq!(check(&csr, "rome", "liqo.io"), Ok(spki));
    assert_eq!(owner(csr.as_bytes()), Some(("rome".to_owned(), "liqo.io".to_owned())));
    let [organization, name] = TENANT;
    assert_eq!(judged(&subject(&[name, organization])), Ok(()));
}

#[test]
fn a_request_for_one_more_group_is_unfit() {
    let key = key();
    let judged = |parts: &[(u8, &str)]| fit(&by_hand(&key, parts));
    let (tenant, name) = ((10, "liqo.io"), (3, "rome"));
    assert_eq!(judged(&[tenant, name]), Ok(()), "the forger writes what is fit, too");
    for more in [(10, "system:masters"), (10, "liqo.io"), (3, "rome"), (3, "milan"), (11, "x")] {
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
fn what_others_might_read_differently_is_unfit() {
    let csr = subject(&TENANT).serialize_request(&key()).unwrap().pem().unwrap();
    let judged = |csr: String| fit(&csr);
    assert_eq!(judged(format!("{csr}{csr}")), Err(Unfit::Unreadable));
    assert_eq!(judged(format!("{BEGIN}\n{csr}")), Err(Unfit::Unreadable));
    assert_eq!(judged(csr.replacen('\n', "\nProc-Type: x\n\n", 1)), Err(Unfit::Unreadable));
    assert_eq!(judged(csr.replace("CERTIFICATE REQUEST", "X")), Err(Unfit::Unreadable));
    assert_eq!(judged(format!("{csr}{}", " ".repeat(LENGTH_MAX))), Err(Unfit::TooLong));
}
