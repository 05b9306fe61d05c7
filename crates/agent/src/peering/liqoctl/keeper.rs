//! The task behind the peering: sees to one pair after the other, and to each at most once at a time,
//! so that liqoctl is never run twice on the same two clusters. It also watches what Liqo makes of it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use sublet_core::id::ClusterId;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Site;
use super::names::PEERED_BY;
use crate::cluster::seen;
use crate::controllers::{Outcome, Queue, due};
use crate::peering::liqo::kinds::{Quota, ResourceSlice, Tenant};
use crate::peering::liqo::names::{
    NODE_TYPE, REMOTE_CLUSTER_ID, TENANT_NAMESPACE, VIRTUAL_NODE, tenant_of,
};

/// How many pairs are seen to at the same time: each may be a process.
const AT_ONCE: usize = 4;
/// How often what stays as it should be is looked at without any reason.
const LOOK_EVERY: Duration = Duration::from_mins(1);

type Meta<K> = PartialObjectMeta<K>;
type Watched<K> = BoxStream<'static, watcher::Result<Event<Meta<K>>>>;

/// The task behind the peering.
pub struct Keeper(pub(super) Arc<Site>);

impl Keeper {
    /// Sees to pairs until the agent stops; it can be cut anywhere, and liqoctl ends with it.
    pub async fn run(self, mut stopping: watch::Receiver<bool>) {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = self.keep() => {}
        }
    }

    async fn keep(self) {
        let site = &self.0;
        let all = Config::default();
        let labelled = |label: &str| all.clone().labels(label);
        let mut slices = watched::<ResourceSlice>(site, all.clone());
        let mut quotas = watched::<Quota>(site, all.clone());
        let mut tenants = watched::<Tenant>(site, all.clone());
        let mut nodes = watched::<Node>(site, labelled(&format!("{NODE_TYPE}={VIRTUAL_NODE}")));
        // Those that are ours, for what is left of what was begun before a restart.
        let (label, value) = PEERED_BY;
        let ours = format!("{TENANT_NAMESPACE}=true,{label}={value}");
        let mut namespaces = watched::<Namespace>(site, labelled(&ours));
        let mut queue = Queue::<ClusterId>::default();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < AT_ONCE
                && let Some(peer) = queue.pop(Instant::now())
            {
                running.push(attend(site, peer));
            }
            let changed = tokio::select! {
                peer = site.board.due() => {
                    queue.push(peer);
                    None
                }
                Some(event) = slices.next() => seen(event).and_then(|slice| of_namespace(&slice)),
                Some(event) = quotas.next() => seen(event).and_then(|quota| of_namespace(&quota)),
                Some(event) = tenants.next() => seen(event).and_then(|it| of_namespace(&it)),
                Some(event) = nodes.next() => seen(event).and_then(|node| of_label(&node)),
                Some(event) = namespaces.next() => seen(event).and_then(|it| of_label(&it)),
                Some((peer, outcome)) = running.next(), if !running.is_empty() => {
                    site.board.seen_to(&peer, outcome == Outcome::Done(None));
                    queue.done(peer, or_later(outcome), Instant::now());
                    None
                }
                () = due(queue.next_due()), if running.len() < AT_ONCE => None,
            };
            if let Some(peer) = changed {
                site.board.wake(&peer);
                queue.push(peer);
            }
        }
    }
}

fn attend(site: &Site, peer: ClusterId) -> BoxFuture<'_, (ClusterId, Outcome)> {
    async move {
        let outcome = site.see_to(&peer).boxed().await.unwrap_or_else(|error| {
            tracing::warn!(%peer, %error, "a pair is looked at again");
            Outcome::Retry(None)
        });
        (peer, outcome)
    }
    .boxed()
}

/// What is as it should be may be changed by something that is not watched.
fn or_later(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Done(None) => Outcome::Done(Some(LOOK_EVERY)),
        outcome => outcome,
    }
}

fn of_namespace(object: &impl ResourceExt) -> Option<ClusterId> {
    tenant_of(&object.namespace()?)
}

fn of_label(object: &impl ResourceExt) -> Option<ClusterId> {
    object.labels().get(REMOTE_CLUSTER_ID)?.parse().ok()
}

fn watched<K>(site: &Site, config: Config) -> Watched<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(Api::<Meta<K>>::all(site.client.clone()), config).default_backoff().boxed()
}
