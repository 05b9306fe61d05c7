//! What nobody meddled with is opened.

use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
use sublet_core::time::Time;

use super::stage::{
    Authority, Cluster, NOW, Use, answering, asking, forged, id, link, nonce, offer,
};
use crate::relay::seal::{Key, Lock};
use crate::relay::{
    AHEAD_MAX, Content, Letter, LinkId, LiqoKey, Nonce, Objection, PublicKey, SKEW,
};

fn pair() -> (Cluster, Cluster) {
    let authority = Authority::new("agents");
    (authority.cluster("rome"), authority.cluster("milan"))
}

#[test]
fn every_kind_of_letter_arrives_as_it_was_written() {
    let (rome, milan) = pair();
    let key = Key::generate().unwrap();
    let header = answering(Content::Unlinked).header;
    let sealed = Lock(key.public()).seal(b"the way in", &header).unwrap();
    let refusal =
        Content::Refusal { reason: Objection::InvalidCsr, message: "wrong common name".into() };
    for content in [Content::Call, offer(&rome, &key), Content::Unlink, Content::Unlinked] {
        let opened = milan.open(&rome.write(&asking(content.clone()))).unwrap();
        assert_eq!(opened.letter, asking(content));
        assert_eq!(opened.liqo_key, *rome.liqo.public());
    }
    let nonce = Content::Nonce { nonce: nonce() };
    for content in [nonce, Content::IdentityOffer { sealed }, refusal, Content::Unlinked] {
        let opened = rome.open(&milan.write(&answering(content.clone()))).unwrap();
        assert_eq!(opened.letter, answering(content));
    }
    let page = milan.metrics.page();
    assert!(page.contains("letters_opened_total{kind=\"tenant_offer\"} 1"), "{page}");
}

#[test]
fn a_sealed_answer_is_opened_by_the_key_that_was_offered_and_nobody_else() {
    let (rome, milan) = pair();
    let key = Key::generate().unwrap();
    let offered = milan.open(&rome.write(&asking(offer(&rome, &key)))).unwrap();
    let Content::TenantOffer(offer) = offered.letter.content else { panic!("not an offer") };
    let header = answering(Content::Unlinked).header;
    let seal = || Lock(offer.seal_key).seal(b"the way in", &header).unwrap();
    let sealed = seal();
    let answer = milan.write(&header.clone().letter(Content::IdentityOffer { sealed }));
    assert!(!answer.content.contains("the way in"));
    let opened = rome.open(&answer).unwrap().letter;
    let Content::IdentityOffer { sealed } = opened.content else { panic!("not an answer") };
    let another = Key::generate().unwrap();
    assert!(another.open(&sealed, &opened.header).is_err());
    assert_eq!(key.open(&sealed, &opened.header).unwrap(), b"the way in");
    assert_ne!(seal(), seal(), "each has a key of its own");
}

#[test]
fn what_was_sealed_under_one_header_does_not_open_under_another() {
    let header = answering(Content::Unlinked).header;
    let others = [
        crate::relay::Header { link: LinkId::none(), ..header.clone() },
        crate::relay::Header { from: id("turin"), ..header.clone() },
        crate::relay::Header { to: id("turin"), ..header.clone() },
        crate::relay::Header { requester: id("milan"), ..header.clone() },
        crate::relay::Header { expires_at: NOW, ..header.clone() },
    ];
    for other in others {
        let key = Key::generate().unwrap();
        let sealed = Lock(key.public()).seal(b"x", &header).unwrap();
        assert!(key.open(&sealed, &other).is_err(), "{other:?}");
    }
}

#[test]
fn a_point_of_small_order_is_nothing_to_seal_to() {
    let zero = serde_json::json!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let zero = serde_json::from_value(zero).unwrap();
    assert!(Lock(zero).seal(b"x", &answering(Content::Unlinked).header).is_err());
}

#[test]
fn agents_may_have_keys_of_any_kind_that_tls_takes() {
    let authority = Authority::new("agents");
    let milan = authority.cluster("milan");
    for kind in [&PKCS_ED25519, &PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384] {
        let rome = authority.issue("rome", Use::Agent, kind);
        milan.open(&rome.write(&asking(Content::Call))).unwrap();
    }
}

#[test]
fn an_rsa_key_of_liqos_signs_as_well() {
    let (mut rome, milan) = pair();
    rome.liqo = LiqoKey::from_pem(include_bytes!("rsa-key-of-tests.pem")).unwrap();
    let opened = milan.open(&rome.write(&asking(Content::Call))).unwrap();
    assert_eq!(opened.liqo_key, *rome.liqo.public());
}

#[test]
fn renewed_credentials_are_used_at_once() {
    let authority = Authority::new("agents");
    let (rome, milan) = (authority.cluster("rome"), authority.cluster("milan"));
    let renewed = authority.issue("rome", Use::Agent, &PKCS_ED25519);
    let write = |from: &Cluster| from.write(&asking(Content::Call));
    let before = write(&rome);
    for file in ["tls.crt", "tls.key"] {
        std::fs::copy(renewed.path().join(file), rome.path().join(file)).unwrap();
    }
    let after = write(&rome);
    assert!(before.content.contains("ecdsa-p256") && !after.content.contains("ecdsa-p256"));
    milan.open(&before).unwrap();
    milan.open(&after).unwrap();
    let strangers = Authority::new("others").cluster("milan");
    std::fs::copy(strangers.path().join("ca.crt"), milan.path().join("ca.crt")).unwrap();
    assert_eq!(milan.open(&after), Err("certificate"), "the authority was replaced");
}

