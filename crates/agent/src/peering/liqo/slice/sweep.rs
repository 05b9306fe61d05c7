//! What nobody wants: slices of reservations that the broker does not know, and what Liqo leaves
//! behind of those that are gone.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ListParams, PartialObjectMeta};
use kube::{Api, Resource, ResourceExt};
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;

use super::ground::{Answer, Ground, Mark, delete};
use super::pages::{listed, listed_metadata};
use crate::collect::{came_through, claimant, claimed, quota_user, unclaimed};
use crate::peering::IsLive;
use crate::peering::liqo::csr;
use crate::peering::liqo::kinds::{ResourceSlice, ShadowPod};
use crate::peering::liqo::names::{
    CLASS, REPLICATED, REPLICATION, TENANT_NAMESPACE, certificate_secret, tenant_namespace,
    tenant_of,
};

/// How every name of a reservation begins.
pub(super) const RESERVATION_PREFIX: &str = "rsv-";

/// Marks what nobody wants, so that the keeper takes it down, and removes what is left of what is
/// gone.
pub(crate) async fn sweep(ground: &Ground, sides: &[Side], is_live: &IsLive) -> Answer<()> {
    // Before the slices: whatever was asked for by then has its slice among them, or has none.
    let requests = requests(ground, sides).await;
    let slices = listed(&ground.all::<ResourceSlice>(), &ListParams::default()).await?;
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
    if sides.contains(&Side::Provider) {
        for swept in [strays(ground, is_live).await, overdue(ground, &slices, is_live).await] {
            if let Err(error) = swept {
                tracing::warn!(%error, "shadow pods that nobody wants stay for now");
            }
        }
    }
    let in_use =
        slices.iter().map(|slice| (slice.namespace().unwrap_or_default(), slice.name_any()));
    let lent =
        if sides.contains(&Side::Provider) { ground.lent_to().await? } else { BTreeMap::new() };
    let kept = Kept { in_use: in_use.collect(), lent, is_live };
    kept.forget_requests(ground, &requests).await;
    leftovers(ground, sides, &kept).await
}

/// Requests for certificates, some of which may be left; that they cannot be seen keeps nobody from the rest.
async fn requests(ground: &Ground, sides: &[Side]) -> Vec<CertificateSigningRequest> {
    if !sides.contains(&Side::Provider) {
        return Vec::new();
    }
    ground.requests().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "requests for certificates that nobody wants stay for now");
        Vec::new()
    })
}

/// What is no leftover.
struct Kept<'a> {
    /// The namespaces and names of all slices.
    in_use: BTreeSet<(String, String)>,
    /// To whom what is recorded here is lent.
    lent: BTreeMap<String, ClusterId>,
    is_live: &'a IsLive,
}

impl Kept<'_> {
    /// Is what was made for the slice of this name in a tenant's namespace left behind?
    fn is_left(&self, side: Side, tenant: &str, name: &str) -> bool {
        // What lives for another cluster is no reason to keep what this one has left.
        let is_anothers = side == Side::Provider
            && self.lent.get(name).is_some_and(|to| tenant_of(tenant).as_ref() != Some(to));
        name.starts_with(RESERVATION_PREFIX)
            && !self.in_use.contains(&(tenant.to_owned(), name.to_owned()))
            && (is_anothers || !(self.is_live)(side, name))
    }

    /// Is this a request for the certificate of a slice that is gone?
    fn is_request_left(&self, request: &CertificateSigningRequest) -> bool {
        let owner = csr::owner(&request.spec.request.0);
        owner.and_then(|(user, cluster)| asked_for(&user, &cluster)).is_some_and(|(slice, peer)| {
            self.is_left(Side::Provider, &tenant_namespace(&peer), &slice)
        })
    }

    /// Removes requests for certificates that are left: Liqo, which looks at a slice when it comes to it, may
    /// have made one after all else was gone. One that stays keeps nobody from the others.
    async fn forget_requests(&self, ground: &Ground, requests: &[CertificateSigningRequest]) {
        for request in requests.iter().filter(|request| self.is_request_left(request)) {
            if let Err(error) = delete(&ground.all(), request).await {
                let name = request.name_any();
                tracing::warn!(name, %error, "a request for a certificate stays for now");
            }
        }
    }
}

/// The slice, and the cluster that it is of, whose user such a request names.
fn asked_for(user: &str, cluster: &str) -> Option<(String, ClusterId)> {
    let slice = user.strip_suffix(&quota_user("", cluster))?;
    Some((slice.to_owned(), cluster.parse().ok()?))
}

