//! The quota and the pods of a slice that is over, and how they go.
//!
//! Liqo's webhook writes on each shadow pod whose it is. One that got in while the webhook was away does not
//! say so, and when the webhook is back it lets nobody remove or change such a one, not even an
//! administrator. It is known by the slice and the cluster that it came from.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, Preconditions};
use kube::core::Status;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_crds::Obstacle;
use tokio::time::timeout;

use super::ground::{Answer, Ground, delete};
use super::provider::Provider;
use crate::cluster::{code, present};
use crate::collect::{Guest, may_have_pods, quota_user};
use crate::peering::answer::meaning;
use crate::peering::liqo::kinds::ShadowPod;
use crate::peering::liqo::names::WRITER;

/// How many of them are removed at the same time.
const AT_ONCE: usize = 8;
/// How many pods are seen to at a look; the others at the next one.
const PODS_MAX: u32 = 100;
/// How long a pod of a slice that is over may take to end, whatever it says itself.
pub(super) const GRACE_SECONDS: u32 = 10;
/// How long anybody is waited for who is asked whether something of it may change or go. The API server would
/// wait for ten seconds, or half a minute, each time.
pub(super) const ASKING: Duration = Duration::from_secs(3);

impl Provider {
    /// Removes quota and pods of a slice; why that is not done yet. Each is tried whatever came of the
    /// others: no pod stays because a webhook is not there to be asked about something else.
    pub(super) async fn clear(&self, peer: &ClusterId, slice: &str) -> Answer<Option<String>> {
        let [user, stray] = Guest::in_slice(slice, peer.as_str());
        let name = quota_user(slice, peer.as_str());
        let had_quota = self.remove_quota(peer, &name).await;
        if !may_have_pods(&name) {
            let going = || "the quota of the requester is being removed".to_owned();
            return had_quota.map(|had_one| had_one.then(going));
        }
        let shadows = (self.remove_shadows(&user).await, self.remove_strays(&stray).await);
        let pods = (self.remove_pods(&user).await, self.remove_pods(&stray).await);
        let (had_quota, shadows) = (had_quota?, shadows.0? + shadows.1?);
        let mut all = pods.0?;
        all.extend(pods.1?);
        Ok(match (all.first(), shadows > 0 || had_quota) {
            (Some(pod), _) => {
                let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
                Some(format!(
                    "pods of the requester are ending here, {namespace}/{name} among them"
                ))
            }
            (None, true) => Some("quota and pods of the requester are being removed".to_owned()),
            (None, false) => None,
        })
    }

    /// Was there one?
    async fn remove_quota(&self, peer: &ClusterId, user: &str) -> Answer<bool> {
        let quotas = self.ground.quotas(peer);
        let quota = quotas.get_opt(user).await?;
        if let Some(quota) = &quota {
            promptly(ASKING, delete(&quotas, quota)).await?;
        }
        Ok(quota.is_some())
    }

    /// How many there were.
    async fn remove_shadows(&self, guest: &Guest) -> Answer<usize> {
        let theirs = ListParams::default().labels(&guest.selector());
        let shadows = self.ground.all::<ShadowPod>().list_metadata(&theirs).await?.items;
        let Some((first, rest)) = shadows.split_first() else { return Ok(0) };
        // Where the webhook does not answer, one wait for it is enough.
        let removed = self.ground.remove_or_end(first, true).await;
        let asks = !removed.as_ref().is_err_and(is_silent);
        let each = rest.iter().map(|shadow| self.ground.remove_or_end(shadow, asks).boxed());
        every(each.collect()).await.and(removed)?;
        Ok(shadows.len())
    }

    /// How many there are of which Liqo could still make pods. What cannot be removed is said to have
    /// failed, and has nothing here any more; the sweep tries again to be rid of it.
    async fn remove_strays(&self, guest: &Guest) -> Answer<usize> {
        let theirs = ListParams::default().labels(&guest.selector());
        let (mut left, mut first) = (0, Ok(()));
        for shadow in self.ground.all::<ShadowPod>().list(&theirs).await?.items {
            // Where the webhook does not answer, one wait for it is enough.
            let asks = !first.as_ref().is_err_and(is_silent);
            let removed = if asks { self.ground.remove_stray(&shadow).await } else { Ok(false) };
            left += usize::from(!shadow.is_over() || matches!(removed, Ok(true)));
            if !matches!(removed, Ok(true)) && !shadow.is_over() {
                let (namespace, name) = (shadow.namespace().unwrap_or_default(), shadow.name_any());
                let what =
                    "a shadow pod got in while Liqo's webhook was away, and cannot be removed";
                tracing::warn!(namespace, name, "{what}: it is ended");
                first = first.and(self.ground.end_shadow(&shadow).await);
            }
            first = first.and(removed.map(drop));
        }
        first.map(|()| left)
    }

