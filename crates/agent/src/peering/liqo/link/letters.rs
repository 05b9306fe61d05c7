//! Writes letters to other clusters, and judges those that come.

use std::sync::Arc;

use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::{Span, Time};
use sublet_wire::v1::Message;

use super::Post;
use super::keys::Keys;
use super::step::Say;
use super::talk::Talk;
use super::trouble::{Reason, Trouble};
use crate::relay::{Content, Error, Header, LinkId, Opened, Signer, TenantOffer, Verifier, seal};
use crate::transport;

/// How long a letter is good. The broker keeps it as long, for a receiver that is not there.
const LIFE: Span = Span::from_secs(120);

/// The letters of this cluster.
pub(super) struct Letters {
    pub(super) me: ClusterId,
    pub(super) signer: Signer,
    pub(super) verifier: Verifier,
    pub(super) post: Arc<dyn Post>,
}

/// What a letter is about: which cluster, and what this one is in it.
pub(super) struct Matter<'a> {
    pub(super) peer: &'a ClusterId,
    pub(super) side: Side,
    pub(super) keys: &'a Keys,
    pub(super) now: Time,
}

impl Letters {
    /// Says something to a peer. What went wrong stays in the talk, and it is tried again.
    pub(super) async fn say(&self, matter: &Matter<'_>, say: &Say, talk: &mut Talk) {
        let now = matter.now;
        match self.write(matter, say, talk) {
            Ok(message) => match self.post.send(&message).await {
                Ok(()) => talk.said(say, now),
                Err(error) => {
                    tracing::debug!(%error, peer = %matter.peer, "a letter was not sent");
                    if matches!(error, transport::Error::NoMessages) {
                        talk.stumble(Trouble::new(Reason::BrokerTooOld, error.to_string()), now);
                    }
                    talk.not_said(error.to_string(), now);
                }
            },
            Err(trouble) => {
                tracing::warn!(%trouble, peer = %matter.peer, "a letter cannot be written");
                talk.not_said(trouble.message.clone(), now);
                talk.stumble(trouble, now);
            }
        }
    }

    fn write(&self, matter: &Matter<'_>, say: &Say, talk: &mut Talk) -> Result<Message, Trouble> {
        let requester = match matter.side {
            Side::Requester => &self.me,
            Side::Provider => matter.peer,
        };
        let header = Header {
            from: self.me.clone(),
            to: matter.peer.clone(),
            requester: requester.clone(),
            link: say.link(),
            expires_at: talk.expiry(matter.now, LIFE),
        };
        let unwritten = |error: Error| Trouble::new(Reason::KeyUnusable, error.to_string());
        let content = self.content(matter, say, talk, &header)?;
        let letter = header.letter(content);
        let content = self.signer.write(&letter, &matter.keys.liqo).map_err(unwritten)?;
        let slot = match matter.side {
            Side::Requester => "link-requester",
            Side::Provider => "link-provider",
        };
        Ok(Message {
            to: matter.peer.to_string(),
            slot: slot.to_owned(),
            content,
            ttl: Some(LIFE.to_string()),
            ..Message::default()
        })
    }

    fn content(
        &self,
        matter: &Matter<'_>,
        say: &Say,
        talk: &mut Talk,
        header: &Header,
    ) -> Result<Content, Trouble> {
        let unsealed = |error: Error| Trouble::new(Reason::KeyUnusable, error.to_string());
        Ok(match say {
            Say::Call => Content::Call,
            Say::Nonce { nonce, .. } => Content::Nonce { nonce: nonce.clone() },
            Say::TenantOffer { link, signature } => {
                let key = seal::Key::generate().map_err(unsealed)?;
                let offer = TenantOffer {
                    public_key: matter.keys.public().clone(),
                    csr: matter.keys.csr(&self.me)?,
                    signature: signature.clone(),
                    seal_key: key.public(),
                };
                talk.key = Some((link.clone(), key));
                Content::TenantOffer(offer)
            }
            Say::IdentityOffer { access, to, .. } => {
                let plain = serde_json::to_vec(access).unwrap_or_default();
                let sealed = seal::Lock(*to).seal(&plain, header).map_err(unsealed)?;
                Content::IdentityOffer { sealed }
            }
            Say::Refusal { trouble, .. } => {
                Content::Refusal { reason: trouble.objection(), message: trouble.told() }
            }
            Say::Unlink { .. } => Content::Unlink,
            Say::Unlinked { .. } => Content::Unlinked,
        })
    }

    /// Opens what came; none if it is not believed, which is counted and logged.
    pub(super) fn open(&self, message: &Message, now: Time) -> Option<Opened> {
        self.verifier.open(message, now).ok()
    }

    /// A letter whose key is not the pinned one: who it was from is not known after all.
    pub(super) fn strange(&self, opened: Opened, pinned: &crate::relay::PublicKey) -> Strange {
        let (from, link) = (opened.letter.header.from.clone(), opened.letter.header.link.clone());
        let found = opened.liqo_key.fingerprint();
        let why = match opened.pinned_to(pinned) {
            Err(error) => {
                self.verifier.refuse(from.as_str(), &error);
                let pinned = pinned.fingerprint();
                format!("the Liqo key of {from} is {found}, but {pinned} is pinned for it")
            }
            Ok(_) => String::new(),
        };
        Strange { link, trouble: Trouble::new(Reason::KeyNotPinned, why) }
    }

    /// A letter that does not fit what was said before, or into what is kept.
    pub(super) fn refuse(&self, from: &str, error: &Error) {
        self.verifier.refuse(from, error);
    }
}

/// A letter of a key that is not pinned.
pub(super) struct Strange {
    pub(super) link: LinkId,
    pub(super) trouble: Trouble,
}
