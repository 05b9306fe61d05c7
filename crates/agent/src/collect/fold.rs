//! The sums over all nodes and pods, kept event by event.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sublet_core::resources::{Kind, Resources};
use sublet_crds::Invalid;

use super::grant::Grant;
use super::guest::Guest;
use super::node::{NodeFacts, Standing};
use super::place::{Place, lower};
use super::pod::PodFacts;
use super::tally::Tally;

/// Folds nodes, pods and grants into what the cluster has and what is taken.
///
/// Each of the three comes from a watch: `apply` and `delete` as they are told, and a fresh list
/// between `begin` and `finish`, at the end of which whatever was not in it is gone. Until then the
/// old state stays, so that a watch that is set up again disturbs nobody.
#[derive(Default)]
pub struct Fold {
    places: HashMap<Arc<str>, Place>,
    pods: HashMap<Box<str>, PodEntry>,
    grants: BTreeMap<Box<str>, (u64, Result<Grant, Invalid>)>,
    lists: Lists,
    sums: Sums,
    /// How many amounts of nodes and pods could not be read.
    unread: usize,
}

/// How many lists of each were begun, and whether the first one was finished.
#[derive(Default)]
struct Lists {
    nodes: List,
    pods: List,
    grants: List,
}

#[derive(Default)]
struct List {
    number: u64,
    complete: bool,
}

impl List {
    fn begin(&mut self) {
        self.number += 1;
    }

    fn finish(&mut self) -> u64 {
        self.complete = true;
        self.number
    }
}

struct PodEntry {
    facts: PodFacts,
    seen_in: u64,
}

/// Over the nodes that count.
#[derive(Default)]
struct Sums {
    capacity: Tally,
    allocatable: Tally,
    allocated: Tally,
    by_guests: HashMap<Guest, Tally>,
    pods: usize,
}

/// What the cluster has, and what is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// What the counted nodes have.
    pub capacity: Resources,
    /// What of that is for pods.
    pub allocatable: Resources,
    /// What pods on them take, those of other clusters included.
    pub allocated: Resources,
    /// The grants that could be read, in the order of their names, and what the pods inside take.
    pub grants: Vec<(Grant, Resources)>,
    /// The nodes, by whether they count.
    pub nodes: NodeCounts,
    /// How many pods run on counted nodes.
    pub pods: usize,
    /// How many amounts could not be read.
    pub problems: usize,
    /// How many kinds of resources there are beyond those that can be told.
    pub left_out: usize,
}

/// How many nodes there are of each standing.
pub type NodeCounts = BTreeMap<Standing, usize>;

