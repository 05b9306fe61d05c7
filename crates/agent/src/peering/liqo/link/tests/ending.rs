//! The end of a link on either side, and what must not end.

use sublet_core::instruction::Side;
use sublet_core::time::Span;

use super::super::LinkState;
use super::super::seen::{Foreign, Place};
use super::super::step::{For, LOOK_AGAIN, Next, Say, Step, Todo, Wish};
use super::super::trouble::Reason;
use super::stage::{
    Case, DYING, at, identity, issued, key, link, nonce, offer, signed, step, tenant,
};

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
    case.seen.networks = 1;
    assert_eq!(
        case.end().todo,
        Todo::Rest(Some(LOOK_AGAIN)),
        "somebody's network would go with it"
    );
    case.seen.networks = 0;
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

#[test]
fn what_does_not_go_is_said_to_be_in_the_way_and_given_time_all_the_same() {
    let mut case = Case::wanted();
    case.seen.namespace.as_mut().unwrap().is_deleting = true;
    let reason = |case: &Case| match case.borrow().state {
        LinkState::Pending(why) => why.obstacle,
        state => panic!("{state:?}"),
    };
    case.talk.wait(Some(For::NamespaceGone), case.now);
    assert_eq!(reason(&case), None);
    case.now = case.now.checked_add(Span::from_secs(46)).unwrap();
    assert_eq!(reason(&case), Some(Reason::StillDeleting));
}

#[test]
fn a_kubeconfig_that_a_provider_without_the_tenant_keeps_is_let_go_after_a_while() {
    for (wish, slices) in [(Wish::Unused, 0), (Wish::Wanted, 0)] {
        let mut case = Case::unused(700);
        case.wish = wish;
        if wish == Wish::Wanted {
            case.seen.namespace.as_mut().unwrap().unused_as_requester = None;
        }
        case.seen.borrowed.signed = Some(signed(&nonce("first")));
        (case.seen.borrowed.credential, case.seen.borrowed.slices) = (DYING, slices);
        assert_eq!(case.borrow().waiting, Some(For::CredentialGone), "{wish:?}");
        case.talk.wait(Some(For::CredentialGone), case.now);
        case.now = case.now.checked_add(Span::from_secs(46)).unwrap();
        assert_eq!(step(case.borrow()), Step::FreeCredential, "{wish:?}");
    }
}

#[test]
fn what_is_stranded_is_let_go_of_though_the_nonce_is_gone_unless_it_is_not_ours() {
    let mut case = Case::unused(700);
    case.seen.borrowed.stranded = 1;
    assert_eq!(case.borrow().waiting, Some(For::StrandedGone));
    case.talk.wait(Some(For::StrandedGone), case.now);
    case.now = case.now.checked_add(Span::from_secs(4)).unwrap();
    assert_eq!(step(case.borrow()), Step::FreeStranded);
    case.seen.borrowed.slices = 1;
    assert_eq!(case.borrow().todo, Todo::Gone, "a slice still needs it");
    case.seen.borrowed.slices = 0;
    case.seen.namespace.as_mut().unwrap().is_ours = false;
    assert_eq!(case.borrow().todo, Todo::Gone, "somebody else's");
}

#[test]
fn what_the_replicator_keeps_without_a_way_to_the_provider_is_let_go_of_first() {
    let first = nonce("first");
    let mut case = Case::unused(700);
    case.seen.borrowed.signed = Some(signed(&first));
    case.seen.borrowed.stranded = 2;
    let waits = case.borrow();
    assert_eq!((waits.todo, waits.waiting), (Todo::Poll, Some(For::StrandedGone)));
    case.talk.wait(Some(For::StrandedGone), case.now);
    case.now = case.now.checked_add(Span::from_secs(4)).unwrap();
    assert_eq!(step(case.borrow()), Step::FreeStranded);
    case.seen.borrowed.stranded = 0;
    assert_eq!(step(case.borrow()), Step::Say(Say::Unlink { link: link(&first) }));
}
