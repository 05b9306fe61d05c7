//! Sees to one request: asks the broker, says what became of it, and gives back what it held before
//! it goes. Each step is looked up anew from what is there, so it can be cut anywhere.

mod ask;
mod next;
mod said;
mod status;

use kube::{Api, Resource, ResourceExt};
use sublet_core::id::Key;
use sublet_core::resources::Resources;
use sublet_core::time::Span;
use sublet_crds::ResourceRequest;
use sublet_wire::v1::{Renewal, Resizing};

use self::next::{FINALIZER, Said, Step, View, farewell, is_old, next};
use self::status::{Fact, after};
use super::context::{Context, Point};
use super::instruction::Seen;
use super::queue::Outcome;
use super::store::Store;
use crate::kinds::WriteError;
use crate::transport::{Error, Order, Promise};

/// More steps than any request needs in one go.
const STEPS_MAX: usize = 12;

/// What became of a round of work on a request.
pub(crate) struct Worked {
    pub(crate) outcome: Outcome,
    /// The request as it is now, if it is there.
    pub(crate) request: Option<ResourceRequest>,
    /// The instruction that was looked at.
    pub(crate) instruction: Option<Seen>,
    /// What its instruction must say, because the broker said so to us and not to the stream.
    pub(crate) orders: Vec<Order>,
    /// What an old broker, which is not asked twice, answered, and could not be written down.
    pub(crate) answer: Option<Promise>,
}

impl Worked {
    /// It is gone.
    pub(crate) fn nothing() -> Self {
        Self {
            outcome: Outcome::Done(None),
            request: None,
            instruction: None,
            orders: Vec::new(),
            answer: None,
        }
    }
}

/// One round of work on one request.
pub(crate) struct Work<'a> {
    context: &'a Context,
    request: ResourceRequest,
    instruction: Option<Seen>,
    said: Said,
    orders: Vec<Order>,
    answer: Option<Promise>,
}

/// Whether to take the next step now.
enum Flow {
    On,
    Stop(Outcome),
}

type Result<T> = std::result::Result<T, WriteError>;

impl<'a> Work<'a> {
    pub(crate) fn new(
        context: &'a Context,
        request: ResourceRequest,
        instruction: Option<Seen>,
    ) -> Self {
        let (said, orders) = (Said::Unasked, Vec::new());
        Self { context, request, instruction, said, orders, answer: None }
    }

    /// With what an old broker answered before.
    pub(crate) fn with_answer(mut self, answer: Option<Promise>) -> Self {
        self.answer = answer;
        self
    }

    /// Takes step after step until there is nothing more to do now.
    pub(crate) async fn run(mut self) -> Worked {
        let mut outcome = Outcome::Retry(None);
        for _ in 0..STEPS_MAX {
            let view = View {
                request: &self.request,
                instruction: self.instruction.as_ref(),
                said: &self.said,
                now: self.context.now(),
            };
            let step = next(&view);
            match self.take(step).await {
                Ok(Flow::On) => {}
                Ok(Flow::Stop(so_far)) => {
                    outcome = so_far;
                    break;
                }
                Err(WriteError::Lost(lost)) => {
                    tracing::error!("what becomes of a request cannot be written: {lost}");
                    outcome = Outcome::Barred(Context::LONG);
                    break;
                }
                Err(error) => {
                    tracing::debug!(%error, "a request is tried again");
                    break;
                }
            }
        }
        let Self { request, instruction, orders, answer, .. } = self;
        Worked { outcome, request: Some(request), instruction, orders, answer }
    }

