//! Slices that outlive the Liqo key of their requester. Each carries a request for a certificate, made with the key of its
//! day; Liqo makes it once, and the provider's Liqo denies it when the tenant has another key, and keeps the certificate of
//! the first request. Once the provider's operator has accepted the new key, nobody else needs to do anything: the
//! requester has Liqo ask anew, and the provider makes room for the answer. Nodes and pods stay.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt};
use serde_json::json;
use sublet_core::id::ClusterId;
use x509_parser::pem::parse_x509_pem;

use super::ground::{Answer, delete, merge};
use super::provider::Provider;
use super::requester::Requester;
use crate::peering::liqo::csr;
use crate::peering::liqo::kinds::ResourceSlice;
use crate::peering::liqo::names::{KEYS_SECRET, LIQO_NAMESPACE, certificate_secret};

/// Under which name the Secret of a certificate has the request for it.
const REQUEST: &str = "csr";
/// Under which name the Secret with the key of a cluster has its public part.
const PUBLIC_KEY: &str = "publicKey";

impl Requester {
    /// Has Liqo ask for another certificate where ours was refused and the request is not of the key that this cluster has
    /// now. The link is there, so the provider knows that key. What does not succeed is tried at the next look, and holds
    /// nothing else up.
    pub(super) async fn ask_anew(&self, slices: &Api<ResourceSlice>, slice: &ResourceSlice) {
        if let Err(error) = self.try_to_ask_anew(slices, slice).await {
            tracing::warn!(slice = slice.name_any(), %error, "a slice could not ask for another certificate");
        }
    }

    async fn try_to_ask_anew(
        &self,
        slices: &Api<ResourceSlice>,
        slice: &ResourceSlice,
    ) -> Answer<()> {
        let Some(request) = refused(slice) else { return Ok(()) };
        let keys: Api<Secret> = Api::namespaced(self.ground.client(), LIQO_NAMESPACE);
        let Some(own) = keys.get_opt(KEYS_SECRET).await?.as_ref().and_then(public_key) else {
            return Ok(());
        };
        if csr::key_of(&request).is_none_or(|key| key == own) {
            return Ok(());
        }
        let name = slice.name_any();
        tracing::info!(
            slice = name,
            "this cluster has another Liqo key: its slice asks for another certificate"
        );
        merge(slices, &name, &json!({ "spec": { "csr": null } })).await
    }
}

impl Provider {
    /// Forgets the certificate of another key than that of a slice which was refused: Liqo does not make a second one
    /// beside it. Whether it is the right key is for Liqo to say. What does not succeed is tried at the next look, and
    /// holds nothing else up.
    pub(super) async fn make_room(&self, peer: &ClusterId, slice: &ResourceSlice) {
        if let Err(error) = self.try_to_make_room(peer, slice).await {
            tracing::warn!(slice = slice.name_any(), %peer, %error, "an old certificate could not be forgotten");
        }
    }

    async fn try_to_make_room(&self, peer: &ClusterId, slice: &ResourceSlice) -> Answer<()> {
        let Some(request) = refused(slice) else { return Ok(()) };
        let (secrets, name) = (self.ground.secrets(peer), slice.name_any());
        let Some(known) = secrets.get_opt(&certificate_secret(&name)).await? else { return Ok(()) };
        let of = known.data.as_ref().and_then(|data| data.get(REQUEST));
        if of.is_none_or(|of| csr::key_of(&of.0) == csr::key_of(&request)) {
            return Ok(());
        }
        tracing::info!(slice = name, %peer, "a slice asks for a certificate of another key: the one before is forgotten");
        self.ground.metrics.slice_decided("new_key");
        delete(&secrets, &known).await
    }
}

/// The request for a certificate of a slice whose identity Liqo refuses.
fn refused(slice: &ResourceSlice) -> Option<Vec<u8>> {
    let said = slice.condition(ResourceSlice::AUTHENTICATION)?;
    let request = slice.spec.csr.as_deref().filter(|_| said.status == ResourceSlice::DENIED)?;
    BASE64.decode(request).ok().filter(|request| !request.is_empty())
}

/// The public key of this cluster, as DER with its algorithm.
fn public_key(keys: &Secret) -> Option<Vec<u8>> {
    let pem = keys.data.as_ref()?.get(PUBLIC_KEY)?;
    parse_x509_pem(&pem.0).ok().map(|(_, pem)| pem.contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};

    #[test]
    fn the_key_of_a_request_is_that_of_the_cluster_which_made_it() {
        let [own, other] = [(); 2].map(|()| KeyPair::generate_for(&PKCS_ED25519).unwrap());
        let request = CertificateParams::default().serialize_request(&own).unwrap().pem().unwrap();
        let keys = |key: &KeyPair| {
            let data = [(PUBLIC_KEY.to_owned(), ByteString(key.public_key_pem().into_bytes()))];
            public_key(&Secret { data: Some(data.into()), ..Secret::default() })
        };
        assert_eq!(csr::key_of(request.as_bytes()), keys(&own));
        assert_ne!(csr::key_of(request.as_bytes()), keys(&other));
        assert_eq!((csr::key_of(b"rubbish"), public_key(&Secret::default())), (None, None));
    }

    #[test]
    fn only_what_was_refused_is_asked_for_anew() {
        let slice = |status: &str, csr: &str| -> ResourceSlice {
            let conditions = json!([{ "type": "Authentication", "status": status }]);
            serde_json::from_value(json!({
                "apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
                "metadata": { "name": "rsv-a" }, "spec": { "csr": csr },
                "status": { "conditions": conditions },
            }))
            .unwrap()
        };
        assert_eq!(refused(&slice("Denied", "cmVx")), Some(b"req".to_vec()));
        assert_eq!(refused(&slice("Accepted", "cmVx")), None);
        assert_eq!(refused(&slice("Denied", "")), None, "Liqo is about to write it");
    }
}
