//! A broker that lies, and those who would like to be another cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;
use sublet_agent::peering::liqo::link::{LinkState, Reason};
use sublet_agent::relay::{Content, Header, LinkId, LiqoKey, Nonce, Signer, TenantOffer, seal};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::Span;
use sublet_testkit::wait::Stopwatch;
use sublet_wire::v1::Message;

use super::relay::{inside, kind};
use super::world::{Town, World, clock, folder, pass};
use crate::on_kubernetes::logged::is_logged;
use crate::on_kubernetes::until::until;

const TENANT: &str =
    "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-rome/tenants/rome";
const IDENTITY: &str = "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-milan/\
                        identities/controlplane-milan";
const PINS: &str = "/api/v1/namespaces/sublet/configmaps";
const KEYS: &str = "/api/v1/namespaces/liqo/secrets/authentication-keys";

fn refused(town: &Town, reason: &str) -> u64 {
    town.counted(&format!("sublet_agent_letters_refused_total{{reason=\"{reason}\"}}"))
}

fn fresh_key() -> KeyPair {
    KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap()
}

/// What of a link changes when it is made anew.
fn standing(world: &World) -> [serde_json::Value; 4] {
    let (tenant, identity) =
        (world.milan.api.get(TENANT).unwrap(), world.rome.api.get(IDENTITY).unwrap());
    [
        tenant["metadata"]["uid"].clone(),
        tenant["spec"].clone(),
        identity["metadata"]["uid"].clone(),
        identity["spec"].clone(),
    ]
}

pub(super) async fn a_key_that_is_not_pinned_is_refused(world: &mut World) {
    // Loaded beforehand by Milan's operator, who was told another key.
    let pins = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "sublet-liqo-keys" },
        "data": { "rome": fresh_key().public_key_pem() },
    });
    world.milan.api.create(PINS, &pins).unwrap();
    let failures = || {
        let name = "sublet_agent_link_failures_total{reason=\"KeyNotPinned\"}";
        [refused(&world.milan, "pin"), world.milan.counted(name)]
    };
    let (clock, known) = (Stopwatch::start(), failures());
    let is_so = |state: LinkState, is_final: bool| match state {
        LinkState::Pending(why) => !is_final && why.obstacle == Some(Reason::KeyNotPinned),
        LinkState::Failed(trouble) => {
            let said = trouble.to_string();
            assert!(said.contains("sublet-liqo-keys") && said.contains("SHA256:"), "{said}");
            trouble.reason.word() == "KeyNotPinned"
        }
        LinkState::Ready => panic!("linked with a key that is not pinned"),
    };
    for is_final in [false, true] {
        until("both to say why", || async {
            let lends = world.milan.state(Side::Provider, &world.rome).await;
            let borrows = world.rome.state(Side::Requester, &world.milan).await;
            (is_so(lends, is_final) && is_so(borrows, is_final)).then_some(())
        })
        .await;
        eprintln!("not pinned, said after {:?}", clock.elapsed());
        // As long as a link is given before what is in its way is called a failure.
        pass(Span::from_secs(20));
    }
    assert!(failures().iter().zip(known).all(|(now, known)| *now > known));
    assert!(world.milan.api.get(TENANT).is_err());

    let public = world.rome.api.get(KEYS).unwrap()["data"]["publicKey"].clone();
    let public = BASE64.decode(public.as_str().unwrap()).unwrap();
    let change = json!({ "data": { "rome": String::from_utf8(public).unwrap() } });
    world.milan.api.patch(&format!("{PINS}/sublet-liqo-keys"), &change).unwrap();
    world.linked().await;
    a_key_is_pinned_as_it_is_first_seen(world).await;
    world.unused().await;
    world.over().await;
}

/// Rome's operator has loaded none, and is told which one it is now.
async fn a_key_is_pinned_as_it_is_first_seen(world: &World) {
    let public = world.milan.api.get(KEYS).unwrap()["data"]["publicKey"].clone();
    let public = BASE64.decode(public.as_str().unwrap()).unwrap();
    let pinned = world.rome.api.get(&format!("{PINS}/sublet-liqo-keys")).unwrap();
    let pinned = pinned["data"]["milan"].as_str().unwrap().trim().to_owned();
    assert_eq!(pinned, String::from_utf8(public).unwrap().trim());
    let events = "/apis/events.k8s.io/v1/namespaces/sublet/events";
    until("a word about the key", || async {
        let found = world.rome.api.get(events).ok()?;
        let mut all = found["items"].as_array()?.iter();
        let says = |event: &serde_json::Value| {
            let note = event["note"].as_str().unwrap_or_default();
            event["reason"] == "KeyPinned" && note.contains("of milan is SHA256:")
        };
        all.any(says).then_some(())
    })
    .await;
}

