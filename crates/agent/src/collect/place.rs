//! What is on one node: what it has, and what the pods bound to it take.
//!
//! The sums of a node's pods are kept with the node, so that a node that is cordoned, or comes back,
//! costs one addition however many pods it has. Pods may be seen before their node is, and after.

use std::collections::HashMap;

use super::guest::Guest;
use super::node::{NodeFacts, Standing};
use super::pod::PodFacts;
use super::tally::Tally;

/// One node, as far as it is known.
#[derive(Default)]
pub(super) struct Place {
    /// The node itself, once it was seen.
    pub(super) facts: Option<NodeFacts>,
    /// The list in which it was last seen.
    pub(super) seen_in: u64,
    /// What its pods take, guests included.
    pub(super) taken: Tally,
    /// What of that is taken by guests.
    pub(super) by_guests: HashMap<Guest, Tally>,
    /// How many pods.
    pub(super) pods: usize,
}

impl Place {
    /// Is it to be counted?
    pub(super) fn counts(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.standing == Standing::Counted)
    }

    /// Is there nothing to remember of it?
    pub(super) fn is_empty(&self) -> bool {
        self.facts.is_none() && self.pods == 0
    }

    /// A pod was bound to it.
    pub(super) fn add(&mut self, pod: &PodFacts) {
        self.pods += 1;
        self.taken.add(&pod.request);
        if let Some(guest) = &pod.guest {
            self.by_guests.entry(guest.clone()).or_default().add(&pod.request);
        }
    }

    /// A pod that was bound to it is gone.
    pub(super) fn take(&mut self, pod: &PodFacts) {
        self.pods = self.pods.saturating_sub(1);
        self.taken.take(&pod.request);
        if let Some(guest) = &pod.guest {
            lower(&mut self.by_guests, guest, |sum| sum.take(&pod.request));
        }
    }
}

/// Lowers what one guest takes, and forgets a guest that takes nothing.
pub(super) fn lower(
    by_guests: &mut HashMap<Guest, Tally>,
    guest: &Guest,
    lower: impl FnOnce(&mut Tally),
) {
    if let Some(tally) = by_guests.get_mut(guest) {
        lower(tally);
        if tally.is_zero() {
            by_guests.remove(guest);
        }
    }
}
