//! Pods that got in while Liqo's webhook was away. They take from their reservation like any other, and are
//! counted; but nobody has asked whether there was room for them. What its quota would not have let in goes,
//! and so does what has no reservation at all.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use kube::api::ListParams;
use sublet_core::id::ClusterId;
use sublet_core::instruction::Duty;
use sublet_crds::ProviderInstruction;

use super::ground::Answer;
use super::provider::Provider;
use super::room::{Room, place};
use super::sweep::RESERVATION_PREFIX;
use crate::collect::seen::Pod;
use crate::collect::{Guest, asked_by, came_through, unclaimed};
use crate::peering::liqo::kinds::ShadowPod;
use crate::peering::liqo::names::CLASS;

impl Provider {
    /// Is rid of those for which there is no room. One that cannot be looked at keeps nobody from the others.
    pub(super) async fn trim(&self) -> Answer<()> {
        let theirs = ListParams::default().labels(&unclaimed());
        let mut shadows = self.ground.all::<ShadowPod>().list(&theirs).await?.items;
        shadows.retain(|shadow| !shadow.is_over());
        let slices: BTreeSet<_> =
            shadows.iter().filter_map(|shadow| came_through(shadow.labels())).collect();
        for (slice, origin) in slices {
            let Ok(peer) = origin.parse() else { continue };
            if let Err(error) = self.trim_slice(slice, &peer, &shadows).await {
                tracing::warn!(slice, %peer, %error, "pods that nobody has let in stay for now");
            }
        }
        Ok(())
    }

    async fn trim_slice(&self, slice: &str, peer: &ClusterId, shadows: &[ShadowPod]) -> Answer<()> {
        let _turn = self.ground.turns.take(peer, slice).await;
        let Some(room) = self.room(slice, peer).await? else { return Ok(()) };
        let [user, stray] = Guest::in_slice(slice, peer.as_str());
        let (mut claimed, mut strays) = (Vec::new(), Vec::new());
        for (guest, found) in [(&user, &mut claimed), (&stray, &mut strays)] {
            let theirs = ListParams::default().labels(&guest.pods());
            *found = self.ground.all::<Pod>().list(&theirs).await?.items;
        }
        let surplus = surplus(&room, &claimed, &strays);
        if surplus.is_empty() {
            return Ok(());
        }
        let all: BTreeMap<_, _> = shadows.iter().map(|shadow| (place(shadow), shadow)).collect();
        let mut first = Ok(());
        for pod in surplus.iter().filter_map(|pod| all.get(&place(*pod))) {
            let (namespace, name) = place(*pod);
            tracing::warn!(slice, %peer, namespace, name,
                "a pod for which there is no room got in while Liqo's webhook was away: it is removed");
            first = first.and(self.ground.be_rid_of(pod).await);
        }
        for pod in surplus {
            if pod.metadata.deletion_grace_period_seconds.is_none() {
                self.ground.metrics.guest_ended("removed");
            }
            first = first.and(self.remove_pod(pod).await);
        }
        first
    }

    /// What there is room for in a slice; none if somebody else sees to what is in it.
    pub(super) async fn room(&self, slice: &str, peer: &ClusterId) -> Answer<Option<Room>> {
        let recorded = self.ground.recorded::<ProviderInstruction>(slice).await?;
        if let Some(order) = recorded.filter(|order| order.peer == *peer) {
            // At its end everything goes, with the time that everything has.
            let is_kept = order.duty == Duty::Keep;
            return Ok(is_kept.then(|| Room::of(&order.amounts, self.ground.settings.extras)));
        }
        let found = self.ground.slices(peer).get_opt(slice).await?;
        // What was granted stays until the broker says otherwise, and what is not ours is not ours.
        let is_ours = found.as_ref().is_none_or(|found| found.spec.class == CLASS);
        let is_lent = found.is_some_and(|found| found.is_granted());
        let is_over = slice.starts_with(RESERVATION_PREFIX) && is_ours && !is_lent;
        Ok(is_over.then(Room::none))
    }
}

/// The pods that nobody has let in and for which there is no room beside those that somebody has. Each that
/// fits stays, in the order of their names; one that does not say what it takes never fits.
fn surplus<'a>(room: &Room, claimed: &[Pod], strays: &'a [Pod]) -> Vec<&'a Pod> {
    let mut taken = room.taken_by(claimed);
    let mut sorted: Vec<_> = strays.iter().filter(|pod| asked_by(pod).is_some()).collect();
    sorted.sort_by_key(|pod| place(*pod));
    sorted.retain(|pod| {
        let asked = asked_by(pod).unwrap_or_default();
        let is_said = asked.cpu > 0 && asked.memory > 0;
        !(is_said && taken.takes_in(&asked))
    });
    sorted
}

#[cfg(test)]
mod tests {
    use super::super::amounts::Extras;
    use super::*;
    use serde_json::{Value, json};
    use sublet_core::resources::Resources;

    const EXTRAS: Extras = Extras { pods: 3, storage: 1 << 30 };

    fn pod(name: &str, requests: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "name": name, "namespace": "demo-rome" },
            "spec": { "containers": [{ "name": "main", "resources": { "requests": requests } }] },
        }))
        .unwrap()
    }

    fn of(name: &str, cpu: &str) -> Pod {
        pod(name, json!({ "cpu": cpu, "memory": "64Mi" }))
    }

    fn names(room: &Room, claimed: &[Pod], strays: &[Pod]) -> Vec<String> {
        surplus(room, claimed, strays).into_iter().map(ResourceExt::name_any).collect()
    }

    #[test]
    fn what_its_quota_would_not_have_let_in_goes_and_the_rest_stays() {
        let room = Room::of(&Resources::new(2000, 4 << 30), EXTRAS);
        let strays = [of("greedy", "4"), of("guest", "500m")];
        assert_eq!(names(&room, &[], &strays), ["greedy"]);
        assert_eq!(names(&room, &[of("let-in", "1500m")], &strays), ["greedy"]);
        assert_eq!(names(&room, &[of("let-in", "1501m")], &strays), ["greedy", "guest"]);
        assert_eq!(names(&room, &[], &strays[1..]), Vec::<String>::new());
        assert_eq!(names(&Room::none(), &[], &strays), ["greedy", "guest"]);
    }

    #[test]
    fn a_pod_that_asks_for_nothing_or_for_something_else_goes() {
        let room = Room::of(&Resources::new(2000, 4 << 30), EXTRAS);
        let strays = [
            pod("gpu", json!({ "cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1" })),
            pod("silent", json!({})),
            pod("stored", json!({ "cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi" })),
        ];
        assert_eq!(names(&room, &[], &strays), ["gpu", "silent"]);
    }

    #[test]
    fn there_is_a_place_for_so_many_and_what_has_finished_needs_none() {
        let room = Room::of(&Resources::new(2000, 4 << 30), EXTRAS);
        let all = ["a", "b", "c", "d"].map(|name| of(name, "1m"));
        assert_eq!(names(&room, &[], &all), ["d"]);
        let mut finished = all.clone();
        "Succeeded".clone_into(&mut finished[0].status.phase);
        assert_eq!(names(&room, &[], &finished), Vec::<String>::new());
        assert_eq!(names(&Room::none(), &[], &finished), ["b", "c", "d"]);
    }
}