/// What a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject<'a> {
    /// A node, by name.
    Node(&'a str),
    /// A pod, by namespace and name.
    Pod(&'a str),
    /// An instruction, by reservation.
    Grant(&'a str),
}

/// Nodes.
impl Fold {
    /// A fresh list of nodes follows.
    pub fn begin_nodes(&mut self) {
        self.lists.nodes.begin();
    }

    /// A node is there, or has changed.
    pub fn apply_node(&mut self, name: &str, facts: NodeFacts) {
        let seen_in = self.lists.nodes.number;
        let name = self.interned(name);
        let place = self.places.entry(name).or_default();
        place.seen_in = seen_in;
        if place.facts.as_ref() != Some(&facts) {
            self.sums.take(place);
            self.unread += facts.problems.len();
            let old = place.facts.replace(facts);
            self.unread -= old.map_or(0, |old| old.problems.len());
            self.sums.add(place);
        }
    }

    /// A node is gone.
    pub fn delete_node(&mut self, name: &str) {
        let Some(place) = self.places.get_mut(name) else { return };
        self.sums.take(place);
        self.unread -= place.facts.take().map_or(0, |facts| facts.problems.len());
        if place.is_empty() {
            self.places.remove(name);
        }
    }

    /// The list was whole: every node that was not in it is gone.
    pub fn finish_nodes(&mut self) {
        let list = self.lists.nodes.finish();
        let is_old = |place: &Place| place.facts.is_some() && place.seen_in != list;
        let old = self.places.iter().filter(|(_, place)| is_old(place));
        for name in old.map(|(name, _)| Arc::clone(name)).collect::<Vec<_>>() {
            self.delete_node(&name);
        }
    }

    /// The one copy of a node's name, if there is one.
    fn interned(&self, name: &str) -> Arc<str> {
        self.places.get_key_value(name).map_or_else(|| name.into(), |(known, _)| Arc::clone(known))
    }
}

/// Pods.
impl Fold {
    /// A fresh list of pods follows.
    pub fn begin_pods(&mut self) {
        self.lists.pods.begin();
    }

    /// A pod, by namespace and name, is there or has changed; `None` if it takes nothing.
    pub fn apply_pod(&mut self, name: &str, facts: Option<PodFacts>) {
        let seen_in = self.lists.pods.number;
        let Some(mut facts) = facts else { return self.delete_pod(name) };
        if let Some(known) = self.pods.get_mut(name).filter(|known| known.facts == facts) {
            known.seen_in = seen_in;
            return;
        }
        self.delete_pod(name);
        facts.node = self.interned(&facts.node);
        let place = self.places.entry(Arc::clone(&facts.node)).or_default();
        place.add(&facts);
        if place.counts() {
            self.sums.add_pod(&facts);
        }
        self.unread += facts.problems.len();
        self.pods.insert(name.into(), PodEntry { facts, seen_in });
    }

    /// A pod is gone.
    pub fn delete_pod(&mut self, name: &str) {
        let Some(PodEntry { facts, .. }) = self.pods.remove(name) else { return };
        self.unread -= facts.problems.len();
        let Some(place) = self.places.get_mut(&facts.node) else { return };
        place.take(&facts);
        if place.counts() {
            self.sums.take_pod(&facts);
        }
        if place.is_empty() {
            self.places.remove(&facts.node);
        }
    }

    /// The list was whole: every pod that was not in it is gone.
    pub fn finish_pods(&mut self) {
        let list = self.lists.pods.finish();
        let old = self.pods.iter().filter(|(_, entry)| entry.seen_in != list);
        for name in old.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.delete_pod(&name);
        }
    }
}

/// Grants.
impl Fold {
    /// A fresh list of grants follows.
    pub fn begin_grants(&mut self) {
        self.lists.grants.begin();
    }

    /// A grant, by the name of its instruction, is there or has changed; or cannot be read.
    pub fn apply_grant(&mut self, name: &str, grant: Result<Grant, Invalid>) {
        self.grants.insert(name.into(), (self.lists.grants.number, grant));
    }

    /// A grant is gone.
    pub fn delete_grant(&mut self, name: &str) {
        self.grants.remove(name);
    }

    /// The list was whole: every grant that was not in it is gone.
    pub fn finish_grants(&mut self) {
        let list = self.lists.grants.finish();
        self.grants.retain(|_, (seen_in, _)| *seen_in == list);
    }
}

/// What comes out.
impl Fold {
    /// Was everything listed once? Before that, the sums are not true yet.
    pub fn is_complete(&self) -> bool {
        let Lists { nodes, pods, grants } = &self.lists;
        nodes.complete && pods.complete && grants.complete
    }

    /// What the cluster has and what is taken. Costs as much as there are nodes and grants.
    pub fn measured(&self) -> Measured {
        let kinds: BTreeSet<&Kind> = self.sums.capacity.kinds().collect();
        let extended = kinds.iter().filter(|kind| matches!(kind, Kind::Extended(_)));
        let left_out: BTreeSet<&Kind> = extended.skip(Resources::EXTENDED_MAX).copied().collect();
        // What no node has cannot be lent; pods may still ask for it, after its nodes have gone.
        let told = |kind: &Kind| kinds.contains(kind) && !left_out.contains(kind);
        let grants = self.grants.values().filter_map(|(_, grant)| grant.as_ref().ok());
        Measured {
            capacity: self.sums.capacity.resources(told),
            allocatable: self.sums.allocatable.resources(told),
            allocated: self.sums.allocated.resources(told),
            grants: grants.map(|grant| (grant.clone(), self.used(grant).resources(told))).collect(),
            nodes: self.node_counts(),
            pods: self.sums.pods,
            problems: self.unread + self.grants.values().filter(|(_, one)| one.is_err()).count(),
            left_out: left_out.len(),
        }
    }

    /// What could not be read, and where. Costs as much as there are objects.
    pub fn problems(&self) -> impl Iterator<Item = (Subject<'_>, &Invalid)> {
        let nodes = self.places.iter().flat_map(|(name, place)| {
            let problems = place.facts.iter().flat_map(|facts| &facts.problems);
            problems.map(move |problem| (Subject::Node(name), problem))
        });
        let pods = self.pods.iter().flat_map(|(name, entry)| {
            entry.facts.problems.iter().map(move |problem| (Subject::Pod(name), problem))
        });
        let grants = self
            .grants
            .iter()
            .filter_map(|(name, (_, grant))| Some((Subject::Grant(name), grant.as_ref().err()?)));
        nodes.chain(pods).chain(grants)
    }

    /// Is nothing there, and nothing remembered?
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let Sums { capacity, allocatable, allocated, by_guests, pods } = &self.sums;
        let sums = [capacity, allocatable, allocated];
        self.places.is_empty()
            && self.pods.is_empty()
            && self.grants.is_empty()
            && sums.iter().all(|sum| sum.is_zero())
            && by_guests.is_empty()
            && *pods == 0
    }

    /// What the pods inside of a grant take.
    fn used(&self, grant: &Grant) -> Tally {
        grant.guests().iter().fold(Tally::default(), |mut sum, guest| {
            if let Some(tally) = self.sums.by_guests.get(guest) {
                sum.add_all(tally);
            }
            sum
        })
    }

    fn node_counts(&self) -> NodeCounts {
        let mut counts: NodeCounts = Standing::ALL.into_iter().map(|one| (one, 0)).collect();
        for facts in self.places.values().filter_map(|place| place.facts.as_ref()) {
            *counts.entry(facts.standing).or_default() += 1;
        }
        counts
    }
}

