//! A broker that lies, with everything it has: other clusters' letters, certificates of its own
//! authority, and certificates of ours that are not an agent's. Each lie has its own reason.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::{any, prop_assert, prop_assert_eq, prop_assume};
use proptest::sample::Index;
use proptest::test_runner::TestRunner;
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use serde_json::{Value, json};
use sublet_core::time::{Span, Time};
use sublet_wire::v1::Message;

use super::stage::{
    Authority, Cluster, NOW, Use, answering, asking, forged, id, link, meddled, nonce, offer,
};
use crate::relay::seal::Key;
use crate::relay::{Content, LinkId, Nonce, Signer, Verifier};

struct Scene {
    authority: Authority,
    rome: Cluster,
    milan: Cluster,
    turin: Cluster,
}

fn scene() -> Scene {
    let authority = Authority::new("agents");
    let [rome, milan, turin] = ["rome", "milan", "turin"].map(|name| authority.cluster(name));
    Scene { authority, rome, milan, turin }
}

#[test]
fn who_sent_it_and_whom_it_is_for_cannot_be_swapped() {
    let Scene { rome, milan, turin, .. } = scene();
    let message = rome.write(&asking(Content::Call));
    let said = Message { from: "turin".into(), ..message.clone() };
    assert_eq!(milan.open(&said), Err("sender"));
    let lost = Message { to: "turin".into(), ..message.clone() };
    assert_eq!(turin.open(&lost), Err("misdirected"));
    for (field, value) in [("from", "turin"), ("to", "turin"), ("requester", "milan")] {
        let forged = forged(&message, |signed| signed[field] = value.into());
        let reason = if field == "from" { "name" } else { "signature" };
        assert_eq!(milan.open(&forged), Err(reason), "{field}");
    }
}

#[test]
fn nothing_of_what_was_signed_can_be_changed() {
    let Scene { rome, milan, .. } = scene();
    let key = Key::generate().unwrap();
    let message = rome.write(&asking(offer(&rome, &key)));
    let other = Key::generate().unwrap();
    let seal_key = serde_json::to_value(other.public()).unwrap();
    let changes: [(&str, Value); 6] = [
        ("/link", json!("aaaaaaaaaaaaaaaaaaaa")),
        ("/expiresAt", json!(NOW.as_millis() + 1)),
        ("/liqoKey", json!(milan.liqo.public().to_pem())),
        ("/content/publicKey", json!(milan.liqo.public().to_pem())),
        ("/content/sealKey", seal_key),
        ("/content/csr", json!("another")),
    ];
    for (at, value) in changes {
        let forged = forged(&message, |signed| *signed.pointer_mut(at).unwrap() = value.clone());
        assert_eq!(milan.open(&forged), Err("signature"), "{at}");
    }
}

#[test]
fn signatures_of_another_letter_do_not_fit() {
    let Scene { rome, milan, .. } = scene();
    let (call, unlink) = (asking(Content::Call), asking(Content::Unlink));
    let [call, unlink] = [call, unlink].map(|letter| rome.write(&letter));
    let other: Value = serde_json::from_str(&unlink.content).unwrap();
    for (part, reason) in [("signature", "signature"), ("liqoSignature", "liqo_signature")] {
        let mixed = meddled(&call, |envelope| envelope[part] = other[part].clone());
        assert_eq!(milan.open(&mixed), Err(reason));
    }
    let wrong = meddled(&call, |envelope| envelope["scheme"] = "ed25519".into());
    assert_eq!(milan.open(&wrong), Err("signature"));
    let unknown = meddled(&call, |envelope| envelope["liqoScheme"] = "none".into());
    assert_eq!(milan.open(&unknown), Err("liqo_signature"));
}

#[test]
fn a_liqo_key_of_the_brokers_cannot_be_put_in() {
    let Scene { rome, milan, turin, .. } = scene();
    let message = rome.write(&asking(Content::Call));
    // The broker signs what rome's agent signed with a Liqo key of its own: the letter still names
    // rome's.
    let own = turin.write(&asking(Content::Call));
    let own: Value = serde_json::from_str(&own.content).unwrap();
    let mixed =
        meddled(&message, |envelope| envelope["liqoSignature"] = own["liqoSignature"].clone());
    assert_eq!(milan.open(&mixed), Err("liqo_signature"));
}

