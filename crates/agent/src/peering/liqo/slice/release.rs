//! The end of a slice at its requester, in the order that strands nobody: no new pods, pods leave, the
//! node goes, then the slice. Were the slice the first to go, the virtual kubelet would lose its way to
//! the provider while its pods are still there.

use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};
use sublet_crds::ReservationInstruction;

use super::ground::{Answer, Mark, delete, let_go, merge};
use super::reclaim::going;
use super::requester::{Requester, is_of};
use crate::peering::Removal;
use crate::peering::liqo::kinds::{ForeignCluster, ResourceSlice};
use crate::peering::liqo::names::{
    CLASS, COPIED_FINALIZER, CREATE_VIRTUAL_NODE, KUBELETS_LEASE, REPLICATION,
};
use crate::transport::Order;

impl Requester {
    /// Takes the slice down, and says how far that is.
    pub(crate) async fn release(&self, order: &Order) -> Answer<Removal> {
        let (ground, name) = (&self.ground, &order.reservation);
        let (slices, virtual_nodes) =
            (ground.slices(&order.peer), ground.virtual_nodes(&order.peer));
        let slice = slices.get_opt(name).await?;
        let virtual_node = virtual_nodes.get_opt(name).await?;
        let node = ground.nodes().get_opt(name).await?.filter(|node| is_of(node, &order.peer));
        if slice.is_none() && virtual_node.is_none() && node.is_none() {
            ground.unwritten.settled(order);
            return self.tidy(order).await;
        }
        self.give_up_if_lost(order).await?;
        let since = match (&slice, &node) {
            // Pods leave also while that cannot be written: what is written next says why.
            (Some(slice), _) => {
                ground.over_since::<ReservationInstruction>(order, slice, Mark::Leaving).await.since
            }
            (None, Some(node)) => ground.node_leaving_since(node).await?,
            (None, None) => ground.now(),
        };
        if let Some(node) = &node
            && let Some(why) = ground.empty(node, since).await?
        {
            return Ok(Removal::Pending(why));
        }
        if let Some(slice) = &slice
            && slice.annotations().get(CREATE_VIRTUAL_NODE).is_some_and(|made| made != "false")
        {
            let change = json!({ "metadata": { "annotations": { CREATE_VIRTUAL_NODE: "false" } } });
            merge(&slices, name, &change).await?;
        }
        if let Some(virtual_node) = &virtual_node {
            delete(&virtual_nodes, virtual_node).await?;
            return Ok(going("the virtual node is being removed"));
        }
        if node.is_some() {
            return Ok(going("the virtual node is being removed"));
        }
        if let Some(slice) = &slice {
            delete(&slices, slice).await?;
            // Nothing is left of it at the provider, and Liqo cannot see that: it was not let in any more
            // when the other side ended the link.
            if order.duty == Duty::Gone
                && ground.going_for(&slice.metadata) > ground.settings.patience
            {
                let_go(&slices, slice, |finalizer| finalizer != COPIED_FINALIZER).await?;
            }
        }
        Ok(going("Liqo is giving the slice back to the provider"))
    }

    /// Nothing is left of it but what Liqo forgets.
    async fn tidy(&self, order: &Order) -> Answer<Removal> {
        let ended = (Side::Requester, order);
        let is_needed = self.ground.keeps_other::<ReservationInstruction>(order).await?;
        if !self.ground.is_linked(&order.peer).await? {
            if !is_needed {
                self.ground.let_go_of::<ReservationInstruction>(&*self.links, ended).await?;
            }
            return Ok(Removal::Gone);
        }
        let is_last = self.others(&order.peer, &order.reservation).await?.is_empty();
        // The virtual kubelets of a pair share one more.
        let shared = is_last.then_some(KUBELETS_LEASE);
        let leases = self.ground.leases(&order.peer);
        let mut is_tidy = true;
        for name in [order.reservation.as_str()].into_iter().chain(shared) {
            if let Some(lease) = leases.get_opt(name).await? {
                delete(&leases, &lease).await?;
                is_tidy = false;
            }
        }
        if !is_tidy {
            // A virtual kubelet that is still ending would make it again: it is looked at once more.
            return Ok(going("the lease of the virtual kubelet is being removed"));
        }
        if is_last && !is_needed {
            self.ground.let_go_of::<ReservationInstruction>(&*self.links, ended).await?;
        }
        Ok(Removal::Gone)
    }

    /// Our other slices at this provider.
    async fn others(&self, peer: &ClusterId, but: &str) -> Answer<Vec<ResourceSlice>> {
        let ours = ListParams::default().labels(&format!("{REPLICATION}=true"));
        let all = self.ground.slices(peer).list(&ours).await?.items;
        let is_other = |slice: &ResourceSlice| slice.spec.class == CLASS && slice.name_any() != but;
        Ok(all.into_iter().filter(is_other).collect())
    }

    /// The broker says that nothing is left of it, and Liqo has not reached the provider for long: it was
    /// lost. Then Liqo is told not to wait for it; that is about everything at this provider, so only if
    /// everything is to go, also what is not ours.
    async fn give_up_if_lost(&self, order: &Order) -> Answer<()> {
        if order.duty != Duty::Gone {
            return Ok(());
        }
        let clusters = self.ground.all::<ForeignCluster>();
        let cluster = clusters.get_opt(order.peer.as_str()).await?;
        let Some(cluster) = cluster.filter(|cluster| self.ground.is_lost(cluster)) else {
            return Ok(());
        };
        let there = ListParams::default().labels(&format!("{REPLICATION}=true"));
        let there = self.ground.slices(&order.peer).list(&there).await?.items;
        if there.iter().any(|slice| is_missed(slice, &order.reservation)) {
            return Ok(());
        }
        self.ground.give_up(&cluster).await
    }
}

/// Would anybody miss a slice if its provider were given up because of another one? One of ours that does
/// not go as well, or whatever somebody else has there.
fn is_missed(slice: &ResourceSlice, because_of: &str) -> bool {
    let is_going = slice.metadata.deletion_timestamp.is_some();
    let is_leaving = slice.spec.class == CLASS && Mark::Leaving.of(slice).is_some();
    slice.name_any() != because_of && !is_leaving && !is_going
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_provider_is_given_up_only_if_nobody_has_anything_there() {
        let slice = |class: &str, metadata: Value| -> ResourceSlice {
            serde_json::from_value(json!({
                "apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
                "metadata": metadata, "spec": { "class": class },
            }))
            .unwrap()
        };
        let named = |name: &str| json!({ "name": name });
        let mut leaving = named("rsv-b");
        leaving["annotations"] = json!({ "sublet.io/leaving-since": "2026-01-01T00:00:00Z" });
        let mut going = named("by-hand");
        going["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(!is_missed(&slice(CLASS, named("rsv-a")), "rsv-a"));
        assert!(is_missed(&slice(CLASS, named("rsv-b")), "rsv-a"));
        assert!(!is_missed(&slice(CLASS, leaving.clone()), "rsv-a"));
        assert!(is_missed(&slice("default", named("by-hand")), "rsv-a"));
        assert!(is_missed(&slice("default", leaving), "rsv-a"), "it is not ours to leave");
        assert!(!is_missed(&slice("default", going), "rsv-a"));
    }
}
