//! The provider of a pair: what is next, whatever there is.

use super::super::LinkState;
use super::super::seen::{Issued, TenantSeen};
use super::super::step::{For, Next, Say, Step, Todo};
use super::super::trouble::{Reason, Trouble};
use super::stage::{Case, at, issued, key, link, nonce, offer, step, tenant};
use crate::relay::TenantOffer;

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
