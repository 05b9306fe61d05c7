//! What a cluster says of itself, and what it is answered.

use std::collections::BTreeMap;

use serde::Serialize;
use sublet_core::advertisement as core;
use sublet_core::books::Books;
use sublet_core::id::{ClusterId, Generation};
use sublet_core::market::Entry;
use sublet_core::quantity::Round;
use sublet_core::resources::Resources;

use super::{Quantities, Reservation, request};
use crate::Timestamp;
use crate::decode::object;
use crate::problem::Invalid;

/// What a cluster has, what is taken, and what is left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ResourceMetrics {
    /// What its nodes have.
    pub capacity: Quantities,
    /// What of that can be given to pods.
    pub allocatable: Quantities,
    /// What pods take.
    pub allocated: Quantities,
    /// What the broker holds for others; ignored when an agent sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Quantities>,
    /// What is left; computed by the broker, ignored when an agent sends it.
    #[serde(default)]
    pub available: Quantities,
}

/// Orders the advertisements of one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct Number {
    /// Grows with each start of the agent.
    pub incarnation: u64,
    /// Grows with each advertisement of one start.
    pub sequence: u64,
}

/// A grant as its provider sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct GrantReport {
    /// The reservation.
    pub id: String,
    /// The generation of the instruction that the provider carried out.
    pub generation: u32,
    /// For whom.
    #[serde(rename = "requesterID")]
    pub requester_id: String,
    /// What the provider keeps for it.
    pub amounts: Quantities,
    /// What pods inside the grant take of it now; also part of `allocated`.
    pub used: Quantities,
    /// How long it still runs, as a Go duration, if it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<String>,
}

/// What lending costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Per core and hour, in decimals of the currency with at most six places.
    pub cpu_cost: String,
    /// Per GB and hour, in the same way.
    pub memory_cost: String,
    /// As the operator writes it, for example `EUR`.
    pub currency: String,
}

/// What an agent can do beyond the Go agents; one that states none is old.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent yes or no on the wire")]
pub struct Capabilities {
    /// Confirms as a provider that an instruction was carried out.
    pub acknowledge: bool,
    /// Confirms as a requester that the capacity is usable.
    pub activate: bool,
    /// Renews what it wants to keep.
    pub renew: bool,
    /// Reads instructions as a stream.
    pub stream: bool,
    /// How it can be joined: `liqo`, `liqoctl`, `none`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
}

/// What a cluster says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Advertisement {
    /// Who; the CN of its certificate.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// What the Go agents call it.
    #[serde(default)]
    pub cluster_name: String,
    /// What it has.
    pub resources: ResourceMetrics,
    /// When it was measured. Age is counted from when the broker received it, not from here.
    #[cfg_attr(feature = "openapi", schemars(required))]
    pub timestamp: Option<Timestamp>,
    /// Which of its advertisements; an older one never replaces a newer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// The grants that it knows; left out by an agent that does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Vec<GrantReport>>,
    /// Free labels, matched by the constraints of a request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What lending costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What its agent can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// False when it takes part but does not lend now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending: Option<bool>,
}

/// The answer to an advertisement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AdvertisementResponse {
    /// As the broker keeps it. If its `number` is higher than the one that was sent, what was sent is
    /// not kept: another agent has advertised this cluster, or an earlier one with a clock ahead.
    pub advertisement: Advertisement,
    /// What the cluster must do as a provider, in the Go system's form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_instructions: Vec<Reservation>,
}

