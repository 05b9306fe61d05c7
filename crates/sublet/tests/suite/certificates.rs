//! `sublet ca`.

use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::program::{Person, mode};

const CA: &str = ".config/sublet/ca";

fn with_ca() -> Person {
    let anna = Person::new();
    anna.ok("ca init");
    anna
}

/// Looks at a certificate, which the CA must have signed.
fn look<R>(anna: &Person, name: &str, see: impl FnOnce(&X509Certificate<'_>) -> R) -> R {
    let der = |path: &str| parse_x509_pem(anna.read(path).as_bytes()).unwrap().1.contents;
    let (der, authority) =
        (der(&format!("{CA}/certs/{name}/tls.crt")), der(&format!("{CA}/ca.crt")));
    let (_, certificate) = X509Certificate::from_der(&der).unwrap();
    let (_, authority) = X509Certificate::from_der(&authority).unwrap();
    certificate.verify_signature(Some(authority.public_key())).unwrap();
    assert!(!certificate.is_ca() && authority.is_ca());
    assert!(certificate.validity().is_valid());
    see(&certificate)
}

#[test]
fn a_ca_is_made_once_and_its_key_is_its_owners() {
    let anna = with_ca();
    assert_eq!(mode(&anna.path(&format!("{CA}/ca.key"))), 0o600);
    let key = anna.read(&format!("{CA}/ca.key"));
    anna.fails("ca init", 1, "is not written over");
    assert_eq!(anna.read(&format!("{CA}/ca.key")), key);
}

#[test]
fn a_cluster_gets_a_folder_with_three_files() {
    let anna = with_ca();
    let said = anna.ok("ca issue edge-1");
    let folder = anna.path(&format!("{CA}/certs/edge-1"));
    let mut names: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["ca.crt", "tls.crt", "tls.key"]);
    assert_eq!(mode(&folder.join("tls.key")), 0o600);
    assert_eq!(anna.read(&format!("{CA}/certs/edge-1/ca.crt")), anna.read(&format!("{CA}/ca.crt")));
    look(&anna, "edge-1", |certificate| {
        assert_eq!(certificate.subject().to_string(), "CN=edge-1");
        let usage = certificate.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth);
        let serial = certificate.raw_serial_as_string().replace(':', "");
        assert!(said.contains(&serial), "{said:?} lacks {serial}");
        assert!(anna.ok("ca list").contains(&serial));
    });
}

#[test]
fn an_operator_is_known_by_its_organisation() {
    let anna = with_ca();
    anna.ok("ca issue anna --operator");
    look(&anna, "anna", |certificate| {
        let organisation = certificate.subject().iter_organization().next().unwrap();
        assert_eq!(organisation.as_str().unwrap(), "sublet:operators");
        let name = certificate.subject().iter_common_name().next().unwrap();
        assert_eq!(name.as_str().unwrap(), "anna");
    });
}

#[test]
fn a_server_is_reached_as_localhost_and_as_it_was_told() {
    let anna = with_ca();
    anna.ok("ca issue broker --server --dns broker.example --ip 10.0.0.7");
    look(&anna, "broker", |certificate| {
        let names = &certificate.subject_alternative_name().unwrap().unwrap().value.general_names;
        let dns = ["broker", "localhost", "broker.example"];
        let addresses: [&[u8]; 3] =
            [&[127, 0, 0, 1], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], &[10, 0, 0, 7]];
        let expected: Vec<_> = dns
            .map(GeneralName::DNSName)
            .into_iter()
            .chain(addresses.map(GeneralName::IPAddress))
            .collect();
        assert_eq!(*names, expected);
        let usage = certificate.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.server_auth && !usage.client_auth, "it would be a cluster's too");
    });
}

#[test]
fn nothing_is_written_over_and_nothing_is_noted_then() {
    let anna = with_ca();
    anna.ok("ca issue edge-1");
    let key = anna.read(&format!("{CA}/certs/edge-1/tls.key"));
    anna.fails("ca issue edge-1", 1, "name another folder");
    assert_eq!(anna.read(&format!("{CA}/certs/edge-1/tls.key")), key);
    assert_eq!(anna.ok("ca list -o name"), "edge-1\n");
    anna.ok("ca issue edge-1 --out again");
    assert_eq!(anna.ok("ca list -o name"), "edge-1\nedge-1\n");
}

#[test]
fn a_name_that_is_no_cluster_id_is_refused() {
    let anna = with_ca();
    anna.fails("ca issue Edge_1", 2, "DNS-1123");
    anna.fails("ca issue edge-1 --operator --server", 2, "--server");
    anna.fails("ca issue edge-1 --dns a.example", 2, "--server");
}

#[test]
fn without_a_ca_the_next_step_is_named() {
    Person::new().fails("ca issue edge-1", 4, "sublet ca init");
}
