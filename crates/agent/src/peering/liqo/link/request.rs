//! What a requester asks to be certified as, in the provider's cluster: a tenant, by its own name and
//! for its own key. It is read before it is written into a Tenant.

use sublet_core::id::ClusterId;

use super::super::{csr, names};
use super::keys;
use crate::relay::TenantOffer;

/// How an Ed25519 key begins, and how long it is.
const ED25519: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];
const ED25519_LENGTH: usize = 44;

/// Why a request for a certificate is not passed on to Liqo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unfit {
    #[error(transparent)]
    Request(#[from] csr::Unfit),
    #[error("it is for another key than the one that is offered")]
    Key,
    #[error(
        "its key is not Ed25519: requests of its slices could not be measured, and might ask for \
         more groups (is its Liqo in TLS compatibility mode?)"
    )]
    NotMeasurable,
}

/// Does the request say that its cluster is to be a tenant, and nothing else?
pub(super) fn check(offer: &TenantOffer, requester: &ClusterId) -> Result<(), Unfit> {
    let key = csr::check(&offer.csr, requester.as_str(), names::ORGANIZATION)?;
    if !key.starts_with(&ED25519) || key.len() != ED25519_LENGTH {
        return Err(Unfit::NotMeasurable);
    }
    match keys::public_key(&key) {
        Some(key) if key == offer.public_key => Ok(()),
        _ => Err(Unfit::Key),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::super::keys::Keys;
    use super::*;
    use crate::relay::seal;

    fn key() -> KeyPair {
        KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()
    }

    fn offer(key: &KeyPair, csr: String) -> TenantOffer {
        let public_key = key.public_key_pem().parse().unwrap();
        let seal_key = seal::Key::generate().unwrap().public();
        TenantOffer { public_key, csr, signature: Vec::new(), seal_key }
    }

    #[test]
    fn what_our_agents_write_is_fit_for_their_own_cluster_and_key_alone() {
        let (own, other) = (key(), key());
        let (rome, venice): (ClusterId, ClusterId) =
            ("rome".parse().unwrap(), "venice".parse().unwrap());
        let csr = Keys::read(own.serialize_pem().as_bytes()).unwrap().csr(&rome).unwrap();
        assert_eq!(check(&offer(&own, csr.clone()), &rome), Ok(()));
        assert_eq!(check(&offer(&own, csr.clone()), &venice), Err(csr::Unfit::Subject.into()));
        assert_eq!(check(&offer(&other, csr), &rome), Err(Unfit::Key));
    }

    #[test]
    fn a_request_for_a_key_whose_requests_are_not_measured_is_unfit() {
        let (key, rome) = (
            KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap(),
            "rome".parse().unwrap(),
        );
        let csr = Keys::read(key.serialize_pem().as_bytes()).unwrap().csr(&rome).unwrap();
        assert_eq!(check(&offer(&key, csr), &rome), Err(Unfit::NotMeasurable));
    }

    #[test]
    fn a_request_of_another_organization_is_unfit() {
        let (key, rome) = (key(), "rome".parse().unwrap());
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.distinguished_name.push(DnType::CommonName, "rome");
        let csr = params.serialize_request(&key).unwrap().pem().unwrap();
        assert_eq!(check(&offer(&key, csr), &rome), Err(csr::Unfit::Subject.into()));
    }
}
