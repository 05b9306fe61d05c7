//! The decisions, without a cluster: what is next, whatever there is.

use rcgen::KeyPair;
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::{Span, Time};

use super::LinkState;
use super::seen::{
    Access, Credential, Foreign, IdentitySeen, Issued, Place, Seen, SignedNonce, TenantSeen,
};
use super::step::{For, LOOK_AGAIN, Next, Say, Scene, Step, Todo, Wish};
use super::talk::Talk;
use super::trouble::{Reason, Trouble};
use super::{borrow, lend, next};
use crate::relay::{LinkId, Nonce, PublicKey, TenantOffer, seal};

const IDLE: Span = Span::from_secs(600);

fn at(seconds: u64) -> Time {
    Time::from_millis(seconds * 1000)
}

fn nonce(text: &str) -> Nonce {
    format!("{text}{}", "A".repeat(20)).parse().unwrap()
}

fn key() -> PublicKey {
    KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().public_key_pem().parse().unwrap()
}

/// A cluster, and what it knows. It is Rome as the requester and Milan as the provider.
struct Case {
    seen: Seen,
    talk: Talk,
    wish: Wish,
    up: Span,
    now: Time,
}

impl Case {
    fn wanted() -> Self {
        let place = Place { is_ours: true, ..Place::default() };
        let seen = Seen { namespace: Some(place), ..Seen::default() };
        let (talk, up) = (Talk::default(), Span::from_secs(3600));
        Self { seen, talk, wish: Wish::Wanted, up, now: at(10_000) }
    }

    /// Nobody needs it since so many seconds.
    fn unused(for_seconds: u64) -> Self {
        let since = Some(at(10_000 - for_seconds));
        let place = Place {
            is_ours: true,
            unused_as_provider: since,
            unused_as_requester: since,
            ..Place::default()
        };
        let seen = Seen { namespace: Some(place), ..Seen::default() };
        Self { seen, wish: Wish::Unused, ..Self::wanted() }
    }

    fn scene<'a>(&'a self, me: &'a ClusterId, peer: &'a ClusterId) -> Scene<'a> {
        Scene {
            me,
            peer,
            seen: &self.seen,
            talk: &self.talk,
            wish: self.wish,
            idle: IDLE,
            up: self.up,
            settling: Span::from_secs(60),
            now: self.now,
        }
    }

    fn borrow(&self) -> Next {
        let (rome, milan) = clusters();
        borrow::next(&self.scene(&rome, &milan))
    }

    fn lend(&self) -> Next {
        let (rome, milan) = clusters();
        lend::next(&self.scene(&milan, &rome))
    }

    fn end(&self) -> Next {
        let (rome, milan) = clusters();
        next::end(&self.scene(&milan, &rome))
    }
}

fn clusters() -> (ClusterId, ClusterId) {
    ("rome".parse().unwrap(), "milan".parse().unwrap())
}

fn link(nonce: &Nonce) -> LinkId {
    let (rome, milan) = clusters();
    LinkId::derive(&rome, &milan, nonce)
}

fn step(next: Next) -> Step {
    match next.todo {
        Todo::Step(step) => step,
        other => panic!("no step, but {other:?}"),
    }
}

fn signed(nonce: &Nonce) -> SignedNonce {
    let signature = Some(vec![1]);
    SignedNonce { is_ours: true, nonce: Some(nonce.clone()), signature, is_touched: false }
}

fn access(text: &str) -> Access {
    Access { auth_params: json!({ "apiServer": text }), namespace: "liqo-tenant-rome".to_owned() }
}

fn identity() -> IdentitySeen {
    let access = access("https://milan");
    IdentitySeen { is_ours: true, is_deleting: false, access, fits: true }
}

fn offer(key: &PublicKey) -> TenantOffer {
    let seal_key = seal::Key::generate().unwrap().public();
    TenantOffer { public_key: key.clone(), csr: "csr".to_owned(), signature: vec![2], seal_key }
}

