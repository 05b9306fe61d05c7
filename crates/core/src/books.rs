//! Ledger and market side by side, with what follows from both: what is free, and where.
//!
//! `available = allocatable − allocated − held`, where pods that run inside a grant are counted
//! once. They are in `allocated` already, so of each grant only what it holds beyond its use is
//! subtracted: `held − covered`, with `covered` the sum of `min(held, used)`. A grant that the
//! provider still reports although the ledger holds it no longer (a restore, a provider that was
//! given up and is back) is a *ghost*: the provider keeps room for it, so we do not lend it again
//! until it is gone or the provider has confirmed its end.

mod lender;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{vec, vec::Vec};

use crate::advertisement::Advertisement;
use crate::bugs::{Bug, planted};
use crate::decision::filter::Filter;
use crate::decision::index::{Index, Note, Row};
use crate::decision::labels::Labels;
use crate::event::{Basis, Event, Subject};
use crate::id::{ClusterId, ReservationId};
use crate::ledger::{Change, Error, Ledger, Stamp};
use crate::market::{Entry, Freshness, Market};
use crate::policy::{Policy, Silence};
use crate::reservation::{Reservation, State};
use crate::resources::Resources;
use crate::time::Time;

pub(crate) use lender::Lender;
pub use lender::Overlap;

/// Ledger and market side by side.
#[derive(Clone, Debug, Default)]
pub struct Books {
    ledger: Ledger,
    market: Market,
    overlaps: BTreeMap<ClusterId, Overlap>,
    index: Index,
    labels: Labels,
}

/// How to take back one event in the books.
#[derive(Debug)]
pub struct Reversal {
    change: Change,
    touched: Vec<(ClusterId, ReservationId)>,
    standing: Standing,
}

/// Whose standing an event changes.
#[derive(Clone, Debug)]
enum Standing {
    Nobody,
    One(ClusterId),
    Everybody,
}

impl Books {
    /// Books on a ledger that was read from the log; the market is empty.
    pub fn new(ledger: Ledger) -> Self {
        Self { ledger, ..Self::default() }
    }

    /// The same of a process that can be spoken to from now on.
    #[must_use]
    pub fn listening(mut self, now: Time) -> Self {
        self.market.listen(now);
        self
    }

