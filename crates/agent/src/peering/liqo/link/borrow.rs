//! What to do next as the requester of a pair, given what there is: pure.
//!
//! Nothing here depends on how it came to be. A nonce that was signed, an identity that is there and
//! fits: those are the state, and they are Liqo's own objects. So it can be cut anywhere, and what
//! somebody removed by hand is made again.

use sublet_core::instruction::Side;
use sublet_core::time::Span;

use super::LinkState;
use super::seen::{Credential, IdentitySeen, SignedNonce};
use super::step::{For, LIQO_MAX, LOOK_AGAIN, Next, Say, Scene, Step, Wish};
use super::trouble::{Reason, Trouble};
use crate::relay::{LinkId, Nonce};

/// How long Liqo may take to sign a nonce before it is made to look again.
const RESIGN_AFTER: Span = Span::from_secs(3);
/// How long the provider is told that the link is gone here, if it does not answer.
const TELL_MAX: Span = Span::from_secs(3600);

/// What to do next.
pub(super) fn next(scene: &Scene<'_>) -> Next {
    match scene.wish {
        Wish::Wanted => wanted(scene),
        Wish::Unknown | Wish::Unused => unwanted(scene),
    }
}

fn wanted(scene: &Scene<'_>) -> Next {
    if let Some(first) = scene.prepare(Side::Requester) {
        return first;
    }
    let borrowed = &scene.seen.borrowed;
    if let Some(identity) = &borrowed.identity {
        return with_identity(scene, identity);
    }
    match (borrowed.credential, &scene.talk.access) {
        // Liqo keeps it for the slices that live, and they for it. What replicates them goes on, and
        // takes the next one.
        (Some(Credential { is_deleting: true, is_held: true }), _) if borrowed.slices > 0 => {
            Next::step(Step::FreeCredential)
        }
        (Some(_), _) => going(scene),
        (None, Some(access)) => Next::step(Step::WriteIdentity(link(scene), access.clone())),
        (None, None) => offer(scene),
    }
}

fn with_identity(scene: &Scene<'_>, identity: &IdentitySeen) -> Next {
    if identity.is_deleting {
        return scene.wait(For::IdentityGone);
    }
    let credential = scene.seen.borrowed.credential;
    let is_usable = credential.is_some_and(|credential| !credential.is_deleting);
    match &scene.talk.access {
        _ if !identity.is_ours && identity.fits && is_usable => Next::ready(),
        _ if !identity.is_ours => Next::failed(Trouble::new(
            Reason::NotOurs,
            "the identity of this cluster at the provider was made by somebody else, and does not work",
        )),
        Some(access) if *access != identity.access => {
            Next::step(Step::WriteIdentity(link(scene), access.clone()))
        }
        _ if !identity.fits => offer(scene),
        _ if !is_usable => scene.wait(For::Kubeconfig),
        // The provider has lost its side; what is here goes on working, and helps to repair it.
        _ if scene.talk.asked.is_some() => offer(scene).with_state(LinkState::Ready),
        _ => Next::ready(),
    }
}

/// Offers to be a tenant, from the nonce on.
fn offer(scene: &Scene<'_>) -> Next {
    let signed = scene.seen.borrowed.signed.as_ref();
    let asked = scene.talk.asked.as_ref();
    let Some(nonce) = asked.or_else(|| signed.and_then(|signed| signed.nonce.as_ref())) else {
        let text = format!("{} was asked for a nonce", scene.peer);
        return scene.say(Say::Call, scene.pending(text));
    };
    match signed {
        Some(signed) if signed.nonce.as_ref() == Some(nonce) => signed_offer(scene, signed, nonce),
        _ => Next::step(Step::WriteSigned(nonce.clone())),
    }
}

fn signed_offer(scene: &Scene<'_>, signed: &SignedNonce, nonce: &Nonce) -> Next {
    let Some(signature) = signed.signature.clone() else {
        let waited = scene.talk.waited(For::Signature, scene.now);
        if waited > RESIGN_AFTER && !signed.is_touched {
            return Next::step(Step::Resign).waiting(For::Signature);
        }
        return scene.wait(For::Signature);
    };
    let link = LinkId::derive(scene.me, scene.peer, nonce);
    let say = Say::TenantOffer { link, signature };
    let state = scene.pending(format!("{} was offered the identity of this cluster", scene.peer));
    match scene.talk.asked {
        Some(_) => scene.repeat(say, state),
        None => scene.say(say, state),
    }
}

/// The link that the signed nonce makes.
fn link(scene: &Scene<'_>) -> LinkId {
    let nonce = scene.seen.borrowed.signed.as_ref().and_then(|signed| signed.nonce.as_ref());
    nonce.map_or_else(LinkId::none, |nonce| LinkId::derive(scene.me, scene.peer, nonce))
}

/// The kubeconfig of an identity that is gone. Liqo keeps it until nothing of this cluster is left at the
/// provider, and never learns that if the provider, which ended the link first, does not let it in any more.
fn going(scene: &Scene<'_>) -> Next {
    let credential = scene.seen.borrowed.credential;
    let is_held = credential == Some(Credential { is_deleting: true, is_held: true });
    if is_held && scene.talk.waited(For::CredentialGone, scene.now) > LIQO_MAX {
        return Next::step(Step::FreeCredential).waiting(For::CredentialGone);
    }
    scene.wait(For::CredentialGone)
}

/// First the identity, then the provider is told, then the rest: so nobody is left with slices that
/// cannot be removed.
fn unwanted(scene: &Scene<'_>) -> Next {
    if let Some(rest) = scene.blind() {
        return rest;
    }
    let borrowed = &scene.seen.borrowed;
    let Some(place) = scene.seen.namespace.as_ref().filter(|place| !place.is_deleting) else {
        return Next::gone();
    };
    let nothing = borrowed.identity.is_none() && borrowed.credential.is_none();
    let signed = borrowed.signed.as_ref().filter(|signed| signed.is_ours);
    if nothing && signed.is_none() {
        // Where it is not ours, somebody else sees to it.
        let ours = scene.stranded().filter(|_| place.is_ours && borrowed.slices == 0);
        return ours.unwrap_or_else(Next::gone);
    }
    if borrowed.identity.as_ref().is_some_and(|identity| !identity.is_ours) {
        return Next::rest(None);
    }
    let Some(since) = place.unused(Side::Requester) else {
        return scene.begin_idling(Side::Requester);
    };
    if let Some(left) = scene.left(since) {
        return Next::rest(Some(left));
    }
    match (&borrowed.identity, borrowed.credential, signed) {
        _ if borrowed.slices > 0 => Next::rest(Some(LOOK_AGAIN)),
        (Some(identity), ..) if identity.is_deleting => scene.wait(For::IdentityGone),
        (Some(_), ..) => Next::step(Step::DeleteIdentity),
        (None, Some(_), _) => going(scene),
        (None, None, signed) => scene.stranded().unwrap_or_else(|| match signed {
            Some(SignedNonce { nonce: Some(_), .. }) => tell(scene),
            _ => Next::step(Step::DeleteSigned),
        }),
    }
}

/// The provider takes its side down when it knows that this one is.
fn tell(scene: &Scene<'_>) -> Next {
    let link = link(scene);
    let waited = scene.talk.waited(For::Unlinked, scene.now);
    if scene.talk.unlinked.as_ref() == Some(&link) || waited > TELL_MAX {
        return Next::step(Step::DeleteSigned);
    }
    let state = LinkState::Pending(format!("{} is told that the link is gone", scene.peer).into());
    scene.say(Say::Unlink { link }, state).waiting(For::Unlinked)
}
