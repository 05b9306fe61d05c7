//! Keys and certificates that become others, by themselves or on purpose.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair,
    date_time_ymd,
};
use serde_json::{Value, json};
use sublet_agent::peering::liqo::link::{LinkState, Reason};
use sublet_core::instruction::Side;
use sublet_testkit::Api;
use sublet_testkit::wait::Stopwatch;

use super::repairs::{IDENTITY, TENANT, removed, replicated};
use super::world::{Town, World};
use crate::on_kubernetes::until::until;

const KEYS: &str = "/api/v1/namespaces/liqo/secrets/authentication-keys";
pub(in super::super) const PINS: &str = "/api/v1/namespaces/sublet/configmaps/sublet-liqo-keys";

/// Gives a cluster another Liqo key; the public one, and the Secret's data.
pub(in super::super) fn another_key(api: &Api) -> (String, Value) {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let public = key.public_key_pem().replace("\r\n", "\n");
    let data = json!({
        "privateKey": BASE64.encode(key.serialize_pem().replace("\r\n", "\n")),
        "publicKey": BASE64.encode(&public),
    });
    api.patch(KEYS, &json!({ "data": data })).unwrap();
    (public, data)
}

fn is_refused(state: &LinkState) -> bool {
    match state {
        LinkState::Pending(why) => why.obstacle == Some(Reason::KeyNotPinned),
        LinkState::Failed(trouble) => trouble.reason == Reason::KeyNotPinned,
        LinkState::Ready => false,
    }
}

fn refused_pins(town: &Town) -> u64 {
    town.counted("sublet_agent_letters_refused_total{reason=\"pin\"}")
}

fn certificate(world: &World) -> Value {
    world.rome.api.get(IDENTITY).unwrap()["spec"]["authParams"]["signedCRT"].clone()
}

/// One of Rome's for Milan that has most of its time behind it.
fn aged_certificate(world: &World) -> String {
    let private = world.rome.api.get(KEYS).unwrap()["data"]["privateKey"].clone();
    let private = BASE64.decode(private.as_str().unwrap()).unwrap();
    let key = KeyPair::from_pem(&String::from_utf8(private).unwrap()).unwrap();
    let named = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params
    };
    let signs = std::fs::read_to_string(world.milan.ca.with_extension("key")).unwrap();
    let issuer = Issuer::new(named("testkit CA"), KeyPair::from_pem(&signs).unwrap());
    let mut params = named("rome");
    params.distinguished_name.push(DnType::OrganizationName, "liqo.io");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2034, 1, 1));
    params.signed_by(&key, &issuer).unwrap().pem()
}

/// Liqo renews a certificate of which two thirds of the time are over. It is given one of the same key
/// that is as old as that, as if time had passed.
pub(super) async fn a_certificate_that_liqo_renews_changes_nothing_else(world: &mut World) {
    world.linked().await;
    replicated(world, "rsv-before").await;
    let (before, letters) = (certificate(world), world.relay.sent().len());
    let old = BASE64.encode(aged_certificate(world));
    let aged = json!({ "status": { "authParams": { "signedCRT": old } } });
    let clock = Stopwatch::start();
    world.milan.api.patch(&format!("{TENANT}/status"), &aged).unwrap();
    until("the renewed certificate in Rome", || async {
        let now = certificate(world);
        (now != before && now != json!(old)).then_some(())
    })
    .await;
    eprintln!("renewed after {:?}", clock.elapsed());
    let renewed = certificate(world);
    let states = [
        world.rome.state(Side::Requester, &world.milan).await,
        world.milan.state(Side::Provider, &world.rome).await,
    ];
    assert_eq!(states, [LinkState::Ready, LinkState::Ready]);
    assert_eq!(world.relay.sent().len(), letters, "nobody has to be asked");
    // Both agents begin anew, and leave it as it is.
    world.rome.restart(None).await;
    world.milan.restart(None).await;
    world.linked().await;
    replicated(world, "rsv-after").await;
    assert_eq!(certificate(world), renewed);
    removed(world, &["rsv-before", "rsv-after"]).await;
    world.unused().await;
    world.over().await;
}

/// What the requester has goes on working; what the provider says from then on is not believed.
pub(super) async fn new_keys_of_the_provider_are_taken_when_the_pin_says_so(world: &mut World) {
    world.linked().await;
    let before = certificate(world);
    let known = refused_pins(&world.rome);
    let (public, _) = another_key(&world.milan.api);
    replicated(world, "rsv-still").await;
    // Milan has to ask for something again, with its new key.
    world.milan.api.delete(TENANT).unwrap();
    until("Rome to refuse what Milan says", || async {
        world.milan.state(Side::Provider, &world.rome).await;
        (refused_pins(&world.rome) > known).then_some(())
    })
    .await;
    assert_eq!(world.rome.state(Side::Requester, &world.milan).await, LinkState::Ready);
    assert_eq!(certificate(world), before, "nothing that came from that key was written");
    assert_ne!(world.milan.state(Side::Provider, &world.rome).await, LinkState::Ready);

    // The operator of Rome has talked to the one of Milan.
    let clock = Stopwatch::start();
    world.rome.api.patch(PINS, &json!({ "data": { "milan": public } })).unwrap();
    world.linked().await;
    eprintln!("with the provider's new key, it was linked again after {:?}", clock.elapsed());
    replicated(world, "rsv-again").await;
    removed(world, &["rsv-still", "rsv-again"]).await;
    world.unused().await;
    world.over().await;
}

pub(super) async fn new_keys_of_the_requester_are_taken_when_the_pin_says_so(world: &mut World) {
    world.linked().await;
    let old = certificate(world);
    let (public, data) = another_key(&world.rome.api);
    until("the requester to be refused", || async {
        is_refused(&world.rome.state(Side::Requester, &world.milan).await).then_some(())
    })
    .await;
    assert!(refused_pins(&world.milan) > 0);
    let tenant = world.milan.api.get(TENANT).unwrap();
    assert_ne!(tenant["spec"]["publicKey"], data["publicKey"]);

    // The operator of Milan has talked to the one of Rome.
    let clock = Stopwatch::start();
    world.milan.api.patch(PINS, &json!({ "data": { "rome": public } })).unwrap();
    until("the new certificate", || async {
        let now = world.rome.api.get(IDENTITY).ok()?;
        (now["spec"]["authParams"]["signedCRT"] != old).then_some(())
    })
    .await;
    world.linked().await;
    eprintln!("with its new key, it was linked again after {:?}", clock.elapsed());
    let tenant = world.milan.api.get(TENANT).unwrap();
    assert_eq!(tenant["spec"]["publicKey"], data["publicKey"]);
    replicated(world, "rsv-new-key").await;
    removed(world, &["rsv-new-key"]).await;
    world.unused().await;
    world.over().await;
    // What was pinned for it stays.
    assert!(world.milan.api.get(PINS).unwrap()["data"]["rome"].is_string());
    assert!(world.rome.api.get(&Town::secret("milan", "liqo-signed-nonce")).is_err());
}