    /// The hard half.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The soft half.
    pub fn market(&self) -> &Market {
        &self.market
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Folds one event into the ledger and into what follows from it.
    pub fn apply(&mut self, stamp: Stamp, event: &Event) -> Result<Reversal, Error> {
        let touched = self.touched(event);
        let standing = match event {
            Event::Restored { .. } => Standing::Everybody,
            Event::Revoked { subject: Subject::Cluster(cluster), .. }
            | Event::Reinstated { subject: Subject::Cluster(cluster), .. } => {
                Standing::One(cluster.clone())
            }
            _ => event.cluster().cloned().map_or(Standing::Nobody, Standing::One),
        };
        let result = self.keeping_count(&touched, |ledger| ledger.apply(stamp, event));
        self.reindex_standing(&standing);
        result.map(|change| Reversal { change, touched, standing })
    }

    /// Takes back the newest event that was not taken back yet.
    pub fn revert(&mut self, reversal: Reversal) -> Result<(), Error> {
        let Reversal { change, touched, standing } = reversal;
        let result = self.keeping_count(&touched, |ledger| ledger.revert(change));
        self.reindex_standing(&standing);
        result
    }

    /// Moves the ledger on to a record whose events have been applied.
    pub fn advance(&mut self, stamp: Stamp) -> Result<(), Error> {
        self.ledger.advance(stamp)
    }

    /// Takes an advertisement that just arrived; an older one than is known changes nothing. Says
    /// whether something may fit now that did not before.
    pub fn hear(&mut self, advertisement: Advertisement, now: Time, silence: &Silence) -> bool {
        if !self.market.is_news(&advertisement, now, silence) {
            self.market.hear_again(&advertisement);
            return false;
        }
        let cluster = advertisement.cluster.clone();
        let before = self.market.entry(&cluster).map(|entry| {
            let Advertisement { labels, capabilities, lending, grants, .. } = &entry.advertisement;
            let same = *labels == advertisement.labels
                && *capabilities == advertisement.capabilities
                && *lending == advertisement.lending
                && grants.is_some() == advertisement.grants.is_some();
            let fresh = entry.freshness(silence, now) == Freshness::Active;
            (self.lendable(&cluster), same && fresh)
        });
        let known = self.market.entry(&cluster).map(|entry| &entry.advertisement.labels);
        self.labels.replace(&cluster, known, &advertisement.labels);
        self.market.hear(advertisement, now, silence);
        self.overlap_anew(&cluster);
        before.is_none_or(|(room, same)| !same || !self.lendable(&cluster).fits_in(&room))
    }

    /// What is free on a provider, unless it has less than is held on it.
    fn lendable(&self, provider: &ClusterId) -> Resources {
        let over = self.is_overcommitted(provider);
        if over { Resources::default() } else { self.room(provider) }
    }

    /// An advertisement that was heard, and was news then, is planned again: copies of it that were
    /// heard since do not count yet.
    pub fn hear_as_news(&mut self, advertisement: &Advertisement) {
        self.market.hear_as_news(advertisement);
    }

    /// Takes what an earlier process had noted of the market.
    pub fn remember(&mut self, entry: Entry, now: Time) {
        let cluster = entry.advertisement.cluster.clone();
        if self.market.entry(&cluster).is_none() {
            self.labels.replace(&cluster, None, &entry.advertisement.labels);
        }
        self.market.remember(entry, now);
        self.overlap_anew(&cluster);
    }

    /// What follows for a provider from its reports and the ledger together.
    pub fn overlap(&self, provider: &ClusterId) -> Overlap {
        self.overlaps.get(provider).cloned().unwrap_or_default()
    }

    /// The ground on which capacity can be taken from a provider at `now`. What was heard while the
    /// record of that time was already open counts as just heard: a basis never comes from after
    /// its record.
    pub fn basis(&self, provider: &ClusterId, policy: &Policy, now: Time) -> Option<Basis> {
        self.market.entry(provider).map(|entry| self.basis_of(entry, policy, now))
    }

    /// The same, where what the provider said is at hand.
    pub(crate) fn basis_of(&self, entry: &Entry, policy: &Policy, now: Time) -> Basis {
        let advertisement = &entry.advertisement;
        let Overlap { covered, ghosts } = self.overlap(&advertisement.cluster);
        Basis {
            number: advertisement.number,
            received_at: entry.received_at.min(now),
            suspect_after: entry.suspect_after(&policy.silence),
            allocatable: advertisement.allocatable.clone(),
            allocated: advertisement.allocated.clone(),
            covered,
            ghosts,
            unreported: advertisement.grants.is_none(),
        }
    }

    /// What is known of the provider that said this.
    pub(crate) fn lender<'a>(&'a self, entry: &'a Entry) -> Lender<'a> {
        let cluster = &entry.advertisement.cluster;
        let (account, standing) = (self.ledger.account(cluster), self.ledger.standing(cluster));
        Lender { entry, account, standing, overlap: self.overlaps.get(cluster) }
    }

    /// Until when what waited already before the last restore neither is granted nor ends for its
    /// time: it may have been granted since the backup, by a provider that the restored log does not
    /// know. Whoever has that has reported it by then, or is inactive.
    pub fn doubted_until(&self, silence: &Silence) -> Option<Time> {
        let restored = self.ledger.restored()?.time;
        let heard_from = self.market.listening_since().map_or(restored, |time| time.max(restored));
        heard_from.checked_add(silence.stale_after)
    }

    /// Until when this one is held back for that, if it still is at `now`.
    pub(crate) fn held_back_until(
        &self,
        reservation: &Reservation,
        silence: &Silence,
        now: Time,
    ) -> Option<Time> {
        let restored = self.ledger.restored()?.revision;
        let waits = matches!(reservation.state, State::Pending { .. });
        let until = self.doubted_until(silence)?;
        (waits && reservation.changed < restored && now < until).then_some(until)
    }

    /// What is held on a provider for others.
    pub fn held(&self, provider: &ClusterId) -> Resources {
        self.ledger.account(provider).map(|account| account.lent.clone()).unwrap_or_default()
    }

    /// What can still be lent by a provider: free there, and under its cap.
    pub fn room(&self, provider: &ClusterId) -> Resources {
        self.market.entry(provider).map(|entry| self.lender(entry).room()).unwrap_or_default()
    }

    /// Does a provider say that it has less than is held on it? Then it is flagged, nothing new is
    /// granted there, and nothing is dropped.
    pub fn is_overcommitted(&self, provider: &ClusterId) -> bool {
        let entry = self.market.entry(provider);
        entry.is_some_and(|entry| !self.shortage(entry).is_zero())
    }

    /// How much a provider has too little of what is held on it.
    pub(crate) fn shortage(&self, entry: &Entry) -> Resources {
        self.lender(entry).shortage()
    }
}

/// What is derived.
impl Books {
    /// The grants whose count an event changes, with their providers.
    fn touched(&self, event: &Event) -> Vec<(ClusterId, ReservationId)> {
        let known = |id: &ReservationId| {
            let grant = self.ledger.reservation(*id)?.grant()?;
            Some((grant.provider.clone(), *id))
        };
        match event {
            Event::Reserved { id, provider, .. }
            | Event::Granted { id, provider, .. }
            | Event::Adopted { id, provider, .. } => {
                vec![(provider.clone(), *id)]
            }
            Event::Forgotten { reservations, .. } => {
                // Each once, also where a record names it twice.
                let once: BTreeSet<_> = reservations.iter().collect();
                once.into_iter().filter_map(known).collect()
            }
            _ => event.reservation().as_ref().and_then(known).into_iter().collect(),
        }
    }

