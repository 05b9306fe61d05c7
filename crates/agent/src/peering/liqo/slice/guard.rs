//! Watches over what keeps a borrower within its bounds: looks whether it is still enforced when something
//! about that changes, and once in a while.

use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use kube::api::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use sublet_crds::Obstacle;
use sublet_crds::condition::Reason;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::ground::{Answer, Ground};
use super::provider::Provider;
use super::wakes::Wakes;
use crate::cluster::code;
use crate::peering::WhyNot;
use crate::peering::liqo::kinds::ForeignCluster;
use crate::restraint::restrained;

/// How long a look may take.
const LOOK_MAX: Duration = Duration::from_secs(30);
/// How often it is looked whether Liqo still enforces what is lent.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The same while it does not, or could not be looked; and never more often than that.
const LOOK_SOON: Duration = Duration::from_secs(5);
/// How long it is waited for more changes to the lists of webhooks.
const TOGETHER: Duration = Duration::from_millis(100);

/// Tells whether this cluster lends.
pub(in crate::peering::liqo) struct Guard {
    unwilling: watch::Sender<Option<WhyNot>>,
}

/// When it was looked.
#[derive(Debug)]
struct Looked {
    /// It is time again.
    due: Instant,
    /// And not before, whatever happens.
    earliest: Instant,
    /// How often in a row it could not be seen.
    failed: u32,
}

impl Guard {
    pub(in crate::peering::liqo) fn new(unwilling: watch::Sender<Option<WhyNot>>) -> Self {
        Self { unwilling }
    }

    /// Watches without an end.
    pub(super) async fn watch(&self, provider: &Provider, wakes: &Wakes) {
        let ground = &provider.ground;
        let mut changes = stream::select_all([
            changes::<ValidatingWebhookConfiguration>(&ground.client),
            changes::<MutatingWebhookConfiguration>(&ground.client),
            changes::<ForeignCluster>(&ground.client),
        ]);
        let (hooks, now) = (Notify::new(), Instant::now());
        let mut looked = Looked { due: now, earliest: now, failed: 0 };
        loop {
            looked = {
                // Never begun anew by what changes meanwhile: that is looked at the next time.
                let mut looking = pin!(async {
                    rest(&looked, &hooks).await;
                    let looked = self.look(ground, wakes, looked.failed).await;
                    // What got in while nobody was asked.
                    if let Ok(Err(error)) = timeout(LOOK_MAX, provider.trim()).await {
                        tracing::debug!(%error, "what got in is looked at again");
                    }
                    looked
                });
                loop {
                    tokio::select! {
                        Some(()) = changes.next() => hooks.notify_one(),
                        looked = &mut looking => break looked,
                    }
                }
            };
        }
    }

    /// Looks whether what is lent is enforced, and whether a provider that was given up is back.
    async fn look(&self, ground: &Ground, wakes: &Wakes, failed: u32) -> Looked {
        let seen = timeout(LOOK_MAX, ground.unenforced()).await;
        if let Ok(Err(error)) = timeout(LOOK_MAX, ground.welcome_back()).await {
            tracing::debug!(%error, "whether a provider is back is looked at again");
        }
        let seen = seen.map_err(|_| "no answer");
        let failed = if matches!(seen, Ok(Ok(_))) { 0 } else { failed.saturating_add(1) };
        let why = match seen {
            // What was seen last holds for one more look.
            Ok(Err(_)) | Err(_) if failed == 1 => self.unwilling.borrow().clone(),
            Ok(seen) => judged(seen),
            Err(error) => Some(unseen(&error)),
        };
        let again = if failed == 0 && why.is_none() { LOOK_EVERY } else { LOOK_SOON };
        ground.metrics.enforced(why.is_none());
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
            wakes.everything();
        }
        let now = Instant::now();
        Looked { due: now + again, earliest: now + LOOK_SOON, failed }
    }
}

/// Waits until it is time to look again, or until something has changed. What changes together is looked at
/// together, and whoever changes something all the time does not have us look all the time.
async fn rest(looked: &Looked, hooks: &Notify) {
    tokio::select! {
        () = sleep_until(looked.due) => {}
        () = hooks.notified() => {
            sleep_until(looked.earliest.max(Instant::now() + TOGETHER)).await;
        }
    }
}

/// Why nothing is lent, by what was seen or could not be.
fn judged(seen: Answer<Option<WhyNot>>) -> Option<WhyNot> {
    match seen {
        Ok(why) => why,
        Err(error) if code(&error) == Some(403) => {
            Some(unseen(&format!("{error}; {}", Obstacle::Forbidden.remedy())))
        }
        Err(error) => Some(unseen(&error)),
    }
}

fn unseen(error: &dyn std::fmt::Display) -> WhyNot {
    WhyNot::new(Reason::EnforcementUnknown, format!("Liqo cannot be looked at: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    const LONG: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn what_changes_is_looked_at_at_once_and_what_changes_all_the_time_is_not() {
        let (hooks, now) = (Notify::new(), Instant::now());
        let looked = Looked { due: now + LONG, earliest: now, failed: 0 };
        assert_eq!(rest(&looked, &hooks).now_or_never(), None, "nothing has changed");
        hooks.notify_one();
        hooks.notify_one();
        timeout(LONG / 2, rest(&looked, &hooks)).await.expect("something has changed");
        assert_eq!(rest(&looked, &hooks).now_or_never(), None, "both were looked at together");
        let busy = Looked { earliest: now + LONG, ..looked };
        hooks.notify_one();
        assert_eq!(rest(&busy, &hooks).now_or_never(), None, "it was just looked at");
        let due = Looked { due: now, ..busy };
        rest(&due, &hooks).await;
    }

    #[test]
    fn what_could_not_be_looked_at_is_not_lent() {
        assert_eq!(judged(Ok(None)), None);
        let silent = judged(Err(kube::Error::Service("no route".into()))).unwrap();
        assert_eq!(silent.reason, Reason::EnforcementUnknown);
        assert!(silent.message.contains("no route"), "{silent:?}");
    }
}
