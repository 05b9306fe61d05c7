//! Empties a virtual node: pods are asked to leave, as their disruption budgets allow, until a
//! deadline; then they are made to.

use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams, ListParams, PartialObjectMeta};
use kube::{Api, ResourceExt};
use serde_json::json;
use sublet_core::time::Time;

use super::ground::{Answer, Ground, code, gone, merge};

/// How many pods are seen to at a look; the others at the next one.
const PODS_MAX: u32 = 100;
/// How many at the same time.
const AT_ONCE: usize = 8;

impl Ground {
    /// Empties a node which is to go since then; why that is not done yet.
    pub(super) async fn empty(&self, node: &Node, since: Time) -> Answer<Option<String>> {
        let name = node.name_any();
        if node.spec.as_ref().and_then(|spec| spec.unschedulable) != Some(true) {
            merge(&self.nodes(), &name, &json!({ "spec": { "unschedulable": true } })).await?;
        }
        let on_it = ListParams::default().fields(&format!("spec.nodeName={name}")).limit(PODS_MAX);
        let pods = self.all::<Pod>().list_metadata(&on_it).await?.items;
        let Some(first) = pods.first() else { return Ok(None) };
        let is_overdue = self.now().since(since) >= self.settings.eviction;
        let one = first.namespace().unwrap_or_default() + "/" + &first.name_any();
        let why = match (is_overdue, first.finalizers()) {
            (false, _) => format!("pods are leaving the virtual node, {one} among them"),
            (true, []) => format!("pods are removed from the virtual node by force, {one} first"),
            (true, kept) => format!(
                "the pod {one} was removed by force and is kept by its finalizers {}: whoever set them \
                 must remove them",
                kept.join(", ")
            ),
        };
        let each: Vec<_> = pods.iter().map(|pod| self.remove(pod, is_overdue).boxed()).collect();
        let mut removals = stream::iter(each).buffer_unordered(AT_ONCE);
        while let Some(removal) = removals.next().await {
            removal?;
        }
        Ok(Some(why))
    }

    async fn remove(&self, pod: &PartialObjectMeta<Pod>, by_force: bool) -> Answer<()> {
        let namespace = pod.namespace().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let name = pod.name_any();
        if by_force {
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            return gone(pods.delete(&name, &at_once).await).map(drop);
        }
        if pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        match gone(pods.evict(&name, &EvictParams::default()).await) {
            // A disruption budget forbids it for now.
            Err(error) if code(&error) == Some(429) => Ok(()),
            evicted => evicted.map(drop),
        }
    }
}
