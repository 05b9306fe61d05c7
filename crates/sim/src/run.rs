//! Many seeds, on as many threads as there are cores; each seed on one.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::audit::Violation;
use crate::script::Script;
use crate::setup::{Part, Setup};
use crate::sometimes::Sometimes;
use crate::world::{Outcome, World};

/// One in so many seeds runs twice, to see that nothing but the seed decides.
const TWICE_EVERY: u64 = 16;

/// Exactly which run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// Operations.
    pub ops: u64,
    /// Only these steps of the script, if there is a choice.
    pub only: Option<BTreeSet<u64>>,
    /// Without these parts of the world.
    pub without: Vec<Part>,
}

impl Plan {
    /// The whole world of a seed.
    pub fn whole(seed: u64, ops: u64) -> Self {
        Self { seed, ops, only: None, without: vec![] }
    }

    /// What to type to see it again.
    pub fn command_line(&self) -> String {
        let mut line = format!("cargo xtask sim --seed {} --ops {}", self.seed, self.ops);
        let without: Vec<_> = self.without.iter().map(|part| part.name()).collect();
        if !without.is_empty() {
            line.extend([" --without ", &without.join(",")]);
        }
        if let Some(only) = &self.only {
            let steps: Vec<_> = only.iter().map(u64::to_string).collect();
            line.extend([" --steps ", &steps.join(",")]);
        }
        line
    }

    /// Plays it. If something panics, it is told how to see that again.
    pub fn play(&self, keep_lines: bool) -> Outcome {
        let _playing = Playing(self);
        let mut setup = Setup::of(self.seed);
        self.without.iter().for_each(|part| setup.leave_out(*part));
        let mut script = Script::of(&setup);
        script.only.clone_from(&self.only);
        World::new(setup, keep_lines).run(script, self.ops)
    }
}

/// Names the plan when it ends in a panic.
struct Playing<'a>(&'a Plan);

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("this panicked; see it again: {}", self.0.command_line());
        }
    }
}

/// What many seeds came to.
#[derive(Debug, Default)]
pub struct Summary {
    /// Operations in all.
    pub ops: u64,
    /// How many seeds had at least two kinds of faults.
    pub overlapping: u64,
    /// The first seed that failed, with its plan.
    pub failed: Option<(Plan, Violation)>,
    /// What was reached.
    pub sometimes: Sometimes,
}

/// Plays consecutive seeds; stops at the first failure.
pub fn seeds(first: u64, count: u64, ops: u64, threads: usize) -> Summary {
    let next = AtomicU64::new(0);
    let summary = Mutex::new(Summary::default());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::SeqCst);
            if at >= count || lock(&summary).failed.is_some() {
                return;
            }
            let plan = Plan::whole(first + at, ops);
            let outcome = judge(&plan, at);
            let mut summary = lock(&summary);
            summary.ops += outcome.ops;
            summary.overlapping += u64::from(Setup::of(plan.seed).faults() >= 2);
            summary.sometimes.add(&outcome.sometimes);
            if let Some(violation) = outcome.violation {
                let earlier = |(known, _): &(Plan, _)| known.seed < plan.seed;
                if !summary.failed.as_ref().is_some_and(earlier) {
                    summary.failed = Some((plan, violation));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock(summary: &Mutex<Summary>) -> std::sync::MutexGuard<'_, Summary> {
    summary.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays a seed, and now and then twice.
fn judge(plan: &Plan, at: u64) -> Outcome {
    let mut outcome = plan.play(false);
    if at.is_multiple_of(TWICE_EVERY) && outcome.violation.is_none() {
        let again = plan.play(false);
        if again.hash != outcome.hash || again.ops != outcome.ops {
            let found = format!("two runs differ: {:x} and {:x}", outcome.hash, again.hash);
            outcome.violation = Some(Violation { invariant: "I20", found });
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_seeds_are_clean_and_repeat_exactly() {
        for seed in [1, 6, 10, 23, 39] {
            let plan = Plan::whole(seed, 1500);
            let (one, other) = (plan.play(false), plan.play(true));
            assert_eq!(one.violation, None, "seed {seed}");
            assert_eq!((one.hash, one.ops), (other.hash, other.ops), "seed {seed}");
        }
    }

    #[test]
    fn a_shorter_script_is_the_same_world() {
        let whole = Plan::whole(2, 1000).play(false);
        let only = whole.steps.iter().map(|step| step.number).take(20).collect();
        let short = Plan { only: Some(only), ..Plan::whole(2, 1000) }.play(false);
        assert_eq!(short.steps.len(), 20);
        assert_eq!(short.violation, None);
    }
}