impl Sums {
    /// Counts a node with its pods, if it is to be counted.
    fn add(&mut self, place: &Place) {
        let Some(facts) = place.facts.as_ref().filter(|_| place.counts()) else { return };
        self.capacity.add(&facts.capacity);
        self.allocatable.add(&facts.allocatable);
        self.allocated.add_all(&place.taken);
        self.pods += place.pods;
        for (guest, tally) in &place.by_guests {
            self.by_guests.entry(guest.clone()).or_default().add_all(tally);
        }
    }

    /// The opposite.
    fn take(&mut self, place: &Place) {
        let Some(facts) = place.facts.as_ref().filter(|_| place.counts()) else { return };
        self.capacity.take(&facts.capacity);
        self.allocatable.take(&facts.allocatable);
        self.allocated.take_all(&place.taken);
        self.pods = self.pods.saturating_sub(place.pods);
        for (guest, tally) in &place.by_guests {
            lower(&mut self.by_guests, guest, |sum| sum.take_all(tally));
        }
    }

    fn add_pod(&mut self, facts: &PodFacts) {
        self.pods += 1;
        self.allocated.add(&facts.request);
        if let Some(guest) = &facts.guest {
            self.by_guests.entry(guest.clone()).or_default().add(&facts.request);
        }
    }

    fn take_pod(&mut self, facts: &PodFacts) {
        self.pods = self.pods.saturating_sub(1);
        self.allocated.take(&facts.request);
        if let Some(guest) = &facts.guest {
            lower(&mut self.by_guests, guest, |sum| sum.take(&facts.request));
        }
    }
}
