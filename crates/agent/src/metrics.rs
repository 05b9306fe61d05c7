//! What Prometheus sees. Every name here is described in `docs/metrics.md`; `cargo xtask tidy`
//! compares the two.
//!
//! Labels come from small fixed sets: the cardinality is known beforehand.

use std::collections::BTreeMap;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use sublet_core::instruction::Side;
use sublet_process::Word;

use crate::collect::{Measured, Standing};

/// Every name begins with this.
const PREFIX: &str = "sublet_agent";

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfKind {
    /// `nodes`, `pods` or `instructions`.
    pub what: Word,
}

/// How something went.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Went {
    /// `ok` or `failed`.
    pub result: Word,
}

/// Whether nodes count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfStanding {
    /// As they stand.
    pub standing: Word,
}

/// What is worked on.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfWork {
    /// `request` or `instruction`.
    pub what: Word,
}

/// Where requests stand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfPhase {
    /// As in their status; `New` before there is one.
    pub phase: Word,
}

/// Letters between agents that were opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfLetter {
    /// What it says, as `nonce`.
    pub kind: Word,
}

/// Letters between agents that were refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfRefusal {
    /// Why, as `signature`.
    pub reason: Word,
}

/// How links stand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfLink {
    /// What this cluster is in it: `provider` or `requester`.
    pub side: Word,
    /// `ready`, `pending` or `failed`.
    pub state: Word,
}

/// What a provider said of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfDecision {
    /// `granted`, or why not.
    pub decision: Word,
}

/// How the time of a pod that another cluster has here was cut.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfEnd {
    /// `hastened` or `removed`.
    pub how: Word,
}

/// How a run of liqoctl ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfRun {
    /// `succeeded`, or how it did not.
    pub outcome: Word,
}

/// What is counted of one watch.
#[derive(Clone, Debug, Default)]
pub struct WatchCounts {
    /// Events that came.
    pub events: Counter,
    /// Times it broke.
    pub failures: Counter,
}

