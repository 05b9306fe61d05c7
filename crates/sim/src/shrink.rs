//! From a failing run to the shortest one that still fails in the same way.
//!
//! First the end is cut off behind the operation that failed. Then parts of the world are left out,
//! then steps of the script, in halves, quarters and so on down to single ones.

use std::collections::BTreeSet;

use crate::run::Plan;
use crate::setup::Part;

/// How many runs may be spent on it.
const RUNS_MAX: u32 = 600;

struct Shrink {
    invariant: &'static str,
    best: Plan,
    runs: u32,
}

/// The shortest run that was found to fail by `invariant`.
pub fn shortest(plan: &Plan, invariant: &'static str) -> Plan {
    let mut shrink = Shrink { invariant, best: plan.clone(), runs: 0 };
    shrink.cut();
    for part in Part::ALL {
        let mut plan = shrink.best.clone();
        plan.without.push(part);
        shrink.try_plan(plan);
    }
    shrink.thin_out();
    shrink.best
}

impl Shrink {
    /// Takes a plan if it fails in the same way.
    fn try_plan(&mut self, plan: Plan) -> bool {
        self.runs += 1;
        if self.runs > RUNS_MAX {
            return false;
        }
        let outcome = plan.play(false);
        let fails = outcome.violation.is_some_and(|found| found.invariant == self.invariant);
        if fails {
            let taken: BTreeSet<_> = outcome.steps.iter().map(|step| step.number).collect();
            self.best = Plan { only: Some(taken), ..plan };
        }
        fails
    }

    /// Only the steps up to the failure, with all the operations that they need.
    fn cut(&mut self) {
        let plan = self.best.clone();
        self.try_plan(plan);
    }

    fn thin_out(&mut self) {
        let count = |plan: &Plan| plan.only.as_ref().map_or(0, BTreeSet::len);
        let mut chunk = count(&self.best).div_ceil(2);
        while chunk > 0 && self.runs < RUNS_MAX {
            let steps: Vec<u64> = self.best.only.iter().flatten().copied().collect();
            let mut thinner = false;
            for part in steps.chunks(chunk) {
                let Some(mut rest) = self.best.only.clone() else { return };
                rest.retain(|step| !part.contains(step));
                thinner |= self.try_plan(Plan { only: Some(rest), ..self.best.clone() });
            }
            if !thinner || chunk > count(&self.best) {
                chunk /= 2;
            }
        }
    }
}
