//! Any bytes that a verified chain may end with name a caller within all limits, or nobody.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rustls_pki_types::CertificateDer;
use sublet_broker::identity::{Caller, Identity};
use sublet_wire::v1::Revocation;

fuzz_target!(|bytes: &[u8]| {
    let Ok(identity) = Identity::of(&CertificateDer::from(bytes)) else { return };
    match &identity.caller {
        Caller::Cluster(cluster) => assert!((1..=50).contains(&cluster.as_str().len())),
        Caller::Operator(name) => {
            assert!((1..=128).contains(&name.len()) && !name.chars().any(char::is_control));
        }
    }
    let serial = &identity.serial;
    assert!((1..=128).contains(&serial.len()) && !(serial.len() > 1 && serial.starts_with('0')));
    assert!(serial.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
    // Who is believed can be revoked by it.
    let typed = Revocation { serial: Some(serial.clone()), ..Revocation::default() };
    assert_eq!(typed.to_core().ok(), identity.subjects().next());
});
