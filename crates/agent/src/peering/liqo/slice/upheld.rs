//! Puts our admission policies back as soon as somebody changes or removes one. While one is away a consumer can take
//! whatever it likes, so nobody waits for the next look.

use std::fmt::Debug;
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
use crate::peering::liqo::names::{POD_POLICY, POLICY};
use crate::restraint::restrained;

/// How long putting them back may take.
const INSTALL_MAX: Duration = Duration::from_secs(10);
/// How long it is waited before they are put back once more: whoever fights with us is not fought without a pause.
const PAUSE: Duration = Duration::from_millis(250);

/// What happened to one of them.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    /// It is in this version now.
    Written(String),
    Removed,
}

impl Ground {
    /// Watches without an end.
    pub(super) async fn uphold_policies(&self) {
        let mut changes = stream::select_all([POLICY, POD_POLICY].into_iter().flat_map(|name| {
            [
                changes::<ValidatingAdmissionPolicy>(&self.client, name),
                changes::<ValidatingAdmissionPolicyBinding>(&self.client, name),
            ]
        }));
        while let Some((name, change)) = changes.next().await {
            let is_right = match timeout(INSTALL_MAX, self.install_policy()).await {
                Ok(Ok(versions)) => matches!(&change, Change::Written(it) if versions.contains(it)),
                // It is put back at the next look, or at the next change.
                Ok(Err(error)) => {
                    tracing::warn!(policy = name, %error, "an admission policy could not be put back");
                    true
                }
                Err(_) => true,
            };
            if !is_right {
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
}

/// Whenever one of this kind and name is made, changed or removed. An agent with an older role, which may not watch
/// them, puts them back when it looks.
fn changes<K>(client: &Client, name: &'static str) -> BoxStream<'static, (&'static str, Change)>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(client.clone());
    let config = Config::default().fields(&format!("metadata.name={name}"));
    let matters = move |event| async move { change(event).map(|change| (name, change)) };
    restrained(watcher(api, config).default_backoff()).filter_map(matters).boxed()
}

/// What an event says; nothing if that is no change. What a watch begins with was looked at already, unless that was
/// while nobody watched: so it is looked at as if it had been written just now.
fn change<K: ResourceExt>(event: watcher::Result<Event<K>>) -> Option<Change> {
    match event {
        Ok(Event::Apply(object) | Event::InitApply(object)) => {
            Some(Change::Written(object.resource_version().unwrap_or_default()))
        }
        Ok(Event::Delete(_)) => Some(Change::Removed),
        Ok(Event::Init | Event::InitDone) => None,
        Err(error) => {
            tracing::debug!(%error, "a watch was cut; it is opened again");
            None
        }
    }
}
