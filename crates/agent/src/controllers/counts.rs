//! What of the work is counted for Prometheus.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sublet_core::instruction::{Duty, Side};
use sublet_crds::{RequestPhase, ResourceRequest};
use tokio::time::Instant;

use super::instruction::Seen;
use super::queue::{Key, Outcome};
use crate::metrics::Metrics;

/// Everything is counted anew at most this often, and only after something happened.
const EVERY: Duration = Duration::from_secs(1);

/// Counts what there is.
pub(crate) struct Counts {
    metrics: Arc<Metrics>,
    due: Option<Instant>,
}

impl Counts {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, due: None }
    }

    /// When to count next; never, while nothing happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Something happened.
    pub(crate) fn touch(&mut self, now: Instant) {
        self.due.get_or_insert(now + EVERY);
    }

    /// A piece of work is over.
    pub(crate) fn worked(&self, key: &Key, outcome: Outcome) {
        if matches!(outcome, Outcome::Retry(_) | Outcome::Barred(_)) {
            let what = match key {
                Key::Request(..) => "request",
                Key::Instruction(..) => "instruction",
            };
            self.metrics.retried(what);
        }
    }

    /// Counts all there is.
    pub(crate) fn take<'a>(
        &mut self,
        requests: impl Iterator<Item = &'a ResourceRequest>,
        instructions: impl Iterator<Item = Seen>,
    ) {
        let mut phases: BTreeMap<_, usize> = WORDS.iter().map(|word| (*word, 0)).collect();
        for request in requests {
            let phase = request.status.as_ref().and_then(|status| status.phase);
            *phases.entry(word(phase)).or_default() += 1;
        }
        self.metrics.requests(&phases);
        self.metrics.unacknowledged(instructions.filter(is_unacknowledged).count());
        self.due = None;
    }
}

const WORDS: [&str; 7] =
    ["New", "Pending", "Reserved", "Active", "Releasing", "Released", "Failed"];

fn word(phase: Option<RequestPhase>) -> &'static str {
    match phase {
        None | Some(RequestPhase::Other) => "New",
        Some(RequestPhase::Pending) => "Pending",
        Some(RequestPhase::Reserved) => "Reserved",
        Some(RequestPhase::Active) => "Active",
        Some(RequestPhase::Releasing) => "Releasing",
        Some(RequestPhase::Released) => "Released",
        Some(RequestPhase::Failed) => "Failed",
    }
}

/// Is there something of which the broker has not heard that it was carried out? An old one never does.
/// A requester confirms nothing but that something is in force: of what ends, its provider does.
fn is_unacknowledged(seen: &Seen) -> bool {
    let order = seen.order.as_ref();
    let order = order.filter(|it| it.side == Side::Provider || it.duty == Duty::Keep);
    let number = order.and_then(|order| order.generation);
    number.is_some_and(|number| seen.standing.acknowledged != Some(number.0))
}

#[cfg(test)]
mod tests {
    use super::super::instruction::Standing;
    use super::*;
    use crate::transport::Order;
    use sublet_core::id::Generation;
    use sublet_core::resources::Resources;
    use sublet_crds::{ResourceRequestSpec, ResourceRequestStatus};

    #[test]
    fn what_only_the_provider_confirms_does_not_wait_for_the_requester() {
        let seen = |side, duty| Seen {
            order: Some(Order {
                reservation: "a".to_owned(),
                side,
                peer: "rome".parse().unwrap(),
                duty,
                amounts: Resources::new(1, 1),
                expires_at: None,
                generation: Some(Generation(2)),
            }),
            standing: Standing { acknowledged: Some(1), ..Standing::default() },
            is_deleting: false,
        };
        for duty in [Duty::Keep, Duty::TakeDown] {
            assert!(is_unacknowledged(&seen(Side::Provider, duty)));
            assert_eq!(is_unacknowledged(&seen(Side::Requester, duty)), duty == Duty::Keep);
        }
    }

    #[test]
    fn requests_are_counted_by_phase_and_one_that_went_is_not_counted_any_more() {
        let metrics = Arc::new(Metrics::new());
        let mut counts = Counts::new(Arc::clone(&metrics));
        let mut request = ResourceRequest::new("a", ResourceRequestSpec::default());
        let phase = Some(RequestPhase::Active);
        request.status = Some(ResourceRequestStatus { phase, ..ResourceRequestStatus::default() });
        counts.touch(Instant::now());
        assert!(counts.due().is_some());
        counts.take([&request].into_iter(), std::iter::empty());
        assert!(counts.due().is_none());
        assert!(metrics.page().contains("sublet_agent_requests{phase=\"Active\"} 1"));
        counts.take(std::iter::empty(), std::iter::empty());
        assert!(metrics.page().contains("sublet_agent_requests{phase=\"Active\"} 0"));
    }
}
