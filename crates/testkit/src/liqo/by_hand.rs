//! What two agents would do, done by hand: the smallest objects that make Liqo link a requester and a
//! provider. An agent can be compared with it, step by step.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
use serde_json::{Value, json};

use super::KEYS;
use crate::api::Api;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::wait::{PATIENCE, wait_for};

/// Links two clusters with Liqo, as requester and provider: three things pass from one to the other,
/// the nonce, the offer of a tenant, and the identity that it gets.
pub fn link_by_hand(requester: &Cluster, provider: &Cluster) -> Result<(), Error> {
    let pair = Pair { requester, provider };
    let nonce = pair.nonce()?;
    let offer = pair.tenant_offer(&nonce)?;
    let identity = pair.tenant(&offer)?;
    pair.identity(&identity)
}

#[derive(Clone, Copy)]
struct Pair<'a> {
    requester: &'a Cluster,
    provider: &'a Cluster,
}

impl Pair<'_> {
    /// Provider: a nonce for this requester.
    fn nonce(self) -> Result<Value, Error> {
        let (api, requester) = (self.provider.api(), self.requester.name());
        tenant_namespace(&api, requester)?;
        let secret = secret("liqo-nonce", "liqo.io/nonce", requester, json!({}));
        create(&api, &secrets(requester), &secret)?;
        let path = format!("{}/liqo-nonce", secrets(requester));
        let made = when(&api, &path, |secret| secret["data"]["nonce"].is_string())?;
        Ok(made["data"]["nonce"].clone())
    }

    /// Requester: its key, a request for a certificate and the signed nonce.
    fn tenant_offer(self, nonce: &Value) -> Result<Value, Error> {
        let (api, provider) = (self.requester.api(), self.provider.name());
        tenant_namespace(&api, provider)?;
        let data = json!({ "nonce": nonce });
        let secret = secret("liqo-signed-nonce", "liqo.io/signed-nonce", provider, data);
        create(&api, &secrets(provider), &secret)?;
        let path = format!("{}/liqo-signed-nonce", secrets(provider));
        let signed = when(&api, &path, |secret| secret["data"]["signedNonce"].is_string())?;
        let keys = api.get(KEYS)?;
        Ok(json!({
            "clusterID": self.requester.name(),
            "publicKey": keys["data"]["publicKey"],
            "csr": BASE64.encode(csr(self.requester.name(), &keys["data"]["privateKey"])?),
            "signature": signed["data"]["signedNonce"],
        }))
    }

    /// Provider: the tenant; what Liqo makes of it is the requester's identity here.
    fn tenant(self, offer: &Value) -> Result<Value, Error> {
        let (api, requester) = (self.provider.api(), self.requester.name());
        let tenants = authentication(requester, "tenants");
        let tenant = json!({
            "apiVersion": "authentication.liqo.io/v1beta1",
            "kind": "Tenant",
            "metadata": { "name": requester, "labels": { "liqo.io/remote-cluster-id": requester } },
            "spec": offer,
        });
        create(&api, &tenants, &tenant)?;
        let signed = |tenant: &Value| tenant["status"]["authParams"]["signedCRT"].is_string();
        Ok(when(&api, &format!("{tenants}/{requester}"), signed)?["status"].clone())
    }

    /// Requester: the identity, with which its replicator reaches the provider.
    fn identity(self, tenant: &Value) -> Result<(), Error> {
        let (api, provider) = (self.requester.api(), self.provider.name());
        let (identities, name) =
            (authentication(provider, "identities"), format!("controlplane-{provider}"));
        let identity = json!({
            "apiVersion": "authentication.liqo.io/v1beta1",
            "kind": "Identity",
            "metadata": { "name": name, "labels": { "liqo.io/remote-cluster-id": provider } },
            "spec": {
                "clusterID": provider,
                "type": "ControlPlane",
                "authParams": tenant["authParams"],
                "namespace": tenant["tenantNamespace"],
            },
        });
        create(&api, &identities, &identity)?;
        let usable = |identity: &Value| identity["status"]["kubeconfigSecretRef"].is_object();
        when(&api, &format!("{identities}/{name}"), usable).map(drop)
    }
}

/// What is at a path when it is as wanted.
fn when(api: &Api, path: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value, Error> {
    Ok(wait_for(path, PATIENCE, || api.get(path).ok().filter(&wanted))?)
}

/// Creates it, unless it is there: both directions of a pair share a namespace.
fn create(api: &Api, path: &str, object: &Value) -> Result<(), Error> {
    match api.create(path, object) {
        Err(error) if error.status() == Some(409) => Ok(()),
        made => made.map(drop),
    }
}

fn tenant_namespace(api: &Api, peer: &str) -> Result<(), Error> {
    let labels = json!({ "liqo.io/remote-cluster-id": peer, "liqo.io/tenant-namespace": "true" });
    let metadata = json!({ "name": format!("liqo-tenant-{peer}"), "labels": labels });
    create(api, "/api/v1/namespaces", &json!({ "metadata": metadata }))
}

fn secret(name: &str, label: &str, peer: &str, data: Value) -> Value {
    let labels = json!({ label: "true", "liqo.io/remote-cluster-id": peer });
    json!({ "metadata": { "name": name, "labels": labels }, "data": data })
}

fn secrets(peer: &str) -> String {
    format!("/api/v1/namespaces/liqo-tenant-{peer}/secrets")
}

/// A collection of Liqo's in the namespace for a peer.
fn authentication(peer: &str, plural: &str) -> String {
    format!("/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-{peer}/{plural}")
}

/// A request for a certificate in a cluster's name, with the cluster's own key.
fn csr(cluster: &str, private_key: &Value) -> Result<String, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Certificate(error.to_string());
    let key = BASE64.decode(private_key.as_str().unwrap_or_default()).map_err(|e| failed(&e))?;
    let key = String::from_utf8(key).map_err(|e| failed(&e))?;
    let key = KeyPair::from_pkcs8_pem_and_sign_algo(&key, &PKCS_ED25519).map_err(|e| failed(&e))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "liqo.io");
    params.distinguished_name.push(DnType::CommonName, cluster);
    params.serialize_request(&key).and_then(|request| request.pem()).map_err(|e| failed(&e))
}
