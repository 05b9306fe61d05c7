//! Stage 2 of 12 · advertise — what was measured and what is offered, as the broker is told it.
//!
//! Upstream: `collect` keeps the sums. Downstream: `carry` brings it to the broker.
//!
//! The broker computes what can be lent as `allocatable − allocated − held`, with pods inside of
//! grants counted once. So an offer of less than everything is told as a smaller `allocatable`: what
//! the cluster's own pods take, and what is offered. `capacity` and `allocated` are always what was
//! measured.

mod figures;
mod number;
mod profile;

pub use figures::Figures;
pub use number::Numbers;
pub use profile::{LabelError, Profile, labels};

use sublet_core::id::{Generation, ReservationId};
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_crds::{AdvertisementSpec, CostInfo, ResourceMetrics, ResourceQuantities, from_time};
use sublet_wire::v1::{self, GrantReport, Quantities};

use crate::collect::{Grant, Measured};

/// Which broker listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// One that is told the grants, and counts the pods inside of them once.
    #[default]
    Broker,
    /// The Go system's. It is told nothing of grants, and subtracts what it holds from what is not
    /// allocated; so to it, pods inside of grants are not.
    OldBroker,
}

/// The advertisement, with its number, at `now`.
pub fn advertisement(
    profile: &Profile,
    measured: &Measured,
    audience: Audience,
    number: sublet_crds::Number,
    now: Time,
) -> v1::Advertisement {
    let figures = Figures::of(measured, &profile.offer);
    let reports = || measured.grants.iter().filter_map(|(grant, used)| report(grant, used, now));
    let positive = |count: i64| u64::try_from(count).unwrap_or_default();
    let ours = audience == Audience::Broker;
    v1::Advertisement {
        cluster_id: profile.cluster.to_string(),
        cluster_name: profile.name.clone(),
        resources: metrics(&figures, audience),
        timestamp: Some(now.into()),
        number: ours.then(|| v1::Number {
            incarnation: positive(number.incarnation),
            sequence: positive(number.sequence),
        }),
        grants: ours.then(|| reports().collect()),
        labels: profile.all_labels(),
        cost: profile.cost.clone(),
        capabilities: Some(profile.capabilities.clone()),
        lending: (!profile.lending).then_some(false),
    }
}

/// The same, as the object that is kept for people.
pub fn object(
    profile: &Profile,
    measured: &Measured,
    number: sublet_crds::Number,
    now: Time,
) -> AdvertisementSpec {
    let figures = Figures::of(measured, &profile.offer);
    let written = ResourceQuantities::from;
    AdvertisementSpec {
        cluster_id: profile.cluster.to_string(),
        resources: ResourceMetrics {
            capacity: written(&figures.capacity),
            allocatable: written(&figures.allocatable),
            allocated: written(&figures.allocated),
            available: written(&figures.available),
            used: None,
            lent: (!figures.lent.is_zero()).then(|| written(&figures.lent)),
        },
        cost: profile.cost.as_ref().map(|cost| CostInfo {
            cpu_cost: cost.cpu_cost.clone(),
            memory_cost: cost.memory_cost.clone(),
            currency: cost.currency.clone(),
        }),
        timestamp: from_time(now),
        labels: profile.all_labels(),
        number: Some(number),
        lending: (!profile.lending).then_some(false),
    }
}

fn metrics(figures: &Figures, audience: Audience) -> v1::ResourceMetrics {
    let Figures { capacity, allocatable, available, .. } = figures;
    let allocated = match audience {
        Audience::Broker => &figures.allocated,
        Audience::OldBroker => &figures.outside,
    };
    // The Go broker cannot subtract a gpu from nothing: it is named everywhere or nowhere.
    let all = [capacity, allocatable, allocated, available];
    let has_gpu = all.iter().any(|resources| resources.gpu > 0);
    let [capacity, allocatable, allocated, available] = all.map(|resources| {
        let mut written = Quantities::from(resources);
        if has_gpu {
            written.gpu.get_or_insert_with(|| "0".to_owned());
        }
        written
    });
    v1::ResourceMetrics { capacity, allocatable, allocated, reserved: None, available }
}

/// A grant as the broker is told it; none of one that was not carried out yet, or that an old broker
/// made.
fn report(grant: &Grant, used: &Resources, now: Time) -> Option<GrantReport> {
    let id: ReservationId = grant.reservation.parse().ok()?;
    let Generation(generation) = grant.carried_out?;
    Some(GrantReport {
        id: id.to_string(),
        generation,
        requester_id: grant.requester.to_string(),
        amounts: (&grant.amounts).into(),
        used: used.into(),
        remaining: grant.expires_at.map(|end| end.since(now).to_string()),
    })
}

#[cfg(test)]
mod tests;
