//! What this cluster shows of a pair.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{
    DeleteParams, ListParams, ObjectMeta, PartialObjectMeta, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_core::resources::Resources;

use super::live::covers;
use super::names::{BORROWS_BY, PEERED_BY, RESERVATIONS};
use crate::collect::quota_user;
use crate::peering::liqo::kinds::{
    ForeignCluster, Identity, Renew, ResourceSlice, Tenant, VirtualNode,
};
use crate::peering::liqo::names::{
    CSR_LABEL, NODE_TYPE, REMOTE_CLUSTER_ID, REPLICATED, REPLICATION, TENANT_NAMESPACE,
    VIRTUAL_NODE, WRITER, control_plane_identity, tenant_namespace,
};
use crate::peering::liqo::{List, is_same, networks, owner, text};

/// What comes of talking to the API server.
pub(super) type Answer<T> = Result<T, kube::Error>;

/// What there is of a pair.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) namespace: Option<PartialObjectMeta<Namespace>>,
    /// The one slice that liqoctl makes.
    pub(super) slice: Option<ResourceSlice>,
    /// Others that we have there, whoever made them.
    others: usize,
    /// Those that the other cluster has here.
    lent: usize,
    /// Whether one of these is that of an agent.
    is_lent_to_agent: bool,
    pub(super) identity: Option<PartialObjectMeta<Identity>>,
    /// Through which Liqo renews the certificate of the identity, on this side.
    renews: usize,
    tenants: usize,
    /// What there is of a network between the two, which is somebody else's.
    networks: usize,
    pub(super) virtual_node: bool,
    pub(super) node: Option<Node>,
}

impl View {
    /// Looks at everything that there is of a pair.
    pub(super) async fn of(client: &Client, peer: &ClusterId) -> Answer<Self> {
        let within = tenant_namespace(peer);
        let slices: Api<ResourceSlice> = Api::namespaced(client.clone(), &within);
        let identities: Api<Identity> = Api::namespaced(client.clone(), &within);
        let tenants: Api<Tenant> = Api::namespaced(client.clone(), &within);
        let virtual_nodes: Api<VirtualNode> = Api::namespaced(client.clone(), &within);
        let nodes: Api<Node> = Api::all(client.clone());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let all = ListParams::default();
        let renews: Api<Renew> = Api::namespaced(client.clone(), &within);
        let identity_name = control_plane_identity(peer);
        let (all_slices, renews, networks, tenants) = tokio::try_join!(
            slices.list(&all),
            renews.list_metadata(&all),
            networks(client, &within),
            tenants.list_metadata(&all),
        )?;
        let (identity, virtual_node, node, namespace) = tokio::try_join!(
            identities.get_metadata_opt(&identity_name),
            virtual_nodes.get_metadata_opt(peer.as_str()),
            nodes.get_opt(peer.as_str()),
            namespaces.get_metadata_opt(&within),
        )?;
        let mut view = Self {
            namespace,
            identity,
            renews: renews.items.iter().filter(|renew| !is(*renew, REPLICATED)).count(),
            tenants: tenants.items.len(),
            networks,
            virtual_node: virtual_node.is_some(),
            node: node.filter(|node| is_of(node, peer)),
            ..Self::default()
        };
        for slice in all_slices.items {
            if is(&slice, REPLICATED) {
                view.lent += 1;
                view.is_lent_to_agent |= slice.annotations().contains_key(RESERVATIONS);
            } else if slice.name_any() == peer.as_str() && is(&slice, REPLICATION) {
                view.slice = Some(slice);
            } else {
                view.others += 1;
            }
        }
        Ok(view)
    }

    /// Has liqoctl peered for us, and not unpeered? What somebody peered by hand is his, until we change
    /// its size.
    pub(super) fn is_ours(&self) -> bool {
        self.is_labelled(BORROWS_BY)
    }

    /// Have we slices there that liqoctl did not make for reservations?
    pub(super) fn has_others(&self) -> bool {
        self.others > 0
    }

