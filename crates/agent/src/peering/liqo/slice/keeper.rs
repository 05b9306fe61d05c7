//! Watches what Liqo makes of our slices, and is the class controller of those that others have here:
//! what is kept is granted, what somebody else changed is put right, what has no instruction is
//! denied. For that it needs nobody but this cluster: an agent that does not hear its broker still
//! keeps what it has promised.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;
use sublet_core::time::Span;
use sublet_crds::condition::Reason;
use sublet_crds::{Obstacle, ProviderInstruction, ReservationInstruction};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::certificate::fault;
use super::ground::{Answer, Ground, Mark};
use super::provider::{Decision, Provider};
use super::requester::Requester;
use super::sweep::{peer_of, side_of};
use super::wakes::Wakes;
use crate::cluster::{code, seen};
use crate::collect::seen::Node;
use crate::controllers::{Outcome, Queue, due};
use crate::peering::liqo::kinds::{ForeignCluster, Quota, ResourceSlice, VirtualNode};
use crate::peering::liqo::names::{CLASS, NODE_TYPE, VIRTUAL_NODE};
use crate::peering::{Removal, WhyNot};
use crate::restraint::restrained;
use crate::transport::Order;

/// How many slices are seen to at the same time.
const AT_ONCE: usize = 8;
/// How long that may take.
const ATTEND_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether Liqo still enforces what is lent.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The same while it does not, or could not be looked.
const LOOK_SOON: Duration = Duration::from_secs(5);
/// How long it is waited for more changes to the lists of webhooks.
const TOGETHER: Duration = Duration::from_millis(100);
/// How many digits of a hash are at the end of the name of a quota.
const HASH_DIGITS: usize = 12;

/// A slice: what this cluster is in it, with whom, and its name.
type Key = (Side, ClusterId, String);
type Watched<K> = BoxStream<'static, watcher::Result<Event<K>>>;

/// When it was looked whether what is lent is enforced.
struct Looked {
    /// It is time again.
    due: Instant,
    /// And not before, whatever happens.
    earliest: Instant,
    /// How often in a row it could not be seen.
    failed: u32,
}

impl Looked {
    fn never(now: Instant) -> Self {
        Self { due: now, earliest: now, failed: 0 }
    }
}

/// The task behind the peering.
pub struct Keeper {
    pub(in crate::peering::liqo) ground: Ground,
    pub(in crate::peering::liqo) requester: Requester,
    pub(in crate::peering::liqo) provider: Provider,
    pub(in crate::peering::liqo) wakes: Arc<Wakes>,
    pub(in crate::peering::liqo) unwilling: watch::Sender<Option<WhyNot>>,
}