#[test]
fn half_renewed_credentials_sign_nothing() {
    let authority = Authority::new("agents");
    let (rome, renewed) = (authority.cluster("rome"), authority.cluster("rome"));
    std::fs::copy(renewed.path().join("tls.crt"), rome.path().join("tls.crt")).unwrap();
    let signer = crate::relay::Signer::new(rome.path());
    let error = signer.write(&asking(Content::Call), &rome.liqo).unwrap_err();
    assert_eq!(error.reason().0, "credentials");
}

#[test]
fn clocks_may_be_a_little_apart() {
    let (rome, milan) = pair();
    let letter = asking(Content::Call);
    let message = rome.write(&letter);
    let at = |millis: u64| milan.open_at(&message, Time::from_millis(millis));
    let end = letter.header.expires_at.as_millis();
    assert!(at(end + SKEW.as_millis()).is_ok());
    assert_eq!(at(end + SKEW.as_millis() + 1), Err("expired"));
    let ahead = AHEAD_MAX.as_millis() + SKEW.as_millis();
    assert!(at(end - ahead).is_ok());
    assert_eq!(at(end - ahead - 1), Err("too_far_ahead"));
}

#[test]
fn a_letter_that_nobody_should_write_is_refused_though_it_is_signed() {
    let (rome, milan) = pair();
    let key = Key::generate().unwrap();
    let other = LinkId::derive(&id("rome"), &id("turin"), &nonce());
    let with = |letter: Letter, how: &dyn Fn(&mut Letter)| {
        let mut letter = letter;
        how(&mut letter);
        letter
    };
    let asked = || asking(Content::Unlink);
    let letters = [
        (&rome, with(asked(), &|letter| letter.header.requester = id("turin"))),
        (&rome, with(asked(), &|letter| letter.header.requester = id("milan"))),
        (&rome, with(asked(), &|letter| letter.header.link = LinkId::none())),
        (&rome, with(asking(Content::Call), &|letter| letter.header.link = link())),
        (&rome, asking(Content::Nonce { nonce: nonce() })),
        (&rome, asking(Content::Refusal { reason: Objection::Other, message: String::new() })),
        (&milan, answering(offer(&milan, &key))),
        (&milan, answering(Content::Call)),
        (
            &milan,
            with(answering(Content::Nonce { nonce: nonce() }), &|letter| {
                letter.header.link = other.clone();
            }),
        ),
    ];
    for (from, letter) in letters {
        let to = if from.id == rome.id { &milan } else { &rome };
        assert_eq!(to.open(&from.write(&letter)), Err("inconsistent"), "{letter:?}");
    }
    let foreign = asking(offer(&milan, &key));
    assert_eq!(milan.open(&rome.write(&foreign)), Err("offered_key"));
}

#[test]
fn a_letter_to_oneself_is_refused() {
    let (rome, _) = pair();
    let mut letter = asking(Content::Unlink);
    letter.header.to = id("rome");
    assert_eq!(rome.open(&rome.write(&letter)), Err("inconsistent"));
}

#[test]
fn an_objection_of_a_later_version_is_still_one() {
    let read: Objection = serde_json::from_str("\"MoonInRetrograde\"").unwrap();
    assert_eq!(read, Objection::Other);
}

#[test]
fn what_a_peer_says_to_people_is_one_line_of_bounded_length() {
    let said = format!("no\n\u{1b}[31m{}", "x".repeat(1000));
    let refusal = Content::Refusal { reason: Objection::LiqoFailed, message: said };
    let (rome, milan) = pair();
    let opened = rome.open(&milan.write(&answering(refusal))).unwrap();
    let Content::Refusal { message, .. } = opened.letter.content else { panic!("no refusal") };
    assert!(message.starts_with("no[31mxxx") && message.len() == 300, "{message}");
}

#[test]
fn the_id_of_a_link_depends_on_everything() {
    let (r, p) = (id("rome"), id("milan"));
    let fresh: Nonce = "AAAAAAAAAAAAAAAAAAAAAA==".parse().unwrap();
    let ids = [
        LinkId::derive(&r, &p, &nonce()),
        LinkId::derive(&p, &r, &nonce()),
        LinkId::derive(&r, &p, &fresh),
    ];
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
    assert!(ids.iter().all(|link| link.as_str().parse() == Ok(link.clone())));
    // What it was once, it is for ever: both sides compute it, each with its own version.
    assert_eq!(ids[0].as_str(), "vk7ubrkcdelqf2t6t3zg");
    assert!("short".parse::<LinkId>().is_err());
}

#[test]
fn nothing_but_base64_is_a_nonce() {
    let signed = forged(&pair().0.write(&asking(Content::Call)), |_| {});
    for bad in ["", "short", "sublet-link-v1\0{\"from\":\"rome\"}", &signed.content] {
        assert!(bad.parse::<Nonce>().is_err(), "{bad}");
    }
    assert!("A".repeat(88).parse::<Nonce>().is_ok() && "A".repeat(257).parse::<Nonce>().is_err());
}

#[test]
fn a_public_key_is_written_as_go_does_and_compared_as_a_key() {
    let key = pair().0.liqo.public().clone();
    let pem = key.to_pem();
    assert_eq!(pem.len(), 113);
    let loose = format!("a comment\r\n{}", pem.replace('\n', "\r\n"));
    assert_eq!(loose.parse(), Ok(key.clone()));
    assert!(key.fingerprint().starts_with("SHA256:") && key.fingerprint().len() == 50);
    assert!(
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
            .parse::<PublicKey>()
            .is_err()
    );
}
