//! After any sequence of events, the fold is what a recount of everything would give.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use sublet_core::resources::{Kind, Resources};
use sublet_crds::Invalid;

use super::*;

/// Everything that is there, kept as a plain list.
#[derive(Default)]
struct World {
    nodes: BTreeMap<u8, NodeFacts>,
    pods: BTreeMap<u8, PodFacts>,
    grants: BTreeMap<u8, Grant>,
}

#[derive(Clone, Debug)]
enum Event {
    Node(u8, NodeFacts),
    NoNode(u8),
    Pod(u8, Option<PodFacts>),
    NoPod(u8),
    Grant(u8, Grant),
    NoGrant(u8),
    /// A watch begins again: some objects went while nobody looked.
    Nodes(Vec<u8>),
    Pods(Vec<u8>),
    Grants(Vec<u8>),
    /// A list that breaks off in the middle, and changes nothing by that.
    HalfAList,
}

fn node_name(n: u8) -> String {
    format!("node-{n}")
}

fn reservation(n: u8) -> String {
    format!("rsv-{n}")
}

fn amounts() -> impl Strategy<Value = Resources> {
    let huge = prop_oneof![9 => 0..10_u64, 1 => Just(u64::MAX)];
    let kinds = ["gpu", "storage", "example.com/a", "example.com/b"];
    (huge, 0..10_u64, vec((0..kinds.len(), 0..3_u64), 0..3)).prop_map(
        move |(cpu, memory, others)| {
            others.into_iter().fold(Resources::new(cpu, memory), |sum, (kind, amount)| {
                sum.with(kinds[kind].parse().unwrap(), amount).unwrap()
            })
        },
    )
}

fn problems() -> impl Strategy<Value = Box<[Invalid]>> {
    let problem = Invalid::new("x", sublet_core::quantity::Error::Empty);
    prop_oneof![5 => Just(Box::default()), 1 => Just([problem].into())]
}

fn node() -> impl Strategy<Value = NodeFacts> {
    let standing = prop_oneof![
        3 => Just(Standing::Counted),
        1 => proptest::sample::select(Standing::ALL.to_vec()),
    ];
    (standing, amounts(), amounts(), problems()).prop_map(
        |(standing, capacity, allocatable, problems)| NodeFacts {
            standing,
            capacity,
            allocatable,
            problems,
        },
    )
}

fn guest() -> impl Strategy<Value = Option<Guest>> {
    proptest::option::of((0..4_u8, 0..2_usize, 0..2_u8).prop_map(|(slice, way, origin)| {
        Guest::in_slice(&reservation(slice), &format!("c{origin}"))[way].clone()
    }))
}

fn pod() -> impl Strategy<Value = Option<PodFacts>> {
    let facts = (0..5_u8, amounts(), guest(), problems());
    let facts = facts.prop_map(|(node, request, guest, problems)| PodFacts {
        node: node_name(node).into(),
        request,
        guest,
        problems,
    });
    proptest::option::weighted(0.9, facts)
}