impl Keeper {
    /// Keeps until the agent stops; it can be cut anywhere.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = self.keep() => {}
        }
    }

    async fn keep(self) {
        let everything = Config::default();
        let mut slices = watched::<ResourceSlice>(self.ground.all(), everything.clone());
        let mut quotas = watched::<Quota>(self.ground.all(), everything.clone());
        let mut virtual_nodes = watched::<VirtualNode>(self.ground.all(), everything.clone());
        let virtual_only = everything.labels(&format!("{NODE_TYPE}={VIRTUAL_NODE}"));
        let mut nodes = watched::<Node>(self.ground.all(), virtual_only);
        let mut queue = Queue::<Key>::default();
        let mut running = FuturesUnordered::new();
        let (mut validating, mut mutating) = (
            changes::<ValidatingWebhookConfiguration>(&self.ground.client),
            changes::<MutatingWebhookConfiguration>(&self.ground.client),
        );
        let mut clusters = changes::<ForeignCluster>(&self.ground.client);
        // Never begun anew by what else happens.
        let hooks = Notify::new();
        let mut looking = pin!(self.look(Looked::never(Instant::now()), &hooks));
        loop {
            while running.len() < AT_ONCE
                && let Some(key) = queue.pop(Instant::now())
            {
                running.push(self.attend(key));
            }
            tokio::select! {
                Some(event) = slices.next() => {
                    queue_up(&mut queue, seen(event).and_then(|slice| self.notice(&slice)));
                }
                Some(event) = quotas.next() => self.wake(Side::Provider, seen(event).map(slice_of)),
                Some(event) = virtual_nodes.next() => {
                    self.wake(Side::Requester, seen(event).map(|object| object.name_any()));
                }
                Some(event) = nodes.next() => {
                    self.wake(Side::Requester, seen(event).map(|node| node.key().to_owned()));
                }
                Some((key, outcome)) = running.next(), if !running.is_empty() => {
                    queue.done(key, outcome, Instant::now());
                }
                () = due(queue.next_due()), if running.len() < AT_ONCE => {}
                Some(()) = validating.next() => hooks.notify_one(),
                Some(()) = mutating.next() => hooks.notify_one(),
                Some(()) = clusters.next() => hooks.notify_one(),
                again = &mut looking => looking.set(self.look(again, &hooks)),
            }
        }
    }

    /// Something about a slice happened: whoever waits for it is told, and so are we.
    fn notice(&self, slice: &ResourceSlice) -> Option<Key> {
        let side = side_of(slice).filter(|_| slice.spec.class == CLASS)?;
        self.wakes.now(side, &slice.name_any());
        Some((side, peer_of(slice)?, slice.name_any()))
    }

    fn wake(&self, side: Side, name: Option<String>) {
        if let Some(name) = name {
            self.wakes.now(side, &name);
        }
    }

    /// Looks, when it is time or a list of webhooks has changed, whether what is lent is enforced, and whether
    /// a provider that was given up is back.
    async fn look(&self, Looked { due, earliest, failed }: Looked, hooks: &Notify) -> Looked {
        tokio::select! {
            () = sleep_until(due) => {}
            () = hooks.notified() => {
                // What changes together is looked at together, and whoever changes something all the
                // time does not have us look all the time.
                sleep_until(earliest.max(Instant::now() + TOGETHER)).await;
            }
        }
        let seen = timeout(ATTEND_MAX, self.ground.unenforced()).await;
        if let Ok(Err(error)) = timeout(ATTEND_MAX, self.ground.welcome_back()).await {
            tracing::debug!(%error, "whether a provider is back is looked at again");
        }
        let (why, again, failed) = match seen.map_err(|_| "no answer") {
            Ok(Ok(None)) => (None, LOOK_EVERY, 0),
            Ok(Ok(Some(why))) => (Some(why), LOOK_SOON, 0),
            // What was seen last holds for one more look.
            Ok(Err(_)) | Err(_) if failed == 0 => (self.unwilling.borrow().clone(), LOOK_SOON, 1),
            Ok(Err(error)) if code(&error) == Some(403) => {
                let why = format!("{error}; {}", Obstacle::Forbidden.remedy());
                (Some(unseen(&why)), LOOK_SOON, failed.saturating_add(1))
            }
            Ok(Err(error)) => (Some(unseen(&error)), LOOK_SOON, failed.saturating_add(1)),
            Err(error) => (Some(unseen(&error)), LOOK_SOON, failed.saturating_add(1)),
        };
        self.ground.metrics.enforced(why.is_none());
        let is_news = self.unwilling.send_if_modified(|known| {
            let is_news = *known != why;
            known.clone_from(&why);
            is_news
        });
        if is_news {
            if let Some(why) = why {
                tracing::warn!(reason = %why.reason, why = why.message, "this cluster does not lend");
            } else {
                tracing::info!("Liqo keeps what is lent within its bounds");
            }
            self.wakes.everything();
        }
        let now = Instant::now();
        Looked { due: now + again, earliest: now + LOOK_SOON, failed }
    }

    fn attend(&self, key: Key) -> BoxFuture<'_, (Key, Outcome)> {
        async move {
            let (side, peer, name) = &key;
            let attended = timeout(ATTEND_MAX, async {
                match side {
                    Side::Provider => self.attend_lent(peer, name).await,
                    Side::Requester => self.attend_borrowed(peer, name).await,
                }
            });
            let outcome = match attended.await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(error)) => {
                    tracing::debug!(%error, name, "a slice is tried again");
                    Outcome::Retry(None)
                }
                Err(_) => Outcome::Retry(None),
            };
            (key, outcome)
        }
        .boxed()
    }

    /// A slice that another cluster has here.
    async fn attend_lent(&self, peer: &ClusterId, name: &str) -> Answer<Outcome> {
        let _turn = self.ground.turns.take(peer, name).await;
        let slice = self.ground.slices(peer).get_opt(name).await?;
        let recorded = self.ground.recorded::<ProviderInstruction>(name).await?;
        // Whoever has the instruction sees to what is left of it; else nobody does. One that is about another
        // cluster is not about this slice.
        let is_kept = recorded.as_ref().is_some_and(|order| order.peer == *peer);
        let Some(slice) = slice else {
            let over = over(Side::Provider, peer, name);
            return if is_kept {
                Ok(DONE)
            } else {
                self.provider.take_back(&over).await.map(until_gone)
            };
        };
        if slice.metadata.deletion_timestamp.is_some() {
            // One that is held on to, and that nobody else sees to, is taken all the same.
            let is_held = !is_kept && !slice.finalizers().is_empty();
            let over = over(Side::Provider, peer, name);
            return if is_held {
                self.provider.take_back(&over).await.map(until_gone)
            } else {
                Ok(DONE)
            };
        }
        let is_seen_to = is_kept || Mark::Reclaimed.of(&slice).is_some();
        if let Some(fault) = fault(&slice, peer).filter(|_| !is_seen_to) {
            let is_said = self.provider.accuse(peer, &slice, fault).await?;
            return if is_said { self.dismissed(&slice).await } else { Ok(Outcome::Retry(None)) };
        }
        let decision = match recorded {
            // Whoever hears the broker does the rest; what is left when the instruction goes is not his.
            Some(order) if order.peer == *peer && order.duty != Duty::Keep => {
                let grace = Duration::from_millis(self.ground.settings.grace.as_millis());
                return Ok(Outcome::Done(Some(grace)));
            }
            Some(order) if order.peer == *peer => {
                return self.provider.grant(&order).await.map(|_| DONE);
            }
            Some(_) => Decision::for_another(),
            None if Mark::Reclaimed.of(&slice).is_some() => {
                return self
                    .provider
                    .take_back(&over(Side::Provider, peer, name))
                    .await
                    .map(until_gone);
            }
            // What was granted before stays until the broker says otherwise.
            None if slice.is_granted() => return Ok(DONE),
            None if Decision::over().is_said_of(&slice) => return self.dismissed(&slice).await,
            None => match self.grace_of(&slice) {
                Some(rest) => return Ok(Outcome::Done(Some(rest))),
                None => Decision::no_reservation(),
            },
        };
        let is_said = self.provider.deny(&slice, &decision).await?;
        if is_said { self.dismissed(&slice).await } else { Ok(Outcome::Retry(None)) }
    }

    /// A slice that is denied, and has no reservation, is kept for a while: one may come.
    async fn dismissed(&self, slice: &ResourceSlice) -> Answer<Outcome> {
        // What was just said is not seen here yet, and then nothing of this time has passed.
        let is_seen = slice.is_worthless();
        let said = if is_seen { self.ground.said_for(slice) } else { Span::ZERO };
        let rest = self.ground.settings.denied.as_millis().saturating_sub(said.as_millis());
        if rest > 0 {
            return Ok(Outcome::Done(Some(Duration::from_millis(rest))));
        }
        self.provider.discard(slice).await.map(|()| DONE)
    }

    /// How long a slice may still be ahead of its instruction.
    fn grace_of(&self, slice: &ResourceSlice) -> Option<Duration> {
        let age = self.ground.age_of(&slice.metadata).as_millis();
        let rest = self.ground.settings.grace.as_millis().checked_sub(age)?;
        Some(Duration::from_millis(rest)).filter(|rest| !rest.is_zero())
    }

    /// A slice of ours. While it has an instruction, whoever hears the broker sees to it.
    async fn attend_borrowed(&self, peer: &ClusterId, name: &str) -> Answer<Outcome> {
        let slice = self.ground.slices(peer).get_opt(name).await?;
        let is_leaving = slice.is_some_and(|slice| Mark::Leaving.of(&slice).is_some());
        if !is_leaving || self.ground.recorded::<ReservationInstruction>(name).await?.is_some() {
            return Ok(DONE);
        }
        self.requester.release(&over(Side::Requester, peer, name)).await.map(until_gone)
    }
}

