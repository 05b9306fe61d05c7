//! The pair as its provider has it. Liqo grants whatever the slice asks for, so there is nothing to do
//! but to look: what is lent fits into what is reserved, and what is over is gone, before anybody is
//! told so. A requester that does not give it back is drained.

use kube::api::{ListParams, Patch};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Duty;
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_crds::{Obstacle, ProviderInstruction};

use super::Site;
use super::live::fits;
use super::requester::writer;
use super::view::{Answer, gone, make_namespace};
use crate::collect::seen::Pod;
use crate::collect::{Guest, asked_by_all, quota_user};
use crate::peering::liqo::kinds::{Quota, ResourceSlice, Tenant};
use crate::peering::liqo::names::{RECLAIMED_SINCE, REPLICATED, tenant_namespace};
use crate::peering::liqo::text;
use crate::peering::{Progress, Removal, Why};
use crate::transport::Order;

/// How many pods of one requester are added up at a look; more than that is too much to be over.
const PODS_MAX: u32 = 5000;

impl Site {
    /// Keeps the amounts for the requester. What its slice has already must fit into what is reserved
    /// for it, and so must its pods: a smaller reservation is in force when both are smaller.
    pub(super) async fn lend(&self, order: &Order) -> Answer<Progress> {
        self.board.keep(order);
        let lent = self.lent(&order.peer).await?;
        make_namespace(&self.client, &order.peer).await?;
        self.let_in_again(&order.peer).await?;
        let live = self.live::<ProviderInstruction>(&order.peer).await?;
        let total = match live.total() {
            Ok(total) => total,
            Err(error) => return Ok(Progress::Failed(error.to_string().into())),
        };
        Ok(match lent.exceeds(&total).or_else(|| lent.uses_more_than(&total)) {
            None => Progress::Ready,
            Some(why) => Progress::Pending(Why::hindered(Obstacle::AmountsDiffer, why)),
        })
    }

    /// Whether nothing is left of this reservation here.
    pub(super) async fn take_back(&self, order: &Order) -> Answer<Removal> {
        self.board.leave(order);
        let live = self.live::<ProviderInstruction>(&order.peer).await?;
        let lent = self.lent(&order.peer).await?;
        // While another one lives nothing is taken by force: it has the same slice, and the same node.
        let keeps = |why| Why::suspected(Obstacle::AmountsDiffer, why);
        let why = match live.total() {
            Err(error) => Some(error.to_string().into()),
            Ok(_) if live.is_empty() && lent.is_nothing() => None,
            Ok(_) if live.is_empty() => Some(self.drain_if_late(order).await?.into()),
            Ok(total) => lent.exceeds(&total).or_else(|| lent.uses_more_than(&total)).map(keeps),
        };
        // Also to remove what is left in the end.
        self.board.attend(&order.peer);
        if let Some(why) = why {
            return Ok(Removal::Pending(why));
        }
        if live.is_empty() {
            self.cordon_if_drained(&order.peer).await?;
        }
        self.board.settle(order);
        Ok(Removal::Gone)
    }

    /// What the other cluster has here.
    async fn lent(&self, peer: &ClusterId) -> Answer<Lent> {
        let within = tenant_namespace(peer);
        // liqoctl names a slice after the provider, which is this cluster.
        let name = self.settings.cluster.as_str();
        let user = quota_user(name, peer.as_str());
        let slices: Api<ResourceSlice> = Api::namespaced(self.client.clone(), &within);
        let quotas: Api<Quota> = Api::namespaced(self.client.clone(), &within);
        let pods: Api<Pod> = Api::all(self.client.clone());
        // Those that got in while Liqo's webhook was away do not say their user.
        let [theirs, strays] = Guest::in_slice(name, peer.as_str())
            .map(|guest| ListParams::default().labels(&guest.pods()).limit(PODS_MAX));
        let (slice, quota, mut theirs, strays) = tokio::try_join!(
            slices.get_opt(name),
            quotas.get_opt(&user),
            pods.list(&theirs),
            pods.list(&strays),
        )?;
        theirs.items.extend(strays.items);
        let is_copy =
            |slice: &ResourceSlice| slice.labels().get(REPLICATED).is_some_and(|is| is == "true");
        Ok(Lent { slice: slice.filter(is_copy), quota, pods: theirs.items })
    }