    /// Changes the ledger and moves the parts of `touched` in the overlaps along with it.
    fn keeping_count<T>(
        &mut self,
        touched: &[(ClusterId, ReservationId)],
        change: impl FnOnce(&mut Ledger) -> T,
    ) -> T {
        let Self { ledger, market, overlaps, .. } = self;
        let report = |(provider, id): &(ClusterId, ReservationId)| {
            market.entry(provider)?.advertisement.grant(*id)
        };
        let reported: Vec<_> =
            touched.iter().filter_map(|one| Some((&one.0, report(one)?))).collect();
        for (provider, report) in &reported {
            let part = Overlap::part(ledger, provider, report);
            let overlap = overlaps.entry((*provider).clone()).or_default();
            overlap.covered = overlap.covered.minus_floor(&part.covered);
            overlap.ghosts = overlap.ghosts.minus_floor(&part.ghosts);
        }
        let result = change(ledger);
        for (provider, report) in reported {
            let part = Overlap::part(ledger, provider, report);
            overlaps.entry(provider.clone()).or_default().add(&part);
        }
        if !planted(Bug::LateSum) {
            for (provider, _) in touched {
                self.reindex(provider);
            }
        }
        result
    }

    /// Counts the overlap of a provider from zero; returns what it is.
    pub(crate) fn overlap_from_zero(&self, provider: &ClusterId) -> Overlap {
        let mut counted = Overlap::default();
        let grants = self.market.entry(provider).and_then(|e| e.advertisement.grants.as_deref());
        for report in grants.unwrap_or_default() {
            counted.add(&Overlap::part(&self.ledger, provider, report));
        }
        counted
    }
    fn overlap_anew(&mut self, cluster: &ClusterId) {
        let overlap = self.overlap_from_zero(cluster);
        if overlap == Overlap::default() {
            self.overlaps.remove(cluster);
        } else {
            self.overlaps.insert(cluster.clone(), overlap);
        }
        self.reindex(cluster);
    }

    fn reindex(&mut self, cluster: &ClusterId) {
        let Some(entry) = self.market.entry(cluster) else {
            return;
        };
        let lender = self.lender(entry);
        let row = Row {
            room: lender.room(),
            allocatable: entry.advertisement.allocatable.clone(),
            cost: entry.advertisement.cost.clone(),
            note: self.note(&lender),
        };
        self.index.set(cluster, row);
    }

    fn reindex_standing(&mut self, standing: &Standing) {
        match standing {
            Standing::Nobody => {}
            Standing::One(cluster) => self.reindex(cluster),
            Standing::Everybody => {
                let all: Vec<_> = self.market.entries().map(|(id, _)| id.clone()).collect();
                for cluster in &all {
                    self.reindex(cluster);
                }
            }
        }
    }

    pub(crate) fn note(&self, lender: &Lender<'_>) -> Note {
        let entry = lender.entry;
        Note {
            closed: Filter::CLOSING.into_iter().find(|one| one.closes(self, lender)),
            backends: entry.advertisement.capabilities.backends,
            received_at: entry.received_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn only_a_word_that_may_admit_somebody_says_so() {
        let (mut books, silence) = (Books::default(), Silence::default());
        let now = Time::from_millis(1_800_000_000_000);
        let word = |cpu| {
            let cluster = "c1".parse().unwrap();
            Advertisement::plain(cluster, Resources::new(cpu, 10), Resources::default())
        };
        assert!(books.hear(word(10), now, &silence), "the first");
        assert!(!books.hear(word(10), now, &silence), "the same again");
        assert!(!books.hear(word(9), now, &silence), "less");
        assert!(books.hear(word(10), now, &silence), "more");
        let mut labelled = word(10);
        labelled.labels.insert("zone".into(), "a".into());
        assert!(books.hear(labelled.clone(), now, &silence), "another label");
        let later = now.checked_add(Span::from_secs(3600)).unwrap();
        assert!(books.hear(labelled, later, &silence), "back after a silence");
    }
}
