//! Watches the pods of other clusters, and has them looked at when one comes, or one that is ending takes its time.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use tokio::time::{Instant, sleep_until, timeout};

use super::ground::Answer;
use super::hasten::Slow;
use super::newcomers::{Come, Newcomers};
use super::pages::PAGE;
use super::provider::Provider;
use crate::collect::{Guest, guests};
use crate::restraint::restrained;

/// How long a look may take.
const LOOK_MAX: Duration = Duration::from_secs(30);
/// It is looked no more often than that, whatever happens; and again after it if it could not be done.
const PAUSE: Duration = Duration::from_secs(1);

impl Provider {
    /// Watches without an end.
    pub(super) async fn watch_visitors(&self) {
        let pods: Api<PartialObjectMeta<v1::Pod>> = Api::all(self.ground.client());
        let config = Config::default().labels(&guests()).page_size(PAGE);
        let mut events = restrained(watcher(pods, config).default_backoff());
        let (mut slow, mut newcomers) = (Slow::default(), Newcomers::default());
        let (mut due, mut looked) = (None, Instant::now());
        loop {
            tokio::select! {
                Some(event) = events.next() => {
                    let is_due = [slow.notice(&event), newcomers.notice(&event)].contains(&true);
                    due = due.or(is_due.then(|| looked + PAUSE));
                    if let Err(error) = event {
                        tracing::debug!(%error, "a watch was cut; it is opened again");
                    }
                }
                () = sleep_until(due.unwrap_or(looked)), if due.is_some() => {
                    let come = newcomers.take();
                    let seen = timeout(LOOK_MAX, self.look_at(&come, &slow.guests())).await;
                    looked = Instant::now();
                    due = None;
                    if !matches!(seen, Ok(Ok(()))) {
                        tracing::debug!(?seen, "what pods take is looked at again");
                        newcomers.put_back(come);
                        due = Some(looked + PAUSE);
                    }
                }
            }
        }
    }

    /// Looks at those who came, and at those who take their time to end. What fails keeps nobody from the others.
    async fn look_at(&self, come: &Come, slow: &BTreeSet<Guest>) -> Answer<()> {
        let mut first = Ok(());
        for (slice, peer) in self.ground.lent_to().await? {
            let its = Guest::in_slice(&slice, peer.as_str());
            for guest in &its {
                first = first.and(self.turn_away((&slice, &peer), guest, come).await);
            }
            if its.iter().any(|guest| slow.contains(guest)) {
                first = first.and(self.hasten(&slice, &peer).await);
            }
        }
        first
    }
}
