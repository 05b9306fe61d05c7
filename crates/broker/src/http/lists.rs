//! Reading reservations: one, a page of them, and why one is where it is.

use std::sync::Arc;

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::books::Books;
use sublet_core::decision::explain::{self, Explanation};
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Phase, Reservation};
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_wire::{Code, Problem, v1};

use super::call::{Call, only_oneself, parameter};
use super::reply;
use super::reservations::{find, view};
use crate::authorize::{Relation, Verdict};
use crate::identity::Caller;

/// The most reservations that one page looks at, those that it leaves out included: the engine has
/// other things to do. An older Go agent, which knows no pages, is shown no more than these.
const LOOKED_AT_MAX: usize = 20_000;

/// One reservation.
pub(super) async fn reservation(call: &Call) -> Result<Response, Problem> {
    let found = find(call).await?;
    let mut shown = v1::Reservation::of(&found, view(call.caller(), &found));
    let used = call.look(move |books, _| used(books, &found)).await?;
    shown.used = used.as_ref().map(Into::into);
    Ok(reply::json(StatusCode::OK, &shown))
}

/// What runs inside of a reservation, as its provider last reported it.
fn used(books: &Books, reservation: &Reservation) -> Option<Resources> {
    let said = &books.market().entry(&reservation.grant()?.provider)?.advertisement;
    said.grant(reservation.id).map(|report| report.used.clone())
}

/// Why a reservation is where it is, or why it waits, on what is known now.
pub(super) async fn explain(call: &Call) -> Result<Response, Problem> {
    let (found, policy) = (find(call).await?, call.policy());
    let shown = v1::Reservation::of(&found, view(call.caller(), &found));
    let (phase, said) = (found.phase(), shown.status.message);
    let why = call.survey(move |books, now| explanation(books, &found, &policy, now)).await?;
    let why = why.ok_or_else(|| {
        let said = format!("the reservation is {phase}, there is nothing left to explain: {said}");
        let mut problem = Problem::new(Code::WrongPhase, said);
        problem.details.phase = Some(phase.to_string());
        problem
    })?;
    Ok(reply::json(StatusCode::OK, &call.seen(&why)))
}

fn explanation(
    books: &Books,
    reservation: &Reservation,
    policy: &Policy,
    now: Time,
) -> Option<Explanation> {
    if reservation.phase() == Phase::Pending {
        return Some(explain::waiting(books, reservation, policy, now));
    }
    explain::held(books, reservation, policy, now)
}

/// Which reservations are asked for.
struct Wanted {
    cluster: Option<ClusterId>,
    role: Option<Relation>,
    phase: Option<Phase>,
    after: Option<ReservationId>,
    limit: usize,
    /// An older Go agent asks: it knows no pages, and wants what it has now.
    is_go: bool,
}

impl Wanted {
    fn of(call: &Call) -> Result<Self, Problem> {
        let named = call.parameter_as::<ClusterId>("clusterID")?;
        let relation = |named: &ClusterId| Relation::to_cluster(call.caller(), named.as_str());
        let cluster = match (named, call.caller()) {
            (Some(named), caller) => {
                let verdict = call.row.verdict(caller, relation(&named));
                Some(named).filter(|_| verdict == Verdict::Allow).ok_or_else(only_oneself)?.into()
            }
            (None, Caller::Cluster(own)) => Some(own.clone()),
            (None, Caller::Operator(_)) => None,
        };
        let role = match call.parameter("role") {
            None => None,
            Some("requester") => Some(Relation::Requester),
            Some("provider") => Some(Relation::Provider),
            Some(_) => return Err(parameter("role", "write requester or provider")),
        };
        let phase = call.parameter("phase").map(|text| {
            let found = Phase::ALL.into_iter().find(|phase| phase.to_string() == text);
            found.ok_or_else(|| {
                parameter("phase", &format!("write one of {}", v1::PHASES.join(", ")))
            })
        });
        let is_go = is_go(call);
        let limit = if is_go { LOOKED_AT_MAX } else { call.limit()? };
        let after = call.parameter_as("after")?;
        Ok(Self { cluster, role, phase: phase.transpose()?, after, limit, is_go })
    }

