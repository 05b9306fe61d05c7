//! The end of a slice at its requester, in the order that strands nobody: no new pods, pods leave, the
//! node goes, then the slice. Were the slice the first to go, the virtual kubelet would lose its way to
//! the provider while its pods are still there.

use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};

use super::ground::{Answer, Mark, delete, merge};
use super::requester::{Requester, is_of};
use crate::peering::Removal;
use crate::peering::liqo::kinds::{ForeignCluster, ResourceSlice};
use crate::peering::liqo::names::{
    CLASS, CREATE_VIRTUAL_NODE, KUBELETS_LEASE, REPLICATION, UNREACHABLE,
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
            return self.tidy(order).await;
        }
        self.give_up_if_lost(order).await?;
        let since = match (&slice, &node) {
            (Some(slice), _) => ground.since(&slices, slice, Mark::Leaving).await?,
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
            return Ok(pending("the virtual node is being removed"));
        }
        if node.is_some() {
            return Ok(pending("the virtual node is being removed"));
        }
        if let Some(slice) = &slice {
            delete(&slices, slice).await?;
        }
        Ok(pending("Liqo is giving the slice back to the provider"))
    }

    /// Nothing is left of it but what Liqo forgets.
    async fn tidy(&self, order: &Order) -> Answer<Removal> {
        if !self.ground.is_linked(&order.peer).await? {
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
            return Ok(pending("the lease of the virtual kubelet is being removed"));
        }
        if is_last {
            self.links.unused(Side::Requester, &order.peer).await;
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

    /// The broker says that nothing is left of it, and Liqo cannot reach the provider to give it back:
    /// the provider was lost. Then Liqo is told not to wait for it; that is about everything at this
    /// provider, so only if everything is to go.
    async fn give_up_if_lost(&self, order: &Order) -> Answer<()> {
        if order.duty != Duty::Gone {
            return Ok(());
        }
        let clusters = self.ground.all::<ForeignCluster>();
        let Some(cluster) = clusters.get_opt(order.peer.as_str()).await? else { return Ok(()) };
        if !cluster.is_out_of_reach() || cluster.annotations().contains_key(UNREACHABLE) {
            return Ok(());
        }
        let others = self.others(&order.peer, &order.reservation).await?;
        if others.iter().any(|slice| Mark::Leaving.of(slice).is_none()) {
            return Ok(());
        }
        tracing::warn!(provider = %order.peer, "the provider is lost: Liqo is told to give it up");
        let change = json!({ "metadata": { "annotations": { UNREACHABLE: "true" } } });
        merge(&clusters, order.peer.as_str(), &change).await
    }
}

fn pending(why: &str) -> Removal {
    Removal::Pending(why.into())
}
