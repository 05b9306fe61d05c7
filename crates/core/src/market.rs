//! The soft state: what clusters last said of themselves, and how long ago.
//!
//! Lost with the process without harm: after a restart, what was kept of it is Suspect until its
//! agent is heard again. Staleness is measured from receipt by the broker's clock; an agent's own
//! clock is never compared with it.

use alloc::collections::BTreeMap;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::advertisement::Advertisement;
use crate::bugs::{Bug, planted};
use crate::id::ClusterId;
use crate::policy::Silence;
use crate::time::{Span, Time};

/// How far a cluster's word can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Freshness {
    /// Its advertisements come.
    Active,
    /// Some are overdue, or it was not heard since the broker started: not chosen for new requests.
    Suspect,
    /// Silent for so long that it counts as inactive.
    Stale,
}

impl fmt::Display for Freshness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Active => "Active",
            Self::Suspect => "Suspect",
            Self::Stale => "Stale",
        })
    }
}

/// What is kept of one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its newest advertisement.
    pub advertisement: Advertisement,
    /// When the broker received it.
    pub received_at: Time,
    /// The time between its advertisements, as observed; none before the second one.
    pub interval: Option<Span>,
    /// Heard by this process, not only remembered from an earlier one.
    #[serde(skip)]
    pub heard: bool,
    /// Since when this process could have heard it.
    #[serde(skip)]
    pub listening_since: Time,
    /// The same number came again: a copy, which says nothing of how things are now.
    #[serde(skip)]
    pub repeated: bool,
}

impl Entry {
    /// How long it has been silent, as far as this process can say: the time in which no broker
    /// listened is not its silence.
    pub fn silent_for(&self, now: Time) -> Span {
        now.since(self.received_at.max(self.listening_since))
    }

    /// From which age on it is Suspect.
    pub fn suspect_after(&self, silence: &Silence) -> Span {
        let intervals = self.interval.unwrap_or_default().as_millis();
        let expected = Span::from_millis(intervals.saturating_mul(u64::from(silence.intervals)));
        expected.max(silence.suspect_min)
    }

    /// How far its word can be relied on at `now`.
    pub fn freshness(&self, silence: &Silence, now: Time) -> Freshness {
        let age = now.since(self.received_at);
        if silence.is_stale(self.received_at, now) {
            Freshness::Stale
        } else if !self.heard || age >= self.suspect_after(silence) {
            Freshness::Suspect
        } else {
            Freshness::Active
        }
    }

    /// What is worth noting of it for a later process: not the grants, because nothing is lent there
    /// before they are reported anew, and so not the pods inside them either, which would be counted
    /// beside what is held.
    #[must_use]
    pub fn to_be_noted(mut self) -> Self {
        let said = &mut self.advertisement;
        for grant in said.grants.take().into_iter().flatten() {
            said.allocated = said.allocated.minus_floor(&grant.used);
        }
        self
    }

    /// The interval after another gap: it follows a longer gap at once and a shorter one slowly,
    /// because an agent also publishes early when something changed. A gap in which the cluster
    /// became Suspect may have been an outage, so it counts with at most twice what was known: an
    /// agent that was slowed down is understood after a few, and one that failed is soon forgiven.
    fn interval_after(&self, now: Time, silence: &Silence) -> Option<Span> {
        let gap = now.since(self.received_at);
        if !self.heard || gap >= silence.stale_after {
            return self.interval;
        }
        let Some(old) = self.interval else { return Some(gap) };
        let twice = Span::from_millis(old.as_millis().saturating_mul(2));
        let gap = if gap < self.suspect_after(silence) { gap } else { gap.min(twice) };
        let mean = old.as_millis().saturating_mul(3).saturating_add(gap.as_millis()) / 4;
        Some(gap.max(Span::from_millis(mean)))
    }
}

/// The soft state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Market {
    entries: BTreeMap<ClusterId, Entry>,
    listening_since: Option<Time>,
}

impl Market {
    /// Since when this process could have heard anybody; none where nobody listens.
    pub fn listening_since(&self) -> Option<Time> {
        self.listening_since
    }

    /// How long a cluster has been silent, as far as this process can say; none where it says nothing
    /// because nobody listens.
    pub fn silent_for(&self, cluster: &ClusterId, now: Time) -> Option<Span> {
        let heard = self.entry(cluster).map(|entry| entry.silent_for(now));
        heard.or_else(|| self.listening_since.map(|since| now.since(since)))
    }

    /// From now on this process can hear everybody.
    pub(crate) fn listen(&mut self, now: Time) {
        self.listening_since = Some(now);
    }

    /// What is kept of one cluster.
    pub fn entry(&self, cluster: &ClusterId) -> Option<&Entry> {
        self.entries.get(cluster)
    }

