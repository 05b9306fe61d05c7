//! Empties a virtual node: pods are asked to leave, as their disruption budgets allow, until a
//! deadline; then they are made to.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams, ListParams, PartialObjectMeta, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;
use sublet_core::time::{Span, Time};
use sublet_crds::Obstacle;
use tokio::time::timeout;

use super::ground::{Answer, Ground, merge};
use super::pages::PAGE;
use crate::cluster::{code, present};
use crate::peering::Why;

/// How many pods are seen to at a look; the others at later ones.
const PODS_MAX: usize = 100;
/// How many of those that are to be seen to are known at a look; there are more when these are gone.
const KNOWN_MAX: usize = 1000;
/// For how long the same ones are seen to before it is the others' turn.
const TURN: Span = Span::from_secs(1);
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
        let waited = self.now().since(since);
        let is_overdue = waited >= self.settings.eviction;
        let leaving = self.leaving(&name, is_overdue).await?;
        let Some(first) = &leaving.first else { return Ok(None) };
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
        let pods = leaving.turn(waited);
        let each: Vec<_> = pods.map(|pod| self.remove(pod, is_overdue).boxed()).collect();
        // One that cannot be removed keeps nobody from the others.
        let removals: Vec<_> = stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
        removals.into_iter().collect::<Answer<()>>()?;
        Ok(Some(why))
    }

    /// Pods that have to leave a node. Neither what may stay nor what is on its way hides them: a node is empty when
    /// all of it was looked at.
    async fn leaving(&self, node: &str, is_overdue: bool) -> Answer<Leaving> {
        let mut on_it = ListParams::default().fields(&format!("spec.nodeName={node}")).limit(PAGE);
        let mut leaving = Leaving::default();
        loop {
            let page = self.all::<Pod>().list_metadata(&on_it).await?;
            let next = page.metadata.continue_.filter(|next| !next.is_empty());
            leaving.take(page.items, is_overdue);
            match next {
                Some(next) if leaving.waiting.len() < KNOWN_MAX => {
                    on_it = on_it.continue_token(&next);
                }
                _ => return Ok(leaving),
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

/// What has to leave a node.
#[derive(Debug, Default)]
struct Leaving {
    /// The first of all, whatever is to be done about it.
    first: Option<PartialObjectMeta<Pod>>,
    /// Those about which something is to be done.
    waiting: Vec<PartialObjectMeta<Pod>>,
}

impl Leaving {
    fn take(&mut self, page: Vec<PartialObjectMeta<Pod>>, is_overdue: bool) {
        for pod in page.into_iter().filter(leaves) {
            self.first.get_or_insert_with(|| pod.clone());
            if is_waiting(&pod, is_overdue) {
                self.waiting.push(pod);
            }
        }
    }

    /// As many as are seen to at a look. Others have their turn a moment later: those that a budget does not let go would
    /// be in their way until the deadline.
    fn turn(&self, waited: Span) -> impl Iterator<Item = &PartialObjectMeta<Pod>> {
        let turns = self.waiting.len().div_ceil(PODS_MAX).max(1);
        let turn = waited.as_millis() / TURN.as_millis();
        let turn = usize::try_from(turn).unwrap_or_default() % turns;
        self.waiting.iter().skip(turn * PODS_MAX).take(PODS_MAX)
    }
}

/// Is something to be done about it? One that was told to leave is not told again, but by force; nor then, when its
/// finalizers alone keep it.
fn is_waiting(pod: &PartialObjectMeta<Pod>, is_overdue: bool) -> bool {
    let left = pod.metadata.deletion_grace_period_seconds;
    pod.metadata.deletion_timestamp.is_none() || (is_overdue && left != Some(0))
}

/// Does it have to leave? What a `DaemonSet` has on every node comes back as long as there is the node,
/// and goes with it.
fn leaves(pod: &PartialObjectMeta<Pod>) -> bool {
    !pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet")
        && !pod.annotations().contains_key("kubernetes.io/config.mirror")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, grace: Option<i64>) -> PartialObjectMeta<Pod> {
        let going = grace.map(|_| "2026-01-01T00:00:00Z");
        serde_json::from_value(json!({ "metadata": {
            "name": name, "deletionTimestamp": going, "deletionGracePeriodSeconds": grace,
        }}))
        .unwrap()
    }

    fn many(prefix: &str, grace: Option<i64>) -> Vec<PartialObjectMeta<Pod>> {
        (0..PODS_MAX).map(|number| pod(&format!("{prefix}-{number}"), grace)).collect()
    }

    fn seen_to(leaving: &Leaving, seconds: u64) -> Vec<String> {
        leaving.turn(Span::from_secs(seconds)).map(ResourceExt::name_any).collect()
    }

    #[test]
    fn those_that_are_held_hide_nobody() {
        let mut leaving = Leaving::default();
        leaving.take(many("held", Some(0)), true);
        leaving.take(vec![pod("last", None)], true);
        assert_eq!(seen_to(&leaving, 0), ["last"]);
        assert_eq!(leaving.first.map(|first| first.name_any()).as_deref(), Some("held-0"));
    }

    #[test]
    fn those_that_may_not_leave_yet_are_in_nobodys_way_for_long() {
        let mut leaving = Leaving::default();
        leaving.take(many("dear", None), false);
        leaving.take(vec![pod("last", None)], false);
        assert_eq!(seen_to(&leaving, 0).len(), PODS_MAX);
        assert_eq!([seen_to(&leaving, 1), seen_to(&leaving, 3)], [["last"], ["last"]]);
        assert_eq!(seen_to(&leaving, 2), seen_to(&leaving, 0));
    }

    #[test]
    fn whoever_was_told_to_leave_is_told_again_by_force_alone() {
        let all = || vec![pod("stays", None), pod("goes", Some(30)), pod("held", Some(0))];
        for (is_overdue, waiting) in [(false, &["stays"][..]), (true, &["stays", "goes"])] {
            let mut leaving = Leaving::default();
            leaving.take(all(), is_overdue);
            assert_eq!(seen_to(&leaving, 0), waiting);
        }
        let mut nobody = Leaving::default();
        nobody.take(Vec::new(), true);
        assert!(nobody.first.is_none() && seen_to(&nobody, 5).is_empty());
    }
}