    async fn take(&mut self, step: Step) -> Result<Flow> {
        match step {
            Step::Rest(after) => Ok(Flow::Stop(Outcome::Done(after))),
            Step::Finalize => self.finalize().await,
            Step::Unfinalize => self.unfinalize().await,
            Step::Release => self.release().await,
            Step::TakeDown(order) => {
                self.orders.push(order);
                // The instruction's removal wakes us.
                Ok(Flow::Stop(Outcome::Done(Some(Context::LONG))))
            }
            Step::Ask(ask) => self.ask(&ask).await,
            Step::Look => self.look().await,
            Step::Instruct(order) => {
                self.orders.push(order);
                Ok(Flow::Stop(Outcome::Done(Some(Context::LONG))))
            }
            Step::Resize(amounts) => self.resize(&amounts).await,
            Step::Renew(duration) => self.renew(duration).await,
            Step::Observe => self.note(&Fact::Observed).await,
            Step::Mirror(hindrance) => {
                let hindrance = hindrance.as_ref().map(|(by, why)| (*by, why.as_str()));
                self.note(&Fact::Hindered(hindrance)).await
            }
            Step::Refuse(why) => self.note(&Fact::Invalid(why.to_string())).await,
            Step::Object(why) => self.note(&Fact::Objected(why.to_string())).await,
            Step::Expire => self.note(&Fact::Expired).await,
            Step::Forget => self.note(&Fact::Forgotten).await,
        }
    }

    /// Writes it down, and goes on if there is still something to go on with.
    async fn note(&mut self, fact: &Fact<'_>) -> Result<Flow> {
        let is_there = self.write(fact).await?;
        Ok(if is_there { Flow::On } else { Flow::Stop(Outcome::Done(None)) })
    }

    async fn finalize(&mut self) -> Result<Flow> {
        let mut names = self.request.finalizers().to_vec();
        names.push(FINALIZER.to_owned());
        self.set_finalizers(&names).await
    }

    async fn unfinalize(&mut self) -> Result<Flow> {
        let kept: Vec<_> =
            self.request.finalizers().iter().filter(|name| *name != FINALIZER).cloned().collect();
        self.set_finalizers(&kept).await
    }

    async fn set_finalizers(&mut self, names: &[String]) -> Result<Flow> {
        match self.store().set_finalizers(&self.request, names).await? {
            Some(request) => {
                self.request = request;
                self.context.passed(Point::Finalized).await;
                Ok(Flow::On)
            }
            None => Ok(Flow::Stop(Outcome::Done(None))),
        }
    }

    /// The key that whatever is asked for this request goes under: nobody else has it.
    fn key(&self) -> Option<Key> {
        self.request.uid()?.parse().ok()
    }

    /// By key, so that a request that is still on its way becomes nothing either.
    async fn release(&mut self) -> Result<Flow> {
        let Some(key) = self.key() else { return self.unfinalize().await };
        match self.context.broker.release_key(&key).await {
            Ok(promise) => {
                self.context.passed(Point::Released).await;
                self.orders.extend(promise.and_then(|promise| promise.order()));
                self.orders.extend(self.request.status.as_ref().and_then(farewell));
                self.unfinalize().await
            }
            Err(error) if error.is_released() => self.unfinalize().await,
            // Nobody was there to be asked.
            Err(Error::NoBroker) if self.reservation().is_empty() => self.unfinalize().await,
            Err(error) => {
                self.write(&Fact::Unreleased(&error)).await?;
                Ok(retry(&error))
            }
        }
    }

    async fn look(&mut self) -> Result<Flow> {
        let id = self.reservation();
        match self.context.broker.reservation(&id).await {
            Ok(Some(promise)) => self.promised(&Fact::Promise(&promise), &promise).await,
            Ok(None) if is_old(&id) => match self.context.broker.takes_keys().await {
                Ok(is_ours) => {
                    self.said = if is_ours { Said::Foreign } else { Said::Nothing };
                    Ok(Flow::On)
                }
                Err(error) => self.unavailable(&error).await,
            },
            Ok(None) => {
                self.said = Said::Nothing;
                Ok(Flow::On)
            }
            Err(error) => self.unavailable(&error).await,
        }
    }

    async fn resize(&mut self, amounts: &Resources) -> Result<Flow> {
        let to = Resizing { requested_resources: amounts.into() };
        let answer = self.context.broker.resize(&self.reservation(), &to).await;
        self.context.passed(Point::Resized).await;
        self.changed(answer).await
    }

