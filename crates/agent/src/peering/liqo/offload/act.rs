//! Looks at what is wanted and at what there is, and writes the difference.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams, Preconditions};
use kube::runtime::events::{Recorder, Reporter};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use sublet_core::id::ClusterId;
use sublet_crds::{ReservationInstruction, ResourceRequest};

use super::news::{News, Trouble};
use super::plan::{Reasons, Wish, permitted, plan};
use crate::cluster::present;
use crate::controllers::Notice;
use crate::peering::liqo::kinds::NamespaceOffloading;
use crate::peering::liqo::names::{
    MANAGED_BY, MAY_BE_OFFLOADED, REMOTE_CLUSTER_ID, RESERVATIONS, WRITER,
};

/// Liqo takes no other name.
const NAME: &str = "offloading";

/// What there is in the cluster, as far as it matters here.
pub(super) struct Ground {
    client: Client,
    pub(super) requests: Api<ResourceRequest>,
    pub(super) namespaces: Api<PartialObjectMeta<Namespace>>,
    pub(super) offloadings: Api<PartialObjectMeta<NamespaceOffloading>>,
    pub(super) instructions: Api<PartialObjectMeta<ReservationInstruction>>,
    recorder: Recorder,
    /// What was said already, so that nobody is told twice.
    said: BTreeSet<(String, String)>,
    /// Why a namespace could not be sent, or taken home.
    failed: BTreeMap<String, Trouble>,
}

/// What came of a look.
pub(super) struct Looked {
    /// Is something away?
    pub(super) is_away: bool,
    /// Is everything where it is wanted?
    pub(super) is_as_wanted: bool,
}

type Result<T> = std::result::Result<T, kube::Error>;

/// Why a namespace stays where it is.
enum Stays {
    /// There is none.
    Missing,
    /// Somebody else has said where it goes.
    NotOurs,
    /// Nobody who may has said so.
    NotAllowed,
    /// It is still coming home from before; then it is sent again.
    Leaving,
}

