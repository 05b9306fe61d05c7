//! The Liqo keys of other clusters, as this one knows them: a `ConfigMap` that people can read, fill
//! beforehand and change. A key is written down when it is first seen, and after that only by people.

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};
use serde_json::{Value, json};
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
        self.maps.get_opt(PINS).await?.map_or(Ok(None), |map| pinned(&map, cluster))
    }

    /// Pins a key for a cluster that has none, and says which is pinned then. What somebody has pinned
    /// since it was looked last is kept; what somebody pins at the same time makes this fail, and then
    /// it is looked again.
    pub(super) async fn pin(
        &self,
        cluster: &ClusterId,
        key: &PublicKey,
    ) -> Result<PublicKey, Error> {
        let map = match self.maps.get_opt(PINS).await? {
            Some(map) => map,
            None => self.maps.create(&PostParams::default(), &self.empty()).await?,
        };
        let change = match pinning(&map, cluster, key)? {
            Pinning::Kept(pinned) => return Ok(pinned),
            Pinning::Change(change) => change,
        };
        let how = PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
        self.maps.patch(PINS, &how, &Patch::Merge(&change)).await?;
        let fingerprint = key.fingerprint();
        tracing::warn!(%cluster, fingerprint, "the Liqo key of a cluster was seen first, and is pinned");
        self.tell(cluster, &fingerprint).await;
        Ok(key.clone())
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

/// What comes of a key that is seen first.
#[derive(Debug)]
enum Pinning {
    /// It was not the first: this one is pinned.
    Kept(PublicKey),
    /// It is pinned by this, if the map is still as it was read.
    Change(Value),
}

fn pinning(map: &ConfigMap, cluster: &ClusterId, key: &PublicKey) -> Result<Pinning, Error> {
    if let Some(pinned) = pinned(map, cluster)? {
        return Ok(Pinning::Kept(pinned));
    }
    Ok(Pinning::Change(json!({
        "metadata": { "resourceVersion": map.metadata.resource_version },
        "data": { cluster.as_str(): key.to_pem() },
    })))
}

fn pinned(map: &ConfigMap, cluster: &ClusterId) -> Result<Option<PublicKey>, Error> {
    let text = map.data.as_ref().and_then(|data| data.get(cluster.as_str()));
    let Some(text) = text.map(|text| text.trim()).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        let why = format!("what is pinned for {cluster} is not a public key as PEM");
        Error::Trouble(Trouble::new(Reason::KeyNotPinned, why))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> PublicKey {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        pair.public_key_pem().parse().unwrap()
    }

    fn map(pins: &[(&str, &str)]) -> ConfigMap {
        let pins = pins.iter().map(|(name, key)| ((*name).to_owned(), (*key).to_owned()));
        let version = Some("7".to_owned());
        let metadata = ObjectMeta { resource_version: version, ..ObjectMeta::default() };
        ConfigMap { metadata, data: Some(pins.collect()), ..ConfigMap::default() }
    }

    #[test]
    fn the_first_key_of_a_cluster_is_pinned_if_nobody_else_changes_the_map() {
        let (milan, key): (ClusterId, _) = ("milan".parse().unwrap(), key());
        let theirs = key.to_pem();
        for pins in [&[][..], &[("milan", " \n")], &[("rome", &theirs)]] {
            let Pinning::Change(change) = pinning(&map(pins), &milan, &key).unwrap() else {
                panic!("nothing is pinned for it: {pins:?}");
            };
            assert_eq!(change["metadata"]["resourceVersion"], "7");
            assert_eq!(change["data"], json!({ "milan": key.to_pem() }));
        }
    }

    #[test]
    fn what_somebody_pinned_since_it_was_looked_stays() {
        let (milan, seen, loaded): (ClusterId, _, _) = ("milan".parse().unwrap(), key(), key());
        let pem = loaded.to_pem();
        let found = pinning(&map(&[("milan", &pem)]), &milan, &seen).unwrap();
        assert!(matches!(found, Pinning::Kept(kept) if kept == loaded));
        let rubbish = pinning(&map(&[("milan", "?")]), &milan, &seen).unwrap_err();
        assert!(rubbish.to_string().contains("not a public key"), "{rubbish}");
    }
}