#[test]
fn a_certificate_of_another_cluster_or_authority_does_not_do() {
    let Scene { rome, milan, turin, .. } = scene();
    let message = rome.write(&asking(Content::Call));
    let by_turin = turin.write(&asking(Content::Call));
    assert_eq!(milan.open(&by_turin), Err("name"), "a real certificate, and not rome's");
    let certificate_of = |message: &Message| {
        let envelope: Value = serde_json::from_str(&message.content).unwrap();
        envelope["certificates"].clone()
    };
    let swapped =
        meddled(&message, |envelope| envelope["certificates"] = certificate_of(&by_turin));
    assert_eq!(milan.open(&swapped), Err("name"));
    let strangers = Authority::new("agents").cluster("rome");
    let by_stranger = strangers.write(&asking(Content::Call));
    assert_eq!(milan.open(&by_stranger), Err("certificate"), "an authority of the same name");
    let with_root = meddled(&by_stranger, |envelope| {
        let root = std::fs::read(strangers.path().join("ca.crt")).unwrap();
        let root: String =
            str::from_utf8(&root).unwrap().lines().filter(|l| !l.starts_with('-')).collect();
        envelope["certificates"].as_array_mut().unwrap().push(root.into());
    });
    assert_eq!(milan.open(&with_root), Err("certificate"), "a root that it brings itself");
}

#[test]
fn neither_a_server_nor_an_operator_speaks_for_a_cluster() {
    let Scene { authority, milan, .. } = scene();
    for (purpose, reason) in [(Use::Server, "certificate"), (Use::Operator, "operator")] {
        let posing = authority.issue("rome", purpose, &PKCS_ECDSA_P256_SHA256);
        assert_eq!(milan.open(&posing.write(&asking(Content::Call))), Err(reason));
    }
}

#[test]
fn the_authority_itself_speaks_for_nobody_and_an_agent_is_no_authority() {
    let Scene { rome, milan, .. } = scene();
    // Rome issues a certificate for itself, with its own as if it were an authority's.
    let own = std::fs::read_to_string(rome.path().join("tls.crt")).unwrap();
    let key =
        rcgen::KeyPair::from_pem(&std::fs::read_to_string(rome.path().join("tls.key")).unwrap())
            .unwrap();
    let issuer = rcgen::Issuer::new(super::stage::named("rome"), key);
    let posing = Authority::new("x").issue("turin", Use::Agent, &PKCS_ED25519);
    let leaf = rcgen::KeyPair::generate().unwrap();
    let forged = super::stage::named("turin").signed_by(&leaf, &issuer).unwrap().pem();
    std::fs::write(posing.path().join("tls.crt"), forged + &own).unwrap();
    std::fs::write(posing.path().join("tls.key"), leaf.serialize_pem()).unwrap();
    let mut letter = asking(Content::Call);
    (letter.header.from, letter.header.requester) = (id("turin"), id("turin"));
    assert_eq!(milan.open(&posing.write(&letter)), Err("certificate"));
}

#[test]
fn a_letter_is_not_replayed_after_its_time() {
    let Scene { rome, milan, .. } = scene();
    let message = rome.write(&asking(Content::Unlink));
    assert!(milan.open(&message).is_ok());
    let later = NOW.checked_add(Span::from_secs(181)).unwrap();
    assert_eq!(milan.open_at(&message, later), Err("expired"));
    let never = Time::from_millis(u64::MAX / 2);
    assert_eq!(milan.open_at(&message, never), Err("certificate"), "nor is its certificate");
}

#[test]
fn a_letter_of_another_link_is_not_one_of_this_link() {
    let Scene { rome, milan, .. } = scene();
    let opened = milan.open(&rome.write(&asking(Content::Unlink))).unwrap();
    let fresh: Nonce = "AAAAAAAAAAAAAAAAAAAAAA==".parse().unwrap();
    let now = LinkId::derive(&id("rome"), &id("milan"), &fresh);
    assert!(opened.clone().of_link(&link()).is_ok());
    let error = opened.of_link(&now).unwrap_err();
    let verifier = Verifier::new(id("milan"), milan.path(), milan.metrics.clone());
    verifier.refuse("rome", &error);
    let page = milan.metrics.page();
    assert!(page.contains("letters_refused_total{reason=\"other_link\"} 1"), "{page}");
}

#[test]
fn who_holds_the_authority_still_has_another_liqo_key() {
    let Scene { authority, rome, milan, .. } = scene();
    let pinned = rome.liqo.public().clone();
    let posing = authority.cluster("rome");
    let opened = milan.open(&posing.write(&asking(Content::Call))).unwrap();
    let error = opened.pinned_to(&pinned).unwrap_err();
    assert_eq!(error.reason().0, "pin");
    let said = error.to_string();
    assert!(said.contains(&pinned.fingerprint()) && said.contains("change the pin"), "{said}");
    let opened = milan.open(&rome.write(&asking(Content::Call))).unwrap();
    assert!(opened.pinned_to(&pinned).is_ok());
}

