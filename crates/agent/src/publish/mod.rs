//! When the cluster is advertised: on the grid, whenever the broker is reached again, and soon after
//! something that matters; and the object that is kept beside it for people.
//!
//! Each time is one request. One that fails is made again, later each time, with the newest figures;
//! nothing is queued.

mod grid;
mod material;
mod object;
mod pace;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::advertise::{self, Numbers, Profile};
use crate::clock;
use crate::collect::Measured;
use crate::controllers::Contact;
use crate::metrics::Metrics;
use crate::peering::Unwilling;
use crate::transport::{self, Broker};
use crate::watch::Told;
use material::is_material;
use pace::Pace;

pub use grid::Grid;
pub use object::{Error, Object};

/// How long after something that matters: whatever happens together is told together.
const SOON: Duration = Duration::from_millis(500);
/// At least so long between two for that reason.
const APART: Duration = Duration::from_secs(5);

/// Publishes the cluster.
pub struct Publisher {
    profile: Profile,
    grid: Grid,
    broker: Arc<dyn Broker>,
    object: Object,
    numbers: Numbers,
    metrics: Arc<Metrics>,
    /// What the broker was told last, and when.
    last: Option<(Arc<Measured>, Instant)>,
    pace: Pace,
    /// Whether the operator lets the cluster lend, and what may stand against it.
    lends: bool,
    unwilling: Option<Unwilling>,
}

impl Publisher {
    /// A publisher that has not begun.
    pub fn new(
        profile: Profile,
        grid: Grid,
        broker: Arc<dyn Broker>,
        object: Object,
        metrics: Arc<Metrics>,
    ) -> Self {
        let numbers = Numbers::after(object.left(), clock::now());
        let (lends, pace) = (profile.lending, Pace::default());
        let (last, unwilling) = (None, None);
        Self { profile, grid, broker, object, numbers, metrics, last, pace, lends, unwilling }
    }

    /// Does not lend while this says why.
    #[must_use]
    pub fn unless(mut self, unwilling: Option<Unwilling>) -> Self {
        self.unwilling = unwilling;
        self
    }

    /// Publishes until the agent stops; what is being said then is not waited for.
    pub async fn run(
        self,
        told: Told,
        contact: watch::Receiver<Contact>,
        mut stopping: watch::Receiver<bool>,
    ) {
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = self.publish_for_ever(told, contact) => {}
        }
    }

    /// Returns only when nobody measures any longer.
    async fn publish_for_ever(mut self, mut told: Told, mut contact: watch::Receiver<Contact>) {
        if told.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let mut due = Instant::now();
        let mut unwilling = self.unwilling.clone();
        loop {
            tokio::select! {
                () = changed(unwilling.as_mut()) => due = self.pace.at_least(Instant::now()),
                () = sleep_until(due) => {
                    let Some(measured) = told.borrow_and_update().clone() else { continue };
                    due = self.publish(measured).await;
                }
                () = heard(&mut contact) => due = self.pace.reached(Instant::now()),
                changed = told.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let soon = self.soon(told.borrow().as_deref());
                    due = due.min(soon.map_or(due, |soon| self.pace.at_least(soon)));
                }
            }
        }
    }

    /// When to say that something changed; none if that can wait for the grid.
    fn soon(&self, measured: Option<&Measured>) -> Option<Instant> {
        let (last, at) = self.last.as_ref()?;
        let soon = Instant::now() + SOON;
        is_material(last, measured?).then(|| soon.max(*at + APART))
    }

    /// Says how things stand. Answers when to do that again.
    async fn publish(&mut self, measured: Arc<Measured>) -> Instant {
        let (now, begun, number) = (clock::now(), Instant::now(), self.numbers.take());
        if let Some(unwilling) = &self.unwilling {
            let why = unwilling.borrow().clone();
            self.profile.lending = self.lends && why.is_none();
            self.object.lends(why.as_deref(), now);
        }
        let audience = self.broker.audience();
        let word = advertise::advertisement(&self.profile, &measured, audience, number, now);
        let told = self.broker.publish(&word).await;
        let again = self.note(&told, begun.elapsed());
        let spec = advertise::object(&self.profile, &measured, number, now);
        self.keep_object(spec, told.as_ref().copied(), now).await;
        match told {
            Ok(()) | Err(transport::Error::NoBroker) => {
                self.last = Some((measured, begun));
                begun + duration(self.grid.wait(now))
            }
            Err(_) => again,
        }
    }

    /// A failure is logged when it begins and when it is over. Answers when to try again after one.
    fn note(&mut self, told: &Result<(), transport::Error>, took: Duration) -> Instant {
        let now = Instant::now();
        match told {
            Ok(()) => {
                if self.pace.failures() > 0 || self.last.is_none() {
                    tracing::info!(cluster = %self.profile.cluster, "the broker has our figures");
                }
                self.pace.worked();
                self.metrics.published(true, took);
                now
            }
            Err(transport::Error::NoBroker) => now,
            Err(error) => {
                if self.pace.failures() == 0 {
                    tracing::warn!(%error, "the cluster cannot be advertised; trying again");
                }
                self.metrics.published(false, took);
                self.pace.failed(now, error.retry_after())
            }
        }
    }

    async fn keep_object(
        &mut self,
        spec: sublet_crds::AdvertisementSpec,
        told: Result<(), &transport::Error>,
        now: sublet_core::time::Time,
    ) {
        match self.object.write(spec, told, now).await {
            Ok(false) => {}
            Ok(true) => self.metrics.object_written(true),
            Err(error) => {
                self.metrics.object_written(false);
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the Advertisement object cannot be written");
            }
        }
    }
}

/// Returns when the broker is reached, for the first time or again.
async fn heard(contact: &mut watch::Receiver<Contact>) {
    loop {
        if contact.changed().await.is_err() {
            // Nobody listens to the broker any longer; the agent is about to end.
            std::future::pending::<()>().await;
        }
        if matches!(*contact.borrow_and_update(), Contact::Heard(_)) {
            return;
        }
    }
}

/// Returns when it is not as it was.
async fn changed(unwilling: Option<&mut Unwilling>) {
    let changed = match unwilling {
        Some(unwilling) => unwilling.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}

fn duration(span: sublet_core::time::Span) -> Duration {
    Duration::from_millis(span.as_millis())
}
