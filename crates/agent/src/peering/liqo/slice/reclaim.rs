//! The end of a slice at its provider. The requester is given time to take its pods away and the slice
//! back; one that is silent, or does not want to, loses them all the same. The capacity is free when
//! slice, quota and pods are gone, and not before.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};

use super::ground::{Answer, Mark, delete, merge};
use super::provider::{Decision, Provider};
use crate::cluster::{code, present};
use crate::collect::quota_user;
use crate::peering::Removal;
use crate::peering::liqo::csr;
use crate::peering::liqo::kinds::{ResourceSlice, ShadowPod};
use crate::peering::liqo::names::{CLASS, CREATOR, CSR_LABEL, REPLICATED, certificate_secret};
use crate::transport::Order;

/// How many shadow pods are removed at the same time.
const AT_ONCE: usize = 8;
/// How many pods are seen to at a look; the others at the next one.
const PODS_MAX: u32 = 100;
/// How long a pod of a slice that is over may take to end, whatever it says itself.
const GRACE_SECONDS: u32 = 10;

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
                self.let_go(&slices, other).await?;
            } else if !self.deny(other, &Decision::over()).await? {
                // It is written to, so that a grant which is still on its way comes too late.
                return Ok(pending("somebody else has just changed the slice"));
            }
        }
        let slice = found.filter(is_ours);
        if let Some(slice) = &slice {
            let since = self.ground.since(&slices, slice, Mark::Reclaimed).await?;
            let is_going = slice.metadata.deletion_timestamp.is_some();
            let waited = self.ground.now().since(since);
            if order.duty != Duty::Gone && !is_going && waited < self.ground.settings.patience {
                return Ok(pending("the requester is given time to take its pods away"));
            }
            // Liqo makes a quota again as long as there is a slice that is granted: one that goes by
            // itself is left alone, one that is held is not.
            let is_held = !slice.finalizers().is_empty();
            if (!is_going || is_held) && !self.deny(slice, &Decision::over()).await? {
                return Ok(pending("somebody else has just changed the slice"));
            }
        }
        if let Some(why) = self.clear(&order.peer, &user).await? {
            return Ok(Removal::Pending(why.into()));
        }
        match &slice {
            Some(slice) => {
                delete(&slices, slice).await?;
                self.let_go(&slices, slice).await?;
                Ok(pending("the slice is being removed"))
            }
            None => self.tidy(order, &user).await,
        }
    }

    /// Takes the finalizers off a slice of which nothing is left: Liqo has none there, so somebody holds
    /// on to it. Kubernetes' own are seen to by Kubernetes.
    async fn let_go(&self, slices: &Api<ResourceSlice>, slice: &ResourceSlice) -> Answer<()> {
        let is_own = |name: &&String| name.as_str() == "foregroundDeletion";
        let kept: Vec<_> = slice.finalizers().iter().filter(is_own).collect();
        let is_held = kept.len() < slice.finalizers().len();
        if slice.metadata.deletion_timestamp.is_none() || !is_held {
            return Ok(());
        }
        tracing::warn!(slice = slice.name_any(), finalizers = ?slice.finalizers(),
            "a slice that is over is held by finalizers, which are taken off");
        let version = slice.resource_version();
        let change = json!({ "metadata": { "resourceVersion": version, "finalizers": kept } });
        match merge(slices, &slice.name_any(), &change).await {
            Err(error) if code(&error) == Some(409) => Ok(()),
            changed => changed,
        }
    }

    /// Removes quota and pods of a user; why that is not done yet.
    pub(super) async fn clear(&self, peer: &ClusterId, user: &str) -> Answer<Option<String>> {
        let quotas = self.ground.quotas(peer);
        let quota = quotas.get_opt(user).await?;
        if let Some(quota) = &quota {
            delete(&quotas, quota).await?;
        }
        let theirs = ListParams::default().labels(&format!("{CREATOR}={user}"));
        let shadows = self.ground.all::<ShadowPod>().list_metadata(&theirs).await?.items;
        let each: Vec<_> =
            shadows.iter().map(|shadow| self.remove_shadow(shadow).boxed()).collect();
        all(each).await?;
        let pods = self.ground.all::<Pod>().list_metadata(&theirs.limit(PODS_MAX)).await?.items;
        let each: Vec<_> = pods.iter().map(|pod| self.remove_pod(pod).boxed()).collect();
        all(each).await?;
        Ok(match (pods.first(), shadows.is_empty() && quota.is_none()) {
            (Some(pod), _) => {
                let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
                Some(format!(
                    "pods of the requester are ending here, {namespace}/{name} among them"
                ))
            }
            (None, false) => Some("quota and pods of the requester are being removed".to_owned()),
            (None, true) => None,
        })
    }

    async fn remove_shadow(&self, shadow: &PartialObjectMeta<ShadowPod>) -> Answer<()> {
        let namespace = shadow.namespace().unwrap_or_default();
        let shadows: Api<PartialObjectMeta<ShadowPod>> =
            Api::namespaced(self.ground.client.clone(), &namespace);
        delete(&shadows, shadow).await
    }

    /// They do not choose themselves how long they take to end.
    async fn remove_pod(&self, pod: &PartialObjectMeta<Pod>) -> Answer<()> {
        let left = pod.metadata.deletion_grace_period_seconds;
        if left.is_some_and(|left| left <= i64::from(GRACE_SECONDS)) {
            return Ok(());
        }
        let pods: Api<Pod> =
            Api::namespaced(self.ground.client.clone(), &pod.namespace().unwrap_or_default());
        let how = DeleteParams {
            grace_period_seconds: Some(GRACE_SECONDS),
            preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        match present(pods.delete(&pod.name_any(), &how).await) {
            // There is another one of this name by now: it is seen to at the next look.
            Err(error) if code(&error) == Some(409) => Ok(()),
            removed => removed.map(drop),
        }
    }

    /// Nothing is left of it but what Liqo forgets: the certificate, and the request for it.
    async fn tidy(&self, order: &Order, user: &str) -> Answer<Removal> {
        let slices = self.ground.slices(&order.peer);
        let copies = ListParams::default().labels(&format!("{REPLICATED}=true"));
        let left = slices.list(&copies).await?.items;
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
        let is_other = |slice: &ResourceSlice| {
            slice.spec.class == CLASS && !is_there(slice) && !slice.is_worthless()
        };
        if !left.iter().any(is_other) {
            self.links.unused(Side::Provider, &order.peer).await;
        }
        Ok(Removal::Gone)
    }

    /// The requests for certificates of this user; they carry its name nowhere but inside.
    async fn forget_requests(&self, user: &str) -> Answer<()> {
        let requests = self.ground.all::<CertificateSigningRequest>();
        let of_tenants = ListParams::default().labels(&format!("{CSR_LABEL}=true"));
        for request in requests.list(&of_tenants).await?.items {
            if csr::owner(&request.spec.request.0).is_some_and(|(name, _)| name == user) {
                delete(&requests, &request).await?;
            }
        }
        Ok(())
    }
}

/// Several at a time; the first that fails is what came of it.
async fn all(each: Vec<BoxFuture<'_, Answer<()>>>) -> Answer<()> {
    stream::iter(each).buffer_unordered(AT_ONCE).try_collect().await
}

fn pending(why: &str) -> Removal {
    Removal::Pending(why.into())
}
