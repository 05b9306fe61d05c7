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
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};
use sublet_core::resources::Resources;
use sublet_core::time::Span;
use sublet_crds::{ProviderInstruction, ReservationInstruction};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::certificate::fault;
use super::foreign::{self, Foreign};
use super::ground::{Answer, Ground, Mark};
use super::guard::Guard;
use super::pages::PAGE;
use super::provider::{Decision, Provider};
use super::requester::Requester;
use super::sweep::{peer_of, side_of};
use super::wakes::Wakes;
use crate::cluster::seen;
use crate::collect::seen::Node;
use crate::controllers::{Outcome, Queue, due};
use crate::peering::Removal;
use crate::peering::liqo::kinds::{Quota, ResourceSlice, VirtualNode};
use crate::peering::liqo::names::{CLASS, NODE_TYPE, VIRTUAL_NODE};
use crate::transport::Order;

/// How many slices are seen to at the same time.
const AT_ONCE: usize = 8;
/// How long that may take.
const ATTEND_MAX: Duration = Duration::from_secs(30);
/// How many digits of a hash are at the end of the name of a quota.
const HASH_DIGITS: usize = 12;

/// A slice: what this cluster is in it, with whom, and its name.
type Key = (Side, ClusterId, String);
type Watched<K> = BoxStream<'static, watcher::Result<Event<K>>>;

/// The task behind the peering.
pub struct Keeper {
    pub(in crate::peering::liqo) ground: Ground,
    pub(in crate::peering::liqo) requester: Requester,
    pub(in crate::peering::liqo) provider: Provider,
    pub(in crate::peering::liqo) wakes: Arc<Wakes>,
    pub(in crate::peering::liqo) guard: Guard,
    pub(in crate::peering::liqo) foreign: Foreign,
}

impl Keeper {
    /// Keeps until the agent stops; it can be cut anywhere.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = self.keep() => {}
        }
    }

    async fn keep(&self) {
        let everything = Config::default().page_size(PAGE);
        let mut slices = watched::<ResourceSlice>(self.ground.all(), everything.clone());
        let mut quotas = watched::<Quota>(self.ground.all(), everything.clone());
        let mut virtual_nodes = watched::<VirtualNode>(self.ground.all(), everything.clone());
        let virtual_only = everything.labels(&format!("{NODE_TYPE}={VIRTUAL_NODE}"));
        let mut nodes = watched::<Node>(self.ground.all(), virtual_only);
        let mut queue = Queue::<Key>::default();
        let mut running = FuturesUnordered::new();
        let mut saying = FuturesUnordered::new();
        let mut guarding = pin!(self.guard.watch(&self.provider, &self.wakes));
        let mut upholding = pin!(self.ground.uphold_policies());
        let mut visited = self.provider.watch_visitors().boxed();
        loop {
            while running.len() < AT_ONCE
                && let Some(key) = queue.pop(Instant::now())
            {
                running.push(self.attend(key));
            }
            tokio::select! {
                Some(event) = slices.next() => {
                    let slice = seen(event);
                    queue_up(&mut queue, slice.as_ref().and_then(|slice| self.notice(slice)));
                    if let Some(slice) = slice.filter(|slice| self.is_foreign(slice)) {
                        foreign::note(&self.ground.metrics, &slice);
                        queue_up(&mut queue, key_of(Side::Provider, &slice));
                        // With so many at once, the log and the count say it.
                        if saying.len() < AT_ONCE {
                            saying.push(self.foreign.tell(slice).boxed());
                        }
                    }
                }
                Some(()) = saying.next(), if !saying.is_empty() => {}
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
                () = &mut guarding => {}
                () = &mut upholding => {}
                () = &mut visited => {}
            }
        }
    }

    /// Something about a slice happened: whoever waits for it is told, and so are we.
    fn notice(&self, slice: &ResourceSlice) -> Option<Key> {
        let side = side_of(slice).filter(|_| slice.spec.class == CLASS)?;
        self.wakes.now(side, &slice.name_any());
        key_of(side, slice)
    }

    /// Is it one that another cluster has here, of another class, and not said yet?
    fn is_foreign(&self, slice: &ResourceSlice) -> bool {
        let is_lent = side_of(slice) == Some(Side::Provider) && peer_of(slice).is_some();
        is_lent && slice.spec.class != CLASS && self.foreign.is_news(slice)
    }

    fn wake(&self, side: Side, name: Option<String>) {
        if let Some(name) = name {
            self.wakes.now(side, &name);
        }
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
        if slice.spec.class != CLASS {
            let is_going = self.provider.expel(peer, &slice).await?;
            return Ok(if is_going { Outcome::Retry(None) } else { DONE });
        }
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

    /// A slice of ours. While it has an instruction, whoever hears the broker sees to it; Liqo is reminded of it here.
    async fn attend_borrowed(&self, peer: &ClusterId, name: &str) -> Answer<Outcome> {
        let slice = self.ground.slices(peer).get_opt(name).await?;
        if let Some(slice) = slice.as_ref().filter(|slice| Mark::Leaving.of(slice).is_none()) {
            let again = self.requester.refresh(peer, slice).await?;
            return Ok(Outcome::Done(again.map(|span| Duration::from_millis(span.as_millis()))));
        }
        if slice.is_none() || self.ground.recorded::<ReservationInstruction>(name).await?.is_some()
        {
            return Ok(DONE);
        }
        self.requester.release(&over(Side::Requester, peer, name)).await.map(until_gone)
    }
}

const DONE: Outcome = Outcome::Done(None);

fn key_of(side: Side, slice: &ResourceSlice) -> Option<Key> {
    Some((side, peer_of(slice)?, slice.name_any()))
}

fn until_gone(removal: Removal) -> Outcome {
    match removal {
        Removal::Gone => DONE,
        Removal::Pending(_) => Outcome::Retry(None),
    }
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
