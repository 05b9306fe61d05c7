//! One round of work on a pair: look, take the next step of either direction, look again, until there
//! is nothing more to do now.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::{Span, Time};

use super::super::names;
use super::caution::{is_harmless, still_so};
use super::ground::{Ground, remove, remove_this};
use super::keys::Keys;
use super::letters::{Letters, Matter};
use super::memory::{Both, Memory};
use super::observe::{Freshness, Look};
use super::pins::Pins;
use super::seen::Seen;
use super::step::{GRACE, Next, Scene, Step, Todo, Wish};
use super::trouble::{Reason, Trouble};
use super::{Error, Hook, LinkState, borrow, lend, next};
use crate::peering::Why;
use crate::peering::answer::meaning;

/// More steps than any link needs in one go.
const STEPS_MAX: usize = 24;
/// How long a round may take: only so many pairs are worked on at once, and an API server that accepts
/// what it never answers must not keep the others waiting.
const ROUND_MAX: Duration = Duration::from_secs(30);

/// What every round works with.
pub(super) struct Office {
    pub(super) client: Client,
    pub(super) me: ClusterId,
    pub(super) pins: Pins,
    pub(super) letters: Letters,
    pub(super) idle: Span,
    pub(super) settling: Span,
    pub(super) clock: fn() -> Time,
    pub(super) hook: Option<Hook>,
}

/// One round.
pub(super) struct Round {
    pub(super) office: Arc<Office>,
    pub(super) peer: ClusterId,
    pub(super) wishes: Both<Wish>,
    /// Since when this agent is at work.
    pub(super) up: Span,
    pub(super) memory: Memory,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) peer: ClusterId,
    pub(super) memory: Memory,
    /// How it stands; none if that could not be found out.
    pub(super) states: Both<Option<LinkState>>,
    /// And then, why not.
    pub(super) excuse: Option<Why>,
    pub(super) after: After,
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Soon, and ever less soon.
    Poll,
    /// After that, or when something changes.
    Rest(Option<Span>),
    /// There is nothing to look at.
    Forget,
}