impl Ground {
    pub(super) fn new(client: &Client, namespace: &str) -> Self {
        let reporter = Reporter { controller: WRITER.to_owned(), instance: None };
        Self {
            client: client.clone(),
            requests: Api::all(client.clone()),
            namespaces: Api::all(client.clone()),
            offloadings: Api::all(client.clone()),
            instructions: Api::namespaced(client.clone(), namespace),
            recorder: Recorder::new(client.clone(), reporter),
            said: BTreeSet::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Brings about what is wanted.
    pub(super) async fn look(&mut self) -> Result<Looked> {
        let everything = ListParams::default();
        let ours = ListParams::default().labels(&format!("{MANAGED_BY}={WRITER}"));
        let all: Api<NamespaceOffloading> = Api::all(self.client.clone());
        let there = all.list(&ours).await?.items;
        let begun: BTreeMap<_, _> = there.iter().filter_map(begun).collect();
        let recorded = self.instructions.list(&everything).await?.items;
        let recorded: BTreeSet<_> = recorded.iter().map(ResourceExt::name_any).collect();
        let requests = self.requests.list(&everything).await?.items;
        let allowing = ListParams::default().labels(&format!("{MAY_BE_OFFLOADED}=true"));
        let allowing = self.namespaces.list(&allowing).await?.items;
        let allowing: BTreeSet<_> = allowing.iter().map(ResourceExt::name_any).collect();
        let mut wishes = Vec::new();
        let mut looked = Looked { is_away: !there.is_empty(), is_as_wanted: true };
        for request in &requests {
            let Some(mut wish) = Wish::of(request) else { continue };
            for namespace in permitted(&mut wish, &allowing) {
                looked.is_as_wanted = false;
                let why = Stays::NotAllowed.to_text(&namespace, &Reasons::default());
                self.explain(request, &wish.reservation, &namespace, why).await;
            }
            wishes.push(wish);
        }
        let mut planned = plan(&wishes, &recorded, &begun);
        let touched = there.iter().filter_map(|ours| touched(ours, &begun));
        for (namespace, reasons) in touched {
            planned.entry(namespace).or_insert(reasons);
        }
        for (namespace, reasons) in &planned {
            looked.is_away = true;
            let stays = if reasons.is_empty() {
                self.take_home(namespace, &there).await.map(|()| None)
            } else {
                self.send(namespace, reasons).await
            };
            let failed = stays.as_ref().err().map(ToString::to_string);
            self.note(namespace, failed);
            match stays {
                Ok(None) => {}
                Ok(Some(why)) => {
                    looked.is_as_wanted = false;
                    let why = why.to_text(namespace, reasons);
                    for request in &requests {
                        let wish = Wish::of(request)
                            .filter(|wish| reasons.contains_key(&wish.reservation));
                        if let Some(wish) = wish {
                            self.explain(request, &wish.reservation, namespace, why.clone()).await;
                        }
                    }
                }
                Err(_) => looked.is_as_wanted = false,
            }
        }
        let names: BTreeSet<_> = wishes.iter().map(|wish| &wish.reservation).collect();
        self.said.retain(|(reservation, _)| names.contains(reservation));
        self.failed.retain(|namespace, _| planned.contains_key(namespace));
        Ok(looked)
    }

    /// A namespace could be sent, or taken home; or why not, which is said once.
    fn note(&mut self, namespace: &str, failed: Option<String>) {
        let trouble = self.failed.entry(namespace.to_owned()).or_default();
        if let Some(News::Begun(error)) = trouble.is(failed) {
            tracing::warn!(error, namespace, "a namespace could not be sent, or taken home");
        }
    }

    fn offloadings(&self, namespace: &str) -> Api<NamespaceOffloading> {
        Api::namespaced(self.client.clone(), namespace)
    }

    async fn take_home(&self, namespace: &str, there: &[NamespaceOffloading]) -> Result<()> {
        let ours = there.iter().find(|one| one.namespace().as_deref() == Some(namespace));
        let Some(ours) = ours.filter(|ours| ours.metadata.deletion_timestamp.is_none()) else {
            return Ok(());
        };
        let preconditions = Preconditions { uid: ours.uid(), resource_version: None };
        let how = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        present(self.offloadings(namespace).delete(NAME, &how).await).map(drop)?;
        tracing::info!(namespace, "the namespace is at home again");
        Ok(())
    }

    async fn send(&self, namespace: &str, reasons: &Reasons) -> Result<Option<Stays>> {
        if self.namespaces.get_opt(namespace).await?.is_none() {
            return Ok(Some(Stays::Missing));
        }
        let offloadings = self.offloadings(namespace);
        let there = offloadings.get_opt(NAME).await?;
        if let Some(there) = there {
            if there.labels().get(MANAGED_BY).is_none_or(|by| by != WRITER) {
                return Ok(Some(Stays::NotOurs));
            }
            if there.metadata.deletion_timestamp.is_some() {
                return Ok(Some(Stays::Leaving));
            }
        }
        let how = PatchParams::apply(WRITER).force();
        offloadings.patch(NAME, &how, &Patch::Apply(&written(reasons))).await?;
        tracing::info!(namespace, to = ?reasons, "pods of the namespace may go where it is reserved");
        Ok(None)
    }

    /// Tells somebody who wants it, once, why it is not so.
    async fn explain(
        &mut self,
        request: &ResourceRequest,
        reservation: &str,
        namespace: &str,
        why: String,
    ) {
        if self.said.contains(&(reservation.to_owned(), why.clone())) {
            return;
        }
        tracing::warn!(namespace, request = request.name_any(), why, "a namespace stays at home");
        let notice = Notice::warning("NotOffloaded", &why).event();
        if let Err(error) = self.recorder.publish(&notice, &request.object_ref(&())).await {
            tracing::debug!(%error, "an Event could not be written");
        }
        self.said.insert((reservation.to_owned(), why));
    }
}

impl Stays {
    fn to_text(&self, namespace: &str, reasons: &Reasons) -> String {
        match self {
            Self::Missing => format!("There is no namespace {namespace}: create it."),
            Self::NotOurs => {
                let to: BTreeSet<_> = reasons.values().map(ToString::to_string).collect();
                let to: Vec<_> = to.into_iter().collect();
                format!(
                    "Somebody else made the NamespaceOffloading of {namespace}, so it is left as it \
                     is: select {REMOTE_CLUSTER_ID} In [{}] there, or delete it.",
                    to.join(", ")
                )
            }
            Self::Leaving => format!("{namespace} is still coming home from before."),
            Self::NotAllowed => format!(
                "A request of another namespace may not send pods of {namespace} away: label that \
                 namespace {MAY_BE_OFFLOADED}=true, or make the request there."
            ),
        }
    }
}

/// A namespace that is away, and what for.
fn begun(ours: &NamespaceOffloading) -> Option<(String, Reasons)> {
    if ours.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let reasons = ours.annotations().get(RESERVATIONS);
    let reasons = reasons.and_then(|text| serde_json::from_str(text).ok());
    Some((ours.namespace()?, reasons.unwrap_or_default()))
}

/// What is not as we wrote it, because somebody else did, and what it is to be.
fn touched(
    ours: &NamespaceOffloading,
    begun: &BTreeMap<String, Reasons>,
) -> Option<(String, Reasons)> {
    let (namespace, reasons) = begun.get_key_value(&ours.namespace()?)?;
    let is_as_written = ours.spec.cluster_selector == selector(reasons);
    (!is_as_written).then(|| (namespace.clone(), reasons.clone()))
}

fn selector(reasons: &Reasons) -> Value {
    let to: BTreeSet<_> = reasons.values().map(ClusterId::as_str).collect();
    json!({
        "nodeSelectorTerms": [{
            "matchExpressions": [{ "key": REMOTE_CLUSTER_ID, "operator": "In", "values": to }],
        }],
    })
}

fn written(reasons: &Reasons) -> Value {
    json!({
        "apiVersion": NamespaceOffloading::api_version(&()),
        "kind": NamespaceOffloading::kind(&()),
        "metadata": {
            "name": NAME,
            "labels": { MANAGED_BY: WRITER },
            "annotations": { RESERVATIONS: json!(reasons).to_string() },
        },
        "spec": {
            "podOffloadingStrategy": "LocalAndRemote",
            "namespaceMappingStrategy": "DefaultName",
            "clusterSelector": selector(reasons),
        },
    })
}
