//! What a reservation has room for, and who is in it.

use kube::ResourceExt;
use sublet_core::resources::Resources;

use super::amounts::Extras;
use crate::collect::asked_by;
use crate::collect::seen::Pod;

/// What a reservation has room for.
pub(super) struct Room {
    pub(super) amounts: Resources,
    pods: u64,
}

impl Room {
    /// As its quota has it.
    pub(super) fn of(amounts: &Resources, extras: Extras) -> Self {
        let mut amounts = amounts.clone();
        if amounts.storage == 0 {
            amounts.storage = extras.storage;
        }
        Self { amounts, pods: extras.pods }
    }

    /// For nothing.
    pub(super) fn none() -> Self {
        Self { amounts: Resources::default(), pods: 0 }
    }

    /// With these in it, whether or not there is room for them. Those that have finished take nothing.
    pub(super) fn taken_by(&self, pods: &[Pod]) -> Taken<'_> {
        let mut taken = Taken { room: self, sum: Some(Resources::default()), count: 0 };
        for asked in pods.iter().filter_map(asked_by) {
            taken.sum = taken.sum.and_then(|sum| sum.checked_add(&asked).ok());
            taken.count = taken.count.saturating_add(1);
        }
        taken
    }
}

/// A room, and what is taken of it.
pub(super) struct Taken<'a> {
    room: &'a Room,
    /// None is more than can be said.
    sum: Option<Resources>,
    count: u64,
}

impl Taken<'_> {
    /// Takes one more in, if there is room.
    pub(super) fn takes_in(&mut self, asked: &Resources) -> bool {
        let with = self.sum.as_ref().and_then(|sum| sum.checked_add(asked).ok());
        let with = with.filter(|with| with.fits_in(&self.room.amounts));
        let fits = with.is_some() && self.count < self.room.pods;
        if fits {
            (self.sum, self.count) = (with, self.count.saturating_add(1));
        }
        fits
    }
}

/// Where an object is: its namespace and its name.
pub(super) type Place = (String, String);

pub(super) fn place(object: &impl ResourceExt) -> Place {
    (object.namespace().unwrap_or_default(), object.name_any())
}
