//! Finds the best provider without looking at all of them.
//!
//! Providers of one size stand together in blocks of sixteen, and a tree of summaries over the
//! blocks says of each subtree what the best of it can be at most: the most room, the greatest
//! share free, the cheapest price, the first name. [`search`] opens the most promising subtree
//! until a provider itself is on top. An update rewrites one block and its few ancestors.
//!
//! It is an arrangement of [`Row`]s and nothing more: [`Index::best`] answers exactly as
//! [`Index::scan`] does, which looks at every row, whatever the order of updates was. Who may be
//! chosen by *this* requester at *this* time is none of its affair: the caller's `accept` is asked
//! about a provider only when it would win.

mod asked;
mod class;
mod names;
mod search;
mod tree;

use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Bound;

use super::{Strategy, score};
use crate::advertisement::Cost;
use crate::id::ClusterId;
use crate::resources::Resources;
use class::{Class, Size, Slot};
use tree::Tree;

pub(crate) use asked::Asked;
pub(crate) use tree::Summary;

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
    class: u32,
    slot: u32,
    /// A number that orders as the names do.
    rank: u64,
}

/// The providers, arranged so that the best one is found quickly.
#[derive(Clone, Debug, Default)]
pub struct Index {
    places: BTreeMap<ClusterId, Place>,
    sizes: BTreeMap<Size, u32>,
    classes: Vec<Class>,
    /// Classes that nobody is in, to be used again.
    vacant: Vec<u32>,
    /// Over the roots of the classes.
    top: Tree,
}

/// Changing.
impl Index {
    /// Sizes that get a class of their own before near ones have to share. Most fleets have a dozen
    /// kinds of clusters; a class costs a few kilobytes.
    const EXACT_SIZES_MAX: usize = 64;

    /// Adds a provider, or replaces what is known of it.
    pub fn set(&mut self, cluster: &ClusterId, mut row: Row) {
        if !row.room.fits_in(&row.allocatable) {
            // Shares beyond the whole would win every comparison and mean nothing.
            row.room = row.room.min(&row.allocatable);
        }
        let rank = match self.places.get(cluster).copied() {
            Some(place) if self.class_of(&row) == Some(place.class) => {
                if let Some(class) = at_mut(&mut self.classes, place.class) {
                    class.replace(place.slot, row);
                }
                return self.retop(place.class);
            }
            Some(place) => {
                self.take_out(place);
                place.rank
            }
            None => self.rank_of(cluster),
        };
        let number = self.class_for(&row);
        let Some(class) = at_mut(&mut self.classes, number) else { return };
        let slot = class.push(Slot { cluster: cluster.clone(), row }, rank);
        self.places.insert(cluster.clone(), Place { class: number, slot, rank });
        self.retop(number);
    }

    /// Removes a provider.
    pub fn remove(&mut self, cluster: &ClusterId) {
        if let Some(place) = self.places.remove(cluster) {
            self.take_out(place);
        }
    }

    /// Empties a slot; the last of the class moves there.
    fn take_out(&mut self, place: Place) {
        let Some(class) = at_mut(&mut self.classes, place.class) else { return };
        if let Some(moved) = class.swap_remove(place.slot)
            && let Some(of_moved) = self.places.get_mut(moved)
        {
            of_moved.slot = place.slot;
        }
        if class.is_empty() {
            *class = Class::default();
            self.sizes.retain(|_, number| *number != place.class);
            self.vacant.push(place.class);
        }
        self.retop(place.class);
    }

    /// The class that a row belongs to as things stand.
    fn class_of(&self, row: &Row) -> Option<u32> {
        let exact = self.sizes.get(&Size::exact(row));
        exact.or_else(|| self.sizes.get(&Size::about(row))).copied()
    }

    /// The class that a row belongs to; a new one, if need be.
    fn class_for(&mut self, row: &Row) -> u32 {
        if let Some(number) = self.class_of(row) {
            return number;
        }
        let exact = self.sizes.len() < Self::EXACT_SIZES_MAX;
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.classes.push(Class::default());
            // Slots and classes are counted in 32 bits; memory ends long before they do.
            u32::try_from(self.classes.len()).unwrap_or(u32::MAX).saturating_sub(1)
        });
        self.sizes.insert(if exact { Size::exact(row) } else { Size::about(row) }, number);
        number
    }

    fn retop(&mut self, number: u32) {
        if let Some(class) = at(&self.classes, number) {
            self.top.set(number, class.summary());
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
        Some(&at(&self.classes, place.class)?.slot(place.slot)?.row)
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
        for slot in self.classes.iter().flat_map(Class::slots) {
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
