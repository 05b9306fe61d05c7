//! One request that was let in: who asks, for what, and the ways to the engine.

use std::str::FromStr;
use std::sync::Arc;

use sublet_core::books::Books;
use sublet_core::decision::explain::Explanation;
use sublet_core::id::{ClusterId, Key};
use sublet_core::plan::Command;
use sublet_core::policy::{Policy, Visibility};
use sublet_core::reservation::Actor;
use sublet_core::time::Time;
use sublet_wire::decode::{Fill, decode};
use sublet_wire::{Code, Problem, problem_seen_by};
use tokio::sync::oneshot;

use super::app::App;
use super::audited::Audited;
use crate::admission::Busy;
use crate::authorize::{Relation, Row};
use crate::connection::Peer;
use crate::engine::{Answer, Failure, Settled, Ticket};
use crate::identity::{Caller, Identity};
use crate::orphans::Orphan;
use crate::random;

/// One request that was let in. It keeps nothing of what hyper read: the connection reads on while the
/// request waits, and would have to make a new buffer as long as a part of the old one is kept.
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) peer: Arc<Peer>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) row: &'static Row,
    pub(crate) id: String,
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: Vec<(String, String)>,
    /// What the client names its request, if it does.
    pub(crate) named: Option<Result<Key, sublet_core::id::Error>>,
    pub(crate) body: bytes::Bytes,
}

/// What was asked.
impl Call {
    pub(crate) fn caller(&self) -> &Caller {
        &self.identity.caller
    }

    /// The cluster that asks; the table lets nobody else here.
    pub(crate) fn cluster(&self) -> Result<&ClusterId, Problem> {
        match self.caller() {
            Caller::Cluster(cluster) => Ok(cluster),
            caller @ Caller::Operator(_) => Err(forbidden(caller)),
        }
    }

    /// The operator that asks; the table lets nobody else here.
    pub(crate) fn operator(&self) -> Result<&str, Problem> {
        match self.caller() {
            Caller::Operator(name) => Ok(name),
            caller @ Caller::Cluster(_) => Err(forbidden(caller)),
        }
    }

    /// Whoever asks, as the log names them.
    pub(crate) fn actor(&self) -> Actor {
        match self.caller() {
            Caller::Cluster(cluster) => Actor::Cluster(cluster.clone()),
            Caller::Operator(name) => Actor::Operator(name.clone()),
        }
    }

    /// A part of the path.
    pub(crate) fn part<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<T, Problem> {
        let found = self.path.iter().find(|(key, _)| key == name);
        let text = found.map(|(_, value)| value.as_str()).unwrap_or_default();
        text.parse().map_err(|error: T::Err| parameter(name, &error.to_string()))
    }

    /// A parameter of the query, if it was sent.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The same, read.
    pub(crate) fn parameter_as<T: FromStr<Err: ToString>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Problem> {
        let read = |text: &str| text.parse().map_err(|e: T::Err| parameter(name, &e.to_string()));
        self.parameter(name).map(read).transpose()
    }

    /// A parameter that is yes or no.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.parameter(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(parameter(name, "write true or false")),
        }
    }

    /// How many of a list, within the wire's bounds.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        use sublet_wire::limits::{PAGE_DEFAULT, PAGE_MAX};
        let limit = self.parameter("limit").map_or(Ok(PAGE_DEFAULT), str::parse).ok();
        let limit = limit.filter(|limit| (1..=PAGE_MAX).contains(limit));
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let wrong = || parameter("limit", &format!("write a number from 1 to {PAGE_MAX}"));
        limit.ok_or_else(wrong)
    }

    /// The key that makes a repeat harmless, if the client sent one.
    pub(crate) fn key(&self) -> Result<Option<Key>, Problem> {
        let named = self.named.clone().transpose();
        named.map_err(|error| Problem::new(Code::InvalidKey, error.to_string()))
    }

    /// The body as JSON.
    pub(crate) fn json<T: Fill + Default>(&self) -> Result<T, Problem> {
        Ok(decode(&self.body)?)
    }

    /// The body as JSON; nothing at all is as good as `{}`.
    pub(crate) fn json_or_nothing<T: Fill + Default>(&self) -> Result<T, Problem> {
        if self.body.is_empty() { Ok(T::default()) } else { self.json() }
    }
}

/// What is done.
impl Call {
    /// Has a command carried out.
    pub(crate) async fn settle(&self, command: Command) -> Result<Settled, Problem> {
        let ticket = self.app.engine.submit(command).map_err(|failure| self.problem(failure))?;
        self.answer(ticket).await
    }

    /// The same, where what becomes of it counts also when the caller does not wait: it is then
    /// written down, and given back if it was asked for without a key and so has a key of ours.
    pub(crate) async fn carry_out(
        &self,
        command: Command,
        disowned: Option<&Key>,
    ) -> Result<Settled, Problem> {
        let ticket = self.app.engine.submit(command).map_err(|failure| self.problem(failure))?;
        let mut unfinished = Unfinished { call: self, ticket: Some(ticket), disowned };
        match tokio::time::timeout(self.app.limits.request, unfinished.answer()).await {
            Ok(answer) => answer.map_err(|failure| self.problem(failure)),
            Err(_) if disowned.is_some() => Err(Problem {
                error:
                    "it took too long, and no key was sent to find it again: whatever is granted \
                        is given back, so ask again"
                        .to_owned(),
                ..self.problem(Failure::Unknown)
            }),
            Err(_) => Err(self.problem(Failure::Unknown)),
        }
    }

