//! What Prometheus sees. Every name here is described in `docs/metrics.md`; `cargo xtask tidy`
//! compares the two.
//!
//! Labels come from small fixed sets, never from clients: the cardinality is known beforehand.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
pub use sublet_process::Word;

/// Every name begins with this.
const PREFIX: &str = "sublet_broker";
/// From half a millisecond to the longest that a request may take.
const SECONDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Answered {
    /// The route, as the table of routes names it.
    pub route: Word,
    /// The status.
    pub status: u16,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfRoute {
    /// As the table of routes names it.
    pub route: Word,
}

/// Something that was looked at again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reloaded {
    /// `tls`, `metrics_tls` or `policy`.
    pub what: Word,
    /// `ok` or `refused`.
    pub result: Word,
}

/// What was reloaded last, and whether it could be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfFile {
    /// `tls`, `metrics_tls` or `policy`.
    pub what: Word,
}

/// Something that was turned away, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Because {
    /// Why.
    pub reason: Word,
}

/// A phase of reservations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfPhase {
    /// Which.
    pub phase: Word,
}

/// A freshness of clusters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfFreshness {
    /// Which.
    pub freshness: Word,
}

/// Everything that is counted.
pub struct Metrics {
    registry: Registry,
    /// Requests that were answered.
    pub requests: Family<Answered, Counter>,
    /// How long they took.
    pub request_seconds: Family<OfRoute, Histogram>,
    /// Requests in work.
    pub in_flight: Gauge,
    /// Connections that are open.
    pub connections: Gauge,
    /// Connections that were turned away.
    pub connections_refused: Family<Because, Counter>,
    /// Streams that are open.
    pub streams: Gauge,
    /// Messages between agents that are kept.
    pub messages: Gauge,
    /// How long they are together.
    pub message_bytes: Gauge,
    /// Messages that were handed to a stream.
    pub messages_delivered: Counter,
    /// Requests that got no turn or no permission.
    pub denied: Family<Because, Counter>,
    /// Files that were read again and had changed.
    pub reloads: Family<Reloaded, Counter>,
    /// 1 while the newest files cannot be used.
    pub reload_failing: Family<OfFile, Gauge>,
    /// 1 while the broker serves.
    pub up: Gauge,
    /// Reservations that were granted.
    pub granted: Counter,
    /// Requests that were refused.
    pub refused: Family<Because, Counter>,
    /// Reservations by phase, as of the last look.
    pub reservations: Family<OfPhase, Gauge>,
    /// Clusters by freshness, as of the last look.
    pub clusters: Family<OfFreshness, Gauge>,
    /// The revision of the log, as of the last look.
    pub revision: Gauge,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix(PREFIX),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            connections_refused: Family::default(),
            streams: Gauge::default(),
            messages: Gauge::default(),
            message_bytes: Gauge::default(),
            messages_delivered: Counter::default(),
            denied: Family::default(),
            reloads: Family::default(),
            reload_failing: Family::default(),
            up: Gauge::default(),
            granted: Counter::default(),
            refused: Family::default(),
            reservations: Family::default(),
            clusters: Family::default(),
            revision: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let all = &mut self.registry;
        all.register("requests", "Requests that were answered", self.requests.clone());
        let seconds = self.request_seconds.clone();
        all.register("request_duration_seconds", "How long requests took", seconds);
        all.register("requests_in_flight", "Requests in work", self.in_flight.clone());
        all.register("connections", "Connections that are open", self.connections.clone());
        let refused = self.connections_refused.clone();
        all.register("connections_refused", "Connections that were turned away", refused);
        all.register("streams", "Instruction streams that are open", self.streams.clone());
        all.register("messages", "Messages between agents that are kept", self.messages.clone());
        let bytes = self.message_bytes.clone();
        all.register("message_bytes", "How long they are together", bytes);
        let delivered = self.messages_delivered.clone();
        all.register("messages_delivered", "Messages that were handed to a stream", delivered);
        let denied = self.denied.clone();
        all.register("denied", "Requests without permission or without a turn", denied);
        let reloads = self.reloads.clone();
        all.register("reloads", "Changed files that were read again", reloads);
        let failing = self.reload_failing.clone();
        all.register("reload_failing", "1 while the newest files cannot be used", failing);
        all.register("up", "1 while the broker serves", self.up.clone());
        all.register("reservations_granted", "Reservations granted", self.granted.clone());
        let refused = self.refused.clone();
        all.register("reservations_refused", "Requests for capacity refused", refused);
        all.register("reservations", "Reservations by phase", self.reservations.clone());
        all.register("clusters", "Clusters by freshness", self.clusters.clone());
        all.register("log_revision", "The revision of the log", self.revision.clone());
    }

    /// The page for Prometheus.
    pub fn page(&self) -> String {
        let mut page = String::new();
        if encode(&mut page, &self.registry).is_err() {
            page.clear();
        }
        page
    }

    /// A changed file was read again.
    pub fn reloaded(&self, what: &'static str, ok: bool) {
        let result = Word(if ok { "ok" } else { "refused" });
        self.reloads.get_or_create(&Reloaded { what: Word(what), result }).inc();
        self.reload_failing.get_or_create(&OfFile { what: Word(what) }).set(i64::from(!ok));
    }

    /// A request was answered after `took`.
    pub fn answered(&self, route: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&Answered { route: Word(route), status }).inc();
        let seconds = self.request_seconds.get_or_create(&OfRoute { route: Word(route) });
        seconds.observe(took.as_secs_f64());
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
