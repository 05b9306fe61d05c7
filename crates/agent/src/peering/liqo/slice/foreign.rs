//! Slices that other clusters have here and that are of another class than ours. Liqo's own class grants whatever is
//! asked for, and nobody holds that capacity; our policy lets no requester have one. One that is there all the same is
//! said to people. Where an agent has joined the clusters it was made while the policy was away, by somebody who wants
//! more than he was given: it is taken away. Where somebody else has, an operator may have wanted it so before there
//! was an agent: it is left alone.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource, ResourceExt};
use sublet_core::id::ClusterId;

use super::ground::{Answer, delete, let_go};
use super::provider::Provider;
use crate::metrics::Metrics;
use crate::peering::liqo::kinds::{ResourceSlice, Tenant};
use crate::peering::liqo::link::is_ours;
use crate::peering::liqo::names::{POLICY, WRITER, tenant_namespace};
use crate::peering::quoted;

/// More than so many are not remembered: then all are said again.
const KNOWN_MAX: usize = 4096;

/// Says of each such slice, once, that it is there.
pub(in crate::peering::liqo) struct Foreign {
    known: Mutex<BTreeSet<String>>,
    recorder: Recorder,
}

impl Foreign {
    pub(in crate::peering::liqo) fn new(client: Client) -> Self {
        let reporter = Reporter { controller: WRITER.to_owned(), instance: None };
        Self { known: Mutex::default(), recorder: Recorder::new(client, reporter) }
    }

    /// Is it news?
    pub(super) fn is_news(&self, slice: &ResourceSlice) -> bool {
        // One that goes by itself is nobody's business; one that is held goes on being granted.
        if slice.metadata.deletion_timestamp.is_some() && slice.finalizers().is_empty() {
            return false;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(slice.uid().unwrap_or_default())
    }

    /// Says it in an Event of the slice. That this cannot be written stops nothing.
    pub(super) async fn tell(&self, slice: ResourceSlice) {
        let class = quoted(&slice.spec.class);
        let event = Event {
            type_: EventType::Warning,
            reason: "ForeignClass".to_owned(),
            note: Some(format!(
                "a slice of the class {class} is no reservation, and no agent keeps it within bounds; where an agent \
                 has joined the clusters it is removed, else delete it if nobody here wants it; and look who had the \
                 policy {POLICY} away"
            )),
            action: "Notice".to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &slice.object_ref(&())).await {
            tracing::debug!(%error, "an Event could not be written");
        }
    }
}

impl Provider {
    /// Removes such a slice, if nobody can have wanted it; says whether it did. Its pods are told to end before it:
    /// should this process be killed in between, nobody would know of them. Its quota goes with it, and pods that
    /// came in meanwhile when it is gone.
    pub(super) async fn expel(&self, peer: &ClusterId, slice: &ResourceSlice) -> Answer<bool> {
        if !self.has_joined(peer).await? {
            return Ok(false);
        }
        let (slices, namespace) = (self.ground.slices(peer), tenant_namespace(peer));
        // It goes also where its pods cannot be looked for: else more would come.
        let cleared = self.clear(peer, &slice.name_any()).await;
        if slice.metadata.deletion_timestamp.is_none() {
            delete(&slices, slice).await?;
            tracing::warn!(
                slice = slice.name_any(),
                namespace,
                "a slice of another class is removed"
            );
            self.ground.metrics.slice_decided("expelled");
        }
        let_go(&slices, slice, |_| false).await?;
        cleared?;
        Ok(true)
    }

    /// Is the requester here by an agent's link, and by nobody else's? A namespace outlives its link where an operator's
    /// network is in it, and then says nothing about who has joined the clusters since.
    async fn has_joined(&self, peer: &ClusterId) -> Answer<bool> {
        let namespaces = self.ground.all::<Namespace>();
        let found = namespaces.get_metadata_opt(&tenant_namespace(peer)).await?;
        if !found.is_some_and(|found| is_ours(&found.metadata)) {
            return Ok(false);
        }
        let tenants =
            self.ground.tenant::<Tenant>(peer).list_metadata(&ListParams::default()).await?;
        let mut tenants = tenants.items.iter().peekable();
        Ok(tenants.peek().is_some() && tenants.all(|tenant| is_ours(&tenant.metadata)))
    }
}

/// Counts it, and says it in the log.
pub(super) fn note(metrics: &Metrics, slice: &ResourceSlice) {
    let (name, namespace) = (slice.name_any(), slice.namespace().unwrap_or_default());
    let class = quoted(&slice.spec.class);
    metrics.slice_decided("foreign_class");
    let what = "a slice of another class is here: nobody holds what it takes";
    tracing::warn!(slice = name, namespace, class, "{what}");
}
