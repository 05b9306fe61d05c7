//! What a consumer wants a slice's certificate for: to be the user of that slice, and of its own
//! cluster, and nobody else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::ResourceExt;
use sublet_core::id::ClusterId;

use crate::collect::quota_user;
use crate::peering::liqo::csr::{self, Unfit};
use crate::peering::liqo::kinds::ResourceSlice;

/// What is wrong with the request of a slice; none if it has none yet.
pub(super) fn fault(slice: &ResourceSlice, consumer: &ClusterId) -> Option<Unfit> {
    let request = slice.spec.csr.as_deref().filter(|request| !request.is_empty())?;
    let user = quota_user(&slice.name_any(), consumer.as_str());
    let pem = BASE64.decode(request).ok().and_then(|pem| String::from_utf8(pem).ok());
    let pem = pem.ok_or(Unfit::Unreadable);
    pem.and_then(|pem| csr::check(&pem, &user, consumer.as_str())).err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
    use serde_json::json;

    fn slice(csr: &str) -> ResourceSlice {
        serde_json::from_value(json!({
            "apiVersion": "authentication.liqo.io/v1beta1",
            "kind": "ResourceSlice",
            "metadata": { "name": "rsv-a" },
            "spec": { "class": "sublet", "consumerClusterID": "shop", "csr": csr },
        }))
        .unwrap()
    }

    fn request(user: &str, cluster: &str) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, cluster);
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        BASE64.encode(params.serialize_request(&key).unwrap().pem().unwrap())
    }

    #[test]
    fn a_request_names_the_slices_user_and_its_cluster() {
        let judged = |csr: &str| fault(&slice(csr), &"shop".parse().unwrap());
        let user = quota_user("rsv-a", "shop");
        assert_eq!(judged(""), None, "Liqo writes it a moment after the slice");
        assert_eq!(judged(&request(&user, "shop")), None);
        let of_another = quota_user("rsv-b", "shop");
        assert_eq!(judged(&request(&of_another, "shop")), Some(Unfit::Subject));
        assert_eq!(judged(&request(&user, "bank")), Some(Unfit::Subject));
        for rubbish in ["?", "bm9uZQ==", "/w=="] {
            assert_eq!(judged(rubbish), Some(Unfit::Unreadable), "{rubbish}");
        }
    }
}
