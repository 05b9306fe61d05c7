//! Finds the best provider without looking at all of them.
//!
//! Providers of like size and load stand together in leaves of up to sixteen, under a tree of
//! summaries that say what the best below can be at most: the most room, the greatest share free,
//! the lowest price, the first name. `search` opens the most promising part until a provider
//! itself is on top. An update rewrites one leaf and its few ancestors, or two where the load has
//! changed so much that the provider stands elsewhere now.
//!
//! It is an arrangement of [`Row`]s and nothing more: [`Index::best`] answers exactly as
//! [`Index::scan`] does, which looks at every row, whatever the order of updates was. Who may be
//! chosen by *this* requester at *this* time is none of its affair: the caller's `accept` is asked
//! about a provider only when it would win.

mod asked;
mod leaf;
mod names;
mod search;
mod shape;
mod summary;
mod tree;

use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Bound;

use super::{Strategy, score};
use crate::advertisement::Cost;
use crate::id::ClusterId;
use crate::resources::Resources;
use leaf::Slot;
use tree::Tree;

pub(crate) use asked::Asked;
pub(crate) use summary::Summary;

/// What the index knows of one provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What can still be lent.
    pub room: Resources,
    /// What can be given to pods at all: the measure of shares.
    pub allocatable: Resources,
    /// What lending costs.
    pub cost: Option<Cost>,
    /// Nothing but time and the requester forbids to lend.
    pub open: bool,
}

/// Where a provider stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    leaf: u32,
    /// A number that orders as the names do.
    rank: u64,
}

/// The providers, arranged so that the best one is found quickly.
#[derive(Clone, Debug, Default)]
pub struct Index {
    places: BTreeMap<ClusterId, Place>,
    tree: Tree,
}

/// Changing.
impl Index {
    /// Adds a provider, or replaces what is known of it.
    pub fn set(&mut self, cluster: &ClusterId, mut row: Row) {
        if !row.room.fits_in(&row.allocatable) {
            // Shares beyond the whole would win every comparison and mean nothing.
            row.room = row.room.min(&row.allocatable);
        }
        let rank = if let Some(place) = self.places.get(cluster).copied() {
            match self.tree.replace(place.leaf, place.rank, row) {
                None => return,
                // Of another size or load now, it stands elsewhere.
                Some(back) => row = back,
            }
            self.take_out(place);
            place.rank
        } else {
            let rank = self.rank_of(cluster);
            self.places.insert(cluster.clone(), Place { leaf: 0, rank });
            rank
        };
        let slot = Slot { cluster: cluster.clone(), row };
        self.tree.insert(rank, slot, &mut move_in(&mut self.places));
    }

    /// Removes a provider.
    pub fn remove(&mut self, cluster: &ClusterId) {
        if let Some(place) = self.places.remove(cluster) {
            self.take_out(place);
        }
    }

    fn take_out(&mut self, place: Place) {
        self.tree.remove(place.leaf, place.rank, &mut move_in(&mut self.places));
    }
}

/// Notes where providers come to stand.
fn move_in(places: &mut BTreeMap<ClusterId, Place>) -> impl FnMut(&ClusterId, u32) {
    |cluster, leaf| {
        if let Some(place) = places.get_mut(cluster) {
            place.leaf = leaf;
        }
    }
}

/// Reading.
impl Index {
    /// What is known of one provider.
    pub fn row(&self, cluster: &ClusterId) -> Option<&Row> {
        self.row_at(self.places.get(cluster)?)
    }

    /// How many providers there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The providers after `after`, by name.
    pub fn rows(&self, after: Option<&ClusterId>) -> impl Iterator<Item = (&ClusterId, &Row)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range: btree_map::Range<'_, _, _> =
            self.places.range::<ClusterId, _>((from, Bound::Unbounded));
        range.filter_map(|(cluster, place)| Some((cluster, self.row_at(place)?)))
    }

    fn row_at(&self, place: &Place) -> Option<&Row> {
        Some(&self.tree.slot(place.leaf, place.rank)?.row)
    }

    /// The best open provider with room for `resources` that `accept` lets pass; ties go to the
    /// smaller name.
    pub fn best(
        &self,
        resources: &Resources,
        strategy: Strategy,
        accept: impl FnMut(&ClusterId) -> bool,
    ) -> Option<ClusterId> {
        self.best_of(1, resources, strategy, accept).pop()
    }

    /// The same, and those that come next: the `count` best, best first.
    pub fn best_of(
        &self,
        count: usize,
        resources: &Resources,
        strategy: Strategy,
        mut accept: impl FnMut(&ClusterId) -> bool,
    ) -> Vec<ClusterId> {
        if resources.is_zero() {
            // Nobody asks for nothing; and if, closed and full rows cannot be told from others.
            return self.scan(resources, strategy, accept).into_iter().collect();
        }
        search::Search::new(self, resources, strategy, &mut accept).run(count)
    }

    /// The answer of [`Index::best`], found by looking at every row: what it is measured by, in
    /// tests and benches.
    pub fn scan(
        &self,
        resources: &Resources,
        strategy: Strategy,
        mut accept: impl FnMut(&ClusterId) -> bool,
    ) -> Option<ClusterId> {
        let mut best = None;
        for slot in self.tree.slots() {
            if slot.row.open && resources.fits_in(&slot.row.room) {
                let score = score::score(strategy, resources, &slot.row);
                let this = Some((score, Reverse(&slot.cluster)));
                if this > best && accept(&slot.cluster) {
                    best = this;
                }
            }
        }
        best.map(|(_, Reverse(cluster))| cluster.clone())
    }
}

/// Element `number` of a list that is counted in 32 bits.
fn at<T>(list: &[T], number: u32) -> Option<&T> {
    list.get(usize::try_from(number).ok()?)
}

/// The same, to be changed.
fn at_mut<T>(list: &mut [T], number: u32) -> Option<&mut T> {
    list.get_mut(usize::try_from(number).ok()?)
}
