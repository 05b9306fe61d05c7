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
}

impl Entry {
    /// From which age on it is Suspect.
    pub fn suspect_after(&self, silence: &Silence) -> Span {
        let intervals = self.interval.unwrap_or_default().as_millis();
        let expected = Span::from_millis(intervals.saturating_mul(u64::from(silence.intervals)));
        expected.max(silence.suspect_min)
    }

    /// How far its word can be relied on at `now`.
    pub fn freshness(&self, silence: &Silence, now: Time) -> Freshness {
        let age = now.since(self.received_at);
        if age >= silence.stale_after {
            Freshness::Stale
        } else if !self.heard || age >= self.suspect_after(silence) {
            Freshness::Suspect
        } else {
            Freshness::Active
        }
    }

    /// The interval after another gap: it follows a longer gap at once and a shorter one slowly,
    /// because an agent also publishes early when something changed. A gap in which the cluster
    /// became Suspect was an outage and says nothing about its habits.
    fn interval_after(&self, now: Time, silence: &Silence) -> Option<Span> {
        let gap = now.since(self.received_at);
        if !self.heard || gap >= self.suspect_after(silence) {
            return self.interval;
        }
        let Some(old) = self.interval else {
            return Some(gap);
        };
        let mean = old.as_millis().saturating_mul(3).saturating_add(gap.as_millis()) / 4;
        Some(gap.max(Span::from_millis(mean)))
    }
}

/// The soft state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Market {
    entries: BTreeMap<ClusterId, Entry>,
}

impl Market {
    /// What is kept of one cluster.
    pub fn entry(&self, cluster: &ClusterId) -> Option<&Entry> {
        self.entries.get(cluster)
    }

    /// All clusters, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&ClusterId, &Entry)> {
        self.entries.iter()
    }

    /// Is `advertisement` newer than what is kept? Unnumbered ones always are.
    pub fn is_news(&self, advertisement: &Advertisement) -> bool {
        let known = self.entry(&advertisement.cluster).and_then(|e| e.advertisement.number);
        match (known, advertisement.number) {
            (Some(known), Some(new)) => new > known || planted(Bug::OlderAdvertWins),
            _ => true,
        }
    }

    /// Takes an advertisement that just arrived.
    pub(crate) fn hear(&mut self, advertisement: Advertisement, now: Time, silence: &Silence) {
        let interval =
            self.entry(&advertisement.cluster).and_then(|entry| entry.interval_after(now, silence));
        let cluster = advertisement.cluster.clone();
        let entry = Entry { advertisement, received_at: now, interval, heard: true };
        self.entries.insert(cluster, entry);
    }

    /// Takes what an earlier process had noted; it stays Suspect until it is heard.
    pub(crate) fn remember(&mut self, entry: Entry) {
        let cluster = entry.advertisement.cluster.clone();
        self.entries.entry(cluster).or_insert(Entry { heard: false, ..entry });
    }

    pub(crate) fn remove(&mut self, cluster: &ClusterId) -> Option<Entry> {
        self.entries.remove(cluster)
    }
}
