//! The Liqo keys of other clusters, as this one knows them: a `ConfigMap` that people can read, fill
//! beforehand and change. A key is written down when it is first seen, and after that only by people.

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};
use serde_json::json;
use sublet_core::id::ClusterId;

use super::super::names::{self, PINS, WRITER};
use super::Error;
use super::trouble::{Reason, Trouble};
use crate::relay::PublicKey;

/// The keys that are pinned.
#[derive(Clone)]
pub(super) struct Pins {
    maps: Api<ConfigMap>,
    namespace: String,
    recorder: Recorder,
}

impl Pins {
    /// In the namespace of the agent.
    pub(super) fn new(client: &Client, namespace: &str) -> Self {
        let reporter = Reporter { controller: WRITER.to_owned(), instance: None };
        Self {
            maps: Api::namespaced(client.clone(), namespace),
            namespace: namespace.to_owned(),
            recorder: Recorder::new(client.clone(), reporter),
        }
    }

    /// What is pinned for a cluster, if anything is.
    pub(super) async fn of(&self, cluster: &ClusterId) -> Result<Option<PublicKey>, Error> {
        let Some(map) = self.maps.get_opt(PINS).await? else { return Ok(None) };
        let data = map.data.unwrap_or_default();
        let Some(text) = data.get(cluster.as_str()).filter(|text| !text.trim().is_empty()) else {
            return Ok(None);
        };
        text.trim().parse().map(Some).map_err(|_| {
            let why = format!("what is pinned for {cluster} is not a public key as PEM");
            Error::Trouble(Trouble::new(Reason::KeyNotPinned, why))
        })
    }

    /// Pins a key for a cluster that has none. Two agents that do so at once do not overwrite each
    /// other: the second fails, and looks again.
    pub(super) async fn pin(&self, cluster: &ClusterId, key: &PublicKey) -> Result<(), Error> {
        let map = match self.maps.get_opt(PINS).await? {
            Some(map) => map,
            None => self.maps.create(&PostParams::default(), &self.empty()).await?,
        };
        let version = map.metadata.resource_version;
        let change = json!({
            "metadata": { "resourceVersion": version },
            "data": { cluster.as_str(): key.to_pem() },
        });
        let how = PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
        self.maps.patch(PINS, &how, &Patch::Merge(&change)).await?;
        let fingerprint = key.fingerprint();
        tracing::warn!(%cluster, fingerprint, "the Liqo key of a cluster was seen first, and is pinned");
        self.tell(cluster, &fingerprint).await;
        Ok(())
    }

    fn empty(&self) -> ConfigMap {
        let mine = (names::MANAGED_BY.to_owned(), WRITER.to_owned());
        let metadata = ObjectMeta {
            name: Some(PINS.to_owned()),
            namespace: Some(self.namespace.clone()),
            labels: Some([mine].into()),
            ..ObjectMeta::default()
        };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    /// Says it to people; that it cannot be said stops nothing.
    async fn tell(&self, cluster: &ClusterId, fingerprint: &str) {
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            name: Some(PINS.to_owned()),
            namespace: Some(self.namespace.clone()),
            ..ObjectReference::default()
        };
        let event = Event {
            type_: EventType::Normal,
            reason: "KeyPinned".to_owned(),
            note: Some(format!(
                "the Liqo key of {cluster} is {fingerprint}: compare it with its operator"
            )),
            action: "Pin".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &about).await {
            tracing::debug!(%error, "an Event could not be written");
        }
    }
}