pub(super) async fn letters_of_an_earlier_link_do_nothing(world: &mut World) {
    world.linked().await;
    world.unused().await;
    until("the end of the first link", || async {
        world.relay.sent().iter().any(|letter| kind(letter) == "Unlinked").then_some(())
    })
    .await;
    let old = world.relay.sent();
    world.over().await;

    // Before, while and after there is another one.
    old.iter().cloned().for_each(|letter| world.relay.inject(letter));
    world.linked().await;
    old.iter().rev().cloned().for_each(|letter| world.relay.inject(letter));
    world.linked().await;
    let before = standing(world);
    let stale = || refused(&world.rome, "stale") + refused(&world.milan, "stale");
    let known = stale();
    let opened = |town: &Town| {
        let page = town.metrics.page();
        let of_letters = page.lines().filter(|line| line.contains("_letters_"));
        of_letters.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok()).sum::<usize>()
    };
    let (rome, milan) = (opened(&world.rome), opened(&world.milan));
    for _ in 0..3 {
        old.iter().cloned().for_each(|letter| world.relay.inject(letter));
    }
    let to = |name: &str| 3 * old.iter().filter(|letter| letter.to == name).count();
    until("all of them to be judged", || async {
        let all =
            opened(&world.rome) >= rome + to("rome") && opened(&world.milan) >= milan + to("milan");
        all.then_some(())
    })
    .await;
    world.linked().await;
    assert_eq!(standing(world), before);
    assert!(stale() > known);
    is_logged(&["WARN", "a letter is refused", "reason=\"stale\""]).await;
    world.unused().await;
    world.over().await;
}

/// Writes letters as one of the two to the other, with somebody's certificate and somebody's Liqo key.
struct Forger<'a> {
    poses_as: &'a str,
    certificate: &'a std::path::Path,
    key: &'a KeyPair,
    broker_says: &'a str,
}

impl Forger<'_> {
    fn write(&self, link: &LinkId, content: Content) -> Message {
        let cluster = |name: &str| name.parse::<ClusterId>().unwrap();
        let (to, slot) = match self.poses_as {
            "rome" => ("milan", "link-requester"),
            _ => ("rome", "link-provider"),
        };
        let header = Header {
            from: cluster(self.poses_as),
            to: cluster(to),
            requester: cluster("rome"),
            link: link.clone(),
            expires_at: clock().checked_add(Span::from_secs(120)).unwrap(),
        };
        let liqo = LiqoKey::from_pem(self.key.serialize_pem().as_bytes()).unwrap();
        let signer = Signer::new(self.certificate.to_owned());
        let content = signer.write(&header.letter(content), &liqo).unwrap();
        let (from, to) = (self.broker_says.to_owned(), to.to_owned());
        Message { from, to, slot: slot.to_owned(), content, ttl: None }
    }
}

fn offer_of(key: &KeyPair, name: &str) -> TenantOffer {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "liqo.io");
    params.distinguished_name.push(DnType::CommonName, name);
    TenantOffer {
        public_key: key.public_key_pem().parse().unwrap(),
        csr: params.serialize_request(key).unwrap().pem().unwrap(),
        signature: vec![7; 64],
        seal_key: seal::Key::generate().unwrap().public(),
    }
}

/// Whoever would like to be `name` lacks its certificate, its Liqo key, or the broker's word.
async fn posers_are_refused(
    world: &World,
    (name, key): (&str, &KeyPair),
    (reader, letters): (&Town, &[(LinkId, Content)]),
) {
    let venice = folder(&world.authority, "venice");
    let stranger = folder(&crate::authority::Authority::new(), name);
    // Whoever has the authority's key can have this one.
    let own = folder(&world.authority, name);
    let cases = [
        ("name", venice.path(), name),
        ("certificate", stranger.path(), name),
        ("sender", own.path(), "venice"),
        ("pin", own.path(), name),
    ];
    for (reason, certificate, broker_says) in cases {
        let forger = Forger { poses_as: name, certificate, key, broker_says };
        for (link, content) in letters {
            let known = refused(reader, reason);
            world.relay.inject(forger.write(link, content.clone()));
            let what = format!("a refusal of {name}'s {} for {reason}", content.kind());
            until(&what, || async { (refused(reader, reason) > known).then_some(()) }).await;
        }
        is_logged(&["WARN", "a letter is refused", &format!("reason=\"{reason}\"")]).await;
    }
}