fn grant() -> impl Strategy<Value = Grant> {
    (0..4_u8, 0..2_u8, amounts()).prop_map(|(n, requester, amounts)| Grant {
        reservation: reservation(n).into(),
        requester: format!("c{requester}").parse().unwrap(),
        carried_out: None,
        amounts,
        expires_at: None,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let some = || vec(any::<u8>().prop_map(|n| n % 12), 0..6);
    prop_oneof![
        6 => (0..5_u8, node()).prop_map(|(n, facts)| Event::Node(n, facts)),
        2 => (0..5_u8).prop_map(Event::NoNode),
        12 => (0..12_u8, pod()).prop_map(|(n, facts)| Event::Pod(n, facts)),
        4 => (0..12_u8).prop_map(Event::NoPod),
        3 => (0..4_u8, grant()).prop_map(|(n, grant)| Event::Grant(n, grant)),
        1 => (0..4_u8).prop_map(Event::NoGrant),
        1 => some().prop_map(Event::Nodes),
        1 => some().prop_map(Event::Pods),
        1 => some().prop_map(Event::Grants),
        1 => Just(Event::HalfAList),
    ]
}

impl World {
    /// What happens, to the world and to the fold.
    fn happen(&mut self, event: Event, fold: &mut Fold) {
        match event {
            Event::Node(n, facts) => {
                fold.apply_node(&node_name(n), facts.clone());
                self.nodes.insert(n, facts);
            }
            Event::NoNode(n) => {
                fold.delete_node(&node_name(n));
                self.nodes.remove(&n);
            }
            Event::Pod(n, facts) => {
                fold.apply_pod(&n.to_string(), facts.clone());
                self.pods.remove(&n);
                self.pods.extend(facts.map(|facts| (n, facts)));
            }
            Event::NoPod(n) => {
                fold.delete_pod(&n.to_string());
                self.pods.remove(&n);
            }
            Event::Grant(n, grant) => {
                fold.apply_grant(&n.to_string(), Ok(grant.clone()));
                self.grants.insert(n, grant);
            }
            Event::NoGrant(n) => {
                fold.delete_grant(&n.to_string());
                self.grants.remove(&n);
            }
            Event::Nodes(_) | Event::Pods(_) | Event::Grants(_) => self.list(event, fold),
            Event::HalfAList => {
                fold.begin_pods();
                if let Some((n, facts)) = self.pods.first_key_value() {
                    fold.apply_pod(&n.to_string(), Some(facts.clone()));
                }
            }
        }
    }

    /// Some objects go unseen, and then all is listed anew.
    fn list(&mut self, event: Event, fold: &mut Fold) {
        match event {
            Event::Nodes(gone) => {
                self.nodes.retain(|n, _| !gone.contains(n));
                fold.begin_nodes();
                for (n, facts) in &self.nodes {
                    fold.apply_node(&node_name(*n), facts.clone());
                }
                fold.finish_nodes();
            }
            Event::Pods(gone) => {
                self.pods.retain(|n, _| !gone.contains(n));
                fold.begin_pods();
                for (n, facts) in &self.pods {
                    fold.apply_pod(&n.to_string(), Some(facts.clone()));
                }
                fold.finish_pods();
            }
            Event::Grants(gone) => {
                self.grants.retain(|n, _| !gone.contains(n));
                fold.begin_grants();
                for (n, grant) in &self.grants {
                    fold.apply_grant(&n.to_string(), Ok(grant.clone()));
                }
                fold.finish_grants();
            }
            _ => {}
        }
    }

    /// Everything counted anew, without any of the fold's means.
    fn recount(&self) -> Measured {
        let counted = || self.nodes.values().filter(|node| node.standing == Standing::Counted);
        let is_counted = |pod: &&PodFacts| {
            let counts = |n: &u8| self.nodes[n].standing == Standing::Counted;
            self.nodes.keys().any(|n| *pod.node == *node_name(*n) && counts(n))
        };
        let pods = || self.pods.values().filter(is_counted);
        let capacity = sum(counted().map(|node| &node.capacity));
        let told = |resources: Resources| only(&resources, &capacity);
        let inside = |grant: &Grant| {
            let name = grant.reservation.to_string();
            let ways = Guest::in_slice(&name, grant.requester.as_str());
            sum(pods()
                .filter(|pod| pod.guest.as_ref().is_some_and(|guest| ways.contains(guest)))
                .map(|pod| &pod.request))
        };
        let of_standing = |one| self.nodes.values().filter(|node| node.standing == one).count();
        Measured {
            allocatable: told(sum(counted().map(|node| &node.allocatable))),
            allocated: told(sum(pods().map(|pod| &pod.request))),
            grants: self.grants.values().map(|one| (one.clone(), told(inside(one)))).collect(),
            nodes: Standing::ALL.into_iter().map(|one| (one, of_standing(one))).collect(),
            pods: pods().count(),
            problems: self.nodes.values().map(|node| node.problems.len()).sum::<usize>()
                + self.pods.values().map(|pod| pod.problems.len()).sum::<usize>(),
            left_out: 0,
            capacity,
        }
    }
}

/// The sum, kind by kind, cut at what 64 bits hold.
fn sum<'a>(all: impl Iterator<Item = &'a Resources>) -> Resources {
    let mut sums: BTreeMap<Kind, u128> = BTreeMap::new();
    for (kind, amount) in all.flat_map(Resources::iter) {
        *sums.entry(kind).or_default() += u128::from(amount);
    }
    sums.into_iter().fold(Resources::default(), |sum, (kind, amount)| {
        sum.with(kind, u64::try_from(amount).unwrap_or(u64::MAX)).unwrap()
    })
}

/// Of some resources, those kinds that others have.
fn only(resources: &Resources, others: &Resources) -> Resources {
    let shared = resources.iter().filter(|(kind, _)| others.get(kind) > 0);
    shared.fold(Resources::default(), |sum, (kind, amount)| sum.with(kind, amount).unwrap())
}

proptest! {
    #[test]
    fn the_fold_is_what_a_recount_gives(events in vec(event(), 0..120)) {
        let (mut world, mut fold) = (World::default(), Fold::default());
        for event in events {
            world.happen(event, &mut fold);
            prop_assert_eq!(fold.measured(), world.recount());
        }
    }

    #[test]
    fn when_everything_is_gone_nothing_is_left(events in vec(event(), 0..60)) {
        let (mut world, mut fold) = (World::default(), Fold::default());
        for event in events {
            world.happen(event, &mut fold);
        }
        for list in [Fold::begin_nodes, Fold::begin_pods, Fold::begin_grants] {
            list(&mut fold);
        }
        prop_assert_eq!(fold.measured(), world.recount());
        for list in [Fold::finish_nodes, Fold::finish_pods, Fold::finish_grants] {
            list(&mut fold);
        }
        prop_assert!(fold.is_complete());
        prop_assert!(fold.is_empty());
    }
}

#[test]
fn only_as_many_kinds_are_told_as_can_be_and_the_rest_is_reported() {
    let name = |n: usize| format!("example.com/r{n:02}").parse::<Kind>().unwrap();
    let one = |n: usize| Resources::default().with(name(n), 1).unwrap();
    let mut fold = Fold::default();
    for n in 0..40 {
        let facts = NodeFacts {
            standing: Standing::Counted,
            capacity: one(n),
            allocatable: one(n),
            problems: Box::default(),
        };
        fold.apply_node(&format!("node-{n}"), facts);
    }
    let measured = fold.measured();
    assert_eq!(measured.capacity.iter().count(), Resources::EXTENDED_MAX);
    assert_eq!(measured.left_out, 40 - Resources::EXTENDED_MAX);
    assert_eq!(measured.capacity, measured.allocatable);
}
