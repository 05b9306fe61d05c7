//! Finds the best provider without looking at all of them.
//!
//! Like providers stand together in leaves of up to sixteen, under a tree of summaries that say what
//! the best below can be at most: the most room, the greatest and the least share free, the lowest
//! price, the first name. `search` opens the most promising part until a provider itself is on top.
//!
//! There are two such trees over the same slots. In the one by load, like means of one size and
//! about as full: a node has one size almost everywhere, and what is left there after a request is
//! known to a few hundredths, which serves headroom and bin packing. In the one by price, like means
//! about as dear: the cheapest stand in one place, however full they are. An update rewrites one leaf
//! of each and its few ancestors, or two where the load has changed so much that the provider
//! stands elsewhere now.
//!
//! It is an arrangement of [`Row`]s and nothing more: [`Index::best`] answers exactly as
//! [`Index::scan`] does, which looks at every row, whatever the order of updates was. Who may be
//! chosen by *this* requester at *this* time is none of its affair: the caller's `accept` is asked
//! about a provider only when it would win.

mod asked;
mod explore;
mod leaf;
mod names;
mod order;
mod search;
mod shape;
mod slab;
mod summary;
mod tree;

use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Bound;

use super::Strategy;
use super::filter::Filter;
use super::score::{self, Binpack, Cheapest, Headroom, Ranking, Tag};
use crate::advertisement::Backends;
use crate::advertisement::Cost;
use crate::id::ClusterId;
use crate::resources::Resources;
use crate::time::Time;
use leaf::Figures;
use search::Search;
use slab::Slab;
use tree::Tree;

pub(crate) use asked::Asked;
pub(crate) use order::By;
pub(crate) use summary::{Bounds, Summary};

/// What the index knows of one provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// What can still be lent.
    pub room: Resources,
    /// What can be given to pods at all: the measure of shares.
    pub allocatable: Resources,
    /// What lending costs.
    pub cost: Option<Cost>,
    /// What is known of it beside its room.
    pub note: Note,
}

impl Row {
    /// Does nothing but time and the requester forbid to lend?
    pub fn is_open(&self) -> bool {
        self.note.closed.is_none()
    }
}

/// What is known of a provider beside its room, in so few bytes that all of them can be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The first reason that stands against it whoever asks, if any does.
    pub closed: Option<Filter>,
    /// How it can be joined.
    pub backends: Backends,
    /// When it was last heard.
    pub received_at: Time,
}

/// One provider, and where it stands.
#[derive(Clone, Debug)]
struct Slot {
    cluster: ClusterId,
    row: Row,
    /// What it costs, as it is compared.
    tag: Tag,
    /// A number that orders as the names do.
    rank: u64,
    /// Its leaf in the tree by load, and in the one by price.
    leaves: (u32, u32),
}

impl Slot {
    fn leaf(&self, by: By) -> u32 {
        match by {
            By::Load => self.leaves.0,
            By::Price => self.leaves.1,
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds::of(&self.row, self.tag)
    }

    fn move_to(&mut self, by: By, leaf: u32) {
        match by {
            By::Load => self.leaves.0 = leaf,
            By::Price => self.leaves.1 = leaf,
        }
    }
}

/// The providers, arranged so that the best one is found quickly.
#[derive(Clone, Debug)]
pub struct Index {
    numbers: BTreeMap<ClusterId, u32>,
    slots: Slab<Slot>,
    /// The notes of the slots, by themselves: they are counted without touching anything else.
    notes: Vec<Option<Note>>,
    by_load: Tree,
    by_price: Tree,
}

impl Default for Index {
    fn default() -> Self {
        let (by_load, by_price) = (Tree::new(By::Load), Tree::new(By::Price));
        let (slots, notes) = (Slab::default(), Vec::new());
        Self { numbers: BTreeMap::new(), slots, notes, by_load, by_price }
    }
}

/// Changing.
impl Index {
    /// Adds a provider, or replaces what is known of it.
    pub fn set(&mut self, cluster: &ClusterId, mut row: Row) {
        if !row.room.fits_in(&row.allocatable) {
            // Shares beyond the whole would win every comparison and mean nothing.
            row.room = row.room.min(&row.allocatable);
        }
        match self.numbers.get(cluster).copied() {
            Some(number) => self.replace(number, row),
            None => self.insert(cluster, row),
        }
    }

    fn insert(&mut self, cluster: &ClusterId, row: Row) {
        let (figures, tag, rank) =
            (Figures::of(&row), Tag::of(row.cost.as_ref()), self.rank_of(cluster));
        let note = row.note;
        let number =
            self.slots.add(Slot { cluster: cluster.clone(), row, tag, rank, leaves: (0, 0) });
        self.numbers.insert(cluster.clone(), number);
        self.take_note(number, Some(note));
        for tree in [&mut self.by_load, &mut self.by_price] {
            tree.insert(&mut self.slots, number, &figures);
        }
    }

