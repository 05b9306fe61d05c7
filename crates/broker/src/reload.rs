//! Certificates and policy, looked at again on a timer. What cannot be used is said once, counted,
//! and not used.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use crate::Error as Ended;
use crate::clock::Machine;
use crate::http::App;
use crate::metrics::Metrics;
use crate::policy::Source;
use crate::tls::{Reload, Tls};

/// Says of a file that it was taken, or why not; the same reason only once.
pub(crate) struct Teller {
    what: &'static str,
    metrics: Arc<Metrics>,
    last: Option<String>,
}

impl Teller {
    pub(crate) fn new(what: &'static str, metrics: &Arc<Metrics>) -> Self {
        Self { what, metrics: Arc::clone(metrics), last: None }
    }

    fn taken(&mut self) {
        self.last = None;
        self.metrics.reloaded(self.what, true);
        tracing::info!(what = self.what, "reloaded");
    }

    /// Nothing new; what was refused before is gone.
    fn same(&mut self) {
        if self.last.take().is_some() {
            self.metrics.reloaded(self.what, true);
            tracing::info!(what = self.what, "what could not be used is gone");
        }
    }

    fn refused(&mut self, error: &dyn Error) {
        let said = chain(error);
        if self.last.as_ref() != Some(&said) {
            self.metrics.reloaded(self.what, false);
            tracing::error!(what = self.what, error = said, "cannot be used, the old one is kept");
            self.last = Some(said);
        }
    }
}

/// An error with its causes, in a line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

/// Looks at a folder of certificates until the broker stops.
pub(crate) async fn tls(
    tls: Arc<Tls>,
    mut teller: Teller,
    every: Duration,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), Ended> {
    let (machine, mut ticks) = (Machine::new(), ticks(every));
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
            _ = ticks.tick() => {}
        }
        match tls.reload(machine.read().wall) {
            Ok(Reload::New) => teller.taken(),
            Ok(Reload::Same) => teller.same(),
            Err(error) => teller.refused(&error),
        }
    }
}

/// Looks at the policy file until the broker stops.
pub(crate) async fn policy(
    mut source: Source,
    app: Arc<App>,
    every: Duration,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), Ended> {
    let mut teller = Teller::new("policy", &app.metrics);
    let mut ticks = ticks(every);
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
            _ = ticks.tick() => {}
        }
        match source.reload() {
            Ok(None) if source.is_in_use() => teller.same(),
            // Another text, which is judged next time.
            Ok(None) => {}
            Err(error) => teller.refused(&error),
            Ok(Some(policy)) => match app.engine.set_policy(Arc::clone(&policy)) {
                Ok(()) => {
                    app.policy.store(policy);
                    teller.taken();
                }
                Err(error) => {
                    // It is read again, and handed over when there is room.
                    source.forget();
                    teller.refused(&error);
                }
            },
        }
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
