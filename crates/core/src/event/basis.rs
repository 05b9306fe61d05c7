//! On what ground capacity was taken: what its provider had said, and what follows for what is free.

use serde::{Deserialize, Serialize};

use crate::advertisement::Number;
use crate::resources::Resources;
use crate::time::{Span, Time};

/// What was known of the provider when capacity was taken from it.
///
/// Room is `allocatable − allocated − (held − covered) − ghosts`, where `held` is what the ledger
/// held there just before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// Which advertisement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// When the broker received it.
    pub received_at: Time,
    /// From which age on it would not have been believed.
    pub suspect_after: Span,
    /// What it said can be given to pods.
    pub allocatable: Resources,
    /// What it said pods take.
    pub allocated: Resources,
    /// The part of `allocated` that is inside what the ledger holds: counted once.
    #[serde(default, skip_serializing_if = "Resources::is_zero")]
    pub covered: Resources,
    /// What the provider still keeps for grants that the ledger does not hold.
    #[serde(default, skip_serializing_if = "Resources::is_zero")]
    pub ghosts: Resources,
    /// It did not say which grants it keeps: pods inside them are somewhere in `allocated`.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unreported: bool,
}

impl Basis {
    /// What is free on the provider while the ledger holds `held` there.
    pub fn room(&self, held: &Resources) -> Resources {
        self.ground().room(held)
    }

    /// How much the provider has too little for what is taken there.
    pub fn shortage(&self, held: &Resources) -> Resources {
        self.ground().shortage(held)
    }

    fn ground(&self) -> Ground<'_> {
        let Self { allocatable, allocated, covered, ghosts, unreported, .. } = self;
        Ground { allocatable, allocated, covered, ghosts, unreported: *unreported }
    }
}

/// The amounts of a [`Basis`], wherever they are kept.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    pub(crate) allocatable: &'a Resources,
    pub(crate) allocated: &'a Resources,
    pub(crate) covered: &'a Resources,
    pub(crate) ghosts: &'a Resources,
    pub(crate) unreported: bool,
}

impl Ground<'_> {
    /// What is free on the provider while the ledger holds `held` there.
    pub(crate) fn room(&self, held: &Resources) -> Resources {
        let beyond_use = held.minus_floor(self.covered);
        let taken = beyond_use.checked_add(self.ghosts);
        if let Ok(taken) = taken.and_then(|sum| sum.checked_add(self.allocated)) {
            return self.allocatable.minus_floor(&taken);
        }
        // Of something more than 64 bits are taken: none of that is free, whatever of the rest.
        let free = self.allocatable.minus_floor(self.allocated);
        free.minus_floor(self.ghosts).minus_floor(&beyond_use)
    }

    /// How much the provider has too little for what is taken there, of each resource of which the
    /// ledger holds something: nothing, unless it shrank, or its own pods grew, below what is held.
    /// Of a provider that does not report its grants, all pods may be inside them: only the larger of
    /// both is surely taken.
    pub(crate) fn shortage(&self, held: &Resources) -> Resources {
        held.iter().fold(Resources::default(), |short, (kind, amount)| {
            let allocated = self.allocated.get(&kind);
            let taken = if self.unreported {
                u128::from(amount.max(allocated))
            } else {
                u128::from(amount.saturating_sub(self.covered.get(&kind)))
                    .saturating_add(u128::from(self.ghosts.get(&kind)))
                    .saturating_add(u128::from(allocated))
            };
            let above = taken.saturating_sub(u128::from(self.allocatable.get(&kind)));
            match u64::try_from(above).unwrap_or(u64::MAX) {
                0 => short,
                // There are no more kinds than are held.
                above => short.clone().with(kind, above).unwrap_or(short),
            }
        })
    }
}
