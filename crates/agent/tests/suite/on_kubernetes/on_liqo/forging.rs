//! Requests for certificates as somebody in Rome writes them who has Rome's Liqo key. Milan's Liqo signs whatever names
//! the user and the cluster first, so what names more must not come before it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sublet_agent::transport::Order;
use sublet_core::instruction::Duty;

use super::audited::is_audited;
use super::hostile::{
    Rogue, SLICE, SLICES, is_back_when_swept, refusals, replicator, slice, swept,
};
use super::world::{World, condition, is_gone, small, when};

const CLASS: &str = "sublet.io/reservation";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
/// The longest name of a slice.
const NAME_MAX: usize = 50;
/// What the policy says.
const LONGER: &str = "its cluster alone, and not longer";

/// The kind of a name in a subject.
const COMMON_NAME: u8 = 3;
const ORGANIZATION: u8 = 10;

/// What Liqo appends to the name of a slice to name its user.
pub(super) fn user_of(slice: &str) -> String {
    let mut hash = format!("{:x}", Sha256::digest("rome"));
    hash.truncate(12);
    format!("{slice}-{hash}")
}

/// As Rome's Liqo writes it, and with its key.
pub(super) fn asked_by_rome(world: &World<'_>, slice: &str) -> String {
    encoded(&lines(&honest(&key_of_rome(world), &user_of(slice))))
}

/// For another organization, and no longer than that: Liqo does not sign it, and what is wrong is told by the agent.
pub(super) fn of_another_cluster(user: &str) -> String {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    encoded(&lines(&request(&key, &[&[(ORGANIZATION, "roma")], &[(COMMON_NAME, user)]])))
}

fn key_of_rome(world: &World<'_>) -> KeyPair {
    let keys = world.rome.api.get("/api/v1/namespaces/liqo/secrets/authentication-keys").unwrap();
    let key = BASE64.decode(keys["data"]["privateKey"].as_str().unwrap()).unwrap();
    KeyPair::from_pem(&String::from_utf8(key).unwrap()).unwrap()
}

fn honest(key: &KeyPair, user: &str) -> Vec<u8> {
    request(key, &[&[(ORGANIZATION, "rome")], &[(COMMON_NAME, user)]])
}

/// With one group more.
fn forged(key: &KeyPair, user: &str) -> Vec<u8> {
    let (rome, turin) = ([(ORGANIZATION, "rome")], [(ORGANIZATION, "turin")]);
    request(key, &[&rome, &turin, &[(COMMON_NAME, user)]])
}

/// The shortest that names one group more: in one set, and of one letter.
fn shortest(key: &KeyPair, user: &str) -> Vec<u8> {
    let all = [(ORGANIZATION, "rome"), (ORGANIZATION, "x"), (COMMON_NAME, user)];
    request(key, &[&all])
}

/// As DER, with these sets of names.
fn request(key: &KeyPair, sets: &[&[(u8, &str)]]) -> Vec<u8> {
    let name = |(kind, text): &(u8, &str)| {
        node(0x30, &[node(6, &[0x55, 4, *kind]), node(0x13, text.as_bytes())].concat())
    };
    let set = |names: &&[(u8, &str)]| node(0x31, &names.iter().flat_map(name).collect::<Vec<_>>());
    let subject = node(0x30, &sets.iter().flat_map(set).collect::<Vec<_>>());
    let said = [node(2, &[0]), subject, key.subject_public_key_info(), node(0xa0, &[])];
    let said = node(0x30, &said.concat());
    let signature = node(3, &[vec![0], key.sign(&said).unwrap()].concat());
    let algorithm = node(0x30, &node(6, &[0x2b, 0x65, 0x70]));
    node(0x30, &[said, algorithm, signature].concat())
}

fn node(tag: u8, content: &[u8]) -> Vec<u8> {
    let [more, less] = u16::try_from(content.len()).unwrap().to_be_bytes();
    let length = match (more, less) {
        (0, 0..128) => vec![less],
        (0, _) => vec![0x81, less],
        _ => vec![0x82, more, less],
    };
    [vec![tag], length, content.to_vec()].concat()
}

