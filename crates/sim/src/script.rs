//! What comes from outside: who asks, what breaks, what operators do, each at its time.
//!
//! A run is a function of its setup and this list, so that a failing run can be shortened by
//! leaving steps out. Each step has dice of its own: what it does does not depend on the others.

use std::collections::BTreeSet;

use crate::dice::Dice;
use crate::setup::Setup;

/// One kind of thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A cluster asks for capacity, and goes on with what it gets.
    Ask,
    /// A cluster asks many times at once, and waits.
    Crowd,
    /// A broker is killed.
    CrashBroker,
    /// A broker stands still, as under SIGSTOP.
    PauseBroker,
    /// Everything loses power at once.
    PowerLoss,
    /// A broker's wall clock jumps.
    JumpWall,
    /// A broker cannot reach the log.
    CutLog,
    /// An agent cannot reach a broker.
    CutAgent,
    /// An agent is killed.
    CrashAgent,
    /// Pods come and go.
    Pods,
    /// Nodes come and go.
    Nodes,
    /// An operator decides something.
    Operate,
    /// A snapshot is taken.
    Snapshot,
    /// Old records go.
    Compact,
    /// The log is lost and restored from a backup, where there is one broker.
    Restore,
}

impl Act {
    /// All but [`Act::Ask`], with the greatest weight each may have beside its 600.
    pub const FAULTS: [(Self, u64); 14] = [
        (Self::CrashBroker, 25),
        (Self::PauseBroker, 15),
        (Self::PowerLoss, 6),
        (Self::JumpWall, 20),
        (Self::CutLog, 15),
        (Self::CutAgent, 60),
        (Self::CrashAgent, 40),
        (Self::Pods, 120),
        (Self::Nodes, 25),
        (Self::Operate, 60),
        (Self::Snapshot, 20),
        (Self::Compact, 20),
        (Self::Restore, 3),
        // So many ask in one of them that few are enough.
        (Self::Crowd, 1),
    ];
}

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its place in the list that the seed gives.
    pub number: u64,
    /// When.
    pub at_ms: u64,
    /// What.
    pub act: Act,
    /// The seed of its dice.
    pub dice: u64,
}

/// The steps of a seed, one after the other, without those that are left out.
#[derive(Clone, Debug)]
pub struct Script {
    dice: Dice,
    weights: Vec<(Act, u64)>,
    gap_ms: u64,
    at_ms: u64,
    number: u64,
    /// Only these, if there is a choice.
    pub only: Option<BTreeSet<u64>>,
}

impl Script {
    /// The whole script of a seed.
    pub fn of(setup: &Setup) -> Self {
        Self {
            dice: Dice::new(setup.seed).fork(2),
            weights: setup.weights.clone(),
            gap_ms: setup.gap_ms,
            at_ms: 0,
            number: 0,
            only: None,
        }
    }

    fn draw(&mut self) -> Step {
        let total = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut left = self.dice.below(total);
        let mut act = Act::Ask;
        for (candidate, weight) in &self.weights {
            if left < *weight {
                act = *candidate;
                break;
            }
            left -= weight;
        }
        // Now and then many at once, and now and then a pause: both are edges of their own.
        self.at_ms += match self.dice.below(20) {
            0..3 => 0,
            3 => self.gap_ms * 20,
            _ => self.dice.below(self.gap_ms * 2),
        };
        self.number += 1;
        Step { number: self.number, at_ms: self.at_ms, act, dice: self.dice.draw() }
    }
}

impl Iterator for Script {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            let step = self.draw();
            match &self.only {
                None => return Some(step),
                Some(only) if only.contains(&step.number) => return Some(step),
                Some(only) if only.last().is_none_or(|last| step.number >= *last) => return None,
                Some(_) => {}
            }
        }
    }
}
