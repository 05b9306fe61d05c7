//! What the broker knows of a cluster: for itself, and for operators of all.

use std::collections::BTreeMap;

use serde::Serialize;
use sublet_core::books::Books;
use sublet_core::decision::score::status_score;
use sublet_core::event::Subject;
use sublet_core::id::ClusterId;
use sublet_core::market::{Entry, Freshness};
use sublet_core::policy::Policy;
use sublet_core::resources::Resources;
use sublet_core::time::Time;

use super::{Amounts, Capabilities, Cost, Note, Quantities, ResourceMetrics, is_false};
use crate::Timestamp;
use crate::decode::object;

/// What the broker knows of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent yes or no on the wire")]
pub struct Cluster {
    /// Who.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// `Active`, `Suspect`, `Stale`, or `Unknown` when it has never advertised.
    pub freshness: String,
    /// What it has; absent when it has never advertised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceMetrics>,
    /// What is held elsewhere for it.
    pub borrowed: Quantities,
    /// How many reservations it lends for.
    pub lending_count: u64,
    /// How many of its own are live, the waiting ones included.
    pub borrowing_count: u64,
    /// The Go system's score, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<String>,
    /// When the broker received its newest advertisement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_at: Option<Timestamp>,
    /// How long ago that was, as a Go duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What lending costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What its agent can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Whether it lends now, as far as it is up to itself.
    pub lending: bool,
    /// It says that it has less than is held on it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overcommitted: bool,
    /// It must report before it lends again after a restore.
    #[serde(default, skip_serializing_if = "is_false")]
    pub awaits_report: bool,
    /// What it lends is being taken back.
    #[serde(default, skip_serializing_if = "is_false")]
    pub draining: bool,
    /// Nothing new is granted there: who decided it, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordoned: Option<Note>,
    /// It was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Note>,
    /// Its certificates are not believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Note>,
    /// The most that it lends in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Amounts>,
}

/// A page of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct ClusterList {
    /// By name.
    pub clusters: Vec<Cluster>,
    /// Where the next page begins: send it as `after`. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

object!(Cluster {
    "clusterID" => cluster_id,
    "freshness" => freshness,
    "resources" => resources,
    "borrowed" => borrowed,
    "lendingCount" => lending_count,
    "borrowingCount" => borrowing_count,
    "score" => score,
    "receivedAt" => received_at,
    "age" => age,
    "labels" => labels,
    "cost" => cost,
    "capabilities" => capabilities,
    "lending" => lending,
    "overcommitted" => overcommitted,
    "awaitsReport" => awaits_report,
    "draining" => draining,
    "cordoned" => cordoned,
    "lost" => lost,
    "revoked" => revoked,
    "cap" => cap,
});
object!(ClusterList { "clusters" => clusters, "next" => next });

impl Cluster {
    /// What the books know of `cluster`; nothing when they have never heard of it.
    pub fn of(books: &Books, cluster: &ClusterId, policy: &Policy, now: Time) -> Option<Self> {
        let (entry, account) = (books.market().entry(cluster), books.ledger().account(cluster));
        let standing = books.ledger().standing(cluster);
        let revoked = books.ledger().revoked().get(&Subject::Cluster(cluster.clone()));
        if entry.is_none() && account.is_none() && standing.is_none() && revoked.is_none() {
            return None;
        }
        let mut shown = Self {
            cluster_id: cluster.to_string(),
            freshness: "Unknown".to_owned(),
            borrowed: account
                .map_or_else(|| (&Resources::default()).into(), |a| (&a.borrowed).into()),
            lending_count: account.map_or(0, |account| count(account.lending.len())),
            borrowing_count: account.map_or(0, |account| count(account.borrowing.len())),
            awaits_report: books.ledger().awaits_report(cluster),
            revoked: revoked.map(Note::from),
            ..Self::default()
        };
        if let Some(entry) = entry {
            shown.set_advertised(books, entry, policy, now);
        }
        if let Some(standing) = standing {
            shown.draining = standing.draining;
            shown.cordoned = standing.cordon.as_ref().map(Note::from);
            shown.lost = standing.lost.as_ref().map(Note::from);
            shown.cap = (!standing.cap.0.is_empty()).then(|| (&standing.cap).into());
        }
        Some(shown)
    }

    fn set_advertised(&mut self, books: &Books, entry: &Entry, policy: &Policy, now: Time) {
        let known = &entry.advertisement;
        let freshness = entry.freshness(&policy.silence, now);
        let room = books.room(&known.cluster);
        self.freshness = freshness.to_string();
        self.resources = Some(ResourceMetrics::of(books, known));
        self.score = (freshness != Freshness::Stale)
            .then(|| status_score(&room, &known.allocatable).to_string());
        self.received_at = Some(entry.received_at.into());
        self.age = Some(now.since(entry.received_at).to_string());
        self.labels.clone_from(&known.labels);
        self.cost = known.cost.as_ref().map(Cost::from);
        self.capabilities = Some((&known.capabilities).into());
        self.lending = known.lending;
        self.overcommitted = books.is_overcommitted(&known.cluster);
    }
}

/// A length as a number that every machine writes alike.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
