//! One watch, which never ends.

use std::fmt::Debug;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use crate::metrics::WatchCounts;

/// How many objects stand in memory at once while they are listed, where lists cannot be streamed.
const PAGE: u32 = 50;

/// Objects of one kind, as they are and as they change.
pub(super) struct Source<K> {
    what: &'static str,
    api: Api<K>,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    streams_lists: bool,
    counts: WatchCounts,
}

impl<K> Source<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(super) fn new(what: &'static str, api: Api<K>, counts: WatchCounts) -> Self {
        let config = Config::default().streaming_lists();
        let events = watched(&api, config);
        Self { what, api, events, streams_lists: true, counts }
    }

    /// What happens next. Nothing is lost when the future is dropped. After an error the watch begins
    /// again by itself, after a pause that grows.
    pub(super) async fn next(&mut self) -> Event<K> {
        loop {
            match self.events.next().await {
                Some(Ok(event)) => {
                    self.counts.events.inc();
                    return event;
                }
                Some(Err(error)) if self.streams_lists && cannot_stream(&error) => {
                    tracing::info!(what = self.what, "this API server streams no lists: by pages");
                    self.by_pages();
                }
                Some(Err(error)) => {
                    self.counts.failures.inc();
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(what = self.what, error, "a watch broke, and is tried again");
                }
                // A watcher never ends; if one did, a fresh one would do no harm.
                None => self.by_pages(),
            }
        }
    }

    fn by_pages(&mut self) {
        self.streams_lists = false;
        self.events = watched(&self.api, Config::default().page_size(PAGE));
    }
}

fn watched<K>(api: &Api<K>, config: Config) -> BoxStream<'static, watcher::Result<Event<K>>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(api.clone(), config).default_backoff().boxed()
}

/// A server that knows no streamed lists says that the field is invalid.
fn cannot_stream(error: &watcher::Error) -> bool {
    let watcher::Error::WatchStartFailed(kube::Error::Api(status)) = error else { return false };
    status.code == 400 || status.code == 422
}