    async fn renew(&mut self, duration: Span) -> Result<Flow> {
        let how = Renewal { duration: Some(duration.to_string()) };
        let answer = self.context.broker.renew(&self.reservation(), &how).await;
        self.context.passed(Point::Renewed).await;
        let is_renewed = matches!(answer, Ok(Some(_)));
        match self.changed(answer).await? {
            Flow::On if is_renewed => match self.request.spec.ask() {
                Ok(_) => self.note(&Fact::Observed).await,
                // What runs was renewed, and the change is still not made.
                Err(why) => self.note(&Fact::Objected(why.to_string())).await,
            },
            flow => Ok(flow),
        }
    }

    /// The answer to a change.
    async fn changed(
        &mut self,
        answer: std::result::Result<Option<Promise>, Error>,
    ) -> Result<Flow> {
        match answer {
            Ok(Some(promise)) => self.promised(&Fact::Promise(&promise), &promise).await,
            Ok(None) => {
                self.said = Said::Nothing;
                Ok(Flow::On)
            }
            Err(error) => {
                self.write(&Fact::Unchanged(&error)).await?;
                let is_final = matches!(error, Error::Refused(_));
                Ok(if is_final {
                    Flow::Stop(Outcome::Done(Some(Context::LONG)))
                } else {
                    retry(&error)
                })
            }
        }
    }

    async fn promised(&mut self, fact: &Fact<'_>, promise: &Promise) -> Result<Flow> {
        let is_there = self.write(fact).await?;
        self.answer = None;
        if !is_there {
            return self.orphaned().await;
        }
        self.context.passed(Point::Written).await;
        self.said = Said::Promise(Box::new(promise.clone()));
        Ok(Flow::On)
    }

    /// Something is held for a request that somebody has removed, finalizer and all.
    async fn orphaned(&mut self) -> Result<Flow> {
        let Some(key) = self.key() else { return Ok(Flow::Stop(Outcome::Done(None))) };
        match self.context.broker.release_key(&key).await {
            Ok(promise) => {
                self.orders.extend(promise.and_then(|promise| promise.order()));
                Ok(Flow::Stop(Outcome::Done(None)))
            }
            Err(error) if error.is_released() => Ok(Flow::Stop(Outcome::Done(None))),
            Err(error) => {
                tracing::warn!(%error, %key, "what a removed request held is not released");
                Ok(retry(&error))
            }
        }
    }

    /// Says that the broker is not there, and tries again.
    async fn unavailable(&mut self, error: &Error) -> Result<Flow> {
        self.write(&Fact::Unheard(error)).await?;
        Ok(retry(error))
    }

    /// Writes what became known, if that is new; says whether the request is still there.
    async fn write(&mut self, fact: &Fact<'_>) -> Result<bool> {
        let Some(change) = after(&self.request, fact, self.context.now()) else {
            return Ok(true);
        };
        self.request.status = Some(change.status);
        if matches!(fact, Fact::Error(Error::Refused(_)) | Fact::Unchanged(Error::Refused(_))) {
            self.context.metrics().refused();
        }
        let Some(request) = self.store().replace_status(&self.request).await? else {
            return Ok(false);
        };
        self.request = request;
        if let Some(notice) = change.notice {
            self.context.publish(self.request.object_ref(&()), notice).await;
        }
        Ok(true)
    }

    fn reservation(&self) -> String {
        let status = self.request.status.as_ref();
        status.map(|status| status.reservation_name.clone()).unwrap_or_default()
    }

    fn store(&self) -> Store<ResourceRequest> {
        let namespace = self.request.namespace().unwrap_or_default();
        Store(Api::namespaced(self.context.client.clone(), &namespace))
    }
}

fn retry(error: &Error) -> Flow {
    // Somebody has to put something right; that is not worth a storm.
    let pause = match error {
        Error::Identity(_) | Error::NoBroker | Error::Refused(_) => Some(Context::LONG),
        error => error.retry_after(),
    };
    Flow::Stop(Outcome::Retry(pause))
}

#[cfg(test)]
mod tests;
