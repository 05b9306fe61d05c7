//! The requester's slice: asked for in exactly the reserved amounts, and usable when there is a node
//! of that size.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_core::instruction::Side;
use sublet_core::time::Span;
use sublet_crds::Obstacle;

use super::amounts::{asked, is_exactly, is_same, text};
use super::ground::{Answer, Ground, Mark, REMIND_EVERY, merge};
use crate::peering::liqo::kinds::{NamespaceMap, ResourceSlice};
use crate::peering::liqo::link::{LinkState, Links};
use crate::peering::liqo::names::{
    CLASS, CREATE_VIRTUAL_NODE, NODE_TYPE, REMOTE_CLUSTER_ID, REMOTE_ID, REPLICATION, RESERVATION,
    VIRTUAL_NODE, WRITER,
};
use crate::peering::{Progress, Why, quoted};
use crate::transport::Order;

/// The longest name of which Liqo can still make those of a user and of a certificate.
const NAME_MAX: usize = 50;
/// How long Liqo may take for its part before that is called trouble.
pub(super) const LIQO_MAX: Span = Span::from_secs(45);

/// This cluster as one that borrows.
#[derive(Clone)]
pub(crate) struct Requester {
    pub(super) ground: Ground,
    pub(super) links: Arc<dyn Links>,
}

impl Requester {
    pub(crate) fn new(ground: Ground, links: Arc<dyn Links>) -> Self {
        Self { ground, links }
    }

    /// Brings it about that there is a node of exactly these amounts, and says how far that is.
    pub(crate) async fn establish(&self, order: &Order) -> Answer<Progress> {
        if let Some(why) = impossible(order) {
            return Ok(Progress::Failed(Why::hindered(Obstacle::Unsuitable, why)));
        }
        let slices = self.ground.slices(&order.peer);
        let found = slices.get_opt(&order.reservation).await?;
        // What was granted once does not end because something is the matter with the link.
        let is_granted = found.as_ref().is_some_and(ResourceSlice::is_granted);
        let trouble = match self.links.ensure(Side::Requester, &order.peer).await {
            LinkState::Ready => None,
            LinkState::Pending(why) => Some(Progress::Pending(why)),
            LinkState::Failed(trouble) if is_granted => Some(Progress::Pending(trouble.into())),
            LinkState::Failed(trouble) => Some(Progress::Failed(trouble.into())),
        };
        match trouble {
            Some(trouble) if !is_granted => Ok(trouble),
            Some(trouble) => self.assert(order, found).await.map(|_| trouble),
            None => {
                if let Some(slice) = &found {
                    self.ask_anew(&slices, slice).await;
                }
                self.assert(order, found).await
            }
        }
    }

    /// Makes the slice what it should be, and says how far its node is.
    async fn assert(&self, order: &Order, found: Option<ResourceSlice>) -> Answer<Progress> {
        let slices = self.ground.slices(&order.peer);
        let slice = match found {
            Some(slice) if slice.metadata.deletion_timestamp.is_some() => {
                let why = "an earlier slice of this name is still going";
                return Ok(suspected(Obstacle::StillDeleting, why));
            }
            Some(slice) if self.is_as_wanted(&slice, order) => slice,
            Some(_) => self.write(order).await?,
            None => {
                self.ground.expect_back(&order.peer).await?;
                self.write(order).await?
            }
        };
        self.ground.unwritten.settled(order);
        if self.ground.unmark(&slices, &slice, Mark::Leaving).await? {
            let uncordoned = json!({ "spec": { "unschedulable": null } });
            merge(&self.ground.nodes(), &order.reservation, &uncordoned).await?;
        }
        match undecided(&slice, order) {
            Some(why) => {
                if slice.condition(ResourceSlice::RESOURCES).is_none() {
                    self.ground.remind(&slices, &slice, REMIND_EVERY).await?;
                }
                Ok(Progress::Pending(why))
            }
            None => self.node_of(order, self.ground.said_for(&slice)).await,
        }
    }

    /// Has Liqo look again at a slice, and at what says which namespaces go there: whatever of it is gone at the
    /// provider, where an operator may have drained and let in this cluster again, Liqo copies anew only when it hears
    /// of the original. Nobody here can see that, so it is done once in a while; says when again.
    pub(super) async fn refresh(
        &self,
        peer: &ClusterId,
        slice: &ResourceSlice,
    ) -> Answer<Option<Span>> {
        let (ground, every) = (&self.ground, self.ground.settings.refresh);
        if slice.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        if ground.remind(&ground.slices(peer), slice, every).await? {
            let maps = ground.tenant::<NamespaceMap>(peer);
            let ours = ListParams::default().labels(&format!("{REPLICATION}=true"));
            for map in maps.list(&ours).await?.items {
                ground.remind(&maps, &map, every).await?;
            }
        }
        Ok(Some(every))
    }