/// The tenant that an offer makes.
fn tenant(nonce: &Nonce, offer: &TenantOffer) -> TenantSeen {
    TenantSeen {
        is_ours: true,
        is_deleting: false,
        key: Some(offer.public_key.clone()),
        csr: offer.csr.clone().into_bytes(),
        signature: offer.signature.clone(),
        link: Some(link(nonce)),
        access: Some(access("https://milan")),
        trouble: None,
    }
}

fn issued(nonce: &Nonce) -> Issued {
    Issued { is_ours: true, nonce: Some(nonce.clone()) }
}

const LIVE: Option<Credential> = Some(Credential { is_deleting: false });
const DYING: Option<Credential> = Some(Credential { is_deleting: true });

#[test]
fn a_requester_goes_from_nothing_to_an_identity() {
    let mut case = Case { seen: Seen::default(), ..Case::wanted() };
    assert_eq!(step(case.borrow()), Step::MakeNamespace);
    case = Case::wanted();
    assert_eq!(step(case.borrow()), Step::Say(Say::Call));
    let first = nonce("first");
    case.talk.asked = Some(first.clone());
    assert_eq!(step(case.borrow()), Step::WriteSigned(first.clone()));
    let unsigned = SignedNonce { signature: None, ..signed(&first) };
    case.seen.borrowed.signed = Some(unsigned);
    assert_eq!((case.borrow().todo, case.borrow().waiting), (Todo::Poll, Some(For::Signature)));
    case.seen.borrowed.signed = Some(signed(&first));
    let said = Say::TenantOffer { link: link(&first), signature: vec![1] };
    assert_eq!(step(case.borrow()), Step::Say(said.clone()));
    case.talk.said(&said, case.now);
    assert!(matches!(case.borrow().todo, Todo::Rest(Some(_))), "said once, and waited for");
    case.talk.access = Some(access("https://milan"));
    let written = Step::WriteIdentity(link(&first), access("https://milan"));
    assert_eq!(step(case.borrow()), written);
    case.seen.borrowed.identity = Some(identity());
    assert_eq!(case.borrow().waiting, Some(For::Kubeconfig));
    case.seen.borrowed.credential = LIVE;
    assert_eq!(case.borrow(), Next::ready());
}

#[test]
fn a_requester_helps_its_provider_to_repair_without_being_less_ready() {
    let mut case = Case::wanted();
    case.seen.borrowed.identity = Some(identity());
    case.seen.borrowed.credential = LIVE;
    case.seen.borrowed.signed = Some(signed(&nonce("first")));
    case.talk.asked = Some(nonce("second"));
    let next = case.borrow();
    assert_eq!(next.state, LinkState::Ready);
    assert_eq!(step(next), Step::WriteSigned(nonce("second")));
}

#[test]
fn an_identity_that_does_not_fit_is_replaced_and_one_that_was_renewed_is_not() {
    let mut case = Case::wanted();
    case.seen.borrowed.identity = Some(IdentitySeen { fits: false, ..identity() });
    case.seen.borrowed.credential = LIVE;
    case.seen.borrowed.signed = Some(signed(&nonce("first")));
    assert!(matches!(step(case.borrow()), Step::Say(Say::TenantOffer { .. })));

    // What was written is forgotten, so that it does not come back over a renewed certificate.
    case.talk.access = Some(identity().access);
    case.seen.borrowed.identity = Some(identity());
    case.talk.settle(&case.seen);
    let renewed = IdentitySeen { access: access("https://renewed"), ..identity() };
    case.seen.borrowed.identity = Some(renewed);
    assert_eq!(case.borrow(), Next::ready());
}

#[test]
fn a_kubeconfig_that_dies_under_slices_is_let_go_and_without_them_waited_for() {
    let mut case = Case::wanted();
    case.seen.borrowed.credential = DYING;
    assert_eq!(case.borrow().waiting, Some(For::CredentialGone));
    case.seen.borrowed.slices = 1;
    assert_eq!(step(case.borrow()), Step::FreeCredential);
}