object!(ResourceMetrics {
    "capacity" => capacity,
    "allocatable" => allocatable,
    "allocated" => allocated,
    "reserved" => reserved,
    "available" => available,
});
object!(Number { "incarnation" => incarnation, "sequence" => sequence });
object!(GrantReport {
    "id" => id,
    "generation" => generation,
    "requesterID" => requester_id,
    "amounts" => amounts,
    "used" => used,
    "remaining" => remaining,
}, at most core::Advertisement::GRANTS_MAX);
object!(Cost { "cpuCost" => cpu_cost, "memoryCost" => memory_cost, "currency" => currency });
object!(Capabilities {
    "acknowledge" => acknowledge,
    "activate" => activate,
    "renew" => renew,
    "stream" => stream,
    "backends" => backends,
});
object!(Advertisement {
    "clusterID" => cluster_id,
    "clusterName" => cluster_name,
    "resources" => resources,
    "timestamp" => timestamp,
    "number" => number,
    "grants" => grants,
    "labels" => labels,
    "cost" => cost,
    "capabilities" => capabilities,
    "lending" => lending,
});
object!(AdvertisementResponse {
    "advertisement" => advertisement,
    "providerInstructions" => provider_instructions,
});

/// Into the core.
impl Advertisement {
    /// What the core keeps of it, for the cluster that the certificate names; whether `clusterID`
    /// is that cluster is the caller's to check, before anything else as in the Go broker.
    pub fn to_core(&self, cluster: ClusterId) -> Result<core::Advertisement, Invalid> {
        let ResourceMetrics { capacity, allocatable, allocated, reserved, available } =
            &self.resources;
        let capacity = required(capacity, "resources.capacity", Round::Down)?;
        let allocatable = required(allocatable, "resources.allocatable", Round::Down)?;
        let allocated = required(allocated, "resources.allocated", Round::Up)?;
        // Neither is believed, but what is no quantity is refused, as the Go broker does.
        if !available.is_silent() {
            available.check_syntax("resources.available")?;
        }
        if let Some(reserved) = reserved {
            reserved.check_syntax("resources.reserved")?;
        }
        if self.timestamp.is_none_or(Timestamp::is_go_zero) {
            let what = "is required: send the time of measuring, such as 2026-11-15T22:11:16Z";
            return Err(Invalid::field("timestamp".to_owned(), what));
        }
        let grants = self
            .grants
            .as_ref()
            .map(|grants| grants.iter().enumerate().map(|(at, grant)| grant.to_core(at)).collect());
        let number = self.number.as_ref();
        let name = self.cluster_name.chars().take(core::Advertisement::NAME_MAX).collect();
        let advertisement = core::Advertisement {
            cluster,
            name,
            number: number
                .map(|n| core::Number { incarnation: n.incarnation, sequence: n.sequence }),
            capacity,
            allocatable,
            allocated,
            grants: grants.transpose()?,
            labels: self.labels.clone(),
            cost: self.cost.as_ref().map(Cost::to_core).transpose()?,
            capabilities: self
                .capabilities
                .as_ref()
                .map_or(Ok(core::Capabilities::default()), Capabilities::to_core)?,
            lending: self.lending.unwrap_or(true),
        };
        advertisement
            .validated()
            .map_err(|error| Invalid::field(named_by(&error).to_owned(), error))
    }
}

/// Which member the core objects to.
fn named_by(error: &core::Error) -> &'static str {
    match error {
        core::Error::TooMany { what: "labels", .. } | core::Error::TooLong(_) => "labels",
        core::Error::TooMany { .. }
        | core::Error::UsedBeyondAllocated(_)
        | core::Error::GrantTwice(_)
        | core::Error::Amounts(_) => "grants",
    }
}

fn required(amounts: &Quantities, field: &str, round: Round) -> Result<Resources, Invalid> {
    if amounts.cpu.is_empty() || amounts.memory.is_empty() {
        let what = "cpu and memory are required";
        return Err(Invalid::field(field.to_owned(), what));
    }
    amounts.resources(field, round)
}

impl GrantReport {
    fn to_core(&self, at: usize) -> Result<core::GrantReport, Invalid> {
        let field = |name: &str| format!("grants[{at}].{name}");
        let remaining = self.remaining.as_deref().filter(|text| !text.is_empty());
        Ok(core::GrantReport {
            id: self.id.parse().map_err(|error| Invalid::field(field("id"), error))?,
            generation: Generation(self.generation),
            requester: self
                .requester_id
                .parse()
                .map_err(|error| Invalid::field(field("requesterID"), error))?,
            amounts: required(&self.amounts, &field("amounts"), Round::Up)?,
            used: required(&self.used, &field("used"), Round::Up)?,
            remaining: remaining
                .map(|text| text.parse().map_err(|e| Invalid::field(field("remaining"), e)))
                .transpose()?,
        })
    }
}

