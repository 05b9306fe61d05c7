//! One watch, which never ends.

use std::fmt::Debug;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use tokio::time::Instant;

use super::blind::Blind;
use crate::metrics::WatchCounts;
use crate::restraint::is_forbidden;

/// How many objects stand in memory at once while they are listed, where lists cannot be streamed.
const PAGE: u32 = 50;

/// Objects of one kind, as they are and as they change.
pub(super) struct Source<K> {
    what: &'static str,
    api: Api<K>,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    streams_lists: bool,
    /// Was everything told that there is, since it was last asked for?
    is_listed: bool,
    blind: Blind,
    counts: WatchCounts,
}

impl<K> Source<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(super) fn new(what: &'static str, api: Api<K>, blind: Blind, counts: WatchCounts) -> Self {
        let events = watched(&api, streamed());
        Self { what, api, events, streams_lists: true, is_listed: false, blind, counts }
    }

    /// What happens next. Nothing is lost when the future is dropped. After an error the watch begins
    /// again by itself, after a pause that grows.
    pub(super) async fn next(&mut self) -> Event<K> {
        loop {
            match self.events.next().await {
                Some(Ok(event)) => {
                    self.counts.events.inc();
                    self.see(&event);
                    return event;
                }
                Some(Err(error)) if self.streams_lists && cannot_stream(&error) => {
                    tracing::info!(what = self.what, "this API server streams no lists: by pages");
                    self.by_pages();
                }
                Some(Err(error)) => self.broke(&error),
                // A watcher never ends; if one did, a fresh one would do no harm.
                None => self.by_pages(),
            }
        }
    }

    fn see(&mut self, event: &Event<K>) {
        match event {
            // That a list begins is told before it is known whether it can be had.
            Event::Init => self.is_listed = false,
            Event::InitDone => {
                self.is_listed = true;
                self.blind.clear(self.what);
            }
            Event::InitApply(_) | Event::Apply(_) | Event::Delete(_) => {}
        }
    }

    /// A watch that broke and resumes says nothing of that, a list does: so whoever may not watch any more
    /// lists again, and it is known from when he may.
    fn broke(&mut self, error: &watcher::Error) {
        self.counts.failures.inc();
        let what = self.what;
        if self.is_listed && is_forbidden(error) {
            self.is_listed = false;
            let config = if self.streams_lists { streamed() } else { paged() };
            self.events = watched(&self.api, config);
        }
        let is_news = self.is_listed || self.blind.note(what, error.to_string(), Instant::now());
        let error = error as &dyn std::error::Error;
        if is_news {
            tracing::warn!(what, error, "a watch broke, and is tried again");
        } else {
            tracing::debug!(what, error, "it cannot be listed yet");
        }
    }

    fn by_pages(&mut self) {
        self.streams_lists = false;
        self.events = watched(&self.api, paged());
    }
}

fn streamed() -> Config {
    Config::default().streaming_lists()
}

fn paged() -> Config {
    Config::default().page_size(PAGE)
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