    /// The requester has had its time, or nobody waits for it any more: its tenant is drained, which is
    /// Liqo's way to take everything back. Says what is waited for.
    async fn drain_if_late(&self, order: &Order) -> Answer<String> {
        let tenants: Api<Tenant> =
            Api::namespaced(self.client.clone(), &tenant_namespace(&order.peer));
        let name = order.peer.as_str();
        let Some(tenant) = tenants.get_opt(name).await? else {
            let why = "slice, quota or pods of the requester are still here, and Liqo knows no such tenant";
            return Ok(why.to_owned());
        };
        let now = (self.clock)();
        let since = since(&tenant).filter(|since| *since <= now);
        let waited = since.map(|since| now.since(since));
        let is_late = waited.is_some_and(|waited| waited >= self.settings.patience);
        if !is_late && order.duty != Duty::Gone {
            if since.is_none() {
                let now = sublet_crds::from_time(now);
                let change = json!({ "metadata": { "annotations": { RECLAIMED_SINCE: now } } });
                gone(tenants.patch(name, &writer(), &Patch::Merge(&change)).await)?;
            }
            return Ok("the requester is given time to take its pods away".to_owned());
        }
        if tenant.spec.tenant_condition != DRAINED {
            tracing::warn!(
                requester = name,
                "the requester keeps what is over: its tenant is drained"
            );
            let since = sublet_crds::from_time(since.unwrap_or(now));
            let change = json!({
                "metadata": { "annotations": { RECLAIMED_SINCE: since } },
                "spec": { "tenantCondition": DRAINED },
            });
            gone(tenants.patch(name, &writer(), &Patch::Merge(&change)).await)?;
        }
        Ok("Liqo drains the tenant of the requester".to_owned())
    }

    /// A tenant that has nothing left may clean up behind itself, which one that is drained may not; it
    /// still gets nothing.
    async fn cordon_if_drained(&self, peer: &ClusterId) -> Answer<()> {
        let tenants: Api<Tenant> = Api::namespaced(self.client.clone(), &tenant_namespace(peer));
        let tenant = tenants.get_opt(peer.as_str()).await?;
        let is_drained_by_us = |tenant: Tenant| {
            let by_us = tenant.annotations().contains_key(RECLAIMED_SINCE);
            by_us && tenant.spec.tenant_condition == DRAINED
        };
        if !tenant.is_some_and(is_drained_by_us) {
            return Ok(());
        }
        let change = json!({ "spec": { "tenantCondition": "Cordoned" } });
        gone(tenants.patch(peer.as_str(), &writer(), &Patch::Merge(&change)).await).map(drop)
    }

    /// A requester that was drained by us is let in again when something is reserved for it.
    async fn let_in_again(&self, peer: &ClusterId) -> Answer<()> {
        let tenants: Api<Tenant> = Api::namespaced(self.client.clone(), &tenant_namespace(peer));
        let tenant = tenants.get_opt(peer.as_str()).await?;
        if tenant.is_none_or(|tenant| !tenant.annotations().contains_key(RECLAIMED_SINCE)) {
            return Ok(());
        }
        let change = json!({
            "metadata": { "annotations": { RECLAIMED_SINCE: null } },
            "spec": { "tenantCondition": "Active" },
        });
        gone(tenants.patch(peer.as_str(), &writer(), &Patch::Merge(&change)).await).map(drop)
    }
}

/// What Liqo calls a tenant that has nothing, and gets nothing.
const DRAINED: &str = "Drained";

fn since(tenant: &Tenant) -> Option<Time> {
    let text = tenant.annotations().get(RECLAIMED_SINCE)?;
    let since = serde_json::from_value(Value::String(text.clone())).ok()?;
    sublet_crds::to_time(RECLAIMED_SINCE, &since).ok()
}

/// What a requester has here.
struct Lent {
    slice: Option<ResourceSlice>,
    quota: Option<Quota>,
    pods: Vec<Pod>,
}

impl Lent {
    /// A slice that was denied, because the requester's Liqo brought it back, has nothing.
    fn is_nothing(&self) -> bool {
        let has_slice = self.slice.as_ref().is_some_and(ResourceSlice::is_granted);
        !has_slice && self.quota.is_none() && self.pods.is_empty()
    }

    /// Why what is lent is more than this.
    fn exceeds(&self, total: &Resources) -> Option<String> {
        let granted = self.slice.as_ref().and_then(|slice| slice.status.as_ref());
        let granted = granted.map(|status| &status.resources);
        let let_in = self.quota.as_ref().map(|quota| &quota.spec.resources);
        let too_large = [granted, let_in].into_iter().flatten().find(|list| !fits(list, total));
        too_large.map(|list| {
            format!("the requester's slice has {}; reserved for it is {total}", text(list))
        })
    }

    /// Why what runs is more than this: a smaller slice ends no pods.
    fn uses_more_than(&self, total: &Resources) -> Option<String> {
        // Also those that wait for a node: they were let in, and will take it.
        let mut used = asked_by_all(&self.pods);
        // Places that nobody reserves are not counted.
        if total.storage == 0 {
            used.storage = 0;
        }
        let is_more = !used.fits_in(total);
        is_more.then(|| format!("pods of the requester still take {used}; it keeps {total}"))
    }
}