#[test]
fn the_nonce_that_a_provider_chooses_cannot_be_a_letter() {
    let Scene { rome, .. } = scene();
    // Liqo would sign the nonce with milan's key: as a letter of milan's, if that could be a nonce.
    let letter = rome.write(&asking(Content::Unlink));
    let envelope: Value = serde_json::from_str(&letter.content).unwrap();
    let bytes = STANDARD.decode(envelope["signed"].as_str().unwrap()).unwrap();
    let nonce = format!("sublet-link-v1\0{}", String::from_utf8(bytes).unwrap());
    let mut signed =
        serde_json::to_value(answering(Content::Nonce { nonce: self::nonce() })).unwrap();
    signed["content"]["nonce"] = nonce.into();
    assert!(serde_json::from_value::<crate::relay::Letter>(signed).is_err());
}

#[test]
fn what_is_cut_short_or_no_letter_at_all_is_unreadable() {
    let Scene { rome, milan, .. } = scene();
    let message = rome.write(&asking(Content::Call));
    let with = |content: &str| Message { content: content.to_owned(), ..message.clone() };
    let whole = message.content.as_str();
    for length in [0, 1, 40, whole.len() / 2, whole.len() - 1] {
        assert_eq!(milan.open(&with(&whole[..length])), Err("unreadable"), "{length}");
    }
    for rubbish in ["null", "{}", "[]", "\"letter\"", &"[".repeat(9000), &"x".repeat(17_000)] {
        assert_eq!(milan.open(&with(rubbish)), Err("unreadable"));
    }
    let none = meddled(&message, |envelope| envelope["certificates"] = json!([]));
    assert_eq!(milan.open(&none), Err("unreadable"));
    let many = meddled(&message, |envelope| {
        let one = envelope["certificates"][0].clone();
        envelope["certificates"] = json!([one, one, one, one, one]);
    });
    assert_eq!(milan.open(&many), Err("unreadable"));
    let odd = meddled(&message, |envelope| envelope["certificates"] = json!(["AAAA"]));
    assert_eq!(milan.open(&odd), Err("certificate"));
}

#[test]
fn a_letter_that_does_not_fit_into_a_message_is_not_written() {
    let Scene { rome, .. } = scene();
    let mut letter = asking(offer(&rome, &Key::generate().unwrap()));
    if let Content::TenantOffer(offer) = &mut letter.content {
        offer.csr = "x".repeat(12_500);
    }
    let error = Signer::new(rome.path()).write(&letter, &rome.liqo).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}

#[test]
fn no_byte_of_a_letter_can_be_another_one() {
    let Scene { rome, milan, .. } = scene();
    let message = rome.write(&asking(offer(&rome, &Key::generate().unwrap())));
    let strategy = (any::<Index>(), 0x20_u8..0x7f);
    let tried = TestRunner::default().run(&strategy, |(at, byte)| {
        let mut bytes = message.content.clone().into_bytes();
        let place = at.get_mut(&mut bytes);
        prop_assume!(*place != byte);
        *place = byte;
        let content = String::from_utf8(bytes).unwrap();
        let changed = Message { content, ..message.clone() };
        prop_assert!(milan.open(&changed).is_err(), "{}", changed.content);
        Ok(())
    });
    tried.unwrap();
}

#[test]
fn nothing_that_anybody_sends_stops_the_reader() {
    let Scene { rome, milan, .. } = scene();
    let message = rome.write(&asking(Content::Call));
    let strategy = (".{0,300}", any::<Vec<u8>>());
    let tried = TestRunner::default().run(&strategy, |(content, bytes)| {
        let any = Message { content, ..message.clone() };
        prop_assert_eq!(milan.open(&any), Err("unreadable"));
        let bytes = STANDARD.encode(&bytes);
        let inside = meddled(&message, |envelope| envelope["signed"] = bytes.clone().into());
        prop_assert_eq!(milan.open(&inside), Err("unreadable"));
        let chain = meddled(&message, |envelope| envelope["certificates"] = json!([bytes]));
        prop_assert_eq!(milan.open(&chain), Err("certificate"));
        Ok(())
    });
    tried.unwrap();
}
