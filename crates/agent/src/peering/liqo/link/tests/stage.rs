//! A pair of clusters as a decision sees it, and the things that may be in it.

use rcgen::KeyPair;
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_core::time::{Span, Time};

use super::super::seen::{
    Access, Credential, IdentitySeen, Issued, Place, Seen, SignedNonce, TenantSeen,
};
use super::super::step::{Next, Scene, Step, Todo, Wish};
use super::super::talk::Talk;
use super::super::{borrow, lend, next};
use crate::relay::{LinkId, Nonce, PublicKey, TenantOffer, seal};

pub(super) const IDLE: Span = Span::from_secs(600);

pub(super) fn at(seconds: u64) -> Time {
    Time::from_millis(seconds * 1000)
}

pub(super) fn nonce(text: &str) -> Nonce {
    format!("{text}{}", "A".repeat(20)).parse().unwrap()
}

pub(super) fn key() -> PublicKey {
    KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().public_key_pem().parse().unwrap()
}

/// A cluster, and what it knows. It is Rome as the requester and Milan as the provider.
pub(super) struct Case {
    pub(super) seen: Seen,
    pub(super) talk: Talk,
    pub(super) wish: Wish,
    pub(super) up: Span,
    pub(super) now: Time,
}

impl Case {
    pub(super) fn wanted() -> Self {
        let place = Place { is_ours: true, ..Place::default() };
        let seen = Seen { namespace: Some(place), ..Seen::default() };
        let (talk, up) = (Talk::default(), Span::from_secs(3600));
        Self { seen, talk, wish: Wish::Wanted, up, now: at(10_000) }
    }

    /// Nobody needs it since so many seconds.
    pub(super) fn unused(for_seconds: u64) -> Self {
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

    pub(super) fn borrow(&self) -> Next {
        let (rome, milan) = clusters();
        borrow::next(&self.scene(&rome, &milan))
    }

    pub(super) fn lend(&self) -> Next {
        let (rome, milan) = clusters();
        lend::next(&self.scene(&milan, &rome))
    }

    pub(super) fn end(&self) -> Next {
        let (rome, milan) = clusters();
        next::end(&self.scene(&milan, &rome))
    }
}

pub(super) fn clusters() -> (ClusterId, ClusterId) {
    ("rome".parse().unwrap(), "milan".parse().unwrap())
}

pub(super) fn link(nonce: &Nonce) -> LinkId {
    let (rome, milan) = clusters();
    LinkId::derive(&rome, &milan, nonce)
}

pub(super) fn step(next: Next) -> Step {
    match next.todo {
        Todo::Step(step) => step,
        other => panic!("no step, but {other:?}"),
    }
}

pub(super) fn signed(nonce: &Nonce) -> SignedNonce {
    let signature = Some(vec![1]);
    SignedNonce { is_ours: true, nonce: Some(nonce.clone()), signature, is_touched: false }
}

pub(super) fn access(text: &str) -> Access {
    Access { auth_params: json!({ "apiServer": text }), namespace: "liqo-tenant-rome".to_owned() }
}

pub(super) fn identity() -> IdentitySeen {
    let access = access("https://milan");
    IdentitySeen { is_ours: true, is_deleting: false, access, fits: true }
}

pub(super) fn offer(key: &PublicKey) -> TenantOffer {
    let seal_key = seal::Key::generate().unwrap().public();
    TenantOffer { public_key: key.clone(), csr: "csr".to_owned(), signature: vec![2], seal_key }
}

/// The tenant that an offer makes.
pub(super) fn tenant(nonce: &Nonce, offer: &TenantOffer) -> TenantSeen {
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

pub(super) fn issued(nonce: &Nonce) -> Issued {
    Issued { is_ours: true, nonce: Some(nonce.clone()) }
}

pub(super) const LIVE: Option<Credential> = Some(Credential { is_deleting: false, is_held: true });
pub(super) const DYING: Option<Credential> = Some(Credential { is_deleting: true, is_held: true });
