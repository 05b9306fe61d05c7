//! Pods that Liqo's quota let in although there is no room for them. Liqo gives back what a pod takes each time that it
//! hears of its deletion, before Kubernetes has done that: who deletes one several times at once has room for several.
//! So who comes is looked at once more, by what was sent: one for whom there is no room beside those that were here
//! before goes at once. What was here before stays, also in a reservation that was made smaller since.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::core::PartialObjectMetaExt;
use kube::runtime::watcher::{self, Event};
use serde::Deserialize;
use sublet_core::id::ClusterId;

use super::ground::Answer;
use super::provider::Provider;
use super::room::{Place, Room, place};
use crate::collect::seen::{Pod, PodSpec, PodStatus};
use crate::collect::{Guest, asked_by};
use crate::peering::liqo::kinds::ShadowPod;

/// Who has come since it was looked.
#[derive(Debug, Default)]
pub(super) struct Newcomers {
    /// Everybody's id.
    known: BTreeSet<String>,
    /// Those of the list that a watch begins with, while it is read.
    listed: Option<BTreeSet<String>>,
    /// What is there when it is first looked was let in by whoever looked before.
    is_begun: bool,
    /// Where they are, by whose they are.
    fresh: BTreeMap<Guest, BTreeSet<Place>>,
}

impl Newcomers {
    /// Takes notice of what happened; is there somebody to be looked at?
    pub(super) fn notice<K: ResourceExt>(&mut self, event: &watcher::Result<Event<K>>) -> bool {
        match event {
            Ok(Event::Init) => self.listed = Some(BTreeSet::new()),
            Ok(Event::InitApply(pod)) => {
                let is_begun = self.is_begun;
                self.see(pod, is_begun);
                let listed = self.listed.get_or_insert_default();
                listed.extend(pod.uid());
            }
            Ok(Event::InitDone) => {
                self.known = self.listed.take().unwrap_or_default();
                self.is_begun = true;
            }
            Ok(Event::Apply(pod)) => self.see(pod, true),
            Ok(Event::Delete(pod)) => drop(pod.uid().map(|id| self.known.remove(&id))),
            Err(_) => {}
        }
        !self.fresh.is_empty()
    }

    fn see(&mut self, pod: &impl ResourceExt, is_looked_at: bool) {
        let is_news = pod.uid().is_some_and(|id| self.known.insert(id));
        let is_ending = pod.meta().deletion_timestamp.is_some();
        let guest = Guest::of(pod.labels()).filter(|guest| matches!(guest, Guest::User(_)));
        if let Some(guest) = guest.filter(|_| is_news && is_looked_at && !is_ending) {
            self.fresh.entry(guest).or_default().insert(place(pod));
        }
    }

    /// Those that are to be looked at now.
    pub(super) fn take(&mut self) -> BTreeMap<Guest, BTreeSet<Place>> {
        std::mem::take(&mut self.fresh)
    }

    /// They could not be looked at.
    pub(super) fn put_back(&mut self, fresh: BTreeMap<Guest, BTreeSet<Place>>) {
        for (guest, places) in fresh {
            self.fresh.entry(guest).or_default().extend(places);
        }
    }
}