#[test]
fn what_somebody_else_has_made_is_used_if_it_works_and_never_touched() {
    let mut case = Case::wanted();
    case.seen.borrowed.credential = LIVE;
    let theirs = IdentitySeen { is_ours: false, ..identity() };
    case.seen.borrowed.identity = Some(theirs.clone());
    assert_eq!(case.borrow(), Next::ready());
    case.seen.borrowed.identity = Some(IdentitySeen { fits: false, ..theirs.clone() });
    assert!(matches!(case.borrow().state, LinkState::Failed(why) if why.reason == Reason::NotOurs));

    let mut unused = Case::unused(9_000);
    unused.seen.borrowed.identity = Some(theirs);
    assert_eq!(unused.borrow().todo, Todo::Rest(None));
    let theirs = TenantSeen { is_ours: false, ..tenant(&nonce("a"), &offer(&key())) };
    unused.seen.lent.tenant = Some(theirs);
    assert_eq!(unused.lend().todo, Todo::Rest(None));
}

#[test]
fn a_requester_takes_the_identity_down_first_then_tells_and_then_cleans_up() {
    let mut case = Case::unused(599);
    case.seen.borrowed.identity = Some(identity());
    case.seen.borrowed.credential = LIVE;
    case.seen.borrowed.signed = Some(signed(&nonce("first")));
    assert_eq!(case.borrow().todo, Todo::Rest(Some(Span::from_secs(1))));
    case.now = at(10_001);
    case.seen.borrowed.slices = 1;
    assert!(matches!(case.borrow().todo, Todo::Rest(Some(_))), "a slice is in the way");
    case.seen.borrowed.slices = 0;
    assert_eq!(step(case.borrow()), Step::DeleteIdentity);
    case.seen.borrowed.identity = None;
    assert_eq!(case.borrow().waiting, Some(For::CredentialGone));
    case.seen.borrowed.credential = None;
    assert_eq!(step(case.borrow()), Step::Say(Say::Unlink { link: link(&nonce("first")) }));
    case.talk.unlinked = Some(link(&nonce("another")));
    assert!(matches!(step(case.borrow()), Step::Say(Say::Unlink { .. })));
    case.talk.unlinked = Some(link(&nonce("first")));
    assert_eq!(step(case.borrow()), Step::DeleteSigned);
    case.seen.borrowed.signed = None;
    assert_eq!(case.borrow().todo, Todo::Gone);
}

#[test]
fn a_requester_does_not_wait_for_ever_for_a_provider_that_is_gone() {
    let mut case = Case::unused(700);
    case.seen.borrowed.signed = Some(signed(&nonce("first")));
    case.talk.wait(Some(For::Unlinked), case.now);
    case.now = at(10_000 + 3601);
    assert_eq!(step(case.borrow()), Step::DeleteSigned);
}

#[test]
fn a_provider_goes_from_nothing_to_a_tenant_and_answers() {
    let (first, key) = (nonce("first"), key());
    let mut case = Case::wanted();
    assert_eq!(step(case.lend()), Step::MakeNonce);
    case.seen.lent.nonce = Some(Issued { is_ours: true, nonce: None });
    assert_eq!(case.lend().waiting, Some(For::Nonce));
    case.seen.lent.nonce = Some(issued(&first));
    let ask = Say::Nonce { nonce: first.clone(), link: link(&first) };
    assert_eq!(step(case.lend()), Step::Say(ask.clone()));
    case.talk.said(&ask, case.now);
    assert!(matches!(case.lend().todo, Todo::Rest(Some(_))));
    case.talk.called = true;
    case.now = at(10_001);
    assert_eq!(step(case.lend()), Step::Say(ask), "a call is answered soon");
    case.talk.called = false;

    let (offered, pin) = (offer(&key), Some(key.clone()));
    case.seen.pin = pin;
    case.talk.offer = Some((link(&first), offered.clone()));
    assert_eq!(step(case.lend()), Step::WriteTenant(link(&first), offered.clone()));
    let waiting = TenantSeen { access: None, ..tenant(&first, &offered) };
    case.seen.lent.tenant = Some(waiting);
    assert_eq!(case.lend().waiting, Some(For::Grant));
    case.seen.lent.tenant = Some(tenant(&first, &offered));
    let answer = case.lend();
    assert_eq!(answer.state, LinkState::Ready);
    let Step::Say(said @ Say::IdentityOffer { .. }) = step(answer) else { panic!("no answer") };
    case.talk.said(&said, case.now);
    assert_eq!(case.lend(), Next::ready());
}

