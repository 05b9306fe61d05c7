//! What to do next as the provider of a pair, given what there is: pure.

use sublet_core::instruction::Side;
use sublet_core::time::Span;

use super::LinkState;
use super::seen::TenantSeen;
use super::step::{For, GRACE, LOOK_AGAIN, Next, Say, Scene, Step, Wish};
use super::trouble::{Reason, Trouble};
use crate::relay::{LinkId, Nonce, TenantOffer};

/// How long an unused link is kept for a requester that says nothing. Longer than the longest idle
/// time of any requester: who tells us that it is done is never surprised.
const SILENT_MAX: Span = Span::from_secs(12 * 3600 + 1800);
/// For how long Liqo's objections are taken for a passing thing: it says some of them while its own
/// caches fill.
const OBJECTION_AFTER: Span = Span::from_secs(2);

/// What to do next.
pub(super) fn next(scene: &Scene<'_>) -> Next {
    match scene.wish {
        Wish::Wanted => wanted(scene),
        Wish::Unknown | Wish::Unused => unwanted(scene),
    }
}

fn wanted(scene: &Scene<'_>) -> Next {
    if let Some(first) = scene.prepare(Side::Provider) {
        return first;
    }
    let lent = &scene.seen.lent;
    if let Some(tenant) = lent.tenant.as_ref().filter(|tenant| !tenant.is_ours) {
        return match tenant.access {
            Some(_) => Next::ready(),
            None => Next::failed(Trouble::new(
                Reason::NotOurs,
                "the tenant of the requester was made by somebody else, and is not accepted by Liqo",
            )),
        };
    }
    if let Some((link, trouble)) = scene.talk.objection.clone() {
        let state = match lent.tenant.as_ref().and_then(|tenant| tenant.access.as_ref()) {
            Some(_) => LinkState::Ready,
            None => scene.pending(String::new()),
        };
        return scene.answer(Say::Refusal { link, trouble }, state);
    }
    let Some(issued) = &lent.nonce else { return Next::step(Step::MakeNonce) };
    let Some(nonce) = &issued.nonce else { return scene.wait(For::Nonce) };
    let link = LinkId::derive(scene.peer, scene.me, nonce);
    let offer = scene.talk.offer.as_ref();
    let offer = offer.filter(|(about, _)| *about == link).map(|(_, offer)| offer);
    match (&lent.tenant, offer) {
        (Some(tenant), _) if tenant.is_deleting => scene.wait(For::TenantGone),
        (Some(tenant), Some(offer)) if is_written(tenant, offer, &link) => {
            answer(scene, tenant, offer, link)
        }
        (Some(tenant), Some(offer)) if is_another(tenant, offer) => {
            let why = "a certificate was granted for another request of the same key";
            let trouble = Trouble::new(Reason::CsrChanged, why);
            scene.answer(Say::Refusal { link, trouble }, LinkState::Ready)
        }
        (_, Some(offer)) => write(scene, link, offer),
        (Some(tenant), None) => look(scene, tenant, nonce, link),
        (None, None) => {
            let text = format!("{} was told the nonce", scene.peer);
            ask(scene, nonce, link, scene.pending(text))
        }
    }
}

fn is_written(tenant: &TenantSeen, offer: &TenantOffer, link: &LinkId) -> bool {
    tenant.key.as_ref() == Some(&offer.public_key)
        && tenant.csr == offer.csr.as_bytes()
        && tenant.signature == offer.signature
        && tenant.link.as_ref() == Some(link)
}

/// A request is always the same for the same key. Another one is nothing but work for Liqo, which would
/// sign it: what is granted stays as it is.
fn is_another(tenant: &TenantSeen, offer: &TenantOffer) -> bool {
    tenant.access.is_some()
        && tenant.key.as_ref() == Some(&offer.public_key)
        && tenant.csr != offer.csr.as_bytes()
}

/// Liqo keeps the certificate of the first request, and refuses any other one until that is gone.
fn write(scene: &Scene<'_>, link: LinkId, offer: &TenantOffer) -> Next {
    let kept = scene.seen.lent.certificate_for.as_deref();
    if kept.is_some_and(|kept| kept != offer.csr.as_bytes()) {
        return Next::step(Step::DeleteCertificate);
    }
    Next::step(Step::WriteTenant(link, offer.clone()))
}

