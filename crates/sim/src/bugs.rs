//! Proof that the simulator can fail: each planted bug must be caught.

use sublet_core::bugs::{Bug, plant};

use crate::audit::Violation;
use crate::run::{self, Plan};
use crate::shrink;

/// Every bug, with what it does.
pub const TABLE: [(Bug, &str); 45] = [
    (Bug::AckBeforeDurable, "M1 answers before the batch is durable"),
    (Bug::SkipsSync, "M2 some appends are not synced"),
    (Bug::SkipsFit, "M3 growth is not checked against what is free"),
    (Bug::LateSum, "M4 room is judged by a sum that is updated late"),
    (Bug::OtherFits, "M5 the filter's room is not the committer's"),
    (Bug::CreditsTwice, "M6 an end is credited twice"),
    (Bug::KeyApart, "M8 the key is not bound with its reservation"),
    (Bug::KeyOfAnybody, "M9 a key is not scoped to its requester"),
    (Bug::KeysGoEarly, "M10 keys are forgotten long before their time"),
    (Bug::AdvertOverwrites, "M11 an advertisement changes the ledger"),
    (Bug::WallClock, "M13 broker time is the wall clock"),
    (Bug::NoGrace, "M14 things expire right after a start"),
    (Bug::ExpiryFrees, "M15 expiry frees capacity without the provider's word"),
    (Bug::NoGeneration, "M16 any confirmation counts as the newest"),
    (Bug::Leaks, "M17 instructions go to the wrong cluster too"),
    (Bug::RevisionUnchecked, "M19 another's record is taken for one's own"),
    (Bug::RetriesFatal, "M20 goes on after a failed sync"),
    (Bug::Wraps, "M22 a sum wraps"),
    (Bug::GhostsIgnored, "S14 what a provider still keeps is lent again"),
    (Bug::CountsTwice, "S18 pods inside a grant are counted twice"),
    (Bug::OlderAdvertWins, "S3 an older advertisement replaces a newer one"),
    (Bug::ForgetsTombstone, "S5 a released key can be used again"),
    (Bug::ShrinkFreesAtOnce, "a shrink returns capacity unconfirmed"),
    (Bug::LosesSnapshotKeys, "a snapshot loses tombstones"),
    (Bug::NoReplan, "what was planned stays when overtaken"),
    (Bug::CursorTooFar, "a list's cursor covers a batch in the making"),
    (Bug::OldNews, "a stream tells what is older than its list"),
    (Bug::NoBarrier, "a broker answers from a state that others have changed"),
    (Bug::NoRetry, "nobody who waits is tried again when something ends"),
    (Bug::FirstPieceOnly, "only the first of those who wait are tried"),
    (Bug::ForgetsLane, "who waits below a new request is forgotten"),
    (Bug::ByAgeOnly, "who waits is served by age alone"),
    (Bug::NewOnesPass, "a new request passes those who wait"),
    (Bug::PriorityUncapped, "a request has the priority that it claims"),
    (Bug::DropsOvertaken, "a call is dropped when overtaken"),
    (Bug::LooksEarly, "lists show what is not durable"),
    (Bug::RefusesEarly, "refusals leave before what they stand on is durable"),
    (Bug::ForgetsReleasing, "what is being taken down counts as free"),
    (Bug::AdvertUncordons, "an advertisement lifts a cordon"),
    (Bug::BorrowsForever, "what was given back still counts as borrowed"),
    (Bug::NewsUntold, "streams tell no news"),
    (Bug::LendsShrunk, "grants where less is than is held"),
    (Bug::LendsUnreported, "after a restore nobody is waited for"),
    (Bug::NeverAdopts, "what is reported after a restore is not adopted"),
    (Bug::AllTooEarly, "after a restore a provider is told all too early"),
];

/// The seeds that each bug has to hide in.
const SEEDS: u64 = 150;
const OPS: u64 = 6000;

/// How one bug was caught.
pub struct Caught {
    /// Operations of all seeds up to it.
    pub ops: u64,
    /// In which run.
    pub plan: Plan,
    /// By what.
    pub violation: Violation,
}

/// Plants a bug and looks for it.
pub fn hunt(bug: Option<Bug>) -> Option<Caught> {
    plant(bug);
    let mut ops = 0;
    for seed in 1..=SEEDS {
        let plan = Plan::whole(seed, OPS);
        let outcome = plan.play(false);
        ops += outcome.ops;
        if let Some(violation) = outcome.violation {
            plant(None);
            return Some(Caught { ops, plan, violation });
        }
    }
    plant(None);
    None
}

/// Whether the system without a planted bug is clean on the same seeds.
pub fn clean(threads: usize) -> Result<(), Violation> {
    plant(None);
    let summary = run::seeds(1, SEEDS, OPS, threads);
    summary.failed.map_or(Ok(()), |(_, violation)| Err(violation))
}

/// How much shorter a failing history became.
pub struct Shortened {
    /// Steps up to the failure.
    pub before: usize,
    /// Steps that are left.
    pub after: usize,
    /// What both violate.
    pub invariant: &'static str,
}

/// Plants a bug that is soon caught, and finds a shorter history that fails in the same way.
pub fn shortens() -> Option<Shortened> {
    let caught = hunt(Some(Bug::ShrinkFreesAtOnce))?;
    let invariant = caught.violation.invariant;
    plant(Some(Bug::ShrinkFreesAtOnce));
    let before = caught.plan.play(false).steps.len();
    let short = shrink::shortest(&caught.plan, invariant);
    let again = short.play(false);
    plant(None);
    let sound = short.play(false).violation.is_none();
    let fails = again.violation.is_some_and(|found| found.invariant == invariant);
    let after = again.steps.len();
    (fails && sound && after * 2 < before).then_some(Shortened { before, after, invariant })
}
