//! Counts what there is, for the metrics: now and then, because it looks at every cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sublet_core::books::Books;
use sublet_core::market::Freshness;
use sublet_core::policy::Policy;
use sublet_core::reservation::Phase;
use sublet_core::time::Time;
use tokio::sync::watch;

use crate::Error;
use crate::http::App;
use crate::metrics::{Metrics, OfFreshness, OfPhase, Word};

/// Often enough for Prometheus, and rarely enough for an engine with a hundred thousand clusters.
const EVERY: Duration = Duration::from_secs(10);

struct Counted {
    reservations: BTreeMap<Phase, i64>,
    clusters: BTreeMap<Freshness, i64>,
    revision: u64,
}

impl Counted {
    fn of(books: &Books, policy: &Policy, now: Time) -> Self {
        let count = |phase| (phase, books.ledger().count(phase).into());
        let reservations = Phase::ALL.into_iter().map(count).collect();
        let all = [Freshness::Active, Freshness::Suspect, Freshness::Stale];
        let mut clusters: BTreeMap<_, _> = all.into_iter().map(|f| (f, 0)).collect();
        for (_, entry) in books.market().entries() {
            *clusters.entry(entry.freshness(&policy.silence, now)).or_default() += 1;
        }
        Self { reservations, clusters, revision: books.ledger().stamp().revision.0 }
    }

    fn show(&self, metrics: &Metrics) {
        for (phase, count) in &self.reservations {
            let phase = Word(phase_name(*phase));
            metrics.reservations.get_or_create(&OfPhase { phase }).set(*count);
        }
        for (freshness, count) in &self.clusters {
            let freshness = Word(freshness_name(*freshness));
            metrics.clusters.get_or_create(&OfFreshness { freshness }).set(*count);
        }
        metrics.revision.set(i64::try_from(self.revision).unwrap_or(i64::MAX));
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Reserved => "Reserved",
        Phase::Active => "Active",
        Phase::Releasing => "Releasing",
        Phase::Released => "Released",
        Phase::Failed => "Failed",
    }
}

fn freshness_name(freshness: Freshness) -> &'static str {
    match freshness {
        Freshness::Active => "Active",
        Freshness::Suspect => "Suspect",
        Freshness::Stale => "Stale",
    }
}

/// Counts until the broker stops.
pub(crate) async fn run(app: Arc<App>, mut stopping: watch::Receiver<bool>) -> Result<(), Error> {
    loop {
        let policy = app.policy.load_full();
        // An engine that is busy is counted next time.
        if let Ok(look) = app.engine.survey(move |books, now| Counted::of(books, &policy, now))
            && let Ok(counted) = look.await
        {
            counted.show(&app.metrics);
        }
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}