    /// Waits for the answer to a command, but not for ever.
    pub(crate) async fn answer(&self, ticket: Ticket) -> Result<Settled, Problem> {
        match tokio::time::timeout(self.app.limits.request, ticket).await {
            Ok(answer) => answer.map_err(|failure| self.problem(failure)),
            Err(_) => Err(self.problem(Failure::Unknown)),
        }
    }

    /// Looks at committed state.
    pub(crate) async fn look<R: Send + 'static>(
        &self,
        look: impl Fn(&Books, Time) -> R + Send + 'static,
    ) -> Result<R, Problem> {
        let seen = self.app.engine.look(look).map_err(|failure| self.problem(failure))?;
        self.seen_in_time(seen).await
    }

    /// The same where much is looked at: it waits with the requests.
    pub(crate) async fn survey<R: Send + 'static>(
        &self,
        look: impl Fn(&Books, Time) -> R + Send + 'static,
    ) -> Result<R, Problem> {
        let seen = self.app.engine.survey(look).map_err(|failure| self.problem(failure))?;
        self.seen_in_time(seen).await
    }

    async fn seen_in_time<R>(&self, seen: oneshot::Receiver<R>) -> Result<R, Problem> {
        match tokio::time::timeout(self.app.limits.request, seen).await {
            Ok(Ok(seen)) => Ok(seen),
            Ok(Err(_)) => Err(self.problem(Failure::Unavailable)),
            Err(_) => Err(self.problem(Failure::Overloaded)),
        }
    }

    /// The policy as the engine has it.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.app.policy.load_full()
    }

    /// How much of an explanation the caller sees.
    pub(crate) fn visibility(&self) -> Visibility {
        match self.caller() {
            Caller::Operator(_) => Visibility::Everything,
            Caller::Cluster(_) => self.app.policy.load().visibility,
        }
    }

    /// An explanation as the caller may see it.
    pub(crate) fn seen(&self, why: &Explanation) -> sublet_wire::v1::Explanation {
        sublet_wire::v1::Explanation::seen_by(why, self.visibility())
    }

    /// What the caller is told of a failure.
    pub(crate) fn problem(&self, failure: Failure) -> Problem {
        let said = failure.to_string();
        match failure {
            Failure::Refused(refusal) => problem_seen_by(&refusal, self.visibility()),
            Failure::Overloaded => Problem::new(Code::Overloaded, said).retry_after(1),
            Failure::Unavailable => Problem::new(Code::Unavailable, said).retry_after(5),
            Failure::Unknown => Problem::new(Code::OutcomeUnknown, said).retry_after(1),
        }
    }
}

/// A command that is on its way. Whoever drops it early (a caller that went, a wait that was too
/// long) leaves it to those who care for orphans.
struct Unfinished<'a> {
    call: &'a Call,
    ticket: Option<Ticket>,
    disowned: Option<&'a Key>,
}

impl Unfinished<'_> {
    async fn answer(&mut self) -> Answer {
        let Some(ticket) = self.ticket.as_mut() else { return Err(Failure::Unknown) };
        let answer = ticket.await;
        self.ticket = None;
        answer
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let disowned = match (self.call.caller(), self.disowned) {
            (Caller::Cluster(cluster), Some(key)) => Some((cluster.clone(), key.clone())),
            _ => None,
        };
        let audited = Audited::of(self.call);
        self.call.app.orphans.take_in(Orphan { ticket, audited, disowned });
    }
}

/// There is no turn, or no place, now.
pub(crate) fn busy(busy: Busy) -> Problem {
    Problem::new(Code::RateLimited, busy.to_string()).retry_after(busy.retry_after)
}

/// A key that nobody else has.
pub(crate) fn new_key() -> Result<Key, Problem> {
    random::key().map_err(|error| Problem::new(Code::Internal, error.to_string()))
}

/// The role does not allow it.
pub(crate) fn forbidden(caller: &Caller) -> Problem {
    let said = match caller {
        Caller::Operator(_) => {
            "operators have no cluster, and this is done as one: use a cluster's certificate"
        }
        Caller::Cluster(_) => "this is for operators: use an operator's certificate",
    };
    Problem::new(Code::Forbidden, said)
}

/// One cluster asks about another.
pub(crate) fn only_oneself() -> Problem {
    Problem::new(
        Code::Forbidden,
        "a cluster may ask about itself alone: leave the name out, or use an operator's certificate",
    )
}

/// It is there and the caller has a part in it, but this is for the other side to do.
pub(crate) fn for_the_other_side(relation: Relation) -> Problem {
    let said = match relation {
        Relation::Provider => {
            "this is for the requester of the reservation to do, and this cluster is its provider"
        }
        _ => "this is for the provider of the reservation to do, and this cluster is its requester",
    };
    Problem::new(Code::Forbidden, said)
}

/// A part of the path or of the query is wrong.
pub(crate) fn parameter(name: &str, what: &str) -> Problem {
    let mut problem = Problem::new(Code::InvalidParameter, format!("{name}: {what}"));
    problem.details.field = Some(name.to_owned());
    problem
}