#[test]
fn an_offer_for_an_earlier_link_makes_no_tenant() {
    let (first, key) = (nonce("first"), key());
    let mut case = Case::wanted();
    case.seen.lent.nonce = Some(issued(&first));
    case.talk.offer = Some((link(&nonce("earlier")), offer(&key)));
    assert!(matches!(step(case.lend()), Step::Say(Say::Nonce { .. })));
}

#[test]
fn a_new_key_replaces_the_tenant_and_the_certificate_that_liqo_keeps_for_the_old_one() {
    let (first, old, new) = (nonce("first"), key(), key());
    let mut case = Case::wanted();
    case.seen.lent.nonce = Some(issued(&first));
    case.seen.lent.tenant = Some(tenant(&first, &offer(&old)));
    case.seen.lent.certificate_for = Some(b"csr".to_vec());
    case.seen.pin = Some(new.clone());
    let asked = case.lend();
    assert_ne!(asked.state, LinkState::Ready);
    assert!(matches!(step(asked), Step::Say(Say::Nonce { .. })), "the pin was changed");
    let offered = TenantOffer { csr: "another".to_owned(), ..offer(&new) };
    case.talk.offer = Some((link(&first), offered.clone()));
    assert_eq!(step(case.lend()), Step::DeleteCertificate);
    case.seen.lent.certificate_for = None;
    assert_eq!(step(case.lend()), Step::WriteTenant(link(&first), offered));
}

#[test]
fn another_request_for_the_key_that_was_granted_is_refused_and_changes_nothing() {
    let (first, key) = (nonce("first"), key());
    let mut case = Case::wanted();
    case.seen.lent.nonce = Some(issued(&first));
    case.seen.lent.tenant = Some(tenant(&first, &offer(&key)));
    case.seen.lent.certificate_for = Some(b"csr".to_vec());
    let offered = TenantOffer { csr: "another".to_owned(), ..offer(&key) };
    case.talk.offer = Some((link(&first), offered));
    let refusal = case.lend();
    assert_eq!(refusal.state, LinkState::Ready);
    let Step::Say(said @ Say::Refusal { .. }) = step(refusal) else { panic!("no refusal") };
    assert!(matches!(&said, Say::Refusal { trouble, .. } if trouble.reason == Reason::CsrChanged));
    case.talk.said(&said, case.now);
    assert_eq!(case.lend(), Next::ready());
    // What was not granted may be put right.
    case.seen.lent.tenant.as_mut().unwrap().access = None;
    case.talk.offer =
        Some((link(&first), TenantOffer { csr: "another".to_owned(), ..offer(&key) }));
    assert_eq!(step(case.lend()), Step::DeleteCertificate);
}

