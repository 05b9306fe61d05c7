//! What an advertisement changes in the ledger: nearly always nothing.
//!
//! It frees no capacity and touches no reservation. Three things can follow from it all the same: a
//! provider that was given up is back; a provider reports after a restore, and what the ledger had
//! forgotten is adopted; an agent turns out to be too old to ever confirm an end.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::{format, vec::Vec};

use super::{EVENTS_MAX, Plan, Reply, Scene};
use crate::advertisement::{Advertisement, GrantReport};
use crate::bugs::{Bug, planted};
use crate::event::{Event, Note};
use crate::id::{ClusterId, Generation};
use crate::ledger::Ledger;
use crate::reservation::{Actor, Confirmation, State};
use crate::resources::Resources;

/// The requester may have seen later instructions than the provider carried out. What is adopted is
/// told anew with a generation so far ahead that neither side takes it for one that it has seen.
const GENERATION_LEAP: u32 = 1000;

/// A report may name every extended resource there can be, so few of them fill a record.
const ADOPTED_MAX: usize = 32;

/// So many grants that a provider has no more are named; the rest is counted.
const NAMED_MAX: usize = 16;

impl Scene<'_> {
    pub(super) fn advertise(&self, advertisement: &Advertisement) -> Plan {
        let cluster = &advertisement.cluster;
        // A copy is no news; one that is planned anew, because another broker was faster, is no copy.
        let news = self.books.market().entry(cluster).is_some_and(|known| {
            known.advertisement.number == advertisement.number && !known.repeated
        });
        let mut events = Vec::new();
        if news {
            let standing = self.books.ledger().standing(cluster);
            if standing.is_some_and(|standing| standing.lost.is_some()) {
                events.push(Event::Returned { cluster: cluster.clone() });
            }
            let cordoned = standing.is_some_and(|standing| standing.cordon.is_some());
            if planted(Bug::AdvertUncordons) && cordoned {
                let note = Note { by: Actor::Cluster(cluster.clone()), why: String::new() };
                events.push(Event::Uncordoned { cluster: cluster.clone(), note });
            }
            if let Some(grants) = &advertisement.grants {
                self.reconcile(cluster, grants, &mut events);
            }
            if !advertisement.capabilities.acknowledge || planted(Bug::AdvertOverwrites) {
                self.give_up_confirmation(cluster, &mut events);
            }
        }
        Plan::new(events, Reply::Advertised { news })
    }

    /// After a restore: adopts what was forgotten, as far as one record can hold it. Also of a provider
    /// that an operator vouched for: it lends without a report, not in spite of one.
    fn reconcile(&self, cluster: &ClusterId, grants: &[GrantReport], events: &mut Vec<Event>) {
        let ledger = self.books.ledger();
        if ledger.has_reported(cluster) {
            return;
        }
        let mut sums = Sums { lent: self.books.held(cluster), borrowed: BTreeMap::new() };
        let forgotten = |report: &&GrantReport| is_forgotten(ledger, cluster, report);
        for report in grants.iter().filter(forgotten) {
            if planted(Bug::NeverAdopts) {
                break;
            }
            // What cannot be counted is not adopted; while it is reported, its room is not lent.
            if !sums.add(ledger, report) {
                continue;
            }
            if events.len() >= ADOPTED_MAX {
                // The rest follows with the next advertisement; until then it lends nothing, or
                // where it was vouched for, nothing that it reports to keep.
                return;
            }
            let remaining = report.remaining;
            events.push(Event::Adopted {
                id: report.id,
                requester: report.requester.clone(),
                provider: cluster.clone(),
                amounts: report.amounts.clone(),
                generation: Generation(report.generation.0.saturating_add(GENERATION_LEAP)),
                expires_at: remaining.and_then(|span| self.at.time.checked_add(span)),
            });
        }
        let why = self.what_was_reported(cluster, grants);
        let note = Note { by: Actor::Cluster(cluster.clone()), why };
        events.push(Event::Reconciled { cluster: cluster.clone(), note });
    }

    /// Says which grants it had confirmed before the backup and does not have any more: they were
    /// released since, or it lost them. Which of the two it was, nobody here can know, so they are
    /// kept, as every promise is, and named for the operator.
    fn what_was_reported(&self, cluster: &ClusterId, grants: &[GrantReport]) -> String {
        let ledger = self.books.ledger();
        let reported: BTreeSet<_> = grants.iter().map(|report| report.id).collect();
        let lending = ledger.account(cluster).map(|account| &account.lending);
        let gone = lending.into_iter().flatten().filter(|id| {
            let state = ledger.reservation(**id).map(|reservation| &reservation.state);
            let kept = matches!(state, Some(State::Reserved(grant) | State::Active(grant))
                if grant.acknowledged > Generation::default());
            kept && !reported.contains(*id)
        });
        let gone: Vec<_> = gone.collect();
        let mut text = String::from("reported");
        for (at, id) in gone.iter().take(NAMED_MAX).enumerate() {
            text.push_str(if at == 0 { ", but has no more " } else { ", " });
            text.push_str(&id.to_string());
        }
        match gone.len().saturating_sub(NAMED_MAX) {
            0 => text,
            more => format!("{text} and {more} more"),
        }
    }

    /// An agent that was replaced by an older one never confirms what it was told to take down.
    fn give_up_confirmation(&self, cluster: &ClusterId, events: &mut Vec<Event>) {
        let ledger = self.books.ledger();
        let lending = ledger.account(cluster).map(|account| &account.lending);
        for id in lending.into_iter().flatten() {
            if events.len() >= EVENTS_MAX {
                return;
            }
            let state = ledger.reservation(*id).map(|reservation| &reservation.state);
            if let Some(State::Releasing(_, ending)) = state {
                let (reason, by) = (ending.reason, ending.by.clone());
                let confirmation = Confirmation::Unconfirmed;
                events.push(Event::Ended { id: *id, reason, by, confirmation, hindrance: None });
            }
        }
    }
}

