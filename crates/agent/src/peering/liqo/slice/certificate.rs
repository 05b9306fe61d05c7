//! What a consumer wants a certificate for. Liqo signs what the request says, and Kubernetes makes a
//! group of every organization in it; Liqo itself looks at the first of them alone. So a request that
//! says more than Liqo's own do is an attempt to become somebody else here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::ResourceExt;
use sublet_core::id::ClusterId;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer, X509CertificationRequest};

use crate::collect::quota_user;
use crate::peering::liqo::kinds::ResourceSlice;

/// What is wrong with the request of a slice; none if it has none yet.
pub(super) fn fault(slice: &ResourceSlice, consumer: &ClusterId) -> Option<&'static str> {
    let request = slice.spec.csr.as_deref().filter(|request| !request.is_empty())?;
    let user = quota_user(&slice.name_any(), consumer.as_str());
    check(request, &user, consumer.as_str()).err()
}

/// Exactly one name, that of the slice's user, and one organization, the consumer; as Liqo v1.2.0
/// writes it.
fn check(request: &str, user: &str, consumer: &str) -> Result<(), &'static str> {
    const UNREADABLE: &str = "its request for a certificate cannot be read";
    let pem = BASE64.decode(request).map_err(|_| UNREADABLE)?;
    let (rest, pem) = parse_x509_pem(&pem).map_err(|_| UNREADABLE)?;
    let (more, request) =
        X509CertificationRequest::from_der(&pem.contents).map_err(|_| UNREADABLE)?;
    if !rest.is_empty() || !more.is_empty() {
        return Err(UNREADABLE);
    }
    let info = &request.certification_request_info;
    let mut left = vec![(OID_X509_COMMON_NAME, user), (OID_X509_ORGANIZATION_NAME, consumer)];
    for attribute in info.subject.iter_attributes() {
        let is_this = |(oid, value): &(_, &str)| {
            attribute.attr_type() == oid && attribute.as_str().is_ok_and(|said| said == *value)
        };
        let Some(at) = left.iter().position(is_this) else {
            return Err("its request for a certificate names somebody else, or another group");
        };
        left.swap_remove(at);
    }
    if !left.is_empty() {
        return Err("its request for a certificate does not name its user and its cluster");
    }
    if !info.attributes().is_empty() {
        return Err("its request for a certificate has extensions");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};

    const USER: &str = "rsv-a-8d9001d32c6a";

    fn request(subject: &[(DnType, &str)], names: &[&str]) -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        BASE64.encode(params.serialize_request(&key).unwrap().pem().unwrap())
    }

    #[test]
    fn a_request_names_the_slices_user_and_its_cluster_and_nothing_else() {
        // Another spelling of the organization, because rcgen takes each kind once.
        let again = || DnType::CustomDnType(vec![2, 5, 4, 10]);
        let (user, cluster) = ((DnType::CommonName, USER), (DnType::OrganizationName, "shop"));
        let honest = [user.clone(), cluster.clone()];
        assert_eq!(check(&request(&honest, &[]), USER, "shop"), Ok(()));
        let admins = "kubeadm:cluster-admins";
        for subject in [
            vec![cluster.clone()],
            vec![user.clone()],
            vec![(DnType::CommonName, "rsv-b-8d9001d32c6a"), cluster.clone()],
            vec![user.clone(), (DnType::OrganizationName, "bank")],
            vec![user.clone(), cluster.clone(), (again(), admins)],
            vec![user.clone(), (again(), admins), cluster.clone()],
            vec![user.clone(), cluster.clone(), (again(), "shop")],
            vec![user.clone(), cluster.clone(), (DnType::OrganizationalUnitName, "x")],
        ] {
            let checked = check(&request(&subject, &[]), USER, "shop");
            assert!(checked.is_err(), "{subject:?}");
        }
        assert!(check(&request(&honest, &["milan.example.com"]), USER, "shop").is_err());
        let twice = BASE64.decode(request(&honest, &[])).unwrap().repeat(2);
        for rubbish in ["", "?", "bm9uZQ==", &BASE64.encode(twice)] {
            assert!(check(rubbish, USER, "shop").is_err(), "{rubbish}");
        }
    }
}
