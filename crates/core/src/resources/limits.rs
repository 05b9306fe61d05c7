//! Upper bounds on some resources.

use alloc::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Kind, Resources};

/// Upper bounds on some resources; what is not named is not bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limits(pub BTreeMap<Kind, u64>);

impl Limits {
    /// Is `total` within every bound?
    pub fn allow(&self, total: &Resources) -> bool {
        self.0.iter().all(|(kind, limit)| total.get(kind) <= *limit)
    }

    /// What of `room` may be taken while `taken` already is.
    pub fn room(&self, room: &Resources, taken: &Resources) -> Resources {
        self.0.iter().fold(room.clone(), |room, (kind, limit)| {
            let under = limit.saturating_sub(taken.get(kind)).min(room.get(kind));
            // An amount becomes smaller, so the vector stays a valid one.
            room.clone().with(kind.clone(), under).unwrap_or(room)
        })
    }

    /// By how much `total` is above the limits.
    pub fn excess(&self, total: &Resources) -> Resources {
        self.0.iter().fold(Resources::default(), |sum, (kind, limit)| {
            let above = total.get(kind).saturating_sub(*limit);
            // Bounded by `total`, which already is a valid vector.
            sum.clone().with(kind.clone(), above).unwrap_or(sum)
        })
    }
}
