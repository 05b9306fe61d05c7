//! What two agents would do, done by hand: the smallest objects that make Liqo link a requester and a
//! provider, ask for a slice and grant it. An agent can be compared with it, step by step.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
use serde_json::{Value, json};
use sublet_testkit::{Api, Cluster, wait_for};

pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// A class that Liqo does not know, so that it leaves the decision to whoever does.
const CLASS: &str = "sublet.test/reservation";
const KEYS: &str = "/api/v1/namespaces/liqo/secrets/authentication-keys";

/// A requester and a provider.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) requester: &'a Cluster,
    pub(super) provider: &'a Cluster,
}

/// What is at a path when it is as wanted.
pub(super) fn when(api: &Api, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    wait_for(path, PATIENCE, || api.get(path).ok().filter(&wanted)).unwrap()
}

/// Waits until there is nothing at a path.
pub(super) fn until_gone(api: &Api, path: &str) {
    let gone = || api.get(path).is_err_and(|error| error.status() == Some(404));
    wait_for(&format!("the end of {path}"), PATIENCE, || gone().then_some(())).unwrap();
}

/// The status of a condition.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}

impl Pair<'_> {
    /// Links the two, as requester and provider: three things pass from one to the other, the nonce,
    /// the offer of a tenant, and the identity that it gets.
    pub(super) fn link(self) {
        let nonce = self.nonce();
        let offer = self.tenant_offer(&nonce);
        let identity = self.tenant(&offer);
        self.identity(&identity);
    }

    /// Provider: a nonce for this requester.
    fn nonce(self) -> Value {
        let (api, requester) = (self.provider.api(), self.requester.name());
        tenant_namespace(&api, requester);
        let secret = secret("liqo-nonce", "liqo.io/nonce", requester, json!({}));
        api.create(&secrets(requester), &secret).unwrap();
        let path = format!("{}/liqo-nonce", secrets(requester));
        when(&api, &path, |secret| secret["data"]["nonce"].is_string())["data"]["nonce"].clone()
    }

    /// Requester: its key, a request for a certificate and the signed nonce.
    fn tenant_offer(self, nonce: &Value) -> Value {
        let (api, provider) = (self.requester.api(), self.provider.name());
        tenant_namespace(&api, provider);
        let data = json!({ "nonce": nonce });
        let secret = secret("liqo-signed-nonce", "liqo.io/signed-nonce", provider, data);
        api.create(&secrets(provider), &secret).unwrap();
        let path = format!("{}/liqo-signed-nonce", secrets(provider));
        let signed = when(&api, &path, |secret| secret["data"]["signedNonce"].is_string());
        let keys = api.get(KEYS).unwrap();
        json!({
            "clusterID": self.requester.name(),
            "publicKey": keys["data"]["publicKey"],
            "csr": BASE64.encode(csr(self.requester.name(), &keys["data"]["privateKey"])),
            "signature": signed["data"]["signedNonce"],
        })
    }

    /// Provider: the tenant; what Liqo makes of it is the requester's identity here.
    fn tenant(self, offer: &Value) -> Value {
        let (api, requester) = (self.provider.api(), self.requester.name());
        let tenants = liqo("authentication", requester, "tenants");
        let tenant = json!({
            "apiVersion": "authentication.liqo.io/v1beta1",
            "kind": "Tenant",
            "metadata": { "name": requester, "labels": { "liqo.io/remote-cluster-id": requester } },
            "spec": offer,
        });
        api.create(&tenants, &tenant).unwrap();
        let signed = |tenant: &Value| tenant["status"]["authParams"]["signedCRT"].is_string();
        when(&api, &format!("{tenants}/{requester}"), signed)["status"].clone()
    }

    /// Requester: the identity, with which its replicator reaches the provider.
    fn identity(self, tenant: &Value) {
        let (api, provider) = (self.requester.api(), self.provider.name());
        let (identities, name) =
            (liqo("authentication", provider, "identities"), format!("controlplane-{provider}"));
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
        api.create(&identities, &identity).unwrap();
        let usable = |identity: &Value| identity["status"]["kubeconfigSecretRef"].is_object();
        when(&api, &format!("{identities}/{name}"), usable);
    }

    /// Requester: a slice of so much.
    pub(super) fn ask(self, name: &str, amounts: &Value) {
        let provider = self.provider.name();
        let slice = json!({
            "apiVersion": "authentication.liqo.io/v1beta1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": name,
                "labels": {
                    "liqo.io/replication": "true",
                    "liqo.io/remoteID": provider,
                    "liqo.io/remote-cluster-id": provider,
                },
                "annotations": { "liqo.io/create-virtual-node": "true" },
            },
            "spec": { "class": CLASS, "providerClusterID": provider, "resources": amounts },
        });
        self.requester.api().create(&slices(provider), &slice).unwrap();
    }

    /// Where the requester's own slice is.
    pub(super) fn slice(self, name: &str) -> String {
        format!("{}/{name}", slices(self.provider.name()))
    }

    /// Where the provider's copy of it is.
    pub(super) fn replica(self, name: &str) -> String {
        format!("{}/{name}", slices(self.requester.name()))
    }

    /// Where the provider's quotas for this requester are.
    pub(super) fn quotas(self) -> String {
        liqo("offloading", self.requester.name(), "quotas")
    }

    /// Where the requester's virtual nodes at this provider are.
    pub(super) fn virtual_nodes(self) -> String {
        liqo("offloading", self.provider.name(), "virtualnodes")
    }

    /// Provider: grants a slice so much, beside the conditions that Liqo has set. Somebody may write
    /// between look and patch, and then it is done again.
    pub(super) fn grant(self, name: &str, amounts: &Value) {
        let (api, path) = (self.provider.api(), self.replica(name));
        let accepted = json!({
            "type": "Resources",
            "status": "Accepted",
            "reason": "ResourceSliceResourcesAccepted",
            "message": "reserved",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let grant = || {
            let slice = api.get(&path).ok()?;
            let found = slice["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let others = found.into_iter().filter(|condition| condition["type"] != "Resources");
            let conditions: Vec<_> = others.chain([accepted.clone()]).collect();
            let granted = json!({
                "metadata": { "resourceVersion": slice["metadata"]["resourceVersion"] },
                "status": {
                    "resources": amounts,
                    "nodeLabels": { CLASS: name },
                    "conditions": conditions,
                },
            });
            match api.patch(&format!("{path}/status"), &granted) {
                Err(error) if error.status() == Some(409) => None,
                done => Some(done.unwrap()),
            }
        };
        wait_for("a grant", PATIENCE, grant).unwrap();
    }
}

fn tenant_namespace(api: &Api, peer: &str) {
    let labels = json!({ "liqo.io/remote-cluster-id": peer, "liqo.io/tenant-namespace": "true" });
    let metadata = json!({ "name": format!("liqo-tenant-{peer}"), "labels": labels });
    api.create("/api/v1/namespaces", &json!({ "metadata": metadata })).unwrap();
}

fn secret(name: &str, label: &str, peer: &str, data: Value) -> Value {
    let labels = json!({ label: "true", "liqo.io/remote-cluster-id": peer });
    json!({ "metadata": { "name": name, "labels": labels }, "data": data })
}

fn secrets(peer: &str) -> String {
    format!("/api/v1/namespaces/liqo-tenant-{peer}/secrets")
}

fn slices(peer: &str) -> String {
    liqo("authentication", peer, "resourceslices")
}

/// A collection of Liqo's in the namespace for a peer.
fn liqo(group: &str, peer: &str, plural: &str) -> String {
    format!("/apis/{group}.liqo.io/v1beta1/namespaces/liqo-tenant-{peer}/{plural}")
}

/// A request for a certificate in a cluster's name, with the cluster's own key.
fn csr(cluster: &str, private_key: &Value) -> String {
    let key = BASE64.decode(private_key.as_str().unwrap()).unwrap();
    let key = String::from_utf8(key).unwrap();
    let key = KeyPair::from_pkcs8_pem_and_sign_algo(&key, &PKCS_ED25519).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "liqo.io");
    params.distinguished_name.push(DnType::CommonName, cluster);
    params.serialize_request(&key).unwrap().pem().unwrap()
}
