//! What both sides of a slice work with: the objects of this cluster, the settings, the clock.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};
use sublet_core::time::{Span, Time};
use sublet_crds::ProviderInstruction;

use super::amounts::Extras;
use super::noted::Unwritten;
use super::turns::Turns;
use crate::cluster::{code, present};
use crate::controllers::{Clock, Record};
use crate::metrics::Metrics;
use crate::peering::liqo::kinds::{Quota, ResourceSlice, VirtualNode};
use crate::peering::liqo::link::Links;
use crate::peering::liqo::names::{
    CORDON, CSR_LABEL, LEAVING_SINCE, RECLAIMED_SINCE, REMINDED, WRITER, tenant_namespace,
};
use crate::transport::Order;

/// How often Liqo is reminded of a slice of which too little came.
pub(super) const REMIND_EVERY: Span = Span::from_secs(10);

/// What comes of talking to the API server.
pub(super) type Answer<T> = Result<T, kube::Error>;

/// What an operator can say about slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What a slice has beyond what is reserved: asked for here, and given here at most.
    pub extras: Extras,
    /// How long pods may take to leave before they are forced to.
    pub eviction: Span,
    /// How long a requester has, at its provider's, to take its pods away and give the slice back: its
    /// own deadline, and a moment to say so.
    pub patience: Span,
    /// How long a slice may be there before its instruction is, until it is denied.
    pub grace: Span,
    /// How long one that is denied, and has no reservation, is kept.
    pub denied: Span,
    /// How often Liqo is reminded of each slice, at the requester's.
    pub refresh: Span,
    /// Where instructions are.
    pub namespace: String,
}

/// What both sides work with.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
    pub(super) turns: Turns,
    pub(super) unwritten: Unwritten,
}

