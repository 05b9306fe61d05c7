//! The provider as the class of our slices: grants exactly what is reserved, to whom it is reserved,
//! for as long as it is. Liqo itself decides about no class but its own.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use sublet_core::id::ClusterId;
use sublet_core::instruction::{Duty, Side};
use sublet_crds::{Obstacle, ProviderInstruction};

use super::amounts::{List, excess, granted, is_same, no_more, text};
use super::certificate::fault;
use super::ground::{Answer, Ground, Mark, REMIND_EVERY, delete};
use super::requester::LIQO_MAX;
use crate::cluster::{code, present};
use crate::collect::seen::Pod;
use crate::collect::{Guest, asked_by_all, quota_user};
use crate::peering::liqo::csr::Unfit;
use crate::peering::liqo::kinds::{Condition, Enforcement, ResourceSlice, Tenant};
use crate::peering::liqo::link::{LinkState, Links};
use crate::peering::liqo::names::{CLASS, RESERVATION, WRITER, certificate_secret};
use crate::peering::{Progress, Unwilling, Why, WhyNot, quoted};
use crate::transport::Order;

/// How often a status is written again that somebody else has just changed.
const CONFLICTS_MAX: usize = 8;

/// This cluster as one that lends.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(super) ground: Ground,
    pub(super) links: Arc<dyn Links>,
    unwilling: Unwilling,
}

/// What is said of a slice.
pub(super) struct Decision {
    /// For the counts.
    word: &'static str,
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Decision {
    /// It is granted what is reserved; if it asks for more, that is said.
    fn accepted(order: &Order, asked: &List) -> Self {
        let (more, kept) = (excess(asked, &order.amounts), &order.reservation);
        let (word, message) = if more.is_empty() {
            ("granted", format!("the reservation {kept} is kept here"))
        } else {
            let more = quoted(&text(&more));
            ("cut", format!("the reservation {kept} is kept here, and not {more}"))
        };
        let reason = "ResourceSliceResourcesAccepted";
        Self { word, status: ResourceSlice::ACCEPTED, reason, message }
    }

    fn denied(word: &'static str, reason: &'static str, message: &str) -> Self {
        Self { word, status: ResourceSlice::DENIED, reason, message: message.to_owned() }
    }

    pub(super) fn no_reservation() -> Self {
        let message = "there is no reservation of this name here";
        Self::denied("no_reservation", "NoReservation", message)
    }

    pub(super) fn for_another() -> Self {
        Self::denied("for_another", "ReservedForAnother", "it is reserved for another cluster")
    }

    pub(super) fn over() -> Self {
        Self::denied("over", "ReservationOver", "the reservation is over")
    }

    pub(super) fn bad_request(fault: Unfit) -> Self {
        let why = format!("its request for a certificate: {fault}");
        Self::denied("bad_request", "BadCertificateRequest", &why)
    }

    pub(super) fn is_said_of(&self, slice: &ResourceSlice) -> bool {
        let said = slice.condition(ResourceSlice::RESOURCES);
        said.is_some_and(|said| {
            (said.status.as_str(), said.reason.as_str()) == (self.status, self.reason)
                && said.message == self.message
        })
    }
}

impl Provider {
    pub(crate) fn new(ground: Ground, links: Arc<dyn Links>, unwilling: Unwilling) -> Self {
        Self { ground, links, unwilling }
    }

