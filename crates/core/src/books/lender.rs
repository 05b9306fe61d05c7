//! One provider: what it said, what is held on it, and what follows from both together.

use crate::advertisement::{Advertisement, GrantReport};
use crate::bugs::{Bug, planted};
use crate::event::Ground;
use crate::id::ClusterId;
use crate::ledger::{Account, Ledger, Standing};
use crate::market::Entry;
use crate::reservation::{Confirmation, State};
use crate::resources::Resources;

/// What follows for a provider from its reports and the ledger together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Use inside what the ledger holds: in `allocated` and in `held`, to be counted once.
    pub covered: Resources,
    /// What the provider keeps beyond its use for grants that the ledger does not hold.
    pub ghosts: Resources,
}

impl Overlap {
    /// What one reservation adds to it, as its provider reports it.
    pub(super) fn part(ledger: &Ledger, provider: &ClusterId, report: &GrantReport) -> Self {
        let known = ledger.reservation(report.id);
        let grant = known.and_then(|r| r.grant()).filter(|grant| grant.provider == *provider);
        let gone = known.is_some_and(|reservation| {
            matches!(&reservation.state, State::Ended { confirmation: Confirmation::Confirmed, .. })
        });
        let holding = known.is_some_and(|reservation| reservation.phase().holds());
        match grant {
            Some(_) if holding && planted(Bug::CountsTwice) => Overlap::default(),
            Some(grant) if holding => {
                let covered = grant.held.min(&report.used);
                // It carried out more than the ledger remembers after a restore.
                let ahead = grant.generation < report.generation;
                let ghosts = if ahead {
                    report.amounts.minus_floor(&grant.held.max(&report.used))
                } else {
                    Resources::default()
                };
                Overlap { covered, ghosts }
            }
            _ if planted(Bug::GhostsIgnored) => Overlap::default(),
            Some(_) if gone => Overlap::default(),
            _ => Overlap {
                covered: Resources::default(),
                ghosts: report.amounts.minus_floor(&report.used),
            },
        }
    }

    pub(super) fn add(&mut self, part: &Self) {
        // `Advertisement::validated` has seen to it that the sums fit.
        if let Ok(covered) = self.covered.checked_add(&part.covered) {
            self.covered = covered;
        }
        if let Ok(ghosts) = self.ghosts.checked_add(&part.ghosts) {
            self.ghosts = ghosts;
        }
    }
}

/// What is known of one provider, looked up once.
#[derive(Clone, Copy)]
pub(crate) struct Lender<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) account: Option<&'a Account>,
    pub(crate) standing: Option<&'a Standing>,
    pub(super) overlap: Option<&'a Overlap>,
}

impl Lender<'_> {
    /// Shows the amounts of its basis, and what is held on it.
    fn judge<R>(&self, judge: impl FnOnce(Ground<'_>, &Resources) -> R) -> R {
        let (nothing, no_overlap) = (Resources::default(), Overlap::default());
        let Overlap { covered, ghosts } = self.overlap.unwrap_or(&no_overlap);
        let Advertisement { allocatable, allocated, grants, .. } = &self.entry.advertisement;
        let unreported = grants.is_none();
        let ground = Ground { allocatable, allocated, covered, ghosts, unreported };
        judge(ground, self.account.map_or(&nothing, |account| &account.lent))
    }

    /// What can still be lent: free there, and under its cap.
    pub(super) fn room(&self) -> Resources {
        self.judge(|ground, held| {
            let mut room = ground.room(held);
            if planted(Bug::OtherFits) {
                room.memory = ground.allocatable.memory;
            }
            match self.standing {
                Some(standing) => standing.cap.room(&room, held),
                None => room,
            }
        })
    }

    /// How much it has too little of what is held on it.
    pub(crate) fn shortage(&self) -> Resources {
        self.judge(|ground, held| ground.shortage(held))
    }
}