impl Ground {
    pub(crate) fn new(
        client: Client,
        settings: Settings,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            client,
            settings,
            clock,
            metrics,
            turns: Turns::default(),
            unwritten: Unwritten::default(),
        }
    }

    pub(in crate::peering::liqo) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(in crate::peering::liqo) fn now(&self) -> Time {
        (self.clock)()
    }

    /// How long ago an object was made.
    pub(super) fn age_of(&self, metadata: &ObjectMeta) -> Span {
        let created = metadata.creation_timestamp.as_ref();
        let created = created.and_then(|time| sublet_crds::to_time("", time).ok());
        created.map_or(Span::ZERO, |created| self.now().since(created))
    }

    /// For how long an object has been going; not at all, if it is not.
    pub(super) fn going_for(&self, metadata: &ObjectMeta) -> Span {
        let since = metadata.deletion_timestamp.as_ref();
        let since = since.and_then(|time| sublet_crds::to_time("", time).ok());
        since.map_or(Span::ZERO, |since| self.now().since(since))
    }

    /// Touches an object so that Liqo's replicator looks at it again, if that was not done for so long; says whether it
    /// did. A slice of which too little came, at the requester's: it does not try again what an API server forbids, and
    /// one that has just started forbids everything for a moment. And its copy at the provider's: after a change that
    /// could not be written there, it takes it for written until it hears of the copy again.
    pub(super) async fn remind<K>(&self, api: &Api<K>, object: &K, every: Span) -> Answer<bool>
    where
        K: Clone + DeserializeOwned + Debug + Resource,
    {
        let age = self.age_of(object.meta());
        let said = object.annotations().get(REMINDED);
        let Some(now) = reminder(age, said, every) else { return Ok(false) };
        let change = json!({ "metadata": { "annotations": { REMINDED: now } } });
        merge(api, &object.name_any(), &change).await.map(|()| true)
    }

    /// For how long what the class says of a slice has been said.
    pub(super) fn said_for(&self, slice: &ResourceSlice) -> Span {
        let said = slice.condition(ResourceSlice::RESOURCES);
        let since = said.and_then(|said| said.others.get("lastTransitionTime"));
        let since = since.and_then(|since| serde_json::from_value(since.clone()).ok());
        let since = since.and_then(|since| sublet_crds::to_time("", &since).ok());
        since.map_or(Span::ZERO, |since| self.now().since(since))
    }

    /// The objects of one kind about a pair.
    pub(super) fn tenant<K>(&self, peer: &ClusterId) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &tenant_namespace(peer))
    }

    pub(super) fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    pub(super) fn slices(&self, peer: &ClusterId) -> Api<ResourceSlice> {
        self.tenant(peer)
    }

    pub(super) fn quotas(&self, peer: &ClusterId) -> Api<Quota> {
        self.tenant(peer)
    }

    pub(super) fn virtual_nodes(&self, peer: &ClusterId) -> Api<VirtualNode> {
        self.tenant(peer)
    }

    pub(super) fn secrets(&self, peer: &ClusterId) -> Api<Secret> {
        self.tenant(peer)
    }

    pub(super) fn leases(&self, peer: &ClusterId) -> Api<Lease> {
        self.tenant(peer)
    }

    pub(super) fn nodes(&self) -> Api<Node> {
        self.all()
    }

    /// The requests for certificates that Liqo made for other clusters: of slices, and of the clusters
    /// themselves.
    pub(super) async fn requests(&self) -> Answer<Vec<CertificateSigningRequest>> {
        let of_tenants = ListParams::default().labels(&format!("{CSR_LABEL}=true"));
        Ok(self.all().list(&of_tenants).await?.items)
    }

    /// Is there a namespace of the pair at all? Where there is none, the agent may not even look what is
    /// in it: its role is bound there.
    pub(super) async fn is_linked(&self, peer: &ClusterId) -> Answer<bool> {
        let namespaces = self.all::<Namespace>();
        Ok(namespaces.get_metadata_opt(&tenant_namespace(peer)).await?.is_some())
    }

    /// What is recorded about a reservation here. One that cannot be read is no word of the broker's,
    /// and not none either.
    pub(super) async fn recorded<K: Record>(&self, reservation: &str) -> Answer<Option<Order>> {
        let records: Api<K> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let found = records.get_opt(&K::object_name(reservation)).await?;
        let order = found.map(|found| found.order()).transpose();
        order.map_err(|error| kube::Error::Service(error.into()))
    }

    /// Was what is recorded of this reservation carried out as it is recorded now? Then everything had room in it.
    pub(super) async fn is_settled(&self, reservation: &str) -> Answer<bool> {
        let records: Api<ProviderInstruction> =
            Api::namespaced(self.client.clone(), &self.settings.namespace);
        let found = records.get_opt(&ProviderInstruction::object_name(reservation)).await?;
        let (applied, wanted) = found.map_or((None, None), |found| {
            let wanted = found.order().ok().and_then(|order| order.generation);
            (found.standing().applied, wanted.map(|generation| generation.0))
        });
        Ok(applied.is_some() && applied == wanted)
    }

    /// To whom what is recorded here is lent.
    pub(super) async fn lent_to(&self) -> Answer<BTreeMap<String, ClusterId>> {
        let records: Api<ProviderInstruction> =
            Api::namespaced(self.client.clone(), &self.settings.namespace);
        let all = records.list(&ListParams::default()).await?.items;
        let known = all.iter().filter_map(|record| record.order().ok());
        Ok(known.map(|order| (order.reservation, order.peer)).collect())
    }

    /// Is something else to be kept with this peer, whether or not there is a slice of it yet? What is being
    /// made needs the link as much as what is there.
    pub(super) async fn keeps_other<K: Record>(&self, over: &Order) -> Answer<bool> {
        let records: Api<K> = Api::namespaced(self.client.clone(), &self.settings.namespace);
        let is_kept = |record: &K| match record.order() {
            Ok(order) => order.peer == over.peer && order.duty == Duty::Keep,
            Err(_) => true,
        };
        let all = records.list(&ListParams::default()).await?.items;
        let others = all.iter().filter(|record| record.reservation() != over.reservation);
        Ok(others.into_iter().any(is_kept))
    }

    /// Says that nobody needs a link any more. Somebody who came meanwhile, and to whom it was said to be there,
    /// still does, and would not ask again.
    pub(super) async fn let_go_of<K: Record>(
        &self,
        links: &dyn Links,
        (side, over): (Side, &Order),
    ) -> Answer<()> {
        links.unused(side, &over.peer).await;
        if self.keeps_other::<K>(over).await? {
            links.ensure(side, &over.peer).await;
        }
        Ok(())
    }

    /// Says on a slice that it is being taken down, and since when, if that is not said already.
    pub(super) async fn mark(
        &self,
        api: &Api<ResourceSlice>,
        slice: &ResourceSlice,
        mark: Mark,
        since: Time,
    ) -> Answer<()> {
        if mark.of(slice) == Some(since) && mark.is_complete(slice) {
            return Ok(());
        }
        let mut annotations = json!({ mark.name(): moment(since) });
        if mark == Mark::Reclaimed {
            annotations[CORDON] = json!("true");
        }
        let change = json!({ "metadata": { "annotations": annotations } });
        merge(api, &slice.name_any(), &change).await
    }

    /// Since when a node is to go of which the slice is gone already: written on the node itself.
    pub(in crate::peering) async fn node_leaving_since(&self, node: &Node) -> Answer<Time> {
        let now = self.now();
        let known = Mark::Leaving.on(node.annotations()).filter(|since| *since <= now);
        if let Some(since) = known {
            return Ok(since);
        }
        let change = json!({ "metadata": { "annotations": { LEAVING_SINCE: moment(now) } } });
        merge(&self.nodes(), &node.name_any(), &change).await?;
        Ok(now)
    }

    /// Takes the marks of an end off a slice that is to stay after all; says whether there were any.
    pub(super) async fn unmark(
        &self,
        api: &Api<ResourceSlice>,
        slice: &ResourceSlice,
        mark: Mark,
    ) -> Answer<bool> {
        let names = match mark {
            Mark::Leaving => &[LEAVING_SINCE][..],
            Mark::Reclaimed => &[RECLAIMED_SINCE, CORDON],
        };
        if !names.iter().any(|name| slice.annotations().contains_key(*name)) {
            return Ok(false);
        }
        let none: BTreeMap<_, _> = names.iter().map(|name| (*name, Value::Null)).collect();
        let change = json!({ "metadata": { "annotations": none } });
        merge(api, &slice.name_any(), &change).await?;
        Ok(true)
    }
}

