//! Reading reservations: one, a page of them, and why one is where it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::books::Books;
use sublet_core::decision::explain::{self, Explanation};
use sublet_core::id::{ClusterId, ReservationId};
use sublet_core::policy::Policy;
use sublet_core::reservation::{Phase, Reservation};
use sublet_core::time::Time;
use sublet_wire::{Code, Problem, v1};

use super::call::{Call, only_oneself, parameter};
use super::reply;
use super::reservations::{find, view};
use crate::authorize::{Relation, Verdict};
use crate::identity::Caller;

/// The most reservations that one page looks at, those that it leaves out included: the engine has
/// other things to do.
const LOOKED_AT_MAX: usize = 20_000;

/// One reservation.
pub(super) async fn reservation(call: &Call) -> Result<Response, Problem> {
    let found = find(call).await?;
    let shown = v1::Reservation::of(&found, view(call.caller(), &found));
    Ok(reply::json(StatusCode::OK, &shown))
}

/// Why a reservation is where it is, or why it waits, on what is known now.
pub(super) async fn explain(call: &Call) -> Result<Response, Problem> {
    let (found, policy) = (find(call).await?, call.policy());
    let phase = found.phase();
    let why = call.look(move |books, now| explanation(books, &found, &policy, now)).await?;
    let why = why.ok_or_else(|| {
        let said = format!("the reservation is {phase}: there is nothing to explain any more");
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
    let (requester, ask) = (&reservation.requester, &reservation.ask);
    if reservation.phase() == Phase::Pending {
        return Some(explain::refused(books, requester, ask, policy, now));
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
        let (after, limit) = (call.parameter_as("after")?, call.limit()?);
        Ok(Self { cluster, role, phase: phase.transpose()?, after, limit })
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
        let mut page = Vec::new();
        for (looked_at, id) in self.ids(books).into_iter().enumerate() {
            if page.len() == self.limit || looked_at == LOOKED_AT_MAX {
                return (page, Some(id));
            }
            let known = books.ledger().share_reservation(id);
            page.extend(known.filter(|reservation| self.wants(reservation)));
        }
        (page, None)
    }

    /// Candidates in order, from the place where the page begins.
    fn ids(&self, books: &Books) -> Vec<ReservationId> {
        let from = self.after.unwrap_or(ReservationId::FIRST);
        let Some(cluster) = &self.cluster else {
            let all = books.ledger().reservations(Some(from)).map(|reservation| reservation.id);
            return all.take(LOOKED_AT_MAX + 1).collect();
        };
        let account = books.ledger().account(cluster);
        let changes = account.into_iter().flat_map(|account| account.changes.iter());
        let ids: BTreeSet<_> = changes.map(|(_, id)| *id).filter(|id| *id >= from).collect();
        ids.into_iter().take(LOOKED_AT_MAX + 1).collect()
    }
}

/// A page of reservations.
pub(super) async fn reservations(call: &Call) -> Result<Response, Problem> {
    let wanted = Wanted::of(call)?;
    let is_go = is_go(call);
    let (page, next) = call.look(move |books, _| wanted.page(books)).await?;
    let shown = page.iter().map(|reservation| {
        let view = if is_go { v1::View::Go } else { view(call.caller(), reservation) };
        v1::Reservation::of(reservation, view)
    });
    let list =
        v1::ReservationList { reservations: shown.collect(), next: next.map(|id| id.to_string()) };
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