    /// All clusters, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&ClusterId, &Entry)> {
        self.entries.iter()
    }

    /// Is `advertisement` newer than what is kept? The same one is where it was only remembered: it
    /// says that the cluster is there. One without a number is, unless a numbered one came lately: then
    /// it is a late word of an old agent that was replaced, and must not pass for the new one's. That
    /// an agent was replaced by an old one is understood when the numbers have stopped for a while.
    pub fn is_news(&self, advertisement: &Advertisement, now: Time, silence: &Silence) -> bool {
        let Some(entry) = self.entry(&advertisement.cluster) else { return true };
        match (entry.advertisement.number, advertisement.number) {
            (Some(known), Some(new)) => {
                new > known || (new == known && !entry.heard) || planted(Bug::OlderAdvertWins)
            }
            (Some(_), None) => entry.silent_for(now) >= entry.suspect_after(silence),
            (None, _) => true,
        }
    }

    /// Takes an advertisement that just arrived.
    pub(crate) fn hear(&mut self, advertisement: Advertisement, now: Time, silence: &Silence) {
        let interval =
            self.entry(&advertisement.cluster).and_then(|entry| entry.interval_after(now, silence));
        let cluster = advertisement.cluster.clone();
        let (received_at, listening_since) = (now, now);
        let (heard, repeated) = (true, false);
        let entry =
            Entry { advertisement, received_at, interval, heard, listening_since, repeated };
        self.entries.insert(cluster, entry);
    }

    /// Takes an advertisement that is not news.
    pub(crate) fn hear_again(&mut self, advertisement: &Advertisement) {
        if let Some(entry) = self.entries.get_mut(&advertisement.cluster) {
            entry.repeated |= entry.advertisement.number == advertisement.number;
        }
    }

    /// Takes back that copies of an advertisement came.
    pub(crate) fn hear_as_news(&mut self, advertisement: &Advertisement) {
        if let Some(entry) = self.entries.get_mut(&advertisement.cluster) {
            entry.repeated &= entry.advertisement.number != advertisement.number;
        }
    }

    /// Takes what an earlier process had noted; it stays Suspect until it is heard.
    pub(crate) fn remember(&mut self, entry: Entry, now: Time) {
        let cluster = entry.advertisement.cluster.clone();
        let entry = Entry { heard: false, listening_since: now, ..entry };
        self.entries.entry(cluster).or_insert(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::Resources;

    fn after(gaps_s: &[u64]) -> (Market, ClusterId, Time) {
        let (mut market, mut now) = (Market::default(), Time::from_millis(0));
        let cluster: ClusterId = "c1".parse().unwrap();
        for gap in [0].iter().chain(gaps_s) {
            now = now.checked_add(Span::from_secs(*gap)).unwrap();
            let none = Resources::default();
            let word = Advertisement::plain(cluster.clone(), none.clone(), none);
            market.hear(word, now, &Silence::default());
        }
        (market, cluster, now)
    }

    fn suspect_after(gaps_s: &[u64]) -> u64 {
        let (market, cluster, _) = after(gaps_s);
        market.entry(&cluster).unwrap().suspect_after(&Silence::default()).as_millis() / 1000
    }

    #[test]
    fn a_cluster_is_suspect_after_three_of_its_own_intervals_but_at_least_90_seconds() {
        assert_eq!(suspect_after(&[]), 90);
        assert_eq!(suspect_after(&[30, 30, 30]), 90);
        assert_eq!(suspect_after(&[120]), 360);
    }

    #[test]
    fn an_agent_that_was_slowed_down_is_understood_and_an_outage_is_forgiven() {
        assert_eq!(suspect_after(&[30, 30, 120, 120, 120]), 360);
        assert!(suspect_after(&[30, 30, 500]) <= 180);
        let calm = [30; 20];
        assert_eq!(suspect_after(&[&[30, 500][..], &calm[..]].concat()), 90);
        assert_eq!(suspect_after(&[30, 30, 3600]), 90);
    }

    #[test]
    fn what_was_only_remembered_is_suspect_until_it_is_heard() {
        let (market, cluster, now) = after(&[30]);
        let entry = market.entry(&cluster).unwrap().clone();
        assert_eq!(entry.freshness(&Silence::default(), now), Freshness::Active);
        let mut restarted = Market::default();
        restarted.remember(entry, now);
        let entry = restarted.entry(&cluster).unwrap();
        assert_eq!(entry.freshness(&Silence::default(), now), Freshness::Suspect);
        let later = now.checked_add(Span::from_secs(600)).unwrap();
        assert_eq!(entry.freshness(&Silence::default(), later), Freshness::Stale);
    }

    #[test]
    fn the_time_in_which_no_broker_listened_is_not_a_clusters_silence() {
        let (market, cluster, now) = after(&[30]);
        let entry = market.entry(&cluster).unwrap().clone();
        let back = now.checked_add(Span::from_secs(3600)).unwrap();
        let mut restarted = Market::default();
        restarted.remember(entry, back);
        let entry = restarted.entry(&cluster).unwrap();
        assert_eq!(entry.silent_for(back), Span::ZERO);
        let later = back.checked_add(Span::from_secs(5)).unwrap();
        assert_eq!(entry.silent_for(later), Span::from_secs(5));
    }
}
