//! When the cluster is advertised: on the grid, whenever the broker is reached again, and soon after
//! something that matters; and the object that is kept beside it for people.
//!
//! Each time is one request. One that fails is made again, later each time, with the newest figures;
//! nothing is queued.

mod grid;
mod material;
mod object;
mod pace;
mod presence;
mod rival;
mod status;

use std::sync::Arc;
use std::time::Duration;

use sublet_core::time::Time;
use sublet_crds::Number;
use sublet_wire::v1;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::advertise::{self, Numbers, Profile};
use crate::clock;
use crate::collect::Measured;
use crate::controllers::Contact;
use crate::kinds::WriteError;
use crate::metrics::Metrics;
use crate::peering::Unwilling;
use crate::transport::{self, Broker};
use crate::watch::{Blind, Told};
use material::is_material;
use pace::Pace;
use rival::Rivals;
use status::{Measuring, Outcome};

pub use grid::Grid;
pub use object::{Error, Object};

/// How long after something that matters: whatever happens together is told together.
const SOON: Duration = Duration::from_millis(500);
/// At least so long between two for that reason.
const APART: Duration = Duration::from_secs(5);

/// How often it is looked whether everything can be listed, until it was once.
const LOOK: Duration = Duration::from_secs(5);

/// What to do when the broker does not listen to us.
const OVERTAKEN: &str = "the broker keeps what another agent says of this cluster, which has a higher \
    number: let only one run, or all with --leader-elect; in different clusters, give each a \
    certificate of its own";

/// None if the broker keeps what it was told, or the higher number of what it keeps instead.
type Said = Result<Option<v1::Number>, transport::Error>;

/// Publishes the cluster.
pub struct Publisher {
    profile: Profile,
    grid: Grid,
    broker: Arc<dyn Broker>,
    object: Object,
    numbers: Numbers,
    rivals: Rivals,
    metrics: Arc<Metrics>,
    /// What the broker was told last, and when.
    last: Option<(Arc<Measured>, Instant)>,
    pace: Pace,
    /// Whether the operator lets the cluster lend, and what may stand against it.
    lends: bool,
    unwilling: Option<Unwilling>,
    blind: Blind,
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
        let rivals = Rivals::new(duration(grid.every()));
        let (last, unwilling, blind) = (None, None, Blind::default());
        Self {
            profile,
            grid,
            broker,
            object,
            numbers,
            rivals,
            metrics,
            last,
            pace,
            lends,
            unwilling,
            blind,
        }
    }

    /// Does not lend while this says why.
    #[must_use]
    pub fn unless(mut self, unwilling: Option<Unwilling>) -> Self {
        self.unwilling = unwilling;
        self
    }

    /// Says so where this knows what cannot be listed.
    #[must_use]
    pub fn that_may_not_see(mut self, blind: Blind) -> Self {
        self.blind = blind;
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
        if !self.is_measured(&mut told).await {
            return;
        }
        let mut due = Instant::now();
        let mut unwilling = self.unwilling.clone();
        let mut presence = self.object.presence();
        loop {
            tokio::select! {
                () = changed(unwilling.as_mut()) => due = self.pace.at_least(Instant::now()),
                () = sleep_until(due) => {
                    let Some(measured) = told.borrow_and_update().clone() else { continue };
                    due = self.publish(measured).await;
                }
                () = presence.gone() => {
                    let made = self.object.make_again(clock::now()).await;
                    if matches!(made, Ok(true)) {
                        tracing::info!("somebody has deleted the Advertisement; it is made again");
                    }
                    if made.is_err() {
                        due = due.min(self.pace.at_least(Instant::now() + APART));
                    }
                    self.count_write(made);
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

    /// Returns when everything was listed once; as long as that cannot be, the object says why. False when
    /// nobody measures any longer.
    async fn is_measured(&mut self, told: &mut Told) -> bool {
        loop {
            let listed = tokio::time::timeout(LOOK, told.wait_for(Option::is_some)).await;
            if let Ok(listed) = listed.map(|listed| listed.is_ok()) {
                return listed;
            }
            let Some(why) = self.blind.why(Instant::now()) else { continue };
            let (number, now) = (self.numbers.take(), clock::now());
            let nothing = advertise::object(&self.profile, &Measured::default(), number, now);
            let written = self.object.write_unmeasured(nothing, &why, now).await;
            self.count_write(written);
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
        let (now, begun) = (clock::now(), Instant::now());
        // Who has not seen its pods for long cannot say what is free: nothing more is lent until then.
        self.profile.lending = self.lends && !self.blind.is_too_long(begun);
        if let Some(unwilling) = &self.unwilling {
            let why = unwilling.borrow().clone();
            self.profile.lending &= why.is_none();
            self.object.lends(why.as_ref(), now);
        }
        let (number, told) = self.tell(&measured, now).await;
        let again = self.note(&told, begun.elapsed());
        let spec = advertise::object(&self.profile, &measured, number, now);
        let outcome = match &told {
            Ok(None) => Outcome::Kept,
            Ok(Some(_)) => Outcome::Overtaken(OVERTAKEN),
            Err(error) => Outcome::Failed(error),
        };
        let blind = self.blind.why(Instant::now());
        let (unread, left_out) = (measured.problems, measured.left_out);
        let measuring = Measuring { blind, unread, left_out };
        let written = self.object.write(spec, (&measuring, outcome), now).await;
        self.count_write(written);
        match told {
            Ok(_) | Err(transport::Error::NoBroker) => {
                self.last = Some((measured, begun));
                begun + duration(self.grid.wait(now))
            }
            Err(_) => again,
        }
    }

    /// Tells the broker; once more, with a higher number, where somebody has used one who is gone.
    async fn tell(&mut self, measured: &Measured, now: Time) -> (Number, Said) {
        let number = self.numbers.take();
        let told = self.say(measured, number, now).await;
        let Ok(Some(kept)) = told else { return (number, told) };
        // Without randomness those who rise at the same moment may meet again.
        let random = getrandom::u64().unwrap_or(0);
        if !self.rivals.may_rise(kept, Instant::now())
            || !self.numbers.rise_above(kept, random, now)
        {
            return (number, told);
        }
        tracing::warn!(
            ours = number.incarnation,
            kept = kept.incarnation,
            "the broker keeps an advertisement of this cluster with a higher number than ours; we take one above it"
        );
        self.metrics.risen();
        let number = self.numbers.take();
        (number, self.say(measured, number, now).await)
    }

    async fn say(&self, measured: &Measured, number: Number, now: Time) -> Said {
        let audience = self.broker.audience();
        let word = advertise::advertisement(&self.profile, measured, audience, number, now);
        let kept = self.broker.publish(&word).await?;
        Ok(kept.filter(|kept| word.number.is_some_and(|ours| *kept > ours)))
    }

    /// A failure is logged when it begins and when it is over. Answers when to try again after one.
    fn note(&mut self, told: &Said, took: Duration) -> Instant {
        let now = Instant::now();
        match told {
            Ok(Some(kept)) => {
                if self.rivals.is_to_be_said(now) {
                    tracing::warn!(kept = kept.incarnation, "not heard: {OVERTAKEN}");
                }
                self.pace.worked();
                self.metrics.overtaken();
                now
            }
            Ok(None) => {
                let was_overtaken = self.rivals.heard(now);
                if self.pace.failures() > 0 || self.last.is_none() || was_overtaken {
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

    fn count_write(&self, written: Result<bool, WriteError>) {
        match written {
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