#[test]
fn what_liqo_objects_to_is_waited_for_a_moment_then_said_and_then_a_failure() {
    let (first, key) = (nonce("first"), key());
    let mut case = Case::wanted();
    let offered = offer(&key);
    case.seen.lent.nonce = Some(issued(&first));
    let trouble = Some(Trouble::new(Reason::CsrRefused, "Liqo says: no"));
    case.seen.lent.tenant = Some(TenantSeen { access: None, trouble, ..tenant(&first, &offered) });
    case.talk.offer = Some((link(&first), offered));
    case.talk.wait(Some(For::Grant), case.now);
    assert_eq!(case.lend().todo, Todo::Poll);
    case.now = at(10_003);
    let refusal = case.lend();
    assert!(
        matches!(&refusal.state, LinkState::Pending(why) if why.obstacle == Some(Reason::CsrRefused))
    );
    let Step::Say(said @ Say::Refusal { .. }) = step(refusal) else { panic!("no refusal") };
    case.talk.said(&said, case.now);
    case.talk.wait(case.lend().waiting, case.now);
    case.now = at(10_021);
    assert!(
        matches!(case.lend().state, LinkState::Failed(why) if why.reason == Reason::CsrRefused)
    );
}

#[test]
fn what_is_wrong_with_a_later_offer_is_shown_before_what_liqo_said_of_an_earlier_one() {
    let (first, key) = (nonce("first"), key());
    let mut case = Case::wanted();
    case.seen.lent.nonce = Some(issued(&first));
    let trouble = Some(Trouble::new(Reason::SignatureRefused, "Liqo says: no"));
    let refused = TenantSeen { access: None, trouble, ..tenant(&first, &offer(&key)) };
    case.seen.lent.tenant = Some(refused);
    let says = |case: &Case, reason: Reason| matches!(case.lend().state, LinkState::Pending(why) if why.obstacle == Some(reason));
    assert!(says(&case, Reason::SignatureRefused));
    case.talk.object(link(&first), Trouble::new(Reason::CsrRefused, "no"), case.now);
    let Step::Say(said @ Say::Refusal { .. }) = step(case.lend()) else { panic!("no refusal") };
    case.talk.said(&said, case.now);
    assert!(says(&case, Reason::CsrRefused));
    case.now = at(10_021);
    assert!(
        matches!(case.lend().state, LinkState::Failed(why) if why.reason == Reason::CsrRefused)
    );
}

#[test]
fn a_tenant_goes_last_when_the_requester_is_done_and_no_slice_is_left() {
    let (first, key) = (nonce("first"), key());
    let mut case = Case::unused(700);
    case.seen.lent.nonce = Some(issued(&first));
    case.seen.lent.tenant = Some(tenant(&first, &offer(&key)));
    assert!(matches!(case.lend().todo, Todo::Rest(Some(_))), "the requester has said nothing");
    case.talk.unlink = Some(link(&nonce("earlier")));
    assert!(matches!(case.lend().todo, Todo::Rest(Some(_))), "that was another link");
    case.talk.unlink = Some(link(&first));
    case.seen.lent.slices = 1;
    assert!(matches!(case.lend().todo, Todo::Rest(Some(_))), "a slice is in the way");
    case.seen.lent.slices = 0;
    assert_eq!(step(case.lend()), Step::DeleteTenant);
    case.seen.lent.tenant = None;
    assert_eq!(step(case.lend()), Step::DeleteNonce);
    case.seen.lent.nonce = None;
    assert_eq!(step(case.lend()), Step::Say(Say::Unlinked { link: link(&first) }));
}

#[test]
fn a_tenant_that_is_needed_stays_whatever_is_said_and_one_of_a_silent_requester_goes_at_last() {
    let (first, key) = (nonce("first"), key());
    let mut case = Case::wanted();
    case.seen.lent.nonce = Some(issued(&first));
    case.seen.lent.tenant = Some(tenant(&first, &offer(&key)));
    case.talk.unlink = Some(link(&first));
    assert_eq!(case.lend(), Next::ready());

    let mut silent = Case::unused(0);
    silent.seen.lent = case.seen.lent.clone();
    silent.now = at(10_000 + 12 * 3600);
    assert!(matches!(silent.lend().todo, Todo::Rest(Some(_))), "the longest idle time of all");
    silent.now = at(10_000 + 13 * 3600);
    assert_eq!(step(silent.lend()), Step::DeleteTenant);
}

