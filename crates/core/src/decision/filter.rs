//! Which clusters may take a request, and what stands against those that may not.
//!
//! `Question::stands` is the single truth: the pick, the explanation, the list of candidates and
//! the index's idea of an open provider all come from it. The order of [`Filter`] is the order in
//! which reasons are told: first what cannot be helped, then what somebody decided, then what is
//! short. `Suspect` comes last on purpose: a cluster that is refused for it alone would have taken
//! the request, and asking again soon may help.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::{Constraint, Strategy, index::Row};
use crate::advertisement::{Advertisement, Backends};
use crate::books::{Books, Lender};
use crate::bugs::{Bug, planted};
use crate::id::ClusterId;
use crate::ledger::{Account, Standing};
use crate::market::{Entry, Freshness};
use crate::policy::Policy;
use crate::reservation::Ask;
use crate::resources::Resources;
use crate::time::Time;

/// A reason not to choose a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Filter {
    /// It is the requester.
    Itself,
    /// It has never advertised, or not for very long.
    Unknown,
    /// The request names another one.
    Target,
    /// It takes part but does not lend now.
    NotLending,
    /// An operator lets nothing new be granted there.
    Cordoned,
    /// It was given up.
    Lost,
    /// It has not reported since the ledger was restored.
    AwaitingReport,
    /// Its certificates are not believed.
    Revoked,
    /// It lends to as many as it can report on: with one more, its word would be refused.
    Crowded,
    /// It has less than is held on it.
    Overcommitted,
    /// Policy does not let this requester borrow from it.
    Policy,
    /// The two cannot be joined in the same way.
    Backend,
    /// Its labels are not what the request asks for.
    Labels,
    /// Silent for so long that it counts as inactive.
    Stale,
    /// It has too little room.
    Fit,
    /// Its advertisement is overdue, and nothing else stands against it.
    Suspect,
}

impl Filter {
    /// All of them, in order.
    pub const ALL: [Self; 16] = [
        Self::Itself,
        Self::Unknown,
        Self::Target,
        Self::NotLending,
        Self::Cordoned,
        Self::Lost,
        Self::AwaitingReport,
        Self::Revoked,
        Self::Crowded,
        Self::Overcommitted,
        Self::Policy,
        Self::Backend,
        Self::Labels,
        Self::Stale,
        Self::Fit,
        Self::Suspect,
    ];

    /// Those that depend neither on the requester nor on the time: while one of them stands, the
    /// index passes the cluster over.
    pub const CLOSING: [Self; 7] = [
        Self::NotLending,
        Self::Cordoned,
        Self::Lost,
        Self::AwaitingReport,
        Self::Revoked,
        Self::Crowded,
        Self::Overcommitted,
    ];

    /// Does it depend on what is asked for, by whom and when? All of these come after the others.
    pub fn depends_on_request(self) -> bool {
        self >= Self::Policy
    }

    /// Does one of [`Filter::CLOSING`] stand against the cluster of `entry`?
    pub(crate) fn closes(self, books: &Books, lender: &Lender<'_>) -> bool {
        let Lender { entry, account, standing, .. } = *lender;
        match self {
            Self::NotLending => !entry.advertisement.lending,
            Self::Cordoned => standing.is_some_and(|standing| standing.cordon.is_some()),
            Self::Lost => standing.is_some_and(|standing| standing.lost.is_some()),
            Self::AwaitingReport => books.ledger().awaits_report(&entry.advertisement.cluster),
            Self::Revoked => books.ledger().is_revoked(&entry.advertisement.cluster),
            Self::Crowded => {
                account.is_some_and(|account| account.lending.len() >= Advertisement::GRANTS_MAX)
            }
            Self::Overcommitted => !planted(Bug::LendsShrunk) && !lender.shortage().is_zero(),
            _ => false,
        }
    }

    /// What a cluster that is refused for this is like.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Itself => "the requester itself",
            Self::Unknown => "unknown",
            Self::Target => "not the target",
            Self::NotLending => "not lending",
            Self::Cordoned => "cordoned",
            Self::Lost => "lost",
            Self::AwaitingReport => "not reported since the restore",
            Self::Revoked => "revoked",
            Self::Crowded => "with as many grants as can be reported",
            Self::Overcommitted => "with less than is held on them",
            Self::Policy => "not allowed by policy",
            Self::Backend => "without a common peering backend",
            Self::Labels => "without the labels asked for",
            Self::Stale => "silent for too long",
            Self::Fit => "too full",
            Self::Suspect => "overdue with their advertisement",
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one cluster is to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can be chosen.
    Fits,
    /// It cannot; the first reason.
    Refused(Filter),
}

