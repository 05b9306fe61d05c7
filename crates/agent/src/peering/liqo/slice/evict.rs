//! Empties a virtual node: pods are asked to leave, as their disruption budgets allow, until a
//! deadline; then they are made to.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams, ListParams, PartialObjectMeta, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;
use sublet_core::time::Time;
use sublet_crds::Obstacle;
use tokio::time::timeout;

use super::ground::{Answer, Ground, merge};
use crate::cluster::{code, present};
use crate::peering::Why;

/// How many pods are seen to at a look; the others at the next one.
const PODS_MAX: u32 = 100;
/// How long a pod is asked to leave before that is done again at the next look.
const ASKING: Duration = Duration::from_secs(1);
/// How many at the same time.
const AT_ONCE: usize = 8;

impl Ground {
    /// Empties a node which is to go since then; why that is not done yet.
    pub(in crate::peering) async fn empty(&self, node: &Node, since: Time) -> Answer<Option<Why>> {
        let name = node.name_any();
        if node.spec.as_ref().and_then(|spec| spec.unschedulable) != Some(true) {
            merge(&self.nodes(), &name, &json!({ "spec": { "unschedulable": true } })).await?;
        }
        let pods = self.leaving(&name).await?;
        let Some(first) = pods.first() else { return Ok(None) };
        let is_overdue = self.now().since(since) >= self.settings.eviction;
        let one = first.namespace().unwrap_or_default() + "/" + &first.name_any();
        let why = match (is_overdue, first.finalizers()) {
            (false, _) => format!("pods are leaving the virtual node, {one} among them").into(),
            (true, []) => {
                format!("pods are removed from the virtual node by force, {one} first").into()
            }
            (true, kept) => {
                let kept = kept.join(", ");
                let why = format!("the pod {one} was removed by force and is kept by {kept}");
                Why::hindered(Obstacle::PodsHeld, why)
            }
        };
        let each: Vec<_> = pods.iter().map(|pod| self.remove(pod, is_overdue).boxed()).collect();
        // One that cannot be removed keeps nobody from the others.
        let removals: Vec<_> = stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
        removals.into_iter().collect::<Answer<()>>()?;
        Ok(Some(why))
    }

    /// Pods that have to leave a node, as many as are seen to at a look. What may stay does not hide them: a
    /// node is empty when all of it was looked at.
    async fn leaving(&self, node: &str) -> Answer<Vec<PartialObjectMeta<Pod>>> {
        let mut on_it =
            ListParams::default().fields(&format!("spec.nodeName={node}")).limit(PODS_MAX);
        let mut found = Vec::new();
        loop {
            let page = self.all::<Pod>().list_metadata(&on_it).await?;
            let next = page.metadata.continue_.filter(|next| !next.is_empty());
            found.extend(page.items.into_iter().filter(leaves));
            match next {
                Some(next) if found.is_empty() => on_it = on_it.continue_token(&next),
                _ => return Ok(found),
            }
        }
    }

    async fn remove(&self, pod: &PartialObjectMeta<Pod>, by_force: bool) -> Answer<()> {
        let namespace = pod.namespace().unwrap_or_default();
        let name = pod.name_any();
        // This very one: another of the same name may be anywhere.
        let this = DeleteParams {
            preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
            ..DeleteParams::default()
        };
        if by_force {
            let pods: Api<PartialObjectMeta<Pod>> =
                Api::namespaced(self.client.clone(), &namespace);
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..this };
            return match present(pods.delete(&name, &at_once).await) {
                Err(error) if code(&error) == Some(409) => Ok(()),
                removed => removed.map(drop),
            };
        }
        if pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let how = EvictParams { delete_options: Some(this), ..EvictParams::default() };
        // A disruption budget may forbid it for now; the client would ask again and again by itself.
        match timeout(ASKING, pods.evict(&name, &how)).await.map(present) {
            Err(_) => Ok(()),
            Ok(Err(error)) if matches!(code(&error), Some(429 | 409)) => Ok(()),
            Ok(evicted) => evicted.map(drop),
        }
    }
}

/// Does it have to leave? What a `DaemonSet` has on every node comes back as long as there is the node,
/// and goes with it.
fn leaves(pod: &PartialObjectMeta<Pod>) -> bool {
    !pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet")
        && !pod.annotations().contains_key("kubernetes.io/config.mirror")
}
