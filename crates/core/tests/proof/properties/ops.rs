//! Random commands: small numbers, so that they meet each other often.

use proptest::prelude::*;
use proptest::sample::select;
use sublet_core::policy::{Allowance, Policy};
use sublet_core::resources::{Kind, Limits};

use crate::world::{cluster, secs};

pub(crate) const CLUSTERS: [&str; 5] = ["c0", "c1", "c2", "c3", "c4"];
/// This one's agent is always of the Go system.
pub(crate) const OLD: &str = "c4";

/// One thing that happens; indexes are taken modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Tick(u64),
    NewRecord,
    Advertise(Says),
    OlderAdvertisement { who: usize, has: Amounts },
    Reserve { who: usize, key: u8, amounts: Amounts, wait: u64, priority: i32, shape: u8 },
    ReleaseKey { who: usize, key: u8 },
    Release { nth: usize, by: By },
    Renew { nth: usize, duration: u64 },
    Resize { nth: usize, amounts: Amounts },
    Activate { nth: usize, by: By },
    Acknowledge { nth: usize, by: By, off: i64 },
    Fail { nth: usize, by: By },
    Operate { who: usize, what: u8, amounts: Amounts },
    Fill { floor: Option<i32>, after: bool },
    FillAll,
    Sweep,
    Repeat,
    Backup,
    Restore,
    Restart,
    Overtaken,
}

pub(crate) type Amounts = [u64; 4];

/// What a cluster says: its size, its own pods, and how many thirds of its grants are in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    pub(crate) who: usize,
    pub(crate) has: Amounts,
    pub(crate) own: Amounts,
    pub(crate) used: u64,
    pub(crate) agent: Agent,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Agent {
    Ours,
    Old,
    NotLending,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Requester,
    Provider,
    Operator,
    Stranger,
}

fn amounts(max: u64) -> impl Strategy<Value = Amounts> {
    let rare = || prop_oneof![4 => Just(0), 1 => 0..=max / 2];
    (1..=max, 1..=max, rare(), rare()).prop_map(|(a, b, c, d)| [a, b, c, d])
}

fn by() -> impl Strategy<Value = By> {
    use By::{Operator, Provider, Requester, Stranger};
    prop_oneof![4 => Just(Requester), 4 => Just(Provider), 1 => Just(Operator), 1 => Just(Stranger)]
}

fn right(side: By) -> impl Strategy<Value = By> {
    prop_oneof![12 => Just(side), 1 => by()]
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let (who, nth) = (0..CLUSTERS.len(), 0..64usize);
    let spans = vec![1, 999, 1_000, 30_000, 60_000, 89_999, 90_000, 300_000, 600_000, 3_600_000];
    let agent =
        prop_oneof![8 => Just(Agent::Ours), 1 => Just(Agent::Old), 1 => Just(Agent::NotLending)];
    let own = prop_oneof![2 => Just([0; 4]), 1 => amounts(3)];
    let advertise =
        (who.clone(), amounts(10), own, 0..6u64, agent).prop_map(|(who, has, own, used, agent)| {
            Op::Advertise(Says { who, has, own, used, agent })
        });
    let wait = select(vec![0, 0, 0, 30_000, 600_000]);
    let reserve = (who.clone(), 0..12u8, amounts(4), wait, 0..4i32, any::<u8>()).prop_map(
        |(who, key, amounts, wait, priority, shape)| Op::Reserve {
            who,
            key,
            amounts,
            wait,
            priority,
            shape,
        },
    );
    let off = select(vec![0, 0, 0, 0, -1, 1]);
    let acknowledge = (nth.clone(), right(By::Provider), off)
        .prop_map(|(nth, by, off)| Op::Acknowledge { nth, by, off });
    let floor = select(vec![None, Some(0), Some(2)]);
    prop_oneof![
        6 => select(spans).prop_map(Op::Tick),
        1 => Just(Op::Tick(24 * 3_600_000 + 1)),
        4 => Just(Op::NewRecord),
        16 => advertise,
        1 => (who.clone(), amounts(10)).prop_map(|(who, has)| Op::OlderAdvertisement { who, has }),
        24 => reserve,
        1 => (who.clone(), 0..12u8).prop_map(|(who, key)| Op::ReleaseKey { who, key }),
        4 => (nth.clone(), by()).prop_map(|(nth, by)| Op::Release { nth, by }),
        3 => (nth.clone(), select(vec![0, 1, 60_000])).prop_map(|(nth, duration)| Op::Renew { nth, duration }),
        6 => (nth.clone(), amounts(5)).prop_map(|(nth, amounts)| Op::Resize { nth, amounts }),
        4 => (nth.clone(), right(By::Requester)).prop_map(|(nth, by)| Op::Activate { nth, by }),
        12 => acknowledge,
        1 => (nth, by()).prop_map(|(nth, by)| Op::Fail { nth, by }),
        3 => (who, 0..10u8, amounts(8)).prop_map(|(who, what, amounts)| Op::Operate { who, what, amounts }),
        4 => (floor, any::<bool>()).prop_map(|(floor, after)| Op::Fill { floor, after }),
        4 => Just(Op::FillAll),
        6 => Just(Op::Sweep),
        4 => Just(Op::Repeat),
        1 => Just(Op::Backup),
        1 => Just(Op::Restore),
        1 => Just(Op::Restart),
        1 => Just(Op::Overtaken),
    ]
}

/// Operators differ.
pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let strict = Policy {
        duration_default: Some(secs(300)),
        duration_max: Some(secs(3600)),
        waiting_max: 3,
        lost_after: Some(secs(1200)),
        requesters: [(
            cluster("c0"),
            Allowance {
                held: Limits([(Kind::Cpu, 6)].into()),
                priority_max: 1,
                reservations_max: 3,
                ..Allowance::default()
            },
        )]
        .into(),
        ..Policy::default()
    };
    select(vec![Policy::default(), strict])
}
