//! What happens in the cluster to what links are made of. Only names and labels are watched: what it
//! means is read by whoever looks.

use std::fmt::Debug;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll, select_all};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use sublet_core::id::ClusterId;

use super::super::kinds::{ForeignCluster, Identity, Tenant};
use super::super::names;
use super::ground::is_ours;

/// Something happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// To something that we have made, or are to remove.
    Ours(ClusterId),
    /// To something that is about that cluster.
    About(ClusterId),
    /// To the pins, or to the key of this cluster.
    Keys,
}

/// What happens, without an end.
pub(super) struct Changes(SelectAll<BoxStream<'static, Change>>);

impl Changes {
    pub(super) fn new(client: &Client, namespace: &str) -> Self {
        let labelled = |label: &str| Config::default().labels(label);
        let pins = format!("metadata.name={}", names::PINS);
        let pins = watched(
            Api::<Meta<ConfigMap>>::namespaced(client.clone(), namespace),
            Config::default().fields(&pins),
            |_| Some(Change::Keys),
        );
        let own = format!("metadata.name={}", names::KEYS_SECRET);
        let own = watched(
            Api::<Meta<Secret>>::namespaced(client.clone(), names::LIQO_NAMESPACE),
            Config::default().fields(&own),
            |_| Some(Change::Keys),
        );
        Self(select_all([
            watched::<Namespace>(
                Api::all(client.clone()),
                labelled(names::TENANT_NAMESPACE),
                of_pair,
            ),
            watched::<Tenant>(Api::all(client.clone()), labelled(names::REMOTE_CLUSTER_ID), about),
            watched::<Identity>(
                Api::all(client.clone()),
                labelled(names::REMOTE_CLUSTER_ID),
                about,
            ),
            watched::<ForeignCluster>(
                Api::all(client.clone()),
                labelled(names::FOREIGN_MARK),
                left,
            ),
            pins,
            own,
        ]))
    }

    /// What happens next. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Change {
        match self.0.next().await {
            Some(change) => change,
            // Watches never end.
            None => std::future::pending().await,
        }
    }
}

type Meta<K> = PartialObjectMeta<K>;

fn watched<K>(
    api: Api<Meta<K>>,
    config: Config,
    meaning: fn(&Meta<K>) -> Option<Change>,
) -> BoxStream<'static, Change>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Default + Clone,
{
    let events = watcher(api, config).default_backoff();
    let changes = events.filter_map(move |event| async move {
        match event {
            Ok(Event::InitApply(object) | Event::Apply(object) | Event::Delete(object)) => {
                meaning(&object)
            }
            Ok(Event::Init | Event::InitDone) => None,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "a watch of links broke, and is tried again");
                None
            }
        }
    });
    changes.boxed()
}

fn peer<K>(object: &Meta<K>) -> Option<ClusterId> {
    let labels = object.metadata.labels.as_ref()?;
    labels.get(names::REMOTE_CLUSTER_ID)?.parse().ok()
}

fn about<K>(object: &Meta<K>) -> Option<Change> {
    peer(object).map(Change::About)
}

fn of_pair(object: &Meta<Namespace>) -> Option<Change> {
    let peer = peer(object)?;
    Some(if is_ours(&object.metadata) { Change::Ours(peer) } else { Change::About(peer) })
}

/// The name of such an object is the other cluster's.
fn left(object: &Meta<ForeignCluster>) -> Option<Change> {
    object.name_any().parse().ok().map(Change::Ours)
}
