//! What explanations ask of the index: who has room at all, who is nearest to it, who stands where.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::asked::Asked;
use super::{Index, Note, Row};
use crate::decision::score::share;
use crate::id::ClusterId;
use crate::resources::Resources;

/// How much of a request must change to fit: the largest part of an amount that is missing, then
/// the sum of the parts.
type Distance = (u64, u64);

/// Leaves that are opened in search of the nearest. Beyond, those that were found have to do.
const LEAVES_MAX: usize = 64;

/// What stands on the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Node(u32),
    Leaf(u32),
    Provider(u32),
}

impl Index {
    /// All notes, with the numbers that [`Index::numbered`] knows.
    pub(crate) fn notes(&self) -> impl Iterator<Item = (u32, &Note)> {
        (0..).zip(&self.notes).filter_map(|(number, note)| Some((number, note.as_ref()?)))
    }

    /// The provider with this number.
    pub(crate) fn numbered(&self, number: u32) -> Option<&ClusterId> {
        self.slots.get(number).map(|slot| &slot.cluster)
    }

    /// The number of a provider.
    pub(crate) fn number(&self, cluster: &ClusterId) -> Option<u32> {
        self.numbers.get(cluster).copied()
    }

    /// Calls `visit` for the open providers with room for `resources`, in no order that means
    /// anything, while it answers yes.
    pub(crate) fn each_with_room<'a>(
        &'a self,
        resources: &Resources,
        visit: &mut dyn FnMut(&'a ClusterId) -> bool,
    ) {
        let asked = Asked::new(resources);
        if let Some(root) = self.by_load.root {
            self.each_under(root, &asked, visit);
        }
    }

    fn each_under<'a>(
        &'a self,
        number: u32,
        asked: &Asked<'_>,
        visit: &mut dyn FnMut(&'a ClusterId) -> bool,
    ) -> bool {
        let Some(node) = self.by_load.nodes.get(number) else { return true };
        let mut hopeful = node.children.iter().filter(|child| asked.may_be_met(&child.summary));
        hopeful.all(|child| {
            if !node.above_leaves {
                return self.each_under(child.number, asked, visit);
            }
            let Some(leaf) = self.by_load.leaves.get(child.number) else { return true };
            let fitting = leaf.fitting(&asked.amounts);
            let places = (0..leaf.len()).filter(|at| fitting.wrapping_shr(shift(*at)) & 1 == 1);
            let slots = places.filter_map(|at| self.slots.get(leaf.number(at)?));
            let fits = |row: &Row| row.is_open() && asked.resources.fits_in(&row.room);
            let mut fitting = slots.filter(|slot| fits(&slot.row));
            fitting.all(|slot| visit(&slot.cluster))
        })
    }

    /// The same as [`Index::each_near`], of some alone.
    pub(crate) fn each_near_among<'a>(
        &self,
        some: &[&'a ClusterId],
        resources: &Resources,
        visit: &mut dyn FnMut(&'a ClusterId) -> bool,
    ) {
        let distance = |cluster: &&'a ClusterId| {
            let row = self.row(cluster)?;
            let near = row.is_open() && !resources.fits_in(&row.room);
            near.then(|| (exact_distance(resources, row), *cluster))
        };
        let mut near: Vec<_> = some.iter().filter_map(distance).collect();
        near.sort_unstable();
        // The rest is not near enough to be asked for.
        let _all = near.into_iter().all(|(_, cluster)| visit(cluster));
    }

    /// Calls `visit` for open providers without room for `resources`, nearest first and on a tie
    /// by name, while it answers yes.
    pub(crate) fn each_near<'a>(
        &'a self,
        resources: &Resources,
        visit: &mut dyn FnMut(&'a ClusterId) -> bool,
    ) {
        let asked = Asked::new(resources);
        let (mut heap, mut leaves) = (BinaryHeap::new(), LEAVES_MAX);
        let nearest = (Reverse(((0, 0), 0)), Item::Node(self.by_load.root.unwrap_or(u32::MAX)));
        heap.push(nearest);
        while let Some((_, item)) = heap.pop() {
            match item {
                Item::Provider(number) => {
                    if self.numbered(number).is_some_and(|cluster| !visit(cluster)) {
                        return;
                    }
                }
                _ if leaves == 0 => {}
                Item::Node(number) => {
                    let Some(node) = self.by_load.nodes.get(number) else { continue };
                    heap.extend(node.children.iter().map(|child| {
                        let (number, summary) = (child.number, &child.summary);
                        // Those without any room are not summarised: there may be one of any name.
                        let first = if summary.is_empty() { 0 } else { summary.first };
                        let leaf = node.above_leaves;
                        let item = if leaf { Item::Leaf(number) } else { Item::Node(number) };
                        (Reverse((distance(&asked.amounts, &summary.room), first)), item)
                    }));
                }
                Item::Leaf(number) => {
                    leaves = leaves.saturating_sub(1);
                    let Some(leaf) = self.by_load.leaves.get(number) else { continue };
                    heap.extend((0..leaf.len()).filter_map(|at| {
                        let number = leaf.number(at)?;
                        let row = &self.slots.get(number)?.row;
                        let near = row.is_open() && !resources.fits_in(&row.room);
                        let merit = || Reverse((exact_distance(resources, row), leaf.rank(at)));
                        near.then(|| (merit(), Item::Provider(number)))
                    }));
                }
            }
        }
    }
}

fn shift(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(0)
}

/// How far amounts in columns are from fitting into `room`.
fn distance(amounts: &[u64; 4], room: &[u64; 4]) -> Distance {
    let parts = amounts.iter().zip(room).map(|(amount, room)| part(*amount, *room));
    parts.fold((0, 0), farther)
}

fn exact_distance(resources: &Resources, row: &Row) -> Distance {
    let parts = resources.iter().map(|(kind, amount)| part(amount, row.room.get(&kind)));
    parts.fold((0, 0), farther)
}

fn part(amount: u64, room: u64) -> u64 {
    share(amount.saturating_sub(room), amount)
}

fn farther((most, sum): Distance, part: u64) -> Distance {
    (most.max(part), sum.saturating_add(part))
}
