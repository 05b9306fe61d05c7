//! Where news comes from: the broker, and the watches of Kubernetes.

use std::convert::Infallible;
use std::future::pending;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use sublet_crds::{ProviderInstruction, ReservationInstruction, ResourceRequest};
use tokio::sync::mpsc;

use crate::transport::{Feed, News};

/// What a watch says.
pub(super) type Told<K> = Result<Event<K>, watcher::Error>;
/// A watch.
pub(super) type Watched<K> = BoxStream<'static, Told<K>>;

/// Passes on what the broker says.
pub(super) async fn listen(mut feed: Box<dyn Feed>, tell: mpsc::Sender<News>) -> Infallible {
    loop {
        let news = feed.next().await;
        if tell.send(news).await.is_err() {
            // Nobody listens any more; whoever waits for this is about to be dropped.
            pending::<()>().await;
        }
    }
}

/// Watches the objects of one kind, and resumes by itself.
pub(super) fn watched<K: Watchable>(api: Api<K>) -> Watched<K> {
    watcher(api, watcher::Config::default()).default_backoff().boxed()
}

/// What can be watched.
pub(super) trait Watchable:
    kube::Resource<DynamicType = ()>
    + Clone
    + std::fmt::Debug
    + serde::de::DeserializeOwned
    + Send
    + 'static
{
}
impl Watchable for ResourceRequest {}
impl Watchable for ProviderInstruction {}
impl Watchable for ReservationInstruction {}