/// What is written to remind Liqo of an object of this age: how many seconds that is. None if it was done since, or is
/// too early. A copy has what was said of the original, which may be older.
fn reminder(age: Span, said: Option<&String>, every: Span) -> Option<String> {
    let now = age.as_millis() / 1000;
    let before = said.and_then(|said| said.parse::<u64>().ok()).filter(|before| *before <= now);
    let since = now - before.unwrap_or_default();
    (since >= every.as_millis() / 1000 && since > 0).then(|| now.to_string())
}

/// What says of a slice that it is being taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// By its requester.
    Leaving,
    /// By its provider; no more pods are let in.
    Reclaimed,
}

impl Mark {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Leaving => LEAVING_SINCE,
            Self::Reclaimed => RECLAIMED_SINCE,
        }
    }

    /// Since when, if it is.
    pub(super) fn of(self, slice: &ResourceSlice) -> Option<Time> {
        self.on(slice.annotations())
    }

    /// The same, by the annotations of whatever says so.
    pub(super) fn on(self, annotations: &BTreeMap<String, String>) -> Option<Time> {
        let text = annotations.get(self.name())?;
        let since = serde_json::from_value(Value::String(text.clone())).ok()?;
        sublet_crds::to_time(self.name(), &since).ok()
    }

    /// Is all said that goes with it?
    pub(super) fn is_complete(self, slice: &ResourceSlice) -> bool {
        self == Self::Leaving || slice.annotations().contains_key(CORDON)
    }
}

/// As an object has it, to the fraction of a second: a deadline is not to come early.
pub(super) fn moment(time: Time) -> String {
    let text = serde_json::to_value(MicroTime(sublet_crds::from_time(time).0));
    text.ok().as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Changes an object; nothing comes of it if it is gone.
pub(super) async fn merge<K>(api: &Api<K>, name: &str, change: &Value) -> Answer<()>
where
    K: Clone + DeserializeOwned + Debug,
{
    let writer = PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
    present(api.patch(name, &writer, &Patch::Merge(change)).await).map(drop)
}

/// Takes finalizers off an object that is going, unless somebody else has just changed it.
pub(super) async fn let_go<K>(
    api: &Api<K>,
    object: &K,
    is_kept: impl Fn(&str) -> bool,
) -> Answer<()>
where
    K: Clone + DeserializeOwned + Debug + Resource,
{
    let kept: Vec<_> = object.finalizers().iter().filter(|name| is_kept(name)).collect();
    if object.meta().deletion_timestamp.is_none() || kept.len() == object.finalizers().len() {
        return Ok(());
    }
    let (name, finalizers) = (object.name_any(), object.finalizers());
    tracing::warn!(name, ?finalizers, "what is over is held by finalizers, which are taken off");
    let version = object.resource_version();
    let change = json!({ "metadata": { "resourceVersion": version, "finalizers": kept } });
    match merge(api, &name, &change).await {
        Err(error) if code(&error) == Some(409) => Ok(()),
        changed => changed,
    }
}

/// Removes this very object, if it is still there and nobody has begun with that.
pub(super) async fn delete<K>(api: &Api<K>, object: &K) -> Answer<()>
where
    K: Clone + DeserializeOwned + Debug + Resource,
{
    if object.meta().deletion_timestamp.is_some() {
        return Ok(());
    }
    let preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
    let how = DeleteParams { preconditions, ..DeleteParams::default() };
    present(api.delete(&object.name_any(), &how).await).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liqo_is_reminded_once_in_a_while_and_not_at_first() {
        let at = |seconds: u64, said: Option<&str>| {
            reminder(Span::from_secs(seconds), said.map(str::to_owned).as_ref(), REMIND_EVERY)
        };
        assert_eq!(at(9, None), None);
        assert_eq!(at(10, None).as_deref(), Some("10"));
        assert_eq!(at(19, Some("10")), None);
        assert_eq!(at(20, Some("10")).as_deref(), Some("20"));
        assert_eq!(at(95, Some("rubbish")).as_deref(), Some("95"));
        // A copy that was just made of what is old.
        assert_eq!(at(9, Some("300")), None);
        assert_eq!(at(10, Some("300")).as_deref(), Some("10"));
    }
}