impl From<&core::GrantReport> for GrantReport {
    fn from(grant: &core::GrantReport) -> Self {
        Self {
            id: grant.id.to_string(),
            generation: grant.generation.0,
            requester_id: grant.requester.to_string(),
            amounts: (&grant.amounts).into(),
            used: (&grant.used).into(),
            remaining: grant.remaining.map(|span| span.to_string()),
        }
    }
}

impl Capabilities {
    fn to_core(&self) -> Result<core::Capabilities, Invalid> {
        Ok(core::Capabilities {
            acknowledge: self.acknowledge,
            activate: self.activate,
            renew: self.renew,
            stream: self.stream,
            backends: request::backends(&self.backends, "capabilities.backends")?,
        })
    }
}

impl From<&core::Capabilities> for Capabilities {
    fn from(can: &core::Capabilities) -> Self {
        Self {
            acknowledge: can.acknowledge,
            activate: can.activate,
            renew: can.renew,
            stream: can.stream,
            backends: can.backends.iter().map(|b| request::backend_name(b).to_owned()).collect(),
        }
    }
}

impl Cost {
    fn to_core(&self) -> Result<core::Cost, Invalid> {
        let micros = |text: &str, name: &str| {
            micros(text).ok_or_else(|| {
                let what = "write a price such as 0.031, with at most six places";
                Invalid::field(format!("cost.{name}"), what)
            })
        };
        Ok(core::Cost {
            cpu_micros: micros(&self.cpu_cost, "cpuCost")?,
            memory_micros: micros(&self.memory_cost, "memoryCost")?,
            currency: self.currency.clone(),
        })
    }
}

impl From<&core::Cost> for Cost {
    fn from(cost: &core::Cost) -> Self {
        let text = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        Self {
            cpu_cost: text(cost.cpu_micros),
            memory_cost: text(cost.memory_micros),
            currency: cost.currency.clone(),
        }
    }
}

/// A price in millionths; nothing is none.
fn micros(text: &str) -> Option<u64> {
    const PLACES: usize = 6;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let no_digit = whole.is_empty() && fraction.is_empty() && !text.is_empty();
    if no_digit || fraction.len() > PLACES || !digits(whole) || !digits(fraction) {
        return None;
    }
    let number = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<u64>().ok() };
    number(whole)?.checked_mul(1_000_000)?.checked_add(number(&format!("{fraction:0<PLACES$}"))?)
}

/// From the core.
impl Advertisement {
    /// What the broker knows of a cluster.
    pub fn of(books: &Books, entry: &Entry) -> Self {
        let known = &entry.advertisement;
        let grants = known.grants.as_ref().map(|all| all.iter().map(GrantReport::from).collect());
        let is_old = known.capabilities == core::Capabilities::default();
        Self {
            cluster_id: known.cluster.to_string(),
            cluster_name: known.name.clone(),
            resources: ResourceMetrics::of(books, known),
            timestamp: Some(Timestamp::from(entry.received_at).whole_seconds()),
            number: known
                .number
                .map(|n| Number { incarnation: n.incarnation, sequence: n.sequence }),
            grants,
            labels: known.labels.clone(),
            cost: known.cost.as_ref().map(Cost::from),
            capabilities: (!is_old).then(|| Capabilities::from(&known.capabilities)),
            lending: (!known.lending).then_some(false),
        }
    }
}

impl ResourceMetrics {
    /// What a cluster said, with what the broker holds there and what is left of it.
    pub fn of(books: &Books, known: &core::Advertisement) -> Self {
        let held = books.held(&known.cluster);
        Self {
            capacity: (&known.capacity).into(),
            allocatable: (&known.allocatable).into(),
            allocated: (&known.allocated).into(),
            reserved: (!held.is_zero()).then(|| (&held).into()),
            available: (&books.room(&known.cluster)).into(),
        }
    }
}