    /// Is there a namespace that we have made?
    pub(super) fn has_our_namespace(&self) -> bool {
        self.is_labelled(PEERED_BY)
    }

    fn is_labelled(&self, (label, value): (&str, &str)) -> bool {
        let labels = self.namespace.as_ref().map(ResourceExt::labels);
        labels.and_then(|labels| labels.get(label)).is_some_and(|is| is == value)
    }

    /// What is still going, and in the way of something new.
    pub(super) fn leaving(&self) -> Option<&'static str> {
        let is_leaving = |metadata: &ObjectMeta| metadata.deletion_timestamp.is_some();
        if self.namespace.as_ref().is_some_and(|it| is_leaving(&it.metadata)) {
            Some("the namespace")
        } else if self.slice.as_ref().is_some_and(|it| is_leaving(&it.metadata)) {
            Some("the slice")
        } else {
            let is_going = self.identity.as_ref().is_some_and(|it| is_leaving(&it.metadata));
            is_going.then_some("the identity")
        }
    }

    /// What the slice asks for, for people.
    pub(super) fn slice_text(&self) -> String {
        match &self.slice {
            Some(slice) => format!("the slice asks for {}", text(&slice.spec.resources)),
            None => "there is no slice".to_owned(),
        }
    }

    /// Is nothing left of what a requester has?
    pub(super) fn is_unpeered(&self) -> bool {
        let has_more = self.virtual_node || self.node.is_some() || self.renews > 0;
        self.slice.is_none() && self.identity.is_none() && !has_more
    }

    /// Does the slice ask for this, in the name of these?
    pub(super) fn asks_for(&self, sizes: &List, named: &str) -> bool {
        let Some(slice) = &self.slice else { return false };
        let reservations = slice.annotations().get(RESERVATIONS).map(String::as_str);
        slice.metadata.deletion_timestamp.is_none()
            && is_same(&slice.spec.resources, sizes)
            && reservations == Some(named)
            && self.identity.is_some()
            && self.is_ours()
    }

    /// Was the slice granted what it asks for?
    pub(super) fn is_granted(&self) -> bool {
        self.slice.as_ref().is_some_and(|slice| {
            let granted = slice.status.as_ref().map(|status| &status.resources);
            slice.is_granted() && granted.is_some_and(|has| is_same(has, &slice.spec.resources))
        })
    }

    /// Why these amounts are not usable; none if they are.
    pub(super) fn lacks(&self, needed: &Resources) -> Option<String> {
        let Some(slice) = &self.slice else { return Some("there is no slice yet".to_owned()) };
        for about in [ResourceSlice::AUTHENTICATION, ResourceSlice::RESOURCES] {
            let said = slice.condition(about);
            if let Some(denied) = said.filter(|said| said.status == ResourceSlice::DENIED) {
                let (about, why) = (about.to_lowercase(), &denied.message);
                return Some(format!("the provider's Liqo denies the slice ({about}): {why}"));
            }
        }
        if !slice.is_granted() {
            return Some("the provider's Liqo has not granted the slice yet".to_owned());
        }
        let granted = slice.status.as_ref().map(|status| status.resources.clone());
        let granted = granted.unwrap_or_default();
        if !covers(&granted, needed) {
            let granted = text(&granted);
            return Some(format!("the provider's Liqo granted {granted}; needed is {needed}"));
        }
        let Some(node) = &self.node else {
            return Some("the virtual node is being made".to_owned());
        };
        let status = node.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
        if ready.is_none_or(|ready| ready.status != "True") {
            return Some("the virtual node is not ready yet".to_owned());
        }
        let has = status.allocatable.unwrap_or_default();
        let is_small = !covers(&has, needed);
        is_small.then(|| format!("the virtual node has {}; needed is {needed}", text(&has)))
    }

    /// Is the namespace ours, and nothing in it that anybody needs?
    fn is_empty_and_ours(&self) -> bool {
        let is_ours = self.has_our_namespace() && !self.is_ours();
        let needed = self.tenants + self.lent + self.others + self.networks;
        is_ours && self.is_unpeered() && needed == 0
    }
}