    /// Does the slice ask for what it should? What others wrote into it is theirs.
    fn is_as_wanted(&self, slice: &ResourceSlice, order: &Order) -> bool {
        let label = |name: &str| slice.labels().get(name).map(String::as_str);
        let peer = Some(order.peer.as_str());
        let makes_node = slice.annotations().get(CREATE_VIRTUAL_NODE).map(String::as_str);
        slice.spec.class == CLASS
            && slice.spec.provider_cluster_id == order.peer.as_str()
            && is_same(&slice.spec.resources, &asked(&order.amounts, self.ground.settings.extras))
            && (label(REPLICATION), label(REMOTE_ID), label(REMOTE_CLUSTER_ID))
                == (Some("true"), peer, peer)
            && makes_node == Some("true")
    }

    async fn write(&self, order: &Order) -> Answer<ResourceSlice> {
        let peer = order.peer.as_str();
        let slice = json!({
            "apiVersion": "authentication.liqo.io/v1beta1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": order.reservation,
                "labels": { REPLICATION: "true", REMOTE_ID: peer, REMOTE_CLUSTER_ID: peer },
                "annotations": { CREATE_VIRTUAL_NODE: "true" },
            },
            "spec": {
                "class": CLASS,
                "providerClusterID": peer,
                "resources": asked(&order.amounts, self.ground.settings.extras),
            },
        });
        let writer = PatchParams::apply(WRITER).force();
        self.ground
            .slices(&order.peer)
            .patch(&order.reservation, &writer, &Patch::Apply(&slice))
            .await
    }

    /// How far the node is of a slice that was granted so long ago.
    async fn node_of(&self, order: &Order, granted_for: Span) -> Answer<Progress> {
        let Some(node) = self.ground.nodes().get_opt(&order.reservation).await? else {
            let why = "the virtual node is being made";
            let is_late = granted_for > LIQO_MAX;
            return Ok(if is_late { hindered(Obstacle::LiqoSilent, why) } else { pending(why) });
        };
        if !is_of(&node, &order.peer) {
            let why = "there is a node of this name which is not the provider's";
            return Ok(hindered(Obstacle::NodeNameTaken, why));
        }
        let age = self.ground.age_of(&node.metadata);
        Ok(usable(node, order, age))
    }
}

/// Whether a node of this age is what is reserved.
fn usable(node: Node, order: &Order, age: Span) -> Progress {
    if node.labels().get(RESERVATION) != Some(&order.reservation) {
        let why = "the virtual node does not carry the name of the reservation";
        return suspected(Obstacle::LiqoSilent, why);
    }
    let status = node.status.unwrap_or_default();
    let has = status.allocatable.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    if ready.is_none_or(|ready| ready.status != "True") {
        let why = "the virtual node is not ready";
        if age > LIQO_MAX { hindered(Obstacle::NodeNotReady, why) } else { pending(why) }
    } else if is_exactly(&has, &order.amounts) {
        Progress::Ready
    } else {
        let (has, reserved) = (text(&has), &order.amounts);
        let why = format!("the virtual node has {has}; reserved is {reserved}");
        suspected(Obstacle::AmountsDiffer, &why)
    }
}

/// Is it Liqo's, and not a machine, and of this provider?
pub(super) fn is_of(node: &Node, provider: &ClusterId) -> bool {
    let label = |name: &str| node.labels().get(name).map(String::as_str);
    (label(NODE_TYPE), label(REMOTE_CLUSTER_ID)) == (Some(VIRTUAL_NODE), Some(provider.as_str()))
}

/// Why no slice can ever be made of an order.
fn impossible(order: &Order) -> Option<String> {
    if order.amounts.cpu == 0 || order.amounts.memory == 0 {
        let why = "a virtual node without cpu or memory never becomes ready: ask for some of both";
        return Some(why.to_owned());
    }
    let name = &order.reservation;
    (name.len() > NAME_MAX || name.contains('.')).then(|| {
        format!("{name} cannot be the name of a slice: at most {NAME_MAX} characters, and no dot")
    })
}

/// What the provider has not decided, or not as was reserved.
fn undecided(slice: &ResourceSlice, order: &Order) -> Option<Why> {
    let denied = |about| slice.condition(about).filter(|said| said.status == ResourceSlice::DENIED);
    if let Some(denied) = denied(ResourceSlice::AUTHENTICATION) {
        let why = format!("the provider's Liqo refuses our identity: {}", quoted(&denied.message));
        return Some(Why::hindered(Obstacle::IdentityDenied, why));
    }
    if let Some(denied) = denied(ResourceSlice::RESOURCES) {
        let why = format!("the provider denied it: {}", quoted(&denied.message));
        return Some(Why::hindered(Obstacle::SliceDenied, why));
    }
    if !slice.is_granted() {
        let why = "the provider has not granted it yet";
        return Some(Why::suspected(Obstacle::PeerSilent, why));
    }
    let status = slice.status.as_ref()?;
    if !is_exactly(&status.resources, &order.amounts) {
        let granted = text(&status.resources);
        let why = format!("the provider granted {granted}; reserved is {}", order.amounts);
        return Some(Why::hindered(Obstacle::AmountsDiffer, why));
    }
    // They become labels of a node here: a provider says which reservation it is, and nothing else.
    let is_named = status.node_labels.get(RESERVATION) == Some(&order.reservation);
    (!is_named || status.node_labels.len() != 1).then(|| {
        let why = format!(
            "the provider wants other labels on the node than {RESERVATION} of this reservation"
        );
        Why::hindered(Obstacle::LabelsDiffer, why)
    })
}

