//! Carries out one instruction: writes it down, acts on it, tells the broker, removes it when it is
//! over. Each step is looked up anew from what is there, so it can be cut anywhere.

mod next;
mod record;

use std::time::Duration;

use sublet_core::id::Generation;
use sublet_core::instruction::Side;
use sublet_crds::condition::{Reason, Statement, say};

pub(crate) use next::{Look, Step, Told, next, overrides};
pub(crate) use record::{Record, Seen, Standing, version};

use super::context::{Context, Point};
use super::notice::Notice;
use super::queue::Outcome;
use super::store::Store;
use crate::kinds::WriteError;
use crate::peering::{Progress, Removal, Why};
use crate::transport::{Error, Order};

/// More steps than any instruction needs in one go.
const STEPS_MAX: usize = 12;
/// How long it is said why it cannot work before the broker is told.
const SAID_FOR: Duration = Duration::from_secs(1);

/// What became of a round of work on an instruction.
pub(crate) struct Worked<K> {
    pub(crate) outcome: Outcome,
    /// The object as it is now, if there is one.
    pub(crate) object: Option<K>,
    /// How closely it is still to be looked at.
    pub(crate) look: Look,
}

/// One round of work on one instruction.
pub(crate) struct Work<'a, K> {
    pub(crate) context: &'a Context,
    pub(crate) told: Told,
    pub(crate) object: Option<K>,
    pub(crate) look: Look,
}

/// Whether to take the next step now.
enum Flow {
    On,
    Stop(Outcome),
}