    /// Keeps the amounts for the requester: the link is there, and what its slice is granted is this.
    /// Nobody gets into a cluster that cannot enforce what it lends. What was granted is kept as it was
    /// granted whatever is the matter with the link, and does not end by that.
    pub(crate) async fn keep(&self, order: &Order) -> Answer<Progress> {
        let _turn = self.ground.turns.take(&order.peer, &order.reservation).await;
        let slice = self.ground.slices(&order.peer).get_opt(&order.reservation).await?;
        let is_granted = slice.is_some_and(|slice| slice.is_granted());
        if let Some(why) = self.unwilling().filter(|_| !is_granted) {
            return Ok(Progress::Pending(why));
        }
        let trouble = match self.links.ensure(Side::Provider, &order.peer).await {
            LinkState::Ready => return self.grant(order).await,
            LinkState::Pending(why) => Progress::Pending(why),
            LinkState::Failed(trouble) if is_granted => Progress::Pending(trouble.into()),
            LinkState::Failed(trouble) => Progress::Failed(trouble.into()),
        };
        if is_granted {
            self.grant(order).await?;
        }
        Ok(trouble)
    }

    /// Why nothing more is lent now.
    fn unwilling(&self) -> Option<Why> {
        let why = self.unwilling.borrow();
        let said = |why: &WhyNot| format!("this cluster does not lend now: {}", why.message);
        why.as_ref().map(|why| Why::hindered(Obstacle::NotLending, said(why)))
    }

    /// The same of this requester: an operator may have had its Tenant do no more. What it has already stays its own
    /// while there is a slice of it.
    async fn unwilling_to(&self, peer: &ClusterId) -> Answer<Option<Why>> {
        if let Some(why) = self.unwilling() {
            return Ok(Some(why));
        }
        let tenants = self.ground.tenant::<Tenant>(peer).list(&ListParams::default()).await?;
        let is_this = |tenant: &&Tenant| tenant.spec.cluster_id == peer.as_str();
        let barred = tenants.items.iter().filter(is_this).find(|tenant| !tenant.is_active());
        Ok(barred.map(|tenant| {
            let (name, said) = (tenant.name_any(), &tenant.spec.tenant_condition);
            let why = format!("the provider's operator has set the Tenant {name} to {said}");
            Why::hindered(Obstacle::TenantNotActive, why)
        }))
    }

    /// There is no slice. The requester may not have asked yet; or it had one, and has nothing here now. Liqo keeps the
    /// certificate of a slice that is gone, which is removed here when the reservation is over.
    async fn absent(&self, order: &Order) -> Answer<Progress> {
        let name = certificate_secret(&order.reservation);
        let was_here = self.ground.is_linked(&order.peer).await?
            && self.ground.secrets(&order.peer).get_metadata_opt(&name).await?.is_some();
        Ok(if was_here {
            let why = "the requester's slice was here and is gone: its Liqo is to copy it again, of which its agent \
                       reminds it once in a while";
            suspected(Obstacle::PeerSilent, why)
        } else {
            Progress::Ready
        })
    }