/// The offer is written: what Liqo makes of it goes back.
fn answer(scene: &Scene<'_>, tenant: &TenantSeen, offer: &TenantOffer, link: LinkId) -> Next {
    if let Some(access) = tenant.access.clone() {
        let say = Say::IdentityOffer { link, access, to: offer.seal_key };
        return scene.answer(say, LinkState::Ready);
    }
    match &tenant.trouble {
        Some(trouble) if scene.talk.waited(For::Grant, scene.now) > OBJECTION_AFTER => {
            let say = Say::Refusal { link, trouble: trouble.clone() };
            scene.answer(say, objected(scene, trouble)).waiting(For::Grant)
        }
        _ => scene.wait(For::Grant),
    }
}

/// Nothing was offered: is what there is still right?
fn look(scene: &Scene<'_>, tenant: &TenantSeen, nonce: &Nonce, link: LinkId) -> Next {
    let pin = scene.seen.pin.as_ref();
    if pin.is_some() && tenant.key.as_ref() != pin {
        let text = format!("the pin of {} was changed: its new key is waited for", scene.peer);
        return ask(scene, nonce, link, scene.pending(text));
    }
    let standing = match (&tenant.access, &tenant.trouble) {
        (Some(_), _) => Next::ready(),
        (None, Some(trouble)) => {
            // What was wrong with a later offer is newer than what Liqo said of the one before.
            let later = scene.talk.trouble().map(|_| scene.pending(String::new()));
            let state = later.unwrap_or_else(|| objected(scene, trouble));
            scene.wait(For::Grant).with_state(state)
        }
        (None, None) => scene.wait(For::Grant),
    };
    let is_stale = tenant.link.as_ref() != Some(&link);
    if is_stale || scene.talk.called {
        return ask(scene, nonce, link, standing.state);
    }
    standing
}

/// Has the requester offer itself, for the first time or again.
fn ask(scene: &Scene<'_>, nonce: &Nonce, link: LinkId, state: LinkState) -> Next {
    let say = Say::Nonce { nonce: nonce.clone(), link };
    if scene.talk.called { scene.repeat(say, state) } else { scene.say(say, state) }
}

fn objected(scene: &Scene<'_>, trouble: &Trouble) -> LinkState {
    if scene.talk.waited(For::Grant, scene.now) > GRACE {
        LinkState::Failed(trouble.clone())
    } else {
        LinkState::Pending(trouble.clone().into())
    }
}

/// The tenant goes last of all: when no slice of the requester's is left here, and the requester has
/// said that it is done, or nothing for very long.
fn unwanted(scene: &Scene<'_>) -> Next {
    if let Some(rest) = scene.blind() {
        return rest;
    }
    let lent = &scene.seen.lent;
    let place = scene.seen.namespace.as_ref().filter(|place| !place.is_deleting);
    let issued = lent.nonce.as_ref().filter(|issued| issued.is_ours);
    let (Some(place), false) = (place, lent.tenant.is_none() && issued.is_none()) else {
        return match scene.talk.unlink.clone() {
            Some(link) => scene.answer(Say::Unlinked { link }, Next::gone().state),
            None => Next::gone(),
        };
    };
    if lent.tenant.as_ref().is_some_and(|tenant| !tenant.is_ours) {
        return Next::rest(None);
    }
    let Some(since) = place.unused(Side::Provider) else {
        return scene.begin_idling(Side::Provider);
    };
    if lent.slices > 0 {
        return Next::rest(Some(LOOK_AGAIN));
    }
    if let Some(tenant) = lent.tenant.as_ref().filter(|tenant| tenant.is_deleting) {
        debug_assert!(tenant.is_ours);
        return scene.wait(For::TenantGone);
    }
    let nonce = issued.and_then(|issued| issued.nonce.as_ref());
    let link = nonce.map(|nonce| LinkId::derive(scene.peer, scene.me, nonce));
    let is_told = scene.talk.unlink.is_some() && scene.talk.unlink == link;
    let patience = match (is_told, &lent.tenant) {
        // After a start it is not known yet who needs what.
        (true, _) => scene.fresh(),
        (false, Some(_)) => scene.left_of(SILENT_MAX, since),
        (false, None) => scene.left(since),
    };
    match (patience, &lent.tenant) {
        (Some(rest), _) => Next::rest(Some(rest)),
        (None, Some(_)) => Next::step(Step::DeleteTenant),
        (None, None) => Next::step(Step::DeleteNonce),
    }
}