/// Rome would sign another nonce, or go somewhere else.
async fn nobody_poses_as_milan(world: &World, link: &LinkId) {
    let signed = "/api/v1/namespaces/liqo-tenant-milan/secrets/liqo-signed-nonce";
    let before = world.rome.api.get(signed).unwrap()["data"].clone();
    let (rome, milan) = ("rome".parse().unwrap(), "milan".parse().unwrap());
    let nonce: Nonce = BASE64.encode([7; 64]).parse().unwrap();
    let header = Header {
        from: milan,
        to: rome,
        requester: "rome".parse().unwrap(),
        link: link.clone(),
        expires_at: clock().checked_add(Span::from_secs(120)).unwrap(),
    };
    let access = json!({ "signedCRT": "", "apiServer": "https://127.0.0.1:1", "ca": "" });
    let lock = seal::Lock(seal::Key::generate().unwrap().public());
    let sealed = lock.seal(access.to_string().as_bytes(), &header).unwrap();
    let letters = [
        (LinkId::derive(&header.to, &header.from, &nonce), Content::Nonce { nonce }),
        (link.clone(), Content::IdentityOffer { sealed }),
    ];
    posers_are_refused(world, ("milan", &fresh_key()), (&world.rome, &letters)).await;
    assert_eq!(world.rome.api.get(signed).unwrap()["data"], before);
}

pub(super) async fn a_poser_is_nobody(world: &mut World) {
    world.linked().await;
    let before = standing(world);
    let link: LinkId =
        world.milan.api.get(TENANT).unwrap()["metadata"]["annotations"]["sublet.io/link"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
    let own = fresh_key();
    let offer = Content::TenantOffer(offer_of(&own, "rome"));
    let letters = [(link.clone(), offer), (link.clone(), Content::Unlink)];
    posers_are_refused(world, ("rome", &own), (&world.milan, &letters)).await;
    nobody_poses_as_milan(world, &link).await;
    // A letter of Milan's own, brought back to it in Rome's name or in its own.
    let own = world.relay.sent().into_iter().find(|letter| letter.from == "milan").unwrap();
    for from in ["rome", "milan"] {
        let known = refused(&world.milan, "misdirected");
        let (from, to) = (from.to_owned(), "milan".to_owned());
        world.relay.inject(Message { from, to, ..own.clone() });
        until("a refusal of what is for somebody else", || async {
            (refused(&world.milan, "misdirected") > known).then_some(())
        })
        .await;
    }
    // What is changed on the way is nothing any more.
    let mut changed = world.relay.sent().into_iter().find(|letter| letter.to == "milan").unwrap();
    let text = inside(&changed).to_string().replace("TenantOffer", "Unlink");
    let mut envelope: serde_json::Value = serde_json::from_str(&changed.content).unwrap();
    envelope["signed"] = json!(BASE64.encode(text));
    changed.content = envelope.to_string();
    let known = refused(&world.milan, "signature");
    world.relay.inject(changed);
    until("a refusal of what was changed", || async {
        (refused(&world.milan, "signature") > known).then_some(())
    })
    .await;
    world.linked().await;
    assert_eq!(standing(world), before);
    world.unused().await;
    world.over().await;
}

pub(super) async fn what_liqo_objects_to_is_said_to_both(world: &mut World) {
    // Rome itself, with its own keys, but a request that Liqo does not take.
    let known = refused(&world.milan, "csr");
    let secret = world.rome.api.get(KEYS).unwrap()["data"]["privateKey"].clone();
    let pem = String::from_utf8(BASE64.decode(secret.as_str().unwrap()).unwrap()).unwrap();
    let key = KeyPair::from_pem(&pem).unwrap();
    let lends = world.milan.state(Side::Provider, &world.rome).await;
    assert_ne!(lends, LinkState::Ready);
    let nonce = until("the nonce", || async {
        let asked = world.relay.sent().into_iter().find(|letter| kind(letter) == "Nonce")?;
        inside(&asked)["content"]["nonce"].as_str()?.parse::<Nonce>().ok()
    })
    .await;
    let (rome, milan) = ("rome".parse().unwrap(), "milan".parse().unwrap());
    let link = LinkId::derive(&rome, &milan, &nonce);
    let certificate = world.rome.credentials.path();
    let forger = Forger { poses_as: "rome", certificate, key: &key, broker_says: "rome" };
    let signature = rcgen::SigningKey::sign(&key, nonce.as_str().as_bytes()).unwrap();
    for (offer, reason, said) in [
        (offer_of(&key, "rome"), "SignatureRefused", "BadSignature"),
        (TenantOffer { signature, ..offer_of(&key, "venice") }, "CsrRefused", "InvalidCsr"),
    ] {
        world.relay.inject(forger.write(&link, Content::TenantOffer(offer)));
        until(&format!("{reason} at Milan"), || async {
            match world.milan.state(Side::Provider, &world.rome).await {
                LinkState::Pending(why) => why.to_string().starts_with(reason).then_some(()),
                LinkState::Failed(trouble) => (trouble.reason.word() == reason).then_some(()),
                LinkState::Ready => None,
            }
        })
        .await;
        until(&format!("{said} to Rome"), || async {
            let mut all = world.relay.sent().into_iter();
            all.find(|letter| inside(letter)["content"]["reason"] == *said).map(drop)
        })
        .await;
    }
    assert!(refused(&world.milan, "csr") > known);
    // The right one puts it right.
    world.linked().await;
    world.unused().await;
    world.over().await;
}