/// A request in its circumstances: all that a verdict depends on.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// What is known and promised.
    pub books: &'a Books,
    /// Who asks.
    pub requester: &'a ClusterId,
    /// For what.
    pub ask: &'a Ask,
    /// What the operator decided beforehand.
    pub policy: &'a Policy,
    /// When.
    pub now: Time,
    /// Something grows that is lent already: one more grant it is not.
    pub grows: bool,
}

/// What is known of one cluster, looked up once.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Who.
    pub cluster: &'a ClusterId,
    /// What it said.
    pub entry: &'a Entry,
    /// What of it is free, and how much it has.
    pub row: &'a Row,
    /// What operators decided about it.
    pub standing: Option<&'a Standing>,
}

impl<'a> Known<'a> {
    /// What the books know of `cluster`, if anything.
    pub fn of(books: &'a Books, cluster: &'a ClusterId) -> Option<Self> {
        let entry = books.market().entry(cluster)?;
        let row = books.index().row(cluster)?;
        Some(Self { cluster, entry, row, standing: books.ledger().standing(cluster) })
    }
}

impl<'a> Question<'a> {
    /// Which way to choose applies.
    pub fn strategy(&self) -> Strategy {
        self.ask.strategy.unwrap_or(self.policy.strategy)
    }

    /// What `cluster` is to this request.
    pub fn verdict(&self, cluster: &ClusterId) -> Verdict {
        if cluster == self.requester {
            return Verdict::Refused(Filter::Itself);
        }
        match Known::of(self.books, cluster) {
            Some(known) => self.reasons(known).next().map_or(Verdict::Fits, Verdict::Refused),
            None => Verdict::Refused(Filter::Unknown),
        }
    }

    /// Everything that stands against a known cluster, in order.
    pub fn reasons(self, known: Known<'a>) -> impl Iterator<Item = Filter> {
        Filter::ALL.into_iter().filter(move |filter| self.stands(*filter, &known))
    }

    /// Does `filter` stand against this cluster?
    fn stands(&self, filter: Filter, known: &Known<'_>) -> bool {
        let freshness = || known.entry.freshness(&self.policy.silence, self.now);
        match filter {
            Filter::Itself => known.cluster == self.requester,
            Filter::Unknown => false,
            Filter::Crowded if self.grows => false,
            Filter::Target => self.ask.target.as_ref().is_some_and(|one| one != known.cluster),
            Filter::NotLending
            | Filter::Cordoned
            | Filter::Lost
            | Filter::AwaitingReport
            | Filter::Revoked
            | Filter::Crowded
            | Filter::Overcommitted => {
                // The index keeps whether one of them stands.
                !known.row.is_open() && filter.closes(self.books, &self.books.lender(known.entry))
            }
            Filter::Policy => !self.policy.allows(self.requester, known.cluster),
            Filter::Backend => !self.backends().meet(known.row.note.backends),
            Filter::Labels => self.unmet(known).next().is_some(),
            Filter::Stale => freshness() == Freshness::Stale,
            Filter::Fit => !self.ask.resources.fits_in(&known.row.room),
            Filter::Suspect => freshness() == Freshness::Suspect,
        }
    }

    /// How the requester can be joined.
    pub(crate) fn backends(&self) -> Backends {
        self.ask.backends
    }

    /// The constraints that the cluster's labels do not satisfy.
    pub fn unmet(&self, known: &Known<'a>) -> impl Iterator<Item = &'a Constraint> {
        let labels = &known.entry.advertisement.labels;
        self.ask.constraints.iter().filter(move |constraint| !constraint.admits(labels))
    }
}

/// How much less must be asked for so that what is held for the requester stays within its
/// allowance; none when it does. Only what is asked for counts: a limit that was lowered below
/// what is held of one resource does not forbid another.
pub fn allowance_excess(
    books: &Books,
    requester: &ClusterId,
    ask: &Ask,
    policy: &Policy,
) -> Option<Resources> {
    excess_of(books.ledger().account(requester), requester, ask, policy)
}

/// The same, where the account of the requester is at hand.
pub(crate) fn excess_of(
    account: Option<&Account>,
    requester: &ClusterId,
    ask: &Ask,
    policy: &Policy,
) -> Option<Resources> {
    let none = Resources::default();
    let held = account.map_or(&none, |account| &account.borrowed);
    let excess = match held.checked_add(&ask.resources) {
        Ok(total) => policy.allowance(requester).held.excess(&total).min(&ask.resources),
        // A total beyond 64 bits cannot be held, whatever the limits say.
        Err(_) => ask.resources.clone(),
    };
    (!excess.is_zero()).then_some(excess)
}
