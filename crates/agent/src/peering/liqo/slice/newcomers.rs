//! Pods that Liqo's quota let in although there is no room for them. Liqo gives back what a pod takes each time that it
//! hears of its deletion, before Kubernetes has done that: who deletes one several times at once has room for several.
//! So who comes is looked at once more, by what was sent: one for whom there is no room beside those that were here
//! before goes at once. What was here before stays, also in a reservation that was made smaller since. What was here
//! before this agent is looked at as well where everything had room once: the reservation's size was confirmed, and has
//! not changed since.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::ListParams;
use kube::core::PartialObjectMetaExt;
use kube::runtime::watcher::{self, Event};
use serde::Deserialize;
use sublet_core::id::ClusterId;

use super::ground::Answer;
use super::pages::listed;
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
    /// Was it looked once?
    is_begun: bool,
    come: Come,
}

/// Where they are who have come, by whose they are.
#[derive(Debug, Default)]
pub(super) struct Come {
    /// While it was looked.
    fresh: BTreeMap<Guest, BTreeSet<Place>>,
    /// Before it was.
    found: BTreeMap<Guest, BTreeSet<Place>>,
}

impl Come {
    fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.found.is_empty()
    }
}

impl Newcomers {
    /// Takes notice of what happened; is there somebody to be looked at?
    pub(super) fn notice<K: ResourceExt>(&mut self, event: &watcher::Result<Event<K>>) -> bool {
        match event {
            Ok(Event::Init) => self.listed = Some(BTreeSet::new()),
            Ok(Event::InitApply(pod)) => {
                self.see(pod);
                let listed = self.listed.get_or_insert_default();
                listed.extend(pod.uid());
            }
            Ok(Event::InitDone) => {
                self.known = self.listed.take().unwrap_or_default();
                self.is_begun = true;
            }
            Ok(Event::Apply(pod)) => self.see(pod),
            Ok(Event::Delete(pod)) => drop(pod.uid().map(|id| self.known.remove(&id))),
            Err(_) => {}
        }
        !self.come.is_empty()
    }

    fn see(&mut self, pod: &impl ResourceExt) {
        let is_news = pod.uid().is_some_and(|id| self.known.insert(id));
        let is_ending = pod.meta().deletion_timestamp.is_some();
        let guest = Guest::of(pod.labels()).filter(|guest| matches!(guest, Guest::User(_)));
        if let Some(guest) = guest.filter(|_| is_news && !is_ending) {
            let come = &mut self.come;
            let come = if self.is_begun { &mut come.fresh } else { &mut come.found };
            come.entry(guest).or_default().insert(place(pod));
        }
    }

    /// Those that are to be looked at now.
    pub(super) fn take(&mut self) -> Come {
        std::mem::take(&mut self.come)
    }

    /// They could not be looked at.
    pub(super) fn put_back(&mut self, come: Come) {
        let Come { fresh, found } = &mut self.come;
        for (all, back) in [(fresh, come.fresh), (found, come.found)] {
            for (guest, places) in back {
                all.entry(guest).or_default().extend(places);
            }
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
        (slice, peer): (&str, &ClusterId),
        guest: &Guest,
        come: &Come,
    ) -> Answer<()> {
        let mut fresh = come.fresh.get(guest).cloned().unwrap_or_default();
        let found = come.found.get(guest);
        if fresh.is_empty() && found.is_none() {
            return Ok(());
        }
        let _turn = self.ground.turns.take(peer, slice).await;
        let Some(room) = self.room(slice, peer).await? else { return Ok(()) };
        // After its size was read: one that has become smaller since is not settled.
        if let Some(found) = found
            && self.ground.is_settled(slice).await?
        {
            fresh.extend(found.iter().cloned());
        }
        let theirs = ListParams::default().labels(&guest.selector());
        let sent = listed(&self.ground.all::<Sent>(), &theirs).await?;
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

/// Those of the new ones for which there is no room beside the old ones. Each that fits stays, in the order in which
/// they came.
fn surplus<'a>(room: &Room, old: &[Pod], new: &'a [Pod]) -> Vec<&'a Pod> {
    let mut taken = room.taken_by(old);
    let mut sorted: Vec<_> = new.iter().collect();
    sorted.sort_by_key(|pod| (pod.creation_timestamp(), place(*pod)));
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
        let [mut late, mut early] = ["a", "b"].map(|name| sent(name, "1500m"));
        for (pod, time) in
            [(&mut late, "2026-01-01T00:00:01Z"), (&mut early, "2026-01-01T00:00:00Z")]
        {
            pod.metadata.creation_timestamp = serde_json::from_value(json!(time)).unwrap();
        }
        assert_eq!(names(&[], &[late, early]), ["a"], "the last to come");
    }

    fn pod(uid: &str) -> PartialObjectMeta<v1::Pod> {
        let labels = json!({ "liqo.io/managed-by": "shadowpod", "liqo.io/creator-user": "rsv-a" });
        let metadata = json!({ "name": uid, "namespace": "demo", "uid": uid, "labels": labels });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn whoever_comes_is_looked_at_once_and_who_was_there_at_first_is_known_as_such() {
        let mut newcomers = Newcomers::default();
        let names = |all: BTreeMap<Guest, BTreeSet<Place>>| {
            all.into_values().flatten().map(|(_, name)| name).collect::<Vec<_>>()
        };
        let mut come = |events: Vec<Event<_>>| {
            for event in events {
                newcomers.notice(&Ok(event));
            }
            let Come { fresh, found } = newcomers.take();
            (names(fresh), names(found))
        };
        let none = Vec::<String>::new();
        let listed = |name: &str| vec![Event::Init, Event::InitApply(pod(name)), Event::InitDone];
        assert_eq!(come(listed("first")), (none.clone(), vec!["first".to_owned()]));
        let mut fresh = |events: Vec<Event<_>>| {
            let (fresh, found) = come(events);
            assert_eq!(found, Vec::<String>::new());
            fresh
        };
        assert_eq!(fresh(vec![Event::Apply(pod("first"))]), none);
        assert_eq!(fresh(vec![Event::Apply(pod("new")), Event::Apply(pod("new"))]), ["new"]);
        assert_eq!(fresh(vec![Event::Apply(pod("new"))]), none);
        assert_eq!(fresh(listed("meanwhile")), ["meanwhile"], "nobody watched when it came");
        assert_eq!(fresh(listed("meanwhile")), none);
    }
}