    /// Grants the slice what is reserved, if there is one. That is in force when Liqo's quota says so too.
    /// It is the caller's turn at this reservation.
    pub(super) async fn grant(&self, order: &Order) -> Answer<Progress> {
        let unwilling = self.unwilling_to(&order.peer).await?;
        let slices = self.ground.slices(&order.peer);
        for attempt in 0..CONFLICTS_MAX {
            // Time has passed: it may be over.
            if attempt > 0 && !self.is_still_kept(order).await? {
                return Ok(pending("it is not to be kept any more"));
            }
            let slice = slices.get_opt(&order.reservation).await?;
            if let Some(why) = &unwilling
                && slice.as_ref().is_none_or(|slice| !slice.is_granted())
            {
                return Ok(Progress::Pending(why.clone()));
            }
            let Some(slice) = slice else { return self.absent(order).await };
            if slice.metadata.deletion_timestamp.is_some() {
                let why = "an earlier slice of this name is still going";
                return Ok(suspected(Obstacle::StillDeleting, why));
            }
            if slice.spec.class != CLASS {
                return Ok(hindered(
                    Obstacle::ForeignClass,
                    "the requester's slice is not of our class",
                ));
            }
            if let Some(fault) = fault(&slice, &order.peer) {
                self.accuse(&order.peer, &slice, fault).await?;
                let why = format!("the requester's slice is denied: {fault}");
                return Ok(hindered(Obstacle::BadCertificateRequest, &why));
            }
            self.make_room(&order.peer, &slice).await;
            self.ground.unwritten.settled(order);
            self.ground.unmark(&slices, &slice, Mark::Reclaimed).await?;
            let status = slice.status.clone().unwrap_or_default();
            let extras = self.ground.settings.extras;
            let mut grant =
                granted(&order.amounts, &slice.spec.resources, &status.resources, extras);
            if unwilling.is_some() {
                grant = no_more(grant, &status.resources);
            }
            let decision = Decision::accepted(order, &slice.spec.resources);
            let label = status.node_labels.get(RESERVATION);
            if decision.is_said_of(&slice)
                && is_same(&status.resources, &grant)
                && label == Some(&order.reservation)
            {
                // What was granted is put right all the same; it is not said to be enforced.
                return match unwilling {
                    Some(why) => Ok(Progress::Pending(why)),
                    None => self.in_force(order, &slice, &grant).await,
                };
            }
            let status = json!({
                "resources": grant,
                "nodeLabels": { RESERVATION: order.reservation },
                "conditions": self.conditions(&slice, &decision),
            });
            if patch_status(&slices, &slice, status).await? {
                let (reservation, said) = (&order.reservation, &decision.message);
                tracing::info!(reservation, peer = %order.peer, said, "a slice is granted");
                self.ground.metrics.slice_decided(decision.word);
            }
        }
        Ok(hindered(Obstacle::SliceContested, "somebody else keeps changing the slice"))
    }

    /// Does its instruction still say so?
    async fn is_still_kept(&self, order: &Order) -> Answer<bool> {
        let recorded = self.ground.recorded::<ProviderInstruction>(&order.reservation).await?;
        Ok(recorded.is_some_and(|now| now.peer == order.peer && now.duty == Duty::Keep))
    }

    /// Whether Liqo enforces what was granted.
    async fn in_force(
        &self,
        order: &Order,
        slice: &ResourceSlice,
        grant: &List,
    ) -> Answer<Progress> {
        let user = quota_user(&order.reservation, order.peer.as_str());
        let Some(quota) = self.ground.quotas(&order.peer).get_opt(&user).await? else {
            // It makes none of a copy that has not got everything yet.
            let slices = self.ground.slices(&order.peer);
            self.ground.remind(&slices, slice, REMIND_EVERY).await?;
            let why = "Liqo is making the quota";
            let is_late = self.ground.said_for(slice) > LIQO_MAX;
            return Ok(if is_late { hindered(Obstacle::LiqoSilent, why) } else { pending(why) });
        };
        Ok(if !is_same(&quota.spec.resources, grant) {
            let why = format!("Liqo's quota still is {}", text(&quota.spec.resources));
            suspected(Obstacle::AmountsDiffer, &why)
        } else if quota.spec.limits_enforcement == Enforcement::None {
            let why = "Liqo's quota lets pods in that do not say what they take";
            hindered(Obstacle::NotLending, why)
        } else if let Some(why) = self.takes_more(order).await? {
            suspected(Obstacle::AmountsDiffer, &why)
        } else {
            Progress::Ready
        })
    }

    /// Why more is taken than is reserved: a smaller quota ends no pods, also not those that were let in and
    /// wait for a node. What they take is not free before they are gone.
    async fn takes_more(&self, order: &Order) -> Answer<Option<String>> {
        let mut pods = Vec::new();
        for guest in Guest::in_slice(&order.reservation, order.peer.as_str()) {
            let theirs = ListParams::default().labels(&guest.pods());
            pods.extend(self.ground.all::<Pod>().list(&theirs).await?.items);
        }
        let (mut used, kept) = (asked_by_all(&pods), &order.amounts);
        if kept.storage == 0 {
            // It is not reserved; the quota has a place for it all the same.
            used.storage = 0;
        }
        let is_more = !used.fits_in(kept);
        Ok(is_more.then(|| format!("pods of the requester still take {used}; it keeps {kept}")))
    }