const DONE: Outcome = Outcome::Done(None);

fn until_gone(removal: Removal) -> Outcome {
    match removal {
        Removal::Gone => DONE,
        Removal::Pending(_) => Outcome::Retry(None),
    }
}

fn unseen(error: &dyn std::fmt::Display) -> WhyNot {
    WhyNot::new(Reason::EnforcementUnknown, format!("Liqo cannot be looked at: {error}"))
}

/// What is to be done about a slice that nobody wants.
fn over(side: Side, peer: &ClusterId, name: &str) -> Order {
    Order {
        reservation: name.to_owned(),
        side,
        peer: peer.clone(),
        duty: Duty::Gone,
        amounts: Resources::default(),
        expires_at: None,
        generation: None,
    }
}

/// The slice that a quota is of.
fn slice_of(quota: Quota) -> String {
    let name = quota.name_any();
    let end = name.len().saturating_sub(HASH_DIGITS + 1);
    name.get(..end).unwrap_or_default().to_owned()
}

fn queue_up(queue: &mut Queue<Key>, key: Option<Key>) {
    if let Some(key) = key {
        queue.push(key);
    }
}

fn watched<K>(api: Api<K>, config: Config) -> Watched<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(api, config).default_backoff().boxed()
}

/// Whenever one of these is made, changed or removed. That an agent with an older role may not watch them is
/// said where they are looked at; then it is noticed at the next look.
fn changes<K>(client: &Client) -> BoxStream<'static, ()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(client.clone());
    let matters = |event: watcher::Result<Event<_>>| async move {
        match event {
            Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone) => Some(()),
            Ok(Event::Init | Event::InitApply(_)) => None,
            Err(error) => {
                tracing::debug!(%error, "a watch was cut; it is opened again");
                None
            }
        }
    };
    restrained(watcher(api, Config::default()).default_backoff()).filter_map(matters).boxed()
}