    async fn remove_pods(&self, guest: &Guest) -> Answer<Vec<PartialObjectMeta<Pod>>> {
        let theirs = ListParams::default().labels(&guest.pods()).limit(PODS_MAX);
        let pods = self.ground.all::<Pod>().list_metadata(&theirs).await?.items;
        let each = pods.iter().map(|pod| self.remove_pod(pod).boxed()).collect();
        every(each).await?;
        Ok(pods)
    }

    /// They do not choose themselves how long they take to end.
    pub(super) async fn remove_pod(&self, pod: &impl ResourceExt) -> Answer<()> {
        if pod.meta().deletion_grace_period_seconds.is_some() && !takes_its_time(pod) {
            return Ok(());
        }
        let pods: Api<PartialObjectMeta<Pod>> =
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
}

impl Ground {
    /// Removes a shadow pod, unless nobody `asks` because the webhook does not answer; one that stays is ended,
    /// else it would make its pod again.
    pub(super) async fn remove_or_end(
        &self,
        shadow: &PartialObjectMeta<ShadowPod>,
        asks: bool,
    ) -> Answer<()> {
        if !asks {
            return self.end_shadow(shadow).await;
        }
        let removed = self.delete_shadow(shadow).await;
        if removed.is_err() {
            self.end_shadow(shadow).await?;
        }
        removed
    }

    /// Removes a shadow pod that nobody claims, or ends it where that is not allowed.
    pub(super) async fn be_rid_of(&self, shadow: &ShadowPod) -> Answer<()> {
        let removed = self.remove_stray(shadow).await;
        if !matches!(removed, Ok(true)) {
            self.end_shadow(shadow).await?;
        }
        removed.map(drop)
    }

    /// Removes a shadow pod that nobody claims; false if Liqo's webhook does not let anybody.
    pub(super) async fn remove_stray(&self, shadow: &ShadowPod) -> Answer<bool> {
        match self.delete_shadow(shadow).await {
            Err(error) if code(&error) == Some(403) => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    /// Within a bound: the webhook that is asked may be one that never answers.
    async fn delete_shadow<K>(&self, shadow: &K) -> Answer<()>
    where
        K: Clone + DeserializeOwned + Debug + Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        let namespace = shadow.namespace().unwrap_or_default();
        let shadows: Api<K> = Api::namespaced(self.client.clone(), &namespace);
        match promptly(ASKING, delete(&shadows, shadow)).await {
            // There is another one of this name by now: it is seen to at the next look.
            Err(error) if code(&error) == Some(409) => Ok(()),
            removed => removed,
        }
    }

    /// Has Liqo make no pod of it any more: its status is nothing that the webhook is asked about. One that
    /// has changed since, and may be another one by now, is seen to at the next look.
    async fn end_shadow(&self, shadow: &impl ResourceExt) -> Answer<()> {
        let over = json!({
            "metadata": { "resourceVersion": shadow.resource_version() },
            "status": { "phase": ShadowPod::FAILED },
        });
        let writer = PatchParams { field_manager: Some(WRITER.to_owned()), ..Default::default() };
        let namespace = shadow.namespace().unwrap_or_default();
        let shadows: Api<ShadowPod> = Api::namespaced(self.client.clone(), &namespace);
        let ended = shadows.patch_status(&shadow.name_any(), &writer, &Patch::Merge(&over)).await;
        match present(ended) {
            Err(error) if code(&error) == Some(409) => Ok(()),
            ended => ended.map(drop),
        }
    }
}

/// Is it ending, and in no hurry?
pub(super) fn takes_its_time(pod: &impl ResourceExt) -> bool {
    let left = pod.meta().deletion_grace_period_seconds;
    left.is_some_and(|left| left > i64::from(GRACE_SECONDS))
}

/// What comes of a change in this time; else what the API server would say, if it were waited for. What is
/// written all the same, later, is seen at the next look.
pub(super) async fn promptly<T>(
    limit: Duration,
    change: impl Future<Output = Answer<T>>,
) -> Answer<T> {
    let silent = |_| {
        let message = "failed calling webhook: whoever is asked before does not answer".to_owned();
        let status = Status { code: 504, message, ..Status::default() };
        kube::Error::Api(Box::new(status))
    };
    timeout(limit, change).await.map_err(silent)?
}

/// Did the webhook not answer?
fn is_silent(error: &kube::Error) -> bool {
    matches!(meaning(error).obstacle, Some(Obstacle::WebhookSilent | Obstacle::ApiServerSilent))
}

/// Several at a time, and each of them; the first that fails is what came of it.
async fn every(each: Vec<BoxFuture<'_, Answer<()>>>) -> Answer<()> {
    let done: Vec<_> = stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
    done.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_does_not_answer_in_time_is_a_silent_webhook() {
        let never = std::future::pending::<Answer<()>>();
        let error = promptly(Duration::from_millis(1), never).await.unwrap_err();
        assert_eq!(meaning(&error).obstacle, Some(Obstacle::WebhookSilent));
        assert!(is_silent(&error));
    }
}