    fn replace(&mut self, number: u32, row: Row) {
        let Some(slot) = self.slots.get_mut(number) else { return };
        let old = self.by_load.figures(number, slot).unwrap_or_default();
        let before = (self.by_load.order(slot, &old), self.by_price.order(slot, &old));
        let (figures, bounds) = (Figures::of(&row), slot.bounds());
        if row.cost != slot.row.cost {
            slot.tag = Tag::of(row.cost.as_ref());
        }
        let noted = core::mem::replace(&mut slot.row, row).note;
        let note = slot.row.note;
        let stirred = slot.bounds() != bounds || figures.lends != old.lends;
        self.by_load.update(&mut self.slots, number, (before.0, stirred), &figures);
        self.by_price.update(&mut self.slots, number, (before.1, stirred), &figures);
        if note != noted {
            self.take_note(number, Some(note));
        }
    }

    /// Removes a provider.
    pub fn remove(&mut self, cluster: &ClusterId) {
        let Some(number) = self.numbers.remove(cluster) else { return };
        for tree in [&mut self.by_load, &mut self.by_price] {
            tree.remove(&mut self.slots, number);
        }
        self.slots.take(number);
        self.take_note(number, None);
    }

    fn take_note(&mut self, number: u32, note: Option<Note>) {
        let Ok(at) = usize::try_from(number) else { return };
        if at >= self.notes.len() {
            self.notes.resize(at.saturating_add(1), None);
        }
        if let Some(place) = self.notes.get_mut(at) {
            *place = note;
        }
    }
}

/// Reading.
impl Index {
    /// What is known of one provider.
    pub fn row(&self, cluster: &ClusterId) -> Option<&Row> {
        self.slots.get(*self.numbers.get(cluster)?).map(|slot| &slot.row)
    }

    /// How many providers there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The providers after `after`, by name.
    pub fn rows(&self, after: Option<&ClusterId>) -> impl Iterator<Item = (&ClusterId, &Row)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range: btree_map::Range<'_, _, _> =
            self.numbers.range::<ClusterId, _>((from, Bound::Unbounded));
        range.filter_map(|(cluster, number)| Some((cluster, &self.slots.get(*number)?.row)))
    }

    fn tree(&self, by: By) -> &Tree {
        match by {
            By::Load => &self.by_load,
            By::Price => &self.by_price,
        }
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
        accept: impl FnMut(&ClusterId) -> bool,
    ) -> Vec<ClusterId> {
        self.search(count, resources, strategy, accept).0
    }

    /// The same, and how many leaves were looked into beside the providers that `accept` was asked
    /// about.
    pub(crate) fn search(
        &self,
        count: usize,
        resources: &Resources,
        strategy: Strategy,
        mut accept: impl FnMut(&ClusterId) -> bool,
    ) -> (Vec<ClusterId>, u64) {
        if resources.is_zero() {
            // Nobody asks for nothing; and if, closed and full rows cannot be told from others.
            return (self.scan(resources, strategy, accept).into_iter().collect(), 0);
        }
        match strategy {
            Strategy::Headroom => Search::<Headroom>::new(self, resources, &mut accept).run(count),
            Strategy::Binpack => Search::<Binpack>::new(self, resources, &mut accept).run(count),
            Strategy::Cost => Search::<Cheapest>::new(self, resources, &mut accept).run(count),
        }
    }

    /// The answer of [`Index::best`], found by looking at every row: what it is measured by, in
    /// tests and benches.
    pub fn scan(
        &self,
        resources: &Resources,
        strategy: Strategy,
        accept: impl FnMut(&ClusterId) -> bool,
    ) -> Option<ClusterId> {
        scan(self.slots.iter(), resources, strategy, accept)
    }

    /// The same among some providers only.
    pub(crate) fn best_among(
        &self,
        some: &[&ClusterId],
        resources: &Resources,
        strategy: Strategy,
        accept: impl FnMut(&ClusterId) -> bool,
    ) -> Option<ClusterId> {
        let slots = some.iter().filter_map(|cluster| self.slots.get(*self.numbers.get(*cluster)?));
        scan(slots, resources, strategy, accept)
    }
}

fn scan<'a>(
    slots: impl Iterator<Item = &'a Slot>,
    resources: &Resources,
    strategy: Strategy,
    accept: impl FnMut(&ClusterId) -> bool,
) -> Option<ClusterId> {
    match strategy {
        Strategy::Headroom => scan_by::<Headroom>(slots, resources, accept),
        Strategy::Binpack => scan_by::<Binpack>(slots, resources, accept),
        Strategy::Cost => scan_by::<Cheapest>(slots, resources, accept),
    }
}

fn scan_by<'a, R: Ranking>(
    slots: impl Iterator<Item = &'a Slot>,
    resources: &Resources,
    mut accept: impl FnMut(&ClusterId) -> bool,
) -> Option<ClusterId> {
    let mut best = None;
    for Slot { cluster, row, tag, .. } in slots {
        if row.is_open() && resources.fits_in(&row.room) {
            let score = R::score(score::headroom(resources, row), resources, || *tag);
            let this = Some((score, Reverse(cluster)));
            if this > best && accept(cluster) {
                best = this;
            }
        }
    }
    best.map(|(_, Reverse(cluster))| cluster.clone())
}