impl Round {
    pub(super) async fn run(mut self) -> Outcome {
        let (mut states, mut excuse) = (Both::default(), None);
        let after = match within(ROUND_MAX, Box::pin(self.steps(&mut states))).await {
            Ok(after) => after,
            Err(Error::Trouble(trouble)) => {
                states = Both {
                    provider: Some(LinkState::Failed(trouble.clone())),
                    requester: Some(LinkState::Failed(trouble)),
                };
                After::Rest(Some(GRACE))
            }
            Err(Error::Kube(error)) => {
                excuse = Some(meaning(&error));
                states = Both::default();
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, peer = %self.peer, "a link is tried again");
                After::Poll
            }
            Err(error @ Error::Late(_)) => {
                // Wherever it was cut: what there is is the state, and is looked at again.
                tracing::warn!(%error, peer = %self.peer, "a link is tried again");
                excuse = Some(Why::hindered(Reason::ApiServerSilent, error.to_string()));
                states = Both::default();
                After::Poll
            }
        };
        for side in [Side::Provider, Side::Requester] {
            if let Some(state) = states.of(side) {
                *self.memory.is_missing.of_mut(side) = *state != LinkState::Ready;
            }
        }
        self.memory.polls = if after == After::Poll { self.memory.polls + 1 } else { 0 };
        Outcome { peer: self.peer, memory: self.memory, states, excuse, after }
    }

    async fn steps(&mut self, states: &mut Both<Option<LinkState>>) -> Result<After, Error> {
        let office = Arc::clone(&self.office);
        let ground = Ground::new(&office.client, &self.peer);
        let keys = keys(&office.client).await?;
        let (mut known, mut exactly) = (None, !self.is_wanted());
        for _ in 0..STEPS_MAX {
            let now = (office.clock)();
            let freshness = if exactly { Freshness::Exact } else { Freshness::AtHand };
            let look = Look { ground: &ground, pins: &office.pins, keys: &keys, now, freshness };
            let mut seen = match known.take() {
                Some(seen) => seen,
                None => look.run().await?,
            };
            if seen.namespace.is_none() {
                self.memory.is_missing = Both { provider: true, requester: true };
            }
            self.read_mail(&mut seen, now).await?;
            let (nexts, step) = self.next(&seen, now);
            if !exactly && self.is_grave(&nexts, step.as_ref()) {
                exactly = true;
                continue;
            }
            *states = Both {
                provider: Some(nexts.provider.state.clone()),
                requester: Some(nexts.requester.state.clone()),
            };
            let Some((side, step)) = step else {
                let after = self.after(&nexts, &seen, now);
                if seen.is_barred && after != After::Poll {
                    let namespace = &ground.namespace;
                    tracing::warn!(namespace, "the agent may not look into it: left as it is");
                }
                return Ok(after);
            };
            tracing::debug!(peer = %self.peer, ?side, ?step, "a step of a link");
            self.memory.polls = 0;
            let word = step.word();
            known = still_so(seen, &step);
            self.take(&ground, &keys, (side, step), now).await?;
            if let Some(hook) = &office.hook {
                hook(word).await;
            }
        }
        Ok(After::Poll)
    }

    /// Does anybody need the link, in either direction?
    fn is_wanted(&self) -> bool {
        [Side::Provider, Side::Requester].iter().any(|side| *self.wishes.of(*side) == Wish::Wanted)
    }

    /// Would it be wrong to do this, or to say so, if what there is has changed a moment ago? Whatever takes
    /// something away, or ends something, follows from an exact look.
    fn is_grave(&self, nexts: &Both<Next>, step: Option<&(Side, Step)>) -> bool {
        let ends = |side: Side| match nexts.of(side).state {
            LinkState::Ready => false,
            LinkState::Failed(_) => true,
            LinkState::Pending(_) => {
                *self.wishes.of(side) == Wish::Wanted && !self.memory.is_missing.of(side)
            }
        };
        ends(Side::Provider)
            || ends(Side::Requester)
            || step.is_some_and(|(_, step)| !is_harmless(step))
    }

    /// What is next for either direction, and the first of it that is a step.
    fn next(&mut self, seen: &Seen, now: Time) -> (Both<Next>, Option<(Side, Step)>) {
        let mut nexts = Both { provider: Next::gone(), requester: Next::gone() };
        let mut step = None;
        for side in [Side::Provider, Side::Requester] {
            let is_wanted = *self.wishes.of(side) == Wish::Wanted;
            let talk = self.memory.talks.of_mut(side);
            talk.settle(seen);
            if !is_wanted {
                talk.calm();
            }
            let next = match side {
                Side::Provider => lend::next(&self.scene(side, seen, now)),
                Side::Requester => borrow::next(&self.scene(side, seen, now)),
            };
            self.memory.talks.of_mut(side).wait(next.waiting, now);
            if let (Todo::Step(first), None) = (&next.todo, &step) {
                step = Some((side, first.clone()));
            }
            *nexts.of_mut(side) = next;
        }
        if nexts.provider.todo == Todo::Gone && nexts.requester.todo == Todo::Gone {
            // Who has said that one direction is not needed any more knows the pair.
            let is_silent = self.wishes.provider == Wish::Unknown;
            let side = if is_silent { Side::Requester } else { Side::Provider };
            let end = next::end(&self.scene(side, seen, now));
            if let Todo::Step(first) = &end.todo {
                step = Some((Side::Provider, first.clone()));
            }
            nexts.provider = end;
        }
        (nexts, step)
    }

    fn scene<'a>(&'a self, side: Side, seen: &'a Seen, now: Time) -> Scene<'a> {
        Scene {
            me: &self.office.me,
            peer: &self.peer,
            seen,
            talk: self.memory.talks.of(side),
            wish: *self.wishes.of(side),
            idle: self.office.idle,
            up: self.up,
            settling: self.office.settling,
            now,
        }
    }

    fn after(&self, nexts: &Both<Next>, seen: &Seen, now: Time) -> After {
        let both = [&nexts.provider.todo, &nexts.requester.todo];
        if both.contains(&&Todo::Poll) {
            return After::Poll;
        }
        if both.iter().all(|todo| **todo == Todo::Gone) {
            let is_theirs = seen.namespace.is_some();
            return match self.memory.left(now) {
                None if !is_theirs => After::Forget,
                left => After::Rest(left),
            };
        }
        let rests = both.iter().filter_map(|todo| match todo {
            Todo::Rest(after) => *after,
            _ => None,
        });
        After::Rest(rests.min())
    }

    /// Reads what came, if its key is the pinned one. The first key of a cluster that we have to do
    /// with is pinned; what comes from any other waits for that.
    async fn read_mail(&mut self, seen: &mut Seen, now: Time) -> Result<(), Error> {
        for side in [Side::Provider, Side::Requester] {
            let Some(opened) = self.memory.mail.of_mut(side).take() else { continue };
            // Whosever key it is of: what is old is no trouble of today.
            if let Err(error) = self.memory.talks.of(side).admit(&opened, now) {
                self.office.letters.refuse(self.peer.as_str(), &error);
                continue;
            }
            let is_wanted = *self.wishes.of(side) == Wish::Wanted;
            let pinned = match &seen.pin {
                Some(pinned) => pinned.clone(),
                None if is_wanted => {
                    let pinned = match self.office.pins.pin(&self.peer, &opened.liqo_key).await {
                        Ok(pinned) => pinned,
                        Err(error) => {
                            *self.memory.mail.of_mut(side) = Some(opened);
                            return Err(error);
                        }
                    };
                    seen.pin = Some(pinned.clone());
                    pinned
                }
                None => {
                    *self.memory.mail.of_mut(side) = Some(opened);
                    continue;
                }
            };
            let talk = self.memory.talks.of_mut(side);
            let letters = &self.office.letters;
            if opened.liqo_key != pinned {
                let strange = letters.strange(opened, &pinned);
                match side {
                    Side::Provider => talk.object(strange.link, strange.trouble, now),
                    Side::Requester => talk.stumble(strange.trouble, now),
                }
            } else if let Err(error) = talk.read(opened, &self.office.me, now) {
                letters.refuse(self.peer.as_str(), &error);
            }
        }
        Ok(())
    }

    async fn take(
        &mut self,
        ground: &Ground,
        keys: &Keys,
        (side, step): (Side, Step),
        now: Time,
    ) -> Result<(), Error> {
        match step {
            Step::MakeNamespace => ground.make_namespace().await,
            Step::Bind => ground.bind().await,
            Step::MarkUsed(side) => ground.mark(side, None).await,
            Step::MarkUnused(side, since) => ground.mark(side, Some(since)).await,
            Step::MakeNonce => ground.make_nonce().await,
            Step::DeleteCertificate => remove(&ground.secrets, names::TENANT_CERTIFICATE).await,
            Step::WriteTenant(link, offer) => ground.write_tenant(&link, &offer, now).await,
            Step::DeleteTenant => remove(&ground.tenants, self.peer.as_str()).await,
            Step::DeleteNonce => ground.delete_nonce().await,
            Step::WriteSigned(nonce) => ground.write_signed(&nonce).await,
            Step::Resign => ground.resign(keys).await,
            Step::WriteIdentity(link, access) => {
                ground.write_identity(&link, &access).await?;
                self.memory.talks.requester.access = None;
                Ok(())
            }
            Step::FreeCredential => ground.free_credential().await,
            Step::DeleteIdentity => ground.delete_identity().await,
            Step::FreeStranded => ground.free_stranded().await,
            Step::DeleteSigned => remove(&ground.secrets, names::SIGNED_NONCE_SECRET).await,
            Step::MarkForeign => ground.mark_foreign().await,
            Step::DeleteNamespace(uid) => {
                remove_this(&ground.namespaces, &ground.namespace, uid).await
            }
            Step::DeleteForeign => remove(&ground.foreign, self.peer.as_str()).await,
            Step::Say(say) => {
                let matter = Matter { peer: &self.peer, side, keys, now };
                self.office.letters.say(&matter, &say, self.memory.talks.of_mut(side)).await;
                Ok(())
            }
        }
    }
}

/// What comes of it in this time.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(Error::Late(limit)))
}

/// The Liqo key of this cluster, as it is now.
async fn keys(client: &Client) -> Result<Keys, Error> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), names::LIQO_NAMESPACE);
    let secret = secrets.get_opt(names::KEYS_SECRET).await?;
    let missing = || {
        let name = format!("{}/{}", names::LIQO_NAMESPACE, names::KEYS_SECRET);
        Error::Trouble(Trouble::new(Reason::NoLiqo, format!("there is no Secret {name}")))
    };
    let data = secret.and_then(|secret| secret.data).ok_or_else(missing)?;
    let private = data.get("privateKey").ok_or_else(missing)?;
    Keys::read(&private.0).map_err(Error::Trouble)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_never_answered_ends_all_the_same() {
        let limit = Duration::from_millis(1);
        let never = within(limit, std::future::pending::<Result<(), Error>>()).await;
        assert!(matches!(never, Err(Error::Late(late)) if late == limit));
        assert!(within(limit, async { Ok(()) }).await.is_ok());
    }
}
