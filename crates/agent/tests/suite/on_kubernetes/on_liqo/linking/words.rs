//! What Liqo says of a tenant, in its own words. It says it in Events alone, and promises nothing about them: a Liqo that
//! says it otherwise is to be noticed here, and not by people whose links fail without a reason.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519, SanType, SigningKey as _,
};
use serde_json::{Value, json};
use sublet_agent::peering::liqo::link::{LIQO_WORDS, Reason, of_event};
use sublet_testkit::Api;
use sublet_testkit::binaries::{Binaries, Kit, Program};

use super::world::World;
use crate::on_kubernetes::until::until;

/// A cluster that nobody here has anything to do with.
const NAMESPACE: &str = "/api/v1/namespaces/liqo-tenant-turin";
const TENANTS: &str = "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-turin/tenants";

/// The latest that Liqo said of the tenant, as we understand it.
fn said(api: &Api, uid: &Value) -> Vec<Reason> {
    let events = api.get(&format!("{NAMESPACE}/events")).unwrap();
    let about = |event: &&Value| event["involvedObject"]["uid"] == *uid;
    let reasons = events["items"].as_array().unwrap().iter().filter(about);
    let known = |event: &Value| of_event(event["reason"].as_str()?, event["message"].as_str()?);
    reasons.filter_map(known).collect()
}

/// A request for a certificate of this cluster, and one of the same key that says it otherwise.
fn requests(key: &KeyPair, cluster: &str) -> [String; 2] {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "liqo.io");
    params.distinguished_name.push(DnType::CommonName, cluster);
    let plain = params.clone();
    params.subject_alt_names = vec![SanType::DnsName("another".try_into().unwrap())];
    [plain, params]
        .map(|params| BASE64.encode(params.serialize_request(key).unwrap().pem().unwrap()))
}

/// Makes it again, with this in place of what was there: so it has Events of its own.
async fn tenant(api: &Api, spec: &Value) -> Value {
    let path = format!("{TENANTS}/turin");
    drop(api.delete(&path));
    until("the end of the tenant before", || async { api.get(&path).is_err().then_some(()) }).await;
    let tenant = json!({
        "apiVersion": "authentication.liqo.io/v1beta1", "kind": "Tenant",
        "metadata": { "name": "turin", "labels": { "liqo.io/remote-cluster-id": "turin" } },
        "spec": spec,
    });
    api.create(TENANTS, &tenant).unwrap()["metadata"]["uid"].clone()
}

async fn is_said(api: &Api, spec: &Value, wanted: Reason) {
    let uid = tenant(api, spec).await;
    let what = format!("{wanted:?} by Liqo's own word");
    until(&what, || async { said(api, &uid).contains(&wanted).then_some(()) }).await;
}

/// Each refusal that a person can do something about is provoked.
pub(super) async fn what_liqo_says_of_a_tenant_is_understood(world: &mut World) {
    every_word_that_we_know_is_one_of_liqos();
    let api = &world.milan.api;
    let labels =
        json!({ "liqo.io/remote-cluster-id": "turin", "liqo.io/tenant-namespace": "true" });
    let namespace = json!({ "metadata": { "name": "liqo-tenant-turin", "labels": labels } });
    api.create("/api/v1/namespaces", &namespace).unwrap();
    let [key, other] = [(); 2].map(|()| KeyPair::generate_for(&PKCS_ED25519).unwrap());
    let [request, another] = requests(&key, "turin");
    let mut spec = json!({
        "clusterID": "turin", "csr": request, "signature": BASE64.encode([0; 64]),
        "publicKey": BASE64.encode(key.public_key_pem()),
    });
    is_said(api, &spec, Reason::LiqoSilent).await;
    let labels = json!({ "liqo.io/remote-cluster-id": "turin", "liqo.io/nonce": "true" });
    let nonce = json!({ "metadata": { "name": "liqo-nonce", "labels": labels } });
    api.create(&format!("{NAMESPACE}/secrets"), &nonce).unwrap();
    let path = format!("{NAMESPACE}/secrets/liqo-nonce");
    let made = || async { api.get(&path).ok()?["data"]["nonce"].as_str().map(str::to_owned) };
    let nonce = BASE64.decode(until("a nonce", made).await).unwrap();
    is_said(api, &spec, Reason::SignatureRefused).await;
    spec["signature"] = json!(BASE64.encode(key.sign(&nonce).unwrap()));
    for wrong in [requests(&key, "venice"), requests(&other, "turin")] {
        spec["csr"] = json!(wrong[0]);
        is_said(api, &spec, Reason::CsrRefused).await;
    }
    // It is accepted once, and then asks for another certificate.
    spec["csr"] = json!(request);
    tenant(api, &spec).await;
    let path = format!("{TENANTS}/turin");
    let accepted = || async {
        api.get(&path).ok()?["status"]["authParams"]["signedCRT"].is_string().then_some(())
    };
    until("that it is accepted", accepted).await;
    spec["csr"] = json!(another);
    is_said(api, &spec, Reason::CsrChanged).await;
    leave(world).await;
}

/// The rest, which only an outage would bring about, is in Liqo's program at least.
fn every_word_that_we_know_is_one_of_liqos() {
    let program =
        Binaries::of_this_machine(Kit::Liqo).unwrap().path(Program::LiqoControllerManager);
    let program = std::fs::read(program).unwrap();
    let program = String::from_utf8_lossy(&program);
    for (word, _) in LIQO_WORDS {
        assert!(program.contains(word), "Liqo does not say {word} any more");
    }
    assert!(!program.contains("SignatureVerificationFailedForSublet"), "it is not just anything");
}

async fn leave(world: &mut World) {
    let api = &world.milan.api;
    api.delete(&format!("{TENANTS}/turin")).unwrap();
    api.delete(NAMESPACE).unwrap();
    until("the end of the namespace", || async { api.get(NAMESPACE).is_err().then_some(()) }).await;
    drop(api.delete("/apis/core.liqo.io/v1beta1/foreignclusters/turin"));
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    for request in api.get(requests).unwrap()["items"].as_array().unwrap() {
        api.delete(&format!("{requests}/{}", request["metadata"]["name"].as_str().unwrap()))
            .unwrap();
    }
    world.over().await;
}
