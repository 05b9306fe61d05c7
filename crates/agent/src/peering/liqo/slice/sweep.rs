//! What nobody wants: slices of reservations that the broker does not know, and what Liqo leaves
//! behind of those that are gone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ListParams, PartialObjectMeta};
use kube::{Api, Resource, ResourceExt};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;

use super::ground::{Answer, Ground, Mark, delete};
use crate::collect::{came_through, unclaimed};
use crate::peering::IsLive;
use crate::peering::liqo::kinds::{ResourceSlice, ShadowPod};
use crate::peering::liqo::names::{
    CLASS, REPLICATED, REPLICATION, TENANT_NAMESPACE, certificate_secret, tenant_of,
};

/// How every name of a reservation begins.
pub(super) const RESERVATION_PREFIX: &str = "rsv-";

/// Marks what nobody wants, so that the keeper takes it down, and removes what is left of what is
/// gone.
pub(crate) async fn sweep(ground: &Ground, sides: &[Side], is_live: &IsLive) -> Answer<()> {
    let slices = ground.all::<ResourceSlice>().list(&ListParams::default()).await?.items;
    for slice in slices.iter().filter(|slice| slice.spec.class == CLASS) {
        let Some(side) = side_of(slice).filter(|side| sides.contains(side)) else { continue };
        let (name, namespace) = (slice.name_any(), slice.namespace().unwrap_or_default());
        let has_something = side == Side::Requester || slice.is_granted();
        if !has_something || is_live(side, &name) {
            continue;
        }
        tracing::info!(slice = name, ?side, "nobody wants this slice: it is taken down");
        let api = Api::namespaced(ground.client.clone(), &namespace);
        let mark = match side {
            Side::Provider => Mark::Reclaimed,
            Side::Requester => Mark::Leaving,
        };
        // One that cannot be marked keeps nobody from the others.
        let now = ground.now();
        let since = mark.of(slice).filter(|since| *since <= now).unwrap_or(now);
        if let Err(error) = ground.mark(&api, slice, mark, since).await {
            tracing::warn!(slice = name, namespace, %error, "a slice that nobody wants stays for now");
        }
    }
    if sides.contains(&Side::Provider)
        && let Err(error) = strays(ground, is_live).await
    {
        tracing::warn!(%error, "shadow pods that nobody wants stay for now");
    }
    let in_use =
        slices.iter().map(|slice| (slice.namespace().unwrap_or_default(), slice.name_any()));
    leftovers(ground, sides, is_live, &in_use.collect()).await
}

/// Shadow pods that got in while Liqo's webhook was away, of what is gone: nobody can remove them while it
/// is there, so that is tried again and again.
async fn strays(ground: &Ground, is_live: &IsLive) -> Answer<()> {
    let theirs = ListParams::default().labels(&unclaimed());
    for shadow in ground.all::<ShadowPod>().list(&theirs).await?.items {
        let slice = came_through(shadow.labels()).map(|(slice, _)| slice);
        let is_left =
            |name: &str| name.starts_with(RESERVATION_PREFIX) && !is_live(Side::Provider, name);
        if slice.is_some_and(is_left)
            && let Err(error) = ground.remove_stray(&shadow).await
        {
            // It keeps nobody from the others.
            let (namespace, name) = (shadow.namespace().unwrap_or_default(), shadow.name_any());
            tracing::warn!(namespace, name, %error, "a shadow pod that nobody wants stays for now");
        }
    }
    Ok(())
}

/// What this cluster is in a slice.
pub(super) fn side_of(slice: &ResourceSlice) -> Option<Side> {
    let is = |label: &str| slice.labels().get(label).is_some_and(|value| value == "true");
    if is(REPLICATED) { Some(Side::Provider) } else { is(REPLICATION).then_some(Side::Requester) }
}

/// The other cluster of a slice, by where it is: what its labels say may be that cluster's own word.
pub(super) fn peer_of(slice: &ResourceSlice) -> Option<ClusterId> {
    tenant_of(&slice.namespace()?)
}

async fn leftovers(
    ground: &Ground,
    sides: &[Side],
    is_live: &IsLive,
    in_use: &BTreeSet<(String, String)>,
) -> Answer<()> {
    let tenants = ListParams::default().labels(&format!("{TENANT_NAMESPACE}=true"));
    let lent =
        if sides.contains(&Side::Provider) { ground.lent_to().await? } else { BTreeMap::new() };
    for tenant in ground.all::<Namespace>().list_metadata(&tenants).await?.items {
        let tenant = tenant.name_any();
        let is_left = |side: Side, name: &str| {
            // What lives for another cluster is no reason to keep what this one has left.
            let is_anothers = side == Side::Provider
                && lent.get(name).is_some_and(|to| tenant_of(&tenant).as_ref() != Some(to));
            name.starts_with(RESERVATION_PREFIX)
                && !in_use.contains(&(tenant.clone(), name.to_owned()))
                && (is_anothers || !is_live(side, name))
        };
        if sides.contains(&Side::Requester) {
            let is_left = |name: &str| is_left(Side::Requester, name);
            note(&tenant, remove_each::<Lease>(ground, &tenant, &is_left).await);
        }
        if sides.contains(&Side::Provider) {
            let prefix = certificate_secret("");
            let is_left = |name: &str| {
                name.strip_prefix(&prefix).is_some_and(|name| is_left(Side::Provider, name))
            };
            note(&tenant, remove_each::<Secret>(ground, &tenant, &is_left).await);
        }
    }
    Ok(())
}

/// What is left in one namespace keeps nobody from the others.
fn note(namespace: &str, removed: Answer<()>) {
    if let Err(error) = removed {
        tracing::warn!(namespace, %error, "what Liqo left behind stays for now");
    }
}

async fn remove_each<K>(
    ground: &Ground,
    namespace: &str,
    is_left: &(dyn Fn(&str) -> bool + Sync),
) -> Answer<()>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let objects: Api<PartialObjectMeta<K>> = Api::namespaced(ground.client.clone(), namespace);
    for object in objects.list_metadata(&ListParams::default()).await?.items {
        if is_left(&object.name_any()) {
            let typed: Api<K> = Api::namespaced(ground.client.clone(), namespace);
            if let Some(object) = typed.get_opt(&object.name_any()).await? {
                delete(&typed, &object).await?;
            }
        }
    }
    Ok(())
}