    fn wants(&self, reservation: &Reservation) -> bool {
        let lends = |cluster: &ClusterId| {
            reservation.grant().is_some_and(|grant| grant.provider == *cluster)
        };
        let role = match (&self.cluster, self.role) {
            (Some(cluster), Some(Relation::Requester)) => reservation.requester == *cluster,
            (Some(cluster), Some(_)) => lends(cluster),
            (Some(cluster), None) => reservation.requester == *cluster || lends(cluster),
            (None, _) => true,
        };
        role && self.phase.is_none_or(|phase| phase == reservation.phase())
    }

    /// The next page, and where the one after it begins.
    fn page(&self, books: &Books) -> (Vec<Arc<Reservation>>, Option<ReservationId>) {
        self.page_of(self.ids(books), |id| books.ledger().share_reservation(id))
    }

    /// The same of these, in order. No more of them is looked at than the page needs.
    fn page_of(
        &self,
        ids: impl Iterator<Item = ReservationId>,
        find: impl Fn(ReservationId) -> Option<Arc<Reservation>>,
    ) -> (Vec<Arc<Reservation>>, Option<ReservationId>) {
        let mut page = Vec::new();
        for (looked_at, id) in ids.enumerate() {
            if page.len() == self.limit || looked_at == LOOKED_AT_MAX {
                return (page, Some(id));
            }
            page.extend(find(id).filter(|reservation| self.wants(reservation)));
        }
        (page, None)
    }

    /// Candidates in order, from the place where the page begins.
    fn ids<'a>(&self, books: &'a Books) -> Box<dyn Iterator<Item = ReservationId> + 'a> {
        let from = self.after.unwrap_or(ReservationId::FIRST);
        let Some(cluster) = &self.cluster else {
            let all = books.ledger().reservations(Some(from));
            return Box::new(all.map(|reservation| reservation.id));
        };
        let Some(account) = books.ledger().account(cluster) else {
            return Box::new(std::iter::empty());
        };
        let ids = match self.role {
            Some(Relation::Requester) if self.is_go => &account.borrowing,
            Some(_) if self.is_go => &account.lending,
            _ => return Box::new(account.remembered(from)),
        };
        Box::new(ids.range(from..).copied())
    }
}

/// A page of reservations.
pub(super) async fn reservations(call: &Call) -> Result<Response, Problem> {
    let wanted = Wanted::of(call)?;
    let is_go = wanted.is_go;
    let look = move |books: &Books, _| {
        let (page, next) = wanted.page(books);
        let in_use = |one: Arc<Reservation>| (used(books, &one).filter(|_| !is_go), one);
        (page.into_iter().map(in_use).collect::<Vec<_>>(), next)
    };
    let (page, next) = call.survey(look).await?;
    let shown = page.iter().map(|(used, reservation)| {
        let view = if is_go { v1::View::Go } else { view(call.caller(), reservation) };
        let used = used.as_ref().map(Into::into);
        v1::Reservation { used, ..v1::Reservation::of(reservation, view) }
    });
    let list = v1::ReservationList {
        reservations: shown.collect(),
        next: next.filter(|_| !is_go).map(|id| id.to_string()),
    };
    Ok(reply::json(StatusCode::OK, &list))
}

/// The older Go agents name themselves and a role, and nothing else.
fn is_go(call: &Call) -> bool {
    let named = |name| call.parameter(name).is_some();
    matches!(call.caller(), Caller::Cluster(_))
        && call.query.len() == 2
        && named("clusterID")
        && named("role")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_page_looks_at_no_more_than_it_may_however_much_is_remembered() {
        let wanted = Wanted {
            cluster: None,
            role: None,
            phase: None,
            after: None,
            limit: 100,
            is_go: false,
        };
        let looked_at = Cell::new(0);
        let ids = std::iter::repeat_n(ReservationId::FIRST, 100_000);
        let counted = ids.inspect(|_| looked_at.set(looked_at.get() + 1));
        let (page, next) = wanted.page_of(counted, |_| None);
        assert_eq!((page.len(), next), (0, Some(ReservationId::FIRST)));
        assert_eq!(looked_at.get(), LOOKED_AT_MAX + 1);
    }
}