/// In lines of 64 letters, as everybody writes it.
fn lines(der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap());
    framed(&lines.collect::<Vec<_>>().join("\n")) + "\n"
}

/// As short as Go reads it.
fn one_line(der: &[u8]) -> String {
    framed(&BASE64.encode(der))
}

fn framed(text: &str) -> String {
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----")
}

fn encoded(pem: &str) -> String {
    BASE64.encode(pem)
}

fn with_request(name: &str, pem: &str) -> Value {
    let mut asking = slice(name, CLASS, "2");
    asking["spec"]["csr"] = json!(encoded(pem));
    asking
}

/// Does a request in Milan name that group? Liqo keeps them, signed or not.
fn is_asked_for(world: &World<'_>, group: &str) -> bool {
    let requests = world.milan.api.get(REQUESTS).unwrap();
    requests["items"].as_array().unwrap().iter().any(|request| {
        let pem = BASE64.decode(request["spec"]["request"].as_str().unwrap()).unwrap();
        let pem = String::from_utf8(pem).unwrap();
        let text: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        BASE64.decode(text).unwrap().windows(group.len()).any(|part| part == group.as_bytes())
    })
}

/// With Rome's own key, so that nothing is wrong with it but what it adds.
pub(super) async fn whoever_asks_for_another_group_is_refused_before_liqo_signs(
    world: &mut World<'_>,
) {
    let before = swept(world).await;
    replicator(world).kill();
    let (rogue, key, known) = (Rogue::of_cluster(world), key_of_rome(world), refusals(world));
    let (order, user) = (world.milan.order("rsv-forger", &small()), user_of("rsv-forger"));
    world.instruct(&order);
    let forged = lines(&forged(&key, &user));
    let refused = rogue.create(world, &with_request("rsv-forger", &forged)).unwrap_err();
    assert!(refused.contains(LONGER), "{refused}");
    assert!(is_gone(&world.milan.api, &world.milan.slice("rsv-forger")));

    // Nor when it has a slice, and a certificate.
    rogue.create(world, &with_request("rsv-forger", &lines(&honest(&key, &user)))).unwrap();
    let is_let_in = |slice: &Value| condition(slice, "Authentication") == Some("Accepted");
    when(&world.milan.api, &world.milan.slice("rsv-forger"), is_let_in).await;
    assert!(is_asked_for(world, &user), "what Liqo has signed is seen");
    let change = json!({ "spec": { "csr": encoded(&forged) } }).to_string();
    let change = ["patch", SLICE, "rsv-forger", "--type=merge", "-p", &change];
    let refused = rogue.kubectl(world, &change).unwrap_err();
    assert!(refused.contains(LONGER), "{refused}");
    assert!(!is_asked_for(world, "turin"));
    assert!(refusals(world) >= known + 2);
    is_audited(world, "rome", SLICES, LONGER).await;
    every_length_is_measured(world, &rogue, &key);

    world.tell_end("rsv-forger");
    world.milan.is_gone(&Order { duty: Duty::Gone, ..order }).await;
    world.forget("rsv-forger");
    replicator(world).start().unwrap();
    is_back_when_swept(world, &before).await;
}

/// Of each name that a slice may have, the honest request gets in and no longer one does.
fn every_length_is_measured(world: &World<'_>, rogue: &Rogue, key: &KeyPair) {
    let names: Vec<String> = (1..=NAME_MAX).map(|length| "r".repeat(length)).collect();
    let asked = |pem: &dyn Fn(&str) -> String| {
        let all = names.iter().map(|name| with_request(name, &pem(&user_of(name))));
        json!({ "apiVersion": "v1", "kind": "List", "items": all.collect::<Vec<_>>() })
    };
    rogue.try_to_create(world, &asked(&|user| lines(&honest(key, user)))).unwrap();
    let refused = rogue.try_to_create(world, &asked(&|user| one_line(&shortest(key, user))));
    let refused = refused.unwrap_err();
    assert_eq!(refused.matches(LONGER).count(), NAME_MAX, "{refused}");
}