fn pending(why: &str) -> Progress {
    Progress::Pending(why.into())
}

fn hindered(by: Obstacle, why: &str) -> Progress {
    Progress::Pending(Why::hindered(by, why))
}

fn suspected(suspect: Obstacle, why: &str) -> Progress {
    Progress::Pending(Why::suspected(suspect, why))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use sublet_core::instruction::Duty;
    use sublet_core::resources::Resources;
    use sublet_crds::Quantity;

    pub(in super::super) fn order() -> Order {
        Order {
            reservation: "rsv-a".to_owned(),
            side: Side::Requester,
            peer: "milan".parse().unwrap(),
            duty: Duty::Keep,
            amounts: Resources::new(2000, 4 << 30),
            expires_at: None,
            generation: None,
        }
    }

    fn slice(node_labels: serde_json::Value) -> ResourceSlice {
        serde_json::from_value(json!({
            "apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
            "metadata": { "name": "rsv-a" }, "spec": {},
            "status": {
                "conditions": [{ "type": "Resources", "status": "Accepted" }],
                "resources": { "cpu": "2", "memory": "4Gi", "pods": "110" },
                "nodeLabels": node_labels,
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_provider_says_which_reservation_a_node_is_and_no_more() {
        assert_eq!(undecided(&slice(json!({ RESERVATION: "rsv-a" })), &order()), None);
        for labels in [
            json!({}),
            json!({ RESERVATION: "rsv-b" }),
            json!({ "zone": "a" }),
            json!({ RESERVATION: "rsv-a", "node-role.kubernetes.io/control-plane": "" }),
        ] {
            let why = undecided(&slice(labels.clone()), &order());
            assert_eq!(why.and_then(|why| why.obstacle), Some(Obstacle::LabelsDiffer), "{labels}");
        }
    }

    #[test]
    fn what_was_granted_is_compared_with_what_is_reserved() {
        let granted = |cpu: &str| {
            let mut slice = slice(json!({ RESERVATION: "rsv-a" }));
            let status = slice.status.as_mut().unwrap();
            status.resources.insert("cpu".to_owned(), Quantity(cpu.to_owned()));
            undecided(&slice, &order()).and_then(|why| why.obstacle)
        };
        assert_eq!(granted("2"), None);
        assert_eq!([granted("1"), granted("4")], [Some(Obstacle::AmountsDiffer); 2]);
    }

    #[test]
    fn a_node_that_is_not_ready_is_not_usable() {
        for ready in [json!([]), json!([{ "type": "Ready", "status": "False" }])] {
            let node: Node = serde_json::from_value(json!({
                "metadata": { "name": "rsv-a", "labels": { RESERVATION: "rsv-a" } },
                "status": { "allocatable": { "cpu": "2", "memory": "4Gi" }, "conditions": ready },
            }))
            .unwrap();
            let early = usable(node.clone(), &order(), Span::ZERO);
            assert!(matches!(early, Progress::Pending(why) if why.obstacle.is_none()));
            let late = usable(node, &order(), Span::from_secs(46));
            let is_said = |why: &Why| why.obstacle == Some(Obstacle::NodeNotReady);
            assert!(matches!(&late, Progress::Pending(why) if is_said(why)), "{late:?}");
        }
    }

    #[test]
    fn a_node_that_stays_different_from_what_is_reserved_has_a_reason() {
        let suspect = |labels: serde_json::Value, allocatable: serde_json::Value| {
            let node = serde_json::from_value(json!({
                "metadata": { "name": "rsv-a", "labels": labels },
                "status": { "allocatable": allocatable,
                            "conditions": [{ "type": "Ready", "status": "True" }] },
            }));
            match usable(node.unwrap(), &order(), Span::ZERO) {
                Progress::Pending(why) => why.suspect,
                other => {
                    assert_eq!(other, Progress::Ready);
                    None
                }
            }
        };
        let (named, right) =
            (json!({ RESERVATION: "rsv-a" }), json!({ "cpu": "2", "memory": "4Gi" }));
        assert_eq!(suspect(named.clone(), right.clone()), None);
        assert_eq!(suspect(json!({}), right), Some(Obstacle::LiqoSilent));
        let less = json!({ "cpu": "1", "memory": "4Gi" });
        assert_eq!(suspect(named, less), Some(Obstacle::AmountsDiffer));
    }
}