/// Shadow pods that got in while Liqo's webhook was away, of what is gone: nobody can remove them while it
/// is there, so that is tried again and again.
async fn strays(ground: &Ground, is_live: &IsLive) -> Answer<()> {
    let theirs = ListParams::default().labels(&unclaimed());
    for shadow in listed(&ground.all::<ShadowPod>(), &theirs).await? {
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

/// Shadow pods of what is over, that came after its end was seen to: a quota may let in what was on its way. What is
/// recorded here is seen to by whoever has the instruction.
async fn overdue(ground: &Ground, slices: &[ResourceSlice], is_live: &IsLive) -> Answer<()> {
    let granted = slices.iter().filter(|slice| slice.is_granted());
    let granted = granted
        .filter_map(|slice| Some(quota_user(&slice.name_any(), peer_of(slice)?.as_str())))
        .collect();
    let theirs = ListParams::default().labels(&claimed());
    let shadows = listed_metadata(&ground.all::<ShadowPod>(), &theirs).await?;
    // After the others: what was let in by then is in here, or was let in for nothing.
    let lent = ground.lent_to().await?;
    let is_wanted = |slice: &str| is_live(Side::Provider, slice) || lent.contains_key(slice);
    for shadow in shadows.iter().filter(|shadow| is_overdue(*shadow, &granted, &is_wanted)) {
        let (namespace, name) = (shadow.namespace().unwrap_or_default(), shadow.name_any());
        tracing::warn!(namespace, name, "a shadow pod of a reservation that is over is removed");
        if let Err(error) = ground.remove_or_end(shadow, true).await {
            // It keeps nobody from the others.
            tracing::warn!(namespace, name, %error, "it stays for now");
        }
    }
    Ok(())
}

/// Does it say a user of ours who has nothing here any more?
fn is_overdue(
    shadow: &impl ResourceExt,
    granted: &BTreeSet<String>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> bool {
    claimant(shadow.labels()).is_some_and(|(user, slice)| {
        slice.starts_with(RESERVATION_PREFIX)
            && shadow.meta().deletion_timestamp.is_none()
            && !granted.contains(user)
            && !is_wanted(slice)
    })
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

async fn leftovers(ground: &Ground, sides: &[Side], kept: &Kept<'_>) -> Answer<()> {
    let tenants = ListParams::default().labels(&format!("{TENANT_NAMESPACE}=true"));
    for tenant in ground.all::<Namespace>().list_metadata(&tenants).await?.items {
        let tenant = tenant.name_any();
        if sides.contains(&Side::Requester) {
            let is_left = |name: &str| kept.is_left(Side::Requester, &tenant, name);
            note(&tenant, remove_each::<Lease>(ground, &tenant, &is_left).await);
        }
        if sides.contains(&Side::Provider) {
            let prefix = certificate_secret("");
            let is_left = |name: &str| {
                let slice = name.strip_prefix(&prefix);
                slice.is_some_and(|name| kept.is_left(Side::Provider, &tenant, name))
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

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
    use serde_json::json;

    use super::*;

    fn request(user: &str, groups: &[&str]) -> CertificateSigningRequest {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        for (at, group) in groups.iter().enumerate() {
            // Of one type, there is one name alone.
            let more = DnType::CustomDnType(vec![2, 5, 4, 10]);
            let kind = if at == 0 { DnType::OrganizationName } else { more };
            params.distinguished_name.push(kind, *group);
        }
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let mut request = CertificateSigningRequest::default();
        request.spec.request = ByteString(pem.into_bytes());
        request
    }

    #[test]
    fn a_request_is_left_when_its_slice_is_gone_and_its_reservation_too() {
        let is_live: &IsLive = &|_: Side, name: &str| name == "rsv-live" || name == "rsv-turins";
        let kept = Kept {
            in_use: [("liqo-tenant-rome".to_owned(), "rsv-used".to_owned())].into(),
            lent: [("rsv-turins".to_owned(), "turin".parse().unwrap())].into(),
            is_live,
        };
        let is_left = |slice: &str, cluster: &str| {
            kept.is_request_left(&request(&quota_user(slice, cluster), &[cluster]))
        };
        assert!(is_left("rsv-gone", "rome"));
        assert!(!is_left("rsv-live", "rome"), "it is to have a slice");
        assert!(!is_left("rsv-used", "rome"), "it has a slice");
        assert!(is_left("rsv-used", "milan"), "another cluster has the slice of that name");
        assert!(is_left("rsv-turins", "rome"), "the reservation is another cluster's");
        assert!(!is_left("rsv-turins", "turin"));
        let user = quota_user("rsv-gone", "rome");
        assert!(kept.is_request_left(&request(&user, &["rome", "kubeadm:cluster-admins"])));
    }

    #[test]
    fn a_shadow_pod_is_overdue_when_its_user_has_nothing_here_any_more() {
        let granted = [quota_user("rsv-granted", "rome")].into();
        let is_wanted = |slice: &str| slice == "rsv-live";
        let of = |user: &str| {
            let labels = json!({ "liqo.io/creator-user": user });
            let shadow = json!({ "metadata": { "name": "guest", "labels": labels } });
            serde_json::from_value::<PartialObjectMeta<ShadowPod>>(shadow).unwrap()
        };
        let judged = |user: &str| is_overdue(&of(user), &granted, &is_wanted);
        assert!(judged(&quota_user("rsv-over", "rome")));
        assert!(!judged(&quota_user("rsv-live", "rome")));
        assert!(!judged(&quota_user("rsv-granted", "rome")));
        assert!(
            judged(&quota_user("rsv-granted", "turin")),
            "another cluster has the slice of that name"
        );
        assert!(!judged(&quota_user("by-hand", "rome")), "a slice of somebody else's");
        let mut going = of(&quota_user("rsv-over", "rome"));
        going.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        assert!(!is_overdue(&going, &granted, &is_wanted));
    }

    #[test]
    fn a_request_that_no_slice_has_made_is_nobodys_to_remove() {
        let is_live: &IsLive = &|_: Side, _: &str| false;
        let kept = Kept { in_use: BTreeSet::new(), lent: BTreeMap::new(), is_live };
        for (user, group) in [("rome", "liqo.io"), ("rsv-gone", "rome"), ("system:node:a", "rome")]
        {
            assert!(!kept.is_request_left(&request(user, &[group])), "{user}");
        }
        let of_liqoctl = request(&quota_user("milan", "rome"), &["rome"]);
        assert!(!kept.is_request_left(&of_liqoctl), "a slice of somebody else's");
        assert!(!kept.is_request_left(&request(&quota_user("rsv-a", "rome"), &["milan"])));
        assert!(!kept.is_request_left(&CertificateSigningRequest::default()));
    }
}