/// Everything that is counted.
#[derive(Default)]
pub struct Metrics {
    registry: Registry,
    events: Family<OfKind, Counter>,
    failures: Family<OfKind, Counter>,
    nodes: Family<OfStanding, Gauge>,
    pods: Gauge,
    grants: Gauge,
    unreadable: Gauge,
    published: Family<Went, Counter>,
    rises: Counter,
    publish_milliseconds: Gauge,
    object_writes: Family<Went, Counter>,
    requests: Family<OfPhase, Gauge>,
    retries: Family<OfWork, Counter>,
    refusals: Counter,
    unacknowledged: Gauge,
    letters_opened: Family<OfLetter, Counter>,
    letters_refused: Family<OfRefusal, Counter>,
    links: Family<OfLink, Gauge>,
    link_failures: Family<OfRefusal, Counter>,
    slices: Family<OfDecision, Counter>,
    policy_repairs: Counter,
    guest_pods_ended: Family<OfEnd, Counter>,
    lending: Gauge,
    liqoctl_runs: Family<OfRun, Counter>,
    /// 1 while the broker takes what is published.
    pub broker_reached: Gauge,
    /// 1 while this agent works, and not another one of the cluster.
    pub leading: Gauge,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut metrics = Self { registry: Registry::with_prefix(PREFIX), ..Self::default() };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let all = &mut self.registry;
        all.register("watch_events", "Events of the watches", self.events.clone());
        all.register("watch_failures", "Times a watch broke", self.failures.clone());
        all.register("nodes", "Nodes by whether they count", self.nodes.clone());
        all.register("pods", "Pods on nodes that count", self.pods.clone());
        all.register("grants", "Grants that are known here", self.grants.clone());
        let unreadable = self.unreadable.clone();
        all.register("unreadable_amounts", "Amounts that are not counted", unreadable);
        all.register("published", "Advertisements to the broker", self.published.clone());
        let about = "Times that a number above another agent's was taken";
        all.register("number_rises", about, self.rises.clone());
        let took = self.publish_milliseconds.clone();
        all.register("publish_duration_milliseconds", "How long the last one took", took);
        let writes = self.object_writes.clone();
        all.register("object_writes", "Writes of the Advertisement object", writes);
        all.register("requests", "ResourceRequests by phase", self.requests.clone());
        all.register("retries", "Work that is to be tried again", self.retries.clone());
        all.register("refusals", "What the broker refused", self.refusals.clone());
        let unacknowledged = self.unacknowledged.clone();
        let about = "Instructions that the broker does not know to be carried out";
        all.register("unacknowledged_instructions", about, unacknowledged);
        let opened = self.letters_opened.clone();
        all.register("letters_opened", "Letters of other clusters that were believed", opened);
        let refused = self.letters_refused.clone();
        all.register("letters_refused", "Letters of other clusters that were not", refused);
        all.register("links", "Links that are needed", self.links.clone());
        let failures = self.link_failures.clone();
        all.register("link_failures", "Times a link that is needed could not be", failures);
        all.register("slices", "Slices that were decided about", self.slices.clone());
        let repairs = self.policy_repairs.clone();
        all.register("policy_repairs", "Admission policies that were put back", repairs);
        let ended = self.guest_pods_ended.clone();
        all.register("guest_pods_ended", "Pods beyond what is lent that were ended", ended);
        all.register("lending", "1 while what is lent can be enforced", self.lending.clone());
        all.register("liqoctl_runs", "Runs of liqoctl", self.liqoctl_runs.clone());
        let reached = self.broker_reached.clone();
        all.register("broker_reached", "1 while the broker takes what is published", reached);
        all.register("leading", "1 while this agent works", self.leading.clone());
    }

    /// The page for Prometheus.
    pub fn page(&self) -> String {
        let mut page = String::new();
        if encode(&mut page, &self.registry).is_err() {
            page.clear();
        }
        page
    }

    /// The counts of one watch.
    pub fn watch(&self, what: &'static str) -> WatchCounts {
        let kind = OfKind { what: Word(what) };
        WatchCounts {
            events: self.events.get_or_create(&kind).clone(),
            failures: self.failures.get_or_create(&kind).clone(),
        }
    }

    /// The cluster was measured.
    pub fn measured(&self, measured: &Measured) {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for (standing, count) in &measured.nodes {
            let standing = Word(standing_word(*standing));
            self.nodes.get_or_create(&OfStanding { standing }).set(gauge(*count));
        }
        self.pods.set(gauge(measured.pods));
        self.grants.set(gauge(measured.grants.len()));
        self.unreadable.set(gauge(measured.problems));
    }

    /// An advertisement went to the broker, or did not.
    pub fn published(&self, ok: bool, took: Duration) {
        self.published.get_or_create(&went(ok)).inc();
        self.publish_milliseconds.set(i64::try_from(took.as_millis()).unwrap_or(i64::MAX));
        self.broker_reached.set(i64::from(ok));
    }

    /// The broker keeps another agent's advertisement instead.
    pub fn overtaken(&self) {
        self.published.get_or_create(&Went { result: Word("overtaken") }).inc();
        self.broker_reached.set(0);
    }

    /// A number above another agent's was taken.
    pub fn risen(&self) {
        self.rises.inc();
    }

    /// There are so many requests in each phase.
    pub fn requests(&self, phases: &BTreeMap<&'static str, usize>) {
        for (phase, count) in phases {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.requests.get_or_create(&OfPhase { phase: Word(phase) }).set(count);
        }
    }

    /// A piece of work is to be tried again.
    pub fn retried(&self, what: &'static str) {
        self.retries.get_or_create(&OfWork { what: Word(what) }).inc();
    }

    /// The broker refused a request, or a change of one.
    pub fn refused(&self) {
        self.refusals.inc();
    }

    /// Of so many instructions the broker does not know that they were carried out.
    pub fn unacknowledged(&self, count: usize) {
        self.unacknowledged.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A letter of another cluster was believed.
    pub fn letter_opened(&self, kind: &'static str) {
        self.letters_opened.get_or_create(&OfLetter { kind: Word(kind) }).inc();
    }

    /// Of the links that are needed, so many are ready, pending and failed.
    pub fn links(&self, side: Side, counts: [usize; 3]) {
        let side = match side {
            Side::Provider => Word("provider"),
            Side::Requester => Word("requester"),
        };
        for (state, count) in ["ready", "pending", "failed"].into_iter().zip(counts) {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.links.get_or_create(&OfLink { side, state: Word(state) }).set(count);
        }
    }

    /// A link that is needed cannot be.
    pub fn link_failed(&self, reason: &'static str) {
        self.link_failures.get_or_create(&OfRefusal { reason: Word(reason) }).inc();
    }

    /// A slice that another cluster has here was decided about.
    pub fn slice_decided(&self, decision: &'static str) {
        self.slices.get_or_create(&OfDecision { decision: Word(decision) }).inc();
    }

    /// Somebody changed or removed an admission policy, and it was put back.
    pub fn policy_repaired(&self) {
        self.policy_repairs.inc();
    }

    /// A pod that another cluster has here, beyond what is lent to it, was made to end.
    pub fn guest_ended(&self, how: &'static str) {
        self.guest_pods_ended.get_or_create(&OfEnd { how: Word(how) }).inc();
    }

    /// What is lent can be enforced, or cannot.
    pub fn enforced(&self, is_enforced: bool) {
        self.lending.set(i64::from(is_enforced));
    }

    /// liqoctl was run.
    pub fn liqoctl_ran(&self, outcome: &'static str) {
        self.liqoctl_runs.get_or_create(&OfRun { outcome: Word(outcome) }).inc();
    }

    /// A letter of another cluster was not believed; says how many were not for this reason.
    pub fn letter_refused(&self, reason: &'static str) -> u64 {
        let refused = self.letters_refused.get_or_create(&OfRefusal { reason: Word(reason) });
        refused.inc().saturating_add(1)
    }

    /// The Advertisement object was written, or was not.
    pub fn object_written(&self, ok: bool) {
        self.object_writes.get_or_create(&went(ok)).inc();
    }
}

fn went(ok: bool) -> Went {
    Went { result: Word(if ok { "ok" } else { "failed" }) }
}

fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Virtual => "virtual",
        Standing::NotReady => "not_ready",
        Standing::Cordoned => "cordoned",
        Standing::Tainted => "tainted",
        Standing::Counted => "counted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_on_the_page() {
        let metrics = Metrics::new();
        metrics.published(true, Duration::from_millis(3));
        assert!(metrics.page().contains("sublet_agent_published_total{result=\"ok\"} 1"));
    }
}