/// A pod as it was sent. What was added to it here is not its sender's.
#[derive(Clone, Debug, Deserialize, kube::Resource)]
#[resource(inherit = "ShadowPod")]
struct Sent {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: SentSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SentSpec {
    pod: PodSpec,
}

impl Sent {
    fn pod(self) -> Pod {
        Pod { metadata: self.metadata, spec: self.spec.pod, status: self.status }
    }
}

impl Provider {
    /// Looks whether there is room for those that came into a slice.
    pub(super) async fn turn_away(
        &self,
        slice: &str,
        peer: &ClusterId,
        (guest, fresh): (&Guest, &BTreeSet<Place>),
    ) -> Answer<()> {
        let _turn = self.ground.turns.take(peer, slice).await;
        let Some(room) = self.room(slice, peer).await? else { return Ok(()) };
        let theirs = ListParams::default().labels(&guest.selector());
        let sent = self.ground.all::<Sent>().list(&theirs).await?.items;
        let stays = sent.into_iter().filter(|sent| sent.metadata.deletion_timestamp.is_none());
        let (new, old): (Vec<_>, Vec<_>) =
            stays.map(Sent::pod).partition(|pod| fresh.contains(&place(pod)));
        let surplus = surplus(&room, &old, &new);
        if surplus.is_empty() {
            return Ok(());
        }
        let pods = ListParams::default().labels(&guest.pods());
        let pods = self.ground.all::<Pod>().list(&pods).await?.items;
        let mut first = Ok(());
        for sent in surplus {
            let (namespace, name) = place(sent);
            tracing::warn!(slice, %peer, namespace, name,
                "Liqo's quota let a pod in for which there is no room: it is removed. \
                 Restart Liqo's webhook, which has miscounted, and ask the requester why");
            self.ground.metrics.guest_ended("removed");
            let shadow = sent.metadata.clone().into_response_partial::<ShadowPod>();
            first = first.and(self.ground.remove_or_end(&shadow, true).await);
            if let Some(pod) = pods.iter().find(|pod| place(*pod) == place(sent)) {
                first = first.and(self.remove_pod(pod).await);
            }
        }
        first
    }
}

/// Those of the new ones for which there is no room beside the old ones. Each that fits stays, in the order of their
/// names.
fn surplus<'a>(room: &Room, old: &[Pod], new: &'a [Pod]) -> Vec<&'a Pod> {
    let mut taken = room.taken_by(old);
    let mut sorted: Vec<_> = new.iter().collect();
    sorted.sort_by_key(|pod| place(*pod));
    sorted.retain(|pod| asked_by(pod).is_some_and(|asked| !taken.takes_in(&asked)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::super::amounts::Extras;
    use super::*;
    use k8s_openapi::api::core::v1;
    use kube::api::PartialObjectMeta;
    use serde_json::json;
    use sublet_core::resources::Resources;

    fn sent(name: &str, cpu: &str) -> Pod {
        let requests = json!({ "cpu": cpu, "memory": "64Mi" });
        let sent: Sent = serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "demo-rome" },
            "spec": { "pod": { "containers": [{ "resources": { "requests": requests } }] } },
        }))
        .unwrap();
        sent.pod()
    }

    #[test]
    fn whoever_comes_and_has_no_room_goes_and_who_was_there_stays() {
        let room = Room::of(&Resources::new(2000, 4 << 30), Extras { pods: 3, storage: 0 });
        let names = |old: &[Pod], new: &[Pod]| {
            surplus(&room, old, new).into_iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        };
        let new = [sent("b", "500m"), sent("a", "1600m")];
        assert_eq!(names(&[], &new[..1]), Vec::<String>::new());
        assert_eq!(names(&[], &new), ["b"]);
        // It was made smaller since they came.
        assert_eq!(names(&[sent("old", "4")], &[]), Vec::<String>::new());
        assert_eq!(names(&[sent("old", "4")], &new), ["a", "b"]);
        let many = ["a", "b", "c", "d"].map(|name| sent(name, "0"));
        assert_eq!(names(&[], &many), ["d"]);
    }

    fn pod(uid: &str) -> PartialObjectMeta<v1::Pod> {
        let labels = json!({ "liqo.io/managed-by": "shadowpod", "liqo.io/creator-user": "rsv-a" });
        let metadata = json!({ "name": uid, "namespace": "demo", "uid": uid, "labels": labels });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn whoever_comes_is_looked_at_once_and_who_was_there_at_first_is_not() {
        let mut newcomers = Newcomers::default();
        let mut fresh = |events: Vec<Event<_>>| {
            for event in events {
                newcomers.notice(&Ok(event));
            }
            let taken = newcomers.take();
            taken.into_values().flatten().map(|(_, name)| name).collect::<Vec<_>>()
        };
        let none = Vec::<String>::new();
        let listed = |name: &str| vec![Event::Init, Event::InitApply(pod(name)), Event::InitDone];
        assert_eq!(fresh(listed("first")), none);
        assert_eq!(fresh(vec![Event::Apply(pod("first"))]), none);
        assert_eq!(fresh(vec![Event::Apply(pod("new")), Event::Apply(pod("new"))]), ["new"]);
        assert_eq!(fresh(vec![Event::Apply(pod("new"))]), none);
        assert_eq!(fresh(listed("meanwhile")), ["meanwhile"], "nobody watched when it came");
        assert_eq!(fresh(listed("meanwhile")), none);
    }
}
