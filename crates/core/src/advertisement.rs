//! What one cluster says of itself: what it has, what is taken, and the grants it knows.
//!
//! Soft state. It owns only what the agent measured; what is held for others is the ledger's
//! affair, and whatever an agent sends as `reserved` never reaches this type.

mod backends;

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::id::{ClusterId, Generation, ReservationId};
use crate::reservation::Ask;
use crate::resources::{self, Resources};
use crate::time::Span;

pub use backends::{Backend, Backends};

/// Why an advertisement was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pods inside grants are part of the allocated ones.
    #[error("the grants use more {0} than is allocated in all: report pods of grants in both")]
    UsedBeyondAllocated(resources::Kind),
    /// An amount beyond 64 bits.
    #[error(transparent)]
    Amounts(#[from] resources::Error),
    /// A list or text beyond its limit.
    #[error("{what} has {found}, more than the {limit} that are kept: send fewer")]
    TooMany {
        /// Which part.
        what: &'static str,
        /// How many there were.
        found: usize,
        /// How many may be.
        limit: usize,
    },
    /// A label or a currency that Kubernetes would not take either.
    #[error("label or currency {0:?} is too long: shorten it")]
    TooLong(String),
    /// The same grant twice.
    #[error("grant {0} is reported twice")]
    GrantTwice(ReservationId),
}

/// Orders the advertisements of one cluster: a later start of the agent, then a later number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Number {
    /// Grows with each start of the agent.
    pub incarnation: u64,
    /// Grows with each advertisement of one start.
    pub sequence: u64,
}

/// A grant as its provider sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantReport {
    /// The reservation.
    pub id: ReservationId,
    /// The generation of the instruction that the provider carried out.
    pub generation: Generation,
    /// For whom.
    pub requester: ClusterId,
    /// What the provider keeps for it.
    pub amounts: Resources,
    /// What pods inside the grant take of it now; also part of `allocated`.
    pub used: Resources,
    /// How long it still runs, if it ends by itself.
    pub remaining: Option<Span>,
}

/// What an agent can do beyond the Go agents; one that states none is old.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// How it can be joined; empty when it did not say.
    pub backends: Backends,
}

/// What lending costs, in millionths of the currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Per core and hour.
    pub cpu_micros: u64,
    /// Per GB and hour.
    pub memory_micros: u64,
    /// As the operator writes it, for example `EUR`.
    pub currency: String,
}

/// What one cluster says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advertisement {
    /// Who.
    pub cluster: ClusterId,
    /// What it calls itself; decides nothing, and is told back as it came.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which of its advertisements; old agents do not number them.
    pub number: Option<Number>,
    /// What its nodes have.
    pub capacity: Resources,
    /// What of that can be given to pods.
    pub allocatable: Resources,
    /// What pods take, those inside grants included.
    pub allocated: Resources,
    /// The grants it knows, by id; `None` from an agent that does not report them.
    pub grants: Option<Vec<GrantReport>>,
    /// Free labels, matched by the constraints of a request.
    pub labels: BTreeMap<String, String>,
    /// What lending costs, if it says so.
    pub cost: Option<Cost>,
    /// What its agent can do.
    pub capabilities: Capabilities,
    /// False when it takes part but does not lend now.
    pub lending: bool,
}

impl Advertisement {
    /// More live grants than any provider of the field has had by far.
    pub const GRANTS_MAX: usize = 4096;
    /// A longer name is cut: Kubernetes has none that is longer.
    pub const NAME_MAX: usize = 253;
    /// As many labels as a Kubernetes object sensibly carries.
    pub const LABELS_MAX: usize = 64;

    /// An advertisement with only the amounts, as an old agent sends it.
    pub fn plain(cluster: ClusterId, allocatable: Resources, allocated: Resources) -> Self {
        Self {
            cluster,
            name: String::new(),
            number: None,
            capacity: allocatable.clone(),
            allocatable,
            allocated,
            grants: None,
            labels: BTreeMap::new(),
            cost: None,
            capabilities: Capabilities::default(),
            lending: true,
        }
    }

    /// Checks what the types alone cannot say, and brings the grants into order.
    pub fn validated(mut self) -> Result<Self, Error> {
        limit("labels", self.labels.len(), Self::LABELS_MAX)?;
        self.check_texts()?;
        let Some(grants) = self.grants.as_mut() else {
            return Ok(self);
        };
        limit("grants", grants.len(), Self::GRANTS_MAX)?;
        grants.sort_by_key(|grant| grant.id);
        if let Some(pair) = grants.array_windows().find(|[a, b]| a.id == b.id) {
            return Err(Error::GrantTwice(pair[0].id));
        }
        let none = Resources::default();
        let kept =
            grants.iter().try_fold(none.clone(), |sum, grant| sum.checked_add(&grant.amounts))?;
        // The basis of a grant carries sums of these, and must be read back from the log.
        if !kept.is_bounded() {
            return Err(resources::Error::TooMany.into());
        }
        let used = grants.iter().try_fold(none, |sum, grant| sum.checked_add(&grant.used))?;
        match self.allocated.checked_sub(&used) {
            Ok(_) => Ok(self),
            Err(resources::Error::Shortage(kind, _)) => Err(Error::UsedBeyondAllocated(kind)),
            Err(other) => Err(other.into()),
        }
    }

    fn check_texts(&self) -> Result<(), Error> {
        let keys = self.labels.keys().map(|key| (key, Ask::LABEL_MAX));
        let values = self.labels.values().map(|value| (value, Ask::VALUE_MAX));
        let currency = self.cost.iter().map(|cost| (&cost.currency, Ask::VALUE_MAX));
        let long = keys.chain(values).chain(currency).find(|(text, max)| text.len() > *max);
        long.map_or(Ok(()), |(text, _)| Err(Error::TooLong(text.chars().take(64).collect())))
    }

    /// The report about `id`, if there is one.
    pub fn grant(&self, id: ReservationId) -> Option<&GrantReport> {
        let grants = self.grants.as_deref()?;
        let at = grants.binary_search_by_key(&id, |grant| grant.id).ok()?;
        grants.get(at)
    }
}

fn limit(what: &'static str, found: usize, limit: usize) -> Result<(), Error> {
    if found <= limit { Ok(()) } else { Err(Error::TooMany { what, found, limit }) }
}
