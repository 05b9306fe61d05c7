//! What kind of world a seed is: its size, its policy, and which faults it knows and how often.
//!
//! Swarm testing: every seed leaves out some kinds of faults and exaggerates others, because a
//! world with everything at once never gets far enough to reach what only happens in calm.

use std::sync::Arc;

use sublet_core::id::ClusterId;
use sublet_core::policy::{Allowance, Clusters, Policy, Rule, Silence};
use sublet_core::resources::{Kind, Limits};
use sublet_core::time::Span;

use crate::dice::Dice;
use crate::script::Act;

/// How messages fare, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Net {
    /// Lost.
    pub drop: u64,
    /// Delivered twice.
    pub double: u64,
    /// Late, and so overtaken by others.
    pub slow: u64,
}

/// How appends fare, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk {
    /// Takes seconds.
    pub slow: u64,
    /// Never arrives.
    pub request_lost: u64,
    /// Done, but nobody hears of it.
    pub answer_lost: u64,
    /// The disk fails and the handle with it.
    pub fatal: u64,
}

/// What kind of world it is.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where all of it comes from.
    pub seed: u64,
    /// Processes on one log.
    pub brokers: usize,
    /// Whether each cluster's agent is an old one.
    pub old: Vec<bool>,
    /// What the operator decided.
    pub policy: Arc<Policy>,
    /// The mean time between two steps of the script.
    pub gap_ms: u64,
    /// How messages fare.
    pub net: Net,
    /// How appends fare.
    pub disk: Disk,
    /// How often each act happens, relative to the others.
    pub weights: Vec<(Act, u64)>,
    /// Whether a restarted broker remembers the market.
    pub remembers: bool,
    /// Whether agents watch instead of asking again and again.
    pub streams: bool,
    /// How many clusters' worth of capacity is asked for: the larger, the more is refused.
    pub pressure: u64,
}

/// What a shrinking run may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Faults of the network.
    Net,
    /// Faults of the disk.
    Disk,
    /// All brokers but one.
    Brokers,
    /// Old agents become new ones.
    Old,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Net, Self::Disk, Self::Brokers, Self::Old];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Disk => "disk",
            Self::Brokers => "brokers",
            Self::Old => "old",
        }
    }
}

impl Setup {
    /// The world of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed).fork(1);
        let clusters = dice.between(3, 8);
        let old_share = [0, 0, 150, 400][dice.index(4)];
        let mut sometimes = |most: u64| if dice.chance(550) { dice.between(1, most) } else { 0 };
        let net = Net { drop: sometimes(80), double: sometimes(80), slow: sometimes(120) };
        let disk = Disk {
            slow: sometimes(40),
            request_lost: sometimes(60),
            answer_lost: sometimes(60),
            fatal: sometimes(6),
        };
        let mut weights = vec![(Act::Ask, 600)];
        for (act, most) in Act::FAULTS {
            weights.push((act, sometimes(most)));
        }
        let brokers = [1, 1, 2, 3][dice.index(4)];
        let old = (0..clusters).map(|_| dice.chance(old_share)).collect();
        let gap_ms = [40, 150, 400, 1500][dice.index(4)];
        let (remembers, pressure) = (dice.chance(500), dice.between(1, 4));
        let mut policy = policy(&mut dice);
        let streams = dice.chance(600);
        restrict(&mut policy, clusters, &mut dice);
        let policy = Arc::new(policy);
        Self {
            seed,
            brokers,
            old,
            policy,
            gap_ms,
            net,
            disk,
            weights,
            remembers,
            streams,
            pressure,
        }
    }

    /// How many kinds of faults it knows.
    pub fn faults(&self) -> usize {
        let Net { drop, double, slow } = self.net;
        let disk = self.disk;
        let rates =
            [drop, double, slow, disk.slow, disk.request_lost, disk.answer_lost, disk.fatal];
        let acts = self.weights.iter().skip(1).map(|(_, weight)| *weight);
        rates.into_iter().chain(acts).filter(|rate| *rate > 0).count()
    }

    /// The same world without a part.
    pub fn leave_out(&mut self, part: Part) {
        match part {
            Part::Net => self.net = Net::default(),
            Part::Disk => self.disk = Disk::default(),
            Part::Brokers => self.brokers = 1,
            Part::Old => self.old.iter_mut().for_each(|old| *old = false),
        }
    }
}

/// Some worlds live fast, so that a day of retention passes within a run.
fn policy(dice: &mut Dice) -> Policy {
    let mut policy = Policy {
        recovery_grace: Span::from_secs(dice.between(5, 60)),
        activate_within: Span::from_secs(dice.between(5, 120)),
        ..Policy::default()
    };
    if dice.chance(700) {
        policy.key_retention = Span::from_secs(dice.between(60, 900));
    }
    if dice.chance(300) {
        policy.lost_after = Some(Span::from_secs(dice.between(120, 900)));
    }
    if dice.chance(300) {
        policy.duration_max = Some(Span::from_secs(dice.between(300, 900)));
    }
    if dice.chance(500) {
        policy.duration_default = Some(Span::from_secs(dice.between(30, 300)));
    }
    if dice.chance(300) {
        policy.silence = Silence {
            intervals: 3,
            suspect_min: Span::from_secs(dice.between(20, 90)),
            stale_after: Span::from_secs(600),
        };
    }
    policy
}

/// Some worlds do not let everybody borrow everything from everybody.
fn restrict(policy: &mut Policy, clusters: u64, dice: &mut Dice) {
    let named = |number: u64| format!("c{number}").parse::<ClusterId>().into_iter();
    if dice.chance(300) {
        let of = |cluster| Clusters::These(named(cluster).collect());
        let requesters = of(dice.between(1, clusters));
        let providers =
            if dice.chance(300) { Clusters::Any } else { of(dice.between(1, clusters)) };
        policy.lending.push(Rule { requesters, providers, allow: false });
    }
    if dice.chance(400) {
        let priority_max = i32::from(dice.chance(500));
        let cpu = dice.chance(500).then(|| (Kind::Cpu, dice.between(1000, 8000)));
        let held = Limits(cpu.into_iter().collect());
        let allowance = Allowance { held, priority_max, ..Allowance::default() };
        policy
            .requesters
            .extend(named(dice.between(1, clusters)).map(|one| (one, allowance.clone())));
    }
}
