//! Pods of other clusters that are ending and take their time, while others have come in their place. Liqo's quota gives
//! back what a pod takes when it is deleted, and Kubernetes when it has ended: who deletes pods that end slowly, again and
//! again, would have more here than was lent. When all pods of a reservation take more than
//! it has, those that are ending have no more time than at its end.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use kube::api::ListParams;
use kube::runtime::watcher::{self, Event};
use sublet_core::id::ClusterId;

use super::ground::Answer;
use super::pods::{GRACE_SECONDS, takes_its_time};
use super::provider::Provider;
use crate::collect::seen::Pod;
use crate::collect::{Guest, asked_by_all};

/// Those that are ending and take their time, by their ids: whose they are.
#[derive(Debug, Default)]
pub(super) struct Slow(BTreeMap<String, Guest>);

impl Slow {
    /// Takes notice of what happened; is it to be looked what is taken? Where nobody takes his time there is
    /// nobody to hasten, and who comes later may be the one too many.
    pub(super) fn notice<K: ResourceExt>(&mut self, event: &watcher::Result<Event<K>>) -> bool {
        match event {
            Ok(Event::Init) => self.0.clear(),
            Ok(Event::Apply(pod) | Event::InitApply(pod)) => {
                let guest = Guest::of(pod.labels()).filter(|_| takes_its_time(pod));
                let id = pod.uid().unwrap_or_default();
                match guest {
                    Some(guest) => drop(self.0.insert(id, guest)),
                    None => drop(self.0.remove(&id)),
                }
            }
            Ok(Event::Delete(pod)) => drop(self.0.remove(&pod.uid().unwrap_or_default())),
            Ok(Event::InitDone) | Err(_) => {}
        }
        !self.0.is_empty()
    }

    pub(super) fn guests(&self) -> BTreeSet<Guest> {
        self.0.values().cloned().collect()
    }
}

impl Provider {
    /// Looks what all of a slice take, and hastens those that are ending if it is too much.
    pub(super) async fn hasten(&self, slice: &str, peer: &ClusterId) -> Answer<()> {
        let _turn = self.ground.turns.take(peer, slice).await;
        let Some(room) = self.room(slice, peer).await? else { return Ok(()) };
        let mut pods = Vec::new();
        for guest in Guest::in_slice(slice, peer.as_str()) {
            let theirs = ListParams::default().labels(&guest.pods());
            pods.extend(self.ground.all::<Pod>().list(&theirs).await?.items);
        }
        let (used, kept) = (asked_by_all(&pods), &room.amounts);
        if used.fits_in(kept) {
            return Ok(());
        }
        let mut first = Ok(());
        for pod in pods.iter().filter(|pod| takes_its_time(*pod)) {
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
            tracing::warn!(slice, %peer, namespace, name, %used, %kept, seconds = GRACE_SECONDS,
                "pods of a requester take more than it has, with those that are ending: this one is hastened");
            let hastened = self.remove_pod(pod).await;
            if hastened.is_ok() {
                self.ground.metrics.guest_ended("hastened");
            }
            first = first.and(hastened);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1;
    use kube::api::PartialObjectMeta;
    use serde_json::json;

    fn pod(uid: &str, seconds: Option<i64>) -> PartialObjectMeta<v1::Pod> {
        let labels = json!({ "liqo.io/managed-by": "shadowpod", "liqo.io/creator-user": "rsv-a" });
        serde_json::from_value(json!({ "metadata": {
            "name": uid, "uid": uid, "labels": labels, "deletionGracePeriodSeconds": seconds,
        }}))
        .unwrap()
    }

    #[test]
    fn whoever_takes_his_time_is_known_until_he_hurries_or_is_gone() {
        let mut slow = Slow::default();
        let mut says = |event| slow.notice(&Ok(event));
        assert!(!says(Event::Apply(pod("stays", None))));
        assert!(!says(Event::Apply(pod("hurries", Some(10)))));
        assert!(says(Event::Apply(pod("slow", Some(600)))));
        assert!(says(Event::Apply(pod("new", None))), "it may be the one too many");
        assert!(says(Event::Apply(pod("slower", Some(601)))));
        assert!(says(Event::Delete(pod("slower", Some(601)))));
        assert!(!says(Event::Apply(pod("slow", Some(10)))));
        assert!(says(Event::Apply(pod("slow", Some(11)))));
        assert_eq!(slow.guests(), BTreeSet::from([Guest::User("rsv-a".into())]));
        assert!(
            !slow.notice::<PartialObjectMeta<v1::Pod>>(&Ok(Event::Init)),
            "others are told anew"
        );
    }

    #[test]
    fn whoever_is_at_home_here_may_take_his_time() {
        let mut at_home = pod("home", Some(600));
        at_home.metadata.labels = None;
        assert!(!Slow::default().notice(&Ok(Event::Apply(at_home))));
    }
}