    /// Denies a slice whose consumer wants to be somebody else here, and takes what it was given: to be
    /// denied alone takes nothing back. False if the slice was changed meanwhile, or that goes on.
    pub(super) async fn accuse(
        &self,
        peer: &ClusterId,
        slice: &ResourceSlice,
        fault: Unfit,
    ) -> Answer<bool> {
        let decision = Decision::bad_request(fault);
        if !decision.is_said_of(slice) {
            let (name, namespace) = (slice.name_any(), slice.namespace().unwrap_or_default());
            tracing::warn!(slice = name, namespace, %fault, "a consumer wants to be somebody else");
        }
        let is_denied = self.deny(slice, &decision).await?;
        Ok(is_denied && self.clear(peer, &slice.name_any()).await?.is_none())
    }

    /// Removes the copy of a slice that has been denied for long: nothing was ever given to it, and it
    /// would keep the requester's Tenant. What else is left of it goes with it.
    pub(super) async fn discard(&self, slice: &ResourceSlice) -> Answer<()> {
        let (name, namespace) = (slice.name_any(), slice.namespace().unwrap_or_default());
        tracing::info!(slice = name, namespace, "a slice was denied for long, and is removed");
        self.ground.metrics.slice_decided("discarded");
        delete(&kube::Api::namespaced(self.ground.client.clone(), &namespace), slice).await
    }

    /// Denies a slice; false if somebody else changed it meanwhile.
    pub(super) async fn deny(&self, slice: &ResourceSlice, decision: &Decision) -> Answer<bool> {
        if decision.is_said_of(slice) {
            return Ok(true);
        }
        let status = json!({ "conditions": self.conditions(slice, decision) });
        let namespace = slice.namespace().unwrap_or_default();
        let slices = kube::Api::namespaced(self.ground.client.clone(), &namespace);
        let is_said = patch_status(&slices, slice, status).await?;
        if is_said {
            let (name, why) = (slice.name_any(), &decision.message);
            tracing::info!(slice = name, namespace, why, "a slice is denied");
            self.ground.metrics.slice_decided(decision.word);
        }
        Ok(is_said)
    }

    /// The conditions with this one: a list is written as a whole, and the others are not ours.
    fn conditions(&self, slice: &ResourceSlice, decision: &Decision) -> Vec<Condition> {
        let known = slice.status.as_ref().map(|status| status.conditions.clone());
        let known = known.unwrap_or_default();
        let mut others = slice
            .condition(ResourceSlice::RESOURCES)
            .map(|said| said.others.clone())
            .unwrap_or_default();
        let before = slice.condition(ResourceSlice::RESOURCES);
        if before.is_none_or(|said| said.status != decision.status) {
            let now = json!(sublet_crds::from_time(self.ground.now()));
            others.insert("lastTransitionTime".to_owned(), now);
        }
        let ours = Condition {
            type_: ResourceSlice::RESOURCES.to_owned(),
            status: decision.status.to_owned(),
            reason: decision.reason.to_owned(),
            message: decision.message.clone(),
            others,
        };
        let not_ours = known.into_iter().filter(|said| said.type_ != ResourceSlice::RESOURCES);
        not_ours.chain([ours]).collect()
    }
}

/// Writes a status as it follows from this very sight of the slice; false if that is outdated.
async fn patch_status(
    slices: &kube::Api<ResourceSlice>,
    slice: &ResourceSlice,
    status: serde_json::Value,
) -> Answer<bool> {
    let version = slice.resource_version();
    let change = json!({ "metadata": { "resourceVersion": version }, "status": status });
    let writer = PatchParams { field_manager: Some(WRITER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(&change);
    match present(slices.patch_status(&slice.name_any(), &writer, &patch).await) {
        Err(error) if code(&error) == Some(409) => Ok(false),
        written => written.map(|_| true),
    }
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