#[test]
fn after_a_start_nothing_is_taken_down_before_it_is_known_who_needs_it() {
    let first = nonce("first");
    let mut case = Case::unused(9_000);
    (case.wish, case.up) = (Wish::Unknown, Span::from_secs(10));
    case.now = at(200_000);
    case.seen.borrowed.identity = Some(identity());
    case.seen.lent.nonce = Some(issued(&first));
    case.talk.unlink = Some(link(&first));
    let fifty = Todo::Rest(Some(Span::from_secs(50)));
    assert_eq!((case.borrow().todo, case.lend().todo), (fifty.clone(), fifty));
    case.up = Span::from_secs(60);
    assert_eq!(step(case.borrow()), Step::DeleteIdentity);
    assert_eq!(step(case.lend()), Step::DeleteNonce);
}

#[test]
fn after_a_start_silence_is_not_written_down_at_once() {
    let mut case = Case::wanted();
    case.seen.borrowed.identity = Some(identity());
    case.seen.lent.nonce = Some(issued(&nonce("first")));
    (case.wish, case.up) = (Wish::Unknown, Span::from_secs(59));
    let second = Todo::Rest(Some(Span::from_secs(1)));
    assert_eq!((case.borrow().todo, case.lend().todo), (second.clone(), second));
    case.wish = Wish::Unused;
    assert_eq!(step(case.borrow()), Step::MarkUnused(Side::Requester, case.now));
    assert_eq!(step(case.lend()), Step::MarkUnused(Side::Provider, case.now));
}

#[test]
fn the_namespace_goes_when_both_directions_are_gone_and_takes_liqos_word_with_it() {
    let mut case = Case::unused(0);
    case.seen.foreign = Some(Foreign { is_marked: false });
    assert_eq!(step(case.end()), Step::MarkForeign);
    case.seen.foreign = Some(Foreign { is_marked: true });
    case.seen.namespace.as_mut().unwrap().uid = Some("this".to_owned());
    assert_eq!(step(case.end()), Step::DeleteNamespace(Some("this".to_owned())));
    (case.wish, case.up) = (Wish::Unknown, Span::from_secs(10));
    assert_eq!(case.end().todo, Todo::Rest(Some(Span::from_secs(50))), "it may be needed");
    (case.wish, case.up) = (Wish::Unused, Span::from_secs(3600));
    case.seen.lent.slices = 1;
    assert!(matches!(case.end().todo, Todo::Rest(Some(_))));
    case.seen.namespace = None;
    assert_eq!(step(case.end()), Step::DeleteForeign);
    case.seen.foreign = Some(Foreign { is_marked: false });
    assert_eq!(case.end().todo, Todo::Gone, "somebody else's");
    case.seen.namespace = Some(Place { is_ours: false, ..Place::default() });
    assert_eq!(case.end().todo, Todo::Gone, "somebody else's");
}

#[test]
fn whoever_needs_it_again_says_so_first() {
    let mut case = Case::unused(10);
    case.wish = Wish::Wanted;
    assert_eq!(step(case.borrow()), Step::MarkUsed(Side::Requester));
    assert_eq!(step(case.lend()), Step::MarkUsed(Side::Provider));
}

#[test]
fn where_the_agent_may_not_look_nothing_is_taken_down() {
    let mut case = Case::unused(9_999);
    case.now = at(200_000);
    case.seen.is_barred = true;
    case.talk.unlink = Some(link(&nonce("first")));
    for wish in [Wish::Unknown, Wish::Unused] {
        case.wish = wish;
        for next in [case.borrow(), case.lend(), case.end()] {
            assert_eq!(next.todo, Todo::Rest(Some(LOOK_AGAIN)), "{wish:?}");
        }
    }
    // The role goes with the namespace, and its end is waited for.
    case.seen.namespace.as_mut().unwrap().is_deleting = true;
    assert_eq!(case.borrow().todo, Todo::Gone);
    assert_eq!(case.end().waiting, Some(For::NamespaceGone));
}