/// Unknown, waiting, or known from before a later instruction that the provider has carried out. Or
/// before its requester had confirmed its use: it may have since, and nobody says so again. What the
/// provider runs must not end for that, so it counts as used; if it is not, it ends as what is used does.
fn is_forgotten(ledger: &Ledger, cluster: &ClusterId, report: &GrantReport) -> bool {
    let known = ledger.reservation(report.id);
    let older = known.is_none_or(|known| {
        let older = match &known.state {
            State::Pending { .. } => true,
            State::Reserved(grant) | State::Active(grant) => {
                let unused = grant.activate_by.is_some() && grant.generation == report.generation;
                let older = grant.generation < report.generation;
                grant.provider == *cluster && (older || unused)
            }
            State::Releasing(..) | State::Ended { .. } => false,
        };
        older && known.requester == report.requester
    });
    older && report.requester != *cluster
}

/// What both sides hold with all that is adopted: numbers from outside must not break a sum.
struct Sums {
    lent: Resources,
    borrowed: BTreeMap<ClusterId, Resources>,
}

impl Sums {
    /// Counts a report in; false where that is not possible.
    fn add(&mut self, ledger: &Ledger, report: &GrantReport) -> bool {
        let none = Resources::default();
        let known = ledger.reservation(report.id).and_then(|known| known.holding());
        let held = known.map_or(&none, |grant| &grant.held);
        let growth = report.amounts.minus_floor(held);
        let account = ledger.account(&report.requester);
        let borrowed = self.borrowed.get(&report.requester);
        let borrowed = borrowed.or(account.map(|account| &account.borrowed)).unwrap_or(&none);
        let sums = (self.lent.checked_add(&growth), borrowed.checked_add(&growth));
        let (Ok(lent), Ok(borrowed)) = sums else { return false };
        if !held.max(&report.amounts).is_bounded() {
            return false;
        }
        self.lent = lent;
        self.borrowed.insert(report.requester.clone(), borrowed);
        true
    }
}