impl<K: Record> Work<'_, K> {
    /// Takes step after step until there is nothing more to do now.
    pub(crate) async fn run(mut self) -> Worked<K> {
        let mut outcome = Outcome::Retry(None);
        for _ in 0..STEPS_MAX {
            let seen = self.object.as_ref().map(Record::seen);
            let step = next(&self.told, seen.as_ref(), self.context.now(), self.look);
            match self.take(step).await {
                Ok(Flow::On) => {}
                Ok(Flow::Stop(so_far)) => {
                    outcome = so_far;
                    break;
                }
                Err(WriteError::Lost(lost)) => {
                    tracing::error!("an instruction cannot be recorded: {lost}");
                    outcome = Outcome::Barred(Context::LONG);
                    break;
                }
                Err(error) => {
                    tracing::debug!(%error, "an instruction is tried again");
                    break;
                }
            }
        }
        Worked { outcome, object: self.object, look: self.look }
    }

    async fn take(&mut self, step: Step) -> Result<Flow, WriteError> {
        match step {
            Step::Rest => Ok(Flow::Stop(Outcome::Done(None))),
            Step::Until(end) => Ok(Flow::Stop(Outcome::Done(Some(self.context.until(end))))),
            Step::Record(order) => self.record(&order).await,
            Step::Establish(order) => self.establish(&order).await,
            Step::Withdraw(order) => self.withdraw(&order).await,
            Step::Tell(generation) => self.tell(generation).await,
            Step::Retire(order) => match self.context.peering.withdraw(&order).await {
                Removal::Gone => self.remove().await,
                Removal::Pending(why) => self.pend(self.standing(), why).await,
            },
            Step::Remove => self.remove().await,
        }
    }

    fn store(&self) -> Store<K> {
        self.context.instructions()
    }

    async fn record(&mut self, order: &Order) -> Result<Flow, WriteError> {
        let store = self.store();
        self.object = match self.object.take() {
            Some(mut object) => {
                object.record(order);
                store.replace(&object).await?
            }
            None => Some(store.create(&K::new_of(order)).await?),
        };
        self.context.passed(Point::Recorded).await;
        Ok(Flow::On)
    }

    async fn establish(&mut self, order: &Order) -> Result<Flow, WriteError> {
        let progress = self.context.peering.establish(order).await;
        self.look = Look::Believing;
        match progress {
            Progress::Ready => self.established(order).await,
            Progress::Pending(why) => {
                // It may have been in force before.
                let standing = Standing { in_force: false, ..self.standing() };
                self.pend(standing, why).await
            }
            // What was in force once is not given up by us: it is made again, or its time is over.
            Progress::Failed(why) if self.standing().applied.is_some() => {
                let standing = Standing { in_force: false, ..self.standing() };
                self.pend(standing, why).await
            }
            Progress::Failed(why) => {
                let mut standing = self.standing();
                standing.in_force = false;
                let reason = why.reason(Reason::PeeringFailed);
                let is_said = standing.says(K::IN_FORCE, reason);
                self.say(&mut standing, K::IN_FORCE, (Some(false), reason, why.advice()));
                self.write(standing).await?;
                if !is_said {
                    self.context.passed(Point::Hindered).await;
                    // The request is to say the same before the broker ends it, and this object with it.
                    self.notice(Notice::warning("PeeringFailed", &why.to_string())).await;
                    return Ok(Flow::Stop(Outcome::Done(Some(SAID_FOR))));
                }
                let told =
                    self.context.broker.fail(&order.reservation, &why.failed(order.side)).await;
                self.context.passed(Point::Failed).await;
                Ok(Flow::Stop(told.map_or_else(
                    |error| Outcome::Retry(error.retry_after()),
                    // Unless the broker ends it, which an old one does not, it is tried again.
                    |()| Outcome::Done(Some(Context::LONG)),
                )))
            }
        }
    }

    /// It is in force; that is written, and told to people, if it was not known.
    async fn established(&mut self, order: &Order) -> Result<Flow, WriteError> {
        let known = self.standing();
        let mut standing = known.clone();
        standing.in_force = true;
        standing.applied = order.generation.map(|generation| generation.0);
        self.say(&mut standing, K::IN_FORCE, (Some(true), Reason::Done, String::new()));
        if standing == known {
            return Ok(Flow::On);
        }
        self.write(standing).await?;
        self.context.passed(Point::Established).await;
        let done = match K::SIDE {
            Side::Provider => "Enforced",
            Side::Requester => "Delivered",
        };
        self.notice(Notice::normal(done, &self.message())).await;
        Ok(Flow::On)
    }

    /// Says why it is not done yet.
    async fn pend(&mut self, mut standing: Standing, why: Why) -> Result<Flow, WriteError> {
        let said = (Some(false), why.reason(Reason::InProgress), why.advice());
        self.say(&mut standing, K::IN_FORCE, said);
        self.write(standing).await?;
        Ok(Flow::Stop(Outcome::Retry(None)))
    }

    async fn withdraw(&mut self, order: &Order) -> Result<Flow, WriteError> {
        if let Removal::Pending(why) = self.context.peering.withdraw(order).await {
            // What takes time is written down, also if nothing was: people see why, and the time that somebody
            // is given is noted there when it can be noted nowhere else, so that no restart begins it anew.
            if self.object.is_none() && order.generation.is_some() {
                return self.record(order).await;
            }
            return self.pend(self.standing(), why).await;
        }
        self.context.passed(Point::Withdrawn).await;
        if self.object.is_none() {
            // Nothing is recorded, so there is nothing to remember it by.
            return match order.generation.filter(|_| K::SIDE == Side::Provider) {
                Some(generation) => self.tell_about(&order.reservation, generation).await,
                None => Ok(Flow::Stop(Outcome::Done(None))),
            };
        }
        let mut standing = self.standing();
        standing.in_force = false;
        standing.applied = order.generation.map(|generation| generation.0);
        self.say(&mut standing, K::IN_FORCE, (Some(false), Reason::Withdrawn, String::new()));
        self.write(standing).await?;
        self.context.passed(Point::TakenDown).await;
        self.notice(Notice::normal("Withdrawn", "the capacity was taken down")).await;
        Ok(Flow::On)
    }

    async fn tell(&mut self, generation: Generation) -> Result<Flow, WriteError> {
        let reservation = self.object.as_ref().map(|object| object.reservation().to_owned());
        let reservation = reservation.unwrap_or_default();
        if let Flow::Stop(outcome) = self.tell_about(&reservation, generation).await? {
            return Ok(Flow::Stop(outcome));
        }
        let mut standing = self.standing();
        standing.acknowledged = Some(generation.0);
        let holds = K::SIDE == Side::Provider || standing.in_force;
        self.say(&mut standing, K::KNOWN, (Some(holds), Reason::Done, String::new()));
        self.write(standing).await?;
        self.context.passed(Point::Noted).await;
        Ok(Flow::On)
    }

    async fn tell_about(&mut self, id: &str, done: Generation) -> Result<Flow, WriteError> {
        let broker = &self.context.broker;
        let told = match K::SIDE {
            Side::Provider => broker.acknowledge(id, done).await,
            Side::Requester => broker.activate(id).await.map(drop),
        };
        match told {
            Ok(()) => {
                self.context.passed(Point::Told).await;
                let is_recorded = self.object.is_some();
                Ok(if is_recorded { Flow::On } else { Flow::Stop(Outcome::Done(None)) })
            }
            // It has moved on, and says so in another instruction.
            Err(Error::Refused(why)) => {
                tracing::info!(reservation = id, %why, "the broker does not want to hear of it");
                Ok(Flow::Stop(Outcome::Done(Some(Context::LONG))))
            }
            Err(error) => self.unheard(&error).await,
        }
    }

    /// The broker could not be told.
    async fn unheard(&mut self, error: &Error) -> Result<Flow, WriteError> {
        let mut standing = self.standing();
        let why = (None, Reason::BrokerUnavailable, error.to_string());
        self.say(&mut standing, K::KNOWN, why);
        self.write(standing).await?;
        Ok(Flow::Stop(Outcome::Retry(error.retry_after())))
    }

    async fn remove(&mut self) -> Result<Flow, WriteError> {
        if let Some(object) = self.object.take() {
            self.store().delete(&object).await?;
            self.context.passed(Point::Removed).await;
        }
        Ok(Flow::On)
    }

    fn standing(&self) -> Standing {
        self.object.as_ref().map(Record::standing).unwrap_or_default()
    }

    fn message(&self) -> String {
        let order = self.object.as_ref().and_then(|object| object.order().ok());
        order.map(|order| format!("{} with {}", order.amounts, order.peer)).unwrap_or_default()
    }

    fn say(
        &self,
        standing: &mut Standing,
        about: sublet_crds::condition::Type,
        (holds, reason, message): (Option<bool>, Reason, String),
    ) {
        let generation = self.object.as_ref().and_then(|object| object.meta().generation);
        let statement = Statement { about, holds, reason, message, generation };
        say(&mut standing.conditions, statement, self.context.now());
    }

    /// Writes how far it is, if that is new.
    async fn write(&mut self, standing: Standing) -> Result<(), WriteError> {
        let store = self.store();
        let now = self.context.now();
        let Some(object) = self.object.as_mut().filter(|object| object.standing() != standing)
        else {
            return Ok(());
        };
        object.set_standing(standing, now);
        self.object = store.replace_status(object).await?;
        Ok(())
    }

    async fn notice(&self, notice: Notice) {
        if let Some(object) = &self.object {
            self.context.publish(object.object_ref(&()), notice).await;
        }
    }
}

#[cfg(test)]
mod tests;
