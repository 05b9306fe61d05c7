//! Namespaces whose pods may go where something is reserved, because a request names them.
//!
//! One object of Liqo's says it for each namespace, whoever wants it, so it is written from all
//! requests at once: what is wanted is compared with what there is after every change, and nothing is
//! remembered but what is written on the object itself. Clusters are selected by their name: with a
//! label of the reservation Liqo would go round in circles.

mod act;
mod news;
mod plan;

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use kube::api::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use sublet_crds::ResourceRequest;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use self::act::Ground;
use self::news::{News, Trouble};
use super::names::{MANAGED_BY, MAY_BE_OFFLOADED, WRITER};

/// Requests that change together are looked at together.
const TOGETHER: Duration = Duration::from_millis(50);
/// How soon it is tried again when something did not work, or may not be; twice as long each time, up
/// to the longest.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_MAX: Duration = Duration::from_mins(1);
/// How often it is looked whether somebody changed what we wrote.
const LOOK_EVERY: Duration = Duration::from_mins(10);
/// How long a look may take.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// The task that sends namespaces away and takes them home.
pub struct Offloader {
    ground: Ground,
    /// The requests that name namespaces, by their UID: only their changes matter.
    naming: BTreeSet<String>,
    /// Is there something to take home?
    is_away: bool,
    next: Instant,
    again: Duration,
    /// Why it could not be looked at.
    unlooked: Trouble,
    /// Why requests could not be watched.
    unwatched: Trouble,
}

impl Offloader {
    /// Instructions are in `namespace`; requests may be in any.
    pub fn new(client: &Client, namespace: &str) -> Self {
        let ground = Ground::new(client, namespace);
        Self {
            ground,
            naming: BTreeSet::new(),
            is_away: true,
            next: Instant::now(),
            again: AGAIN,
            unlooked: Trouble::default(),
            unwatched: Trouble::default(),
        }
    }

    /// Works until the agent stops; it can be cut anywhere.
    pub async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = self.work() => {}
        }
    }

    async fn work(&mut self) {
        let everywhere: Api<ResourceRequest> = self.ground.requests.clone();
        let mut requests = watcher(everywhere, Config::default()).default_backoff().boxed();
        let ours = format!("{MANAGED_BY}={WRITER}");
        // What is recorded is kept by; only its end changes anything.
        let mut changes = stream::select_all([
            changes(self.ground.instructions.clone(), Config::default(), false),
            changes(self.ground.offloadings.clone(), Config::default().labels(&ours), true),
            changes(
                self.ground.namespaces.clone(),
                Config::default().labels(&format!("{MAY_BE_OFFLOADED}=true")),
                true,
            ),
        ]);
        loop {
            tokio::select! {
                Some(event) = requests.next() => self.on_request(&event),
                Some(()) = changes.next() => self.soon(),
                () = sleep_until(self.next), if self.is_away || !self.naming.is_empty() => {
                    self.look().await;
                }
            }
        }
    }

    fn on_request(&mut self, event: &Result<Event<ResourceRequest>, watcher::Error>) {
        let request = match event {
            Ok(Event::Apply(request) | Event::InitApply(request) | Event::Delete(request)) => {
                request
            }
            Ok(Event::InitDone) => {
                self.unwatched.is(None);
                return;
            }
            Ok(Event::Init) => return,
            Err(error) => {
                if let Some(News::Begun(error)) = self.unwatched.is(Some(error.to_string())) {
                    tracing::warn!(error, "a watch was cut; it is opened again");
                }
                return;
            }
        };
        let uid = request.uid().unwrap_or_default();
        let names_some = !request.spec.namespaces.is_empty();
        let did_before = self.naming.contains(&uid);
        if names_some && !matches!(event, Ok(Event::Delete(_))) {
            self.naming.insert(uid);
        } else {
            self.naming.remove(&uid);
        }
        if names_some || did_before {
            self.is_away = true;
            self.soon();
        }
    }

    /// It could be looked at, or why not.
    fn looked(&mut self, failed: Option<String>) {
        match self.unlooked.is(failed) {
            Some(News::Begun(error)) => {
                tracing::warn!(error, "which namespaces are to go where could not be looked at");
            }
            Some(News::Over) => tracing::info!("which namespaces are to go where is seen again"),
            None => {}
        }
    }

    fn soon(&mut self) {
        self.again = AGAIN;
        self.next = self.next.min(Instant::now() + TOGETHER);
    }

    async fn look(&mut self) {
        let looked = timeout(LOOK_MAX, self.ground.look()).await;
        let is_as_wanted = match looked {
            Ok(Ok(seen)) => {
                self.looked(None);
                self.is_away = seen.is_away;
                seen.is_as_wanted
            }
            Ok(Err(error)) => {
                self.looked(Some(error.to_string()));
                false
            }
            Err(_) => {
                self.looked(Some("no answer".to_owned()));
                false
            }
        };
        let after = if is_as_wanted { LOOK_EVERY } else { self.again };
        self.again = if is_as_wanted { AGAIN } else { (self.again * 2).min(AGAIN_MAX) };
        self.next = Instant::now() + after;
    }
}

/// Whenever one of these changed: appeared, if that matters, or went.
fn changes<K>(
    api: Api<PartialObjectMeta<K>>,
    config: Config,
    with_new: bool,
) -> BoxStream<'static, ()>
where
    PartialObjectMeta<K>: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let matters = move |event: watcher::Result<Event<PartialObjectMeta<K>>>| async move {
        match event {
            Ok(Event::Delete(_) | Event::InitDone) => Some(()),
            Ok(Event::Apply(_)) => with_new.then_some(()),
            _ => None,
        }
    };
    watcher(api, config).default_backoff().filter_map(matters).boxed()
}