/// Makes the namespace of a pair, marked as ours, if there is none: what liqoctl makes is marked as
/// nobody's, and stays for ever.
pub(super) async fn make_namespace(client: &Client, peer: &ClusterId) -> Answer<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let name = tenant_namespace(peer);
    if namespaces.get_metadata_opt(&name).await?.is_some() {
        return Ok(());
    }
    let (mark, value) = PEERED_BY;
    let namespace: Namespace = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": {
            TENANT_NAMESPACE: "true",
            REMOTE_CLUSTER_ID: peer.as_str(),
            mark: value,
        }},
    }))
    .map_err(kube::Error::SerdeError)?;
    match namespaces.create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        made => made.map(drop),
    }
}

/// What liqoctl has just made for the other cluster's agent is as good as ours.
pub(super) async fn adopt(client: &Client, peer: &ClusterId, view: &View) -> Answer<()> {
    if !view.is_lent_to_agent || view.has_our_namespace() {
        return Ok(());
    }
    let (mark, value) = PEERED_BY;
    label(client, peer, (mark, Some(value))).await
}

/// Says on the namespace of a pair whether liqoctl has peered for us.
pub(super) async fn mark(client: &Client, peer: &ClusterId, is_peered: bool) -> Answer<()> {
    let (name, value) = BORROWS_BY;
    label(client, peer, (name, is_peered.then_some(value))).await
}

async fn label(client: &Client, peer: &ClusterId, label: (&str, Option<&str>)) -> Answer<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let (name, value) = label;
    let change = json!({ "metadata": { "labels": { name: value } } });
    let writer = PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
    let namespace = tenant_namespace(peer);
    gone(namespaces.patch(&namespace, &writer, &Patch::Merge(&change)).await).map(drop)
}

/// Removes what a pair leaves behind, once nobody needs it: what Liqo knows of the other cluster, its
/// requests for certificates, and the namespace. Says whether that is done.
pub(super) async fn tidy(
    client: &Client,
    own: &ClusterId,
    peer: &ClusterId,
    view: &View,
) -> Answer<bool> {
    let Some(namespace) = view.namespace.as_ref().filter(|_| view.is_empty_and_ours()) else {
        return Ok(!view.has_our_namespace());
    };
    if namespace.metadata.deletion_timestamp.is_none() {
        let foreign: Api<ForeignCluster> = Api::all(client.clone());
        gone(foreign.delete(peer.as_str(), &DeleteParams::default()).await)?;
        forget_requests(client, own, peer).await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let this = Preconditions { uid: namespace.uid(), resource_version: None };
        let how = DeleteParams { preconditions: Some(this), ..DeleteParams::default() };
        gone(namespaces.delete(&namespace.name_any(), &how).await)?;
    }
    Ok(false)
}

/// The requests for certificates of the other cluster here, and of its slice; they carry its name
/// nowhere but inside.
async fn forget_requests(client: &Client, own: &ClusterId, peer: &ClusterId) -> Answer<()> {
    let user = quota_user(own.as_str(), peer.as_str());
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let of_tenants = ListParams::default().labels(&format!("{CSR_LABEL}=true"));
    for request in requests.list(&of_tenants).await?.items {
        let owner = owner(&request.spec.request.0);
        if owner.is_some_and(|(name, _)| name == user || name == peer.as_str()) {
            gone(requests.delete(&request.name_any(), &DeleteParams::default()).await)?;
        }
    }
    Ok(())
}

/// What is not there any more is as good as removed.
pub(super) fn gone<T>(answer: Answer<T>) -> Answer<Option<T>> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is(object: &impl ResourceExt, label: &str) -> bool {
    object.labels().get(label).is_some_and(|value| value == "true")
}

/// Is it Liqo's, and not a machine, and of this provider?
fn is_of(node: &Node, provider: &ClusterId) -> bool {
    let label = |name: &str| node.labels().get(name).map(String::as_str);
    (label(NODE_TYPE), label(REMOTE_CLUSTER_ID)) == (Some(VIRTUAL_NODE), Some(provider.as_str()))
}
