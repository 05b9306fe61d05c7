//! Puts our admission policies back as soon as somebody changes or removes one. While one is away a consumer can take
//! whatever it likes, so nobody waits for the next look.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::ready;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::api::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use super::ground::Ground;
use super::policy::{Edition, edition};
use crate::peering::liqo::names::{COPY_POLICY, POD_POLICY, POLICY};
use crate::restraint::restrained;

/// How long putting them back may take.
const INSTALL_MAX: Duration = Duration::from_secs(10);
/// How long it is waited before they are put back once more: whoever fights with us is not fought without a pause.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// What happened to one of them.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// It is this one now.
    Written(Edition),
    Removed,
}

impl Ground {
    /// Watches without an end.
    pub(super) async fn uphold_policies(&self) {
        let names = [POLICY, POD_POLICY, COPY_POLICY];
        let mut changes = stream::select_all(names.into_iter().flat_map(|name| {
            [
                changes::<ValidatingAdmissionPolicy>(&self.client, name),
                changes::<ValidatingAdmissionPolicyBinding>(&self.client, name),
            ]
        }));
        while let Some((name, change)) = changes.next().await {
            let right = self.put_back(name).await;
            if !matches!(&change, Change::Written(it) if right.contains(it)) {
                tracing::warn!(
                    policy = name,
                    ?change,
                    "somebody changed an admission policy: it is put back"
                );
                self.metrics.policy_repaired();
            }
            sleep(PAUSE).await;
        }
    }

    /// Tries until they are what they should be; says which they are.
    async fn put_back(&self, name: &str) -> BTreeSet<Edition> {
        loop {
            match timeout(INSTALL_MAX, self.install_policy()).await {
                Ok(Ok(editions)) => return editions,
                Ok(Err(error)) => {
                    tracing::warn!(policy = name, %error, "an admission policy could not be put back yet");
                }
                Err(_) => {
                    tracing::warn!(
                        policy = name,
                        "an admission policy could not be put back in time"
                    );
                }
            }
            sleep(PAUSE_AFTER_FAILURE).await;
        }
    }
}

/// Whenever one of this kind and name is made, changed or removed. An agent with an older role, which may not watch
/// them, puts them back when it looks.
fn changes<K>(client: &Client, name: &'static str) -> BoxStream<'static, (&'static str, Change)>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(client.clone());
    let config = Config::default().fields(&format!("metadata.name={name}"));
    let mut begun = Begun::default();
    let matters = move |event| ready(begun.change(event).map(|change| (name, change)));
    restrained(watcher(api, config).default_backoff()).filter_map(matters).boxed()
}

/// How far the list is that a watch begins with.
#[derive(Default)]
struct Begun {
    /// It was there.
    is_there: bool,
    /// It is not the first watch: what is not there any more was removed while nobody watched.
    again: bool,
}

impl Begun {
    /// What an event says; nothing if that is no change. What a watch begins with was looked at already, unless that was
    /// while nobody watched: so it is looked at as if it had been written just now.
    fn change<K: ResourceExt>(&mut self, event: watcher::Result<Event<K>>) -> Option<Change> {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                self.is_there = true;
                Some(Change::Written(edition(&object)))
            }
            Ok(Event::Delete(_)) => Some(Change::Removed),
            Ok(Event::Init) => {
                self.is_there = false;
                None
            }
            Ok(Event::InitDone) => {
                let is_gone = std::mem::replace(&mut self.again, true) && !self.is_there;
                is_gone.then_some(Change::Removed)
            }
            Err(error) => {
                tracing::debug!(%error, "a watch was cut; it is opened again");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(generation: i64) -> ValidatingAdmissionPolicy {
        let mut policy = ValidatingAdmissionPolicy::default();
        policy.metadata.generation = Some(generation);
        policy
    }

    #[test]
    fn what_is_removed_while_nobody_watches_is_noticed_and_a_first_start_is_no_removal() {
        let mut begun = Begun::default();
        let mut says = |event| begun.change::<ValidatingAdmissionPolicy>(Ok(event));
        let written = |generation| Some(Change::Written((None, Some(generation))));
        assert_eq!([says(Event::Init), says(Event::InitDone)], [None, None]);
        assert_eq!(says(Event::Apply(policy(1))), written(1));
        says(Event::Init);
        assert_eq!(says(Event::InitApply(policy(2))), written(2));
        assert_eq!(says(Event::InitDone), None);
        says(Event::Init);
        assert_eq!(says(Event::InitDone), Some(Change::Removed));
    }

    #[test]
    fn what_kubernetes_notes_in_a_status_is_no_change() {
        let mut noted = policy(1);
        noted.metadata.resource_version = Some("7".to_owned());
        assert_eq!(edition(&noted), edition(&policy(1)));
        assert_ne!(edition(&noted), edition(&policy(2)));
    }
}
