//! The end of a slice at its provider. The requester is given time to take its pods away and the slice
//! back; one that is silent, or does not want to, loses them all the same. The capacity is free when
//! slice, quota and pods are gone, and not before.

use kube::ResourceExt;
use kube::api::ListParams;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};
use sublet_crds::{Obstacle, ProviderInstruction};

use super::ground::{Answer, Mark, delete, let_go};
use super::pages::listed;
use super::pods::{ASKING, promptly};
use super::provider::{Decision, Provider};
use crate::collect::quota_user;
use crate::peering::liqo::csr;
use crate::peering::liqo::kinds::{NamespaceMap, ResourceSlice};
use crate::peering::liqo::names::{CLASS, ORIGIN_ID, REPLICATED, certificate_secret};
use crate::peering::{Removal, Why};
use crate::transport::Order;

impl Provider {
    /// Takes the slice back when nobody else is at it, and says how far that is.
    pub(crate) async fn reclaim(&self, order: &Order) -> Answer<Removal> {
        let _turn = self.ground.turns.take(&order.peer, &order.reservation).await;
        self.take_back(order).await
    }

    /// Takes the slice back. It is the caller's turn at this reservation.
    pub(super) async fn take_back(&self, order: &Order) -> Answer<Removal> {
        let slices = self.ground.slices(&order.peer);
        let user = quota_user(&order.reservation, order.peer.as_str());
        // One that was made anew after it was taken, or never was granted, has nothing of ours.
        let is_ours =
            |slice: &ResourceSlice| slice.is_granted() || Mark::Reclaimed.of(slice).is_some();
        let found = slices.get_opt(&order.reservation).await?;
        if let Some(other) = found.as_ref().filter(|found| !is_ours(found)) {
            if other.metadata.deletion_timestamp.is_some() {
                let_go(&slices, other, |_| false).await?;
            } else if !self.deny(other, &Decision::over()).await? {
                // It is written to, so that a grant which is still on its way comes too late.
                return Ok(contested());
            }
        }
        let slice = found.filter(is_ours);
        let mut is_denied = Ok(true);
        if let Some(slice) = &slice {
            let ground = &self.ground;
            let over =
                ground.over_since::<ProviderInstruction>(order, slice, Mark::Reclaimed).await;
            let is_going = slice.metadata.deletion_timestamp.is_some();
            let waited = ground.now().since(over.since);
            if order.duty != Duty::Gone && !is_going && waited < ground.settings.patience {
                let why = "the requester is given time to take its pods away";
                return over.written.map(|()| Removal::Pending(why.into()));
            }
            // Liqo makes a quota again as long as there is a slice that is granted: one that goes by
            // itself is left alone, one that is held is not.
            let is_held = !slice.finalizers().is_empty();
            if !is_going || is_held {
                is_denied = promptly(ASKING, self.deny(slice, &Decision::over())).await;
            }
        }
        // Pods end whatever is the matter with the slice.
        let cleared = self.clear(&order.peer, &order.reservation).await;
        if !is_denied? {
            return Ok(contested());
        }
        if let Some(why) = cleared? {
            return Ok(going(why));
        }
        if let Some(slice) = &slice {
            delete(&slices, slice).await?;
            // Liqo has no finalizer on a slice here, so whoever does holds on to it. Kubernetes has one while it waits
            // for what belongs to the slice, which somebody may hold; without it, that goes in the background.
            let_go(&slices, slice, |_| false).await?;
            return Ok(going("the slice is being removed"));
        }
        self.ground.unwritten.settled(order);
        self.tidy(order, &user).await
    }

    /// Nothing is left of it but what Liqo forgets: the certificate, and the request for it.
    async fn tidy(&self, order: &Order, user: &str) -> Answer<Removal> {
        let slices = self.ground.slices(&order.peer);
        let copies = ListParams::default().labels(&format!("{REPLICATED}=true"));
        let left = listed(&slices, &copies).await?;
        let is_there = |slice: &ResourceSlice| slice.name_any() == order.reservation;
        if !left.iter().any(is_there) {
            self.forget_requests(user).await?;
        }
        if !left.iter().any(is_there) && self.ground.is_linked(&order.peer).await? {
            let secrets = self.ground.secrets(&order.peer);
            let name = certificate_secret(&order.reservation);
            if let Some(secret) = secrets.get_opt(&name).await? {
                delete(&secrets, &secret).await?;
            }
        }
        let others: Vec<_> =
            left.iter().filter(|slice| !is_there(slice) && !slice.is_worthless()).collect();
        let is_ours = |slice: &&ResourceSlice| slice.spec.class == CLASS;
        if !others.iter().any(is_ours)
            && !self.ground.keeps_other::<ProviderInstruction>(order).await?
        {
            // What somebody else lends to it needs them too.
            if others.is_empty() {
                self.remove_namespaces(&order.peer).await?;
            }
            let ended = (Side::Provider, order);
            self.ground.let_go_of::<ProviderInstruction>(&*self.links, ended).await?;
        }
        Ok(Removal::Gone)
    }

    /// With the last slice of a requester go its namespaces here, which Liqo removes with the map of them.
    /// The requester's own Liqo does that too, unless it has given this cluster up meanwhile.
    async fn remove_namespaces(&self, peer: &ClusterId) -> Answer<()> {
        if !self.ground.is_linked(peer).await? {
            return Ok(());
        }
        let maps = self.ground.tenant::<NamespaceMap>(peer);
        let theirs = format!("{REPLICATED}=true,{ORIGIN_ID}={peer}");
        for map in maps.list(&ListParams::default().labels(&theirs)).await?.items {
            delete(&maps, &map).await?;
        }
        Ok(())
    }

    /// The requests for certificates of this user; they carry its name nowhere but inside.
    async fn forget_requests(&self, user: &str) -> Answer<()> {
        for request in self.ground.requests().await? {
            if csr::owner(&request.spec.request.0).is_some_and(|(name, _)| name == user) {
                delete(&self.ground.all(), &request).await?;
            }
        }
        Ok(())
    }
}

/// It goes, and that is in the way if it lasts.
pub(super) fn going(why: impl Into<String>) -> Removal {
    Removal::Pending(Why::suspected(Obstacle::StillDeleting, why))
}

fn contested() -> Removal {
    let why = "somebody else has just changed the slice";
    Removal::Pending(Why::suspected(Obstacle::SliceContested, why))
}
