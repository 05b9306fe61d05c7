//! What an advertisement changes in the ledger: nearly always nothing.
//!
//! It frees no capacity and touches no reservation. Three things can follow from it all the same: a
//! provider that was given up is back; a provider reports after a restore, and what the ledger had
//! forgotten is adopted; an agent turns out to be too old to ever confirm an end.

use alloc::{string::String, vec::Vec};

use super::{EVENTS_MAX, Plan, Reply, Scene};
use crate::advertisement::{Advertisement, GrantReport};
use crate::event::{Event, Note};
use crate::id::{ClusterId, Generation};
use crate::instruction::{self, Side};
use crate::reservation::{Actor, Confirmation, State};

/// The requester may have seen later instructions than the provider carried out. What is adopted is
/// told anew with a generation so far ahead that neither side takes it for one that it has seen.
const GENERATION_LEAP: u32 = 1000;

impl Scene<'_> {
    pub(super) fn advertise(&self, advertisement: &Advertisement) -> Plan {
        let cluster = &advertisement.cluster;
        let known = self.books.market().entry(cluster).map(|entry| &entry.advertisement);
        let news = known.is_some_and(|known| known.number == advertisement.number);
        let mut events = Vec::new();
        if news {
            let standing = self.books.ledger().standing(cluster);
            if standing.is_some_and(|standing| standing.lost.is_some()) {
                events.push(Event::Returned { cluster: cluster.clone() });
            }
            if let Some(grants) = &advertisement.grants {
                self.reconcile(cluster, grants, &mut events);
            }
            if !advertisement.capabilities.acknowledge {
                self.give_up_confirmation(cluster, &mut events);
            }
        }
        let duties = instruction::current(self.books.ledger(), cluster);
        let instructions = duties.filter(|duty| duty.side == Side::Provider).collect();
        Plan::new(events, Reply::Advertised { news, instructions })
    }

    /// After a restore: adopts what was forgotten, as far as one record can hold it.
    fn reconcile(&self, cluster: &ClusterId, grants: &[GrantReport], events: &mut Vec<Event>) {
        let ledger = self.books.ledger();
        if !ledger.awaits_report(cluster) {
            return;
        }
        // Unknown, or known from before a later instruction that the provider has carried out.
        let forgotten = |report: &&GrantReport| match ledger.reservation(report.id) {
            None => report.requester != *cluster,
            Some(known) => known.holding().is_some_and(|grant| {
                grant.provider == *cluster && grant.generation < report.generation
            }),
        };
        for report in grants.iter().filter(forgotten) {
            if events.len() >= EVENTS_MAX / 2 {
                // The rest follows with the next advertisement; until then it lends nothing.
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
        let note = Note { by: Actor::Cluster(cluster.clone()), why: String::from("reported") };
        events.push(Event::Reconciled { cluster: cluster.clone(), note });
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
                events.push(Event::Ended { id: *id, reason, by, confirmation });
            }
        }
    }
}
