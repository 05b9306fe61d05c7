//! The requester of a pair: what is next, whatever there is.

use sublet_core::time::Span;

use super::super::LinkState;
use super::super::seen::{Credential, IdentitySeen, Seen, SignedNonce, TenantSeen};
use super::super::step::{For, Next, Say, Step, Todo};
use super::super::trouble::Reason;
use super::stage::{
    Case, DYING, LIVE, access, at, identity, key, link, nonce, offer, signed, step, tenant,
};

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
    // What somebody else holds on to is not Liqo's to let go, nor ours.
    case.seen.borrowed.credential = Some(Credential { is_deleting: true, is_held: false });
    assert_eq!(case.borrow().waiting, Some(For::CredentialGone));
    case.seen.borrowed.slices = 0;
    case.talk.wait(Some(For::CredentialGone), case.now);
    case.now = at(20_000);
    assert_eq!(case.borrow().todo, Todo::Poll);
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
