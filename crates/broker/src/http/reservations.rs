//! Asking for capacity, and everything that moves a reservation on.

use std::sync::Arc;

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::decision::explain::Explanation;
use sublet_core::id::ReservationId;
use sublet_core::plan::{Command, Reply, Which};
use sublet_core::reservation::{Phase, Reservation};
use sublet_wire::{Code, Problem, v1};

use super::audited::{Line, refused};
use super::call::{Call, for_the_other_side, new_key, parameter};
use super::reply;
use crate::authorize::{Relation, Verdict};
use crate::engine::Settled;
use crate::identity::Caller;

/// Asks for capacity.
pub(super) async fn reserve(call: &Call) -> Result<Response, Problem> {
    let sent: v1::ReservationRequest = call.json()?;
    let (requester, ask) = (call.cluster()?.clone(), sent.to_core()?);
    if call.flag("dryRun")? {
        let settled = call.settle(Command::DryRun { requester, ask }).await?;
        return decision(call, settled);
    }
    let named = call.key()?;
    let key = named.clone().map_or_else(new_key, Ok)?;
    let explain = sent.explain;
    let command = Command::Reserve { requester, key: key.clone(), ask, explain };
    let disowned = if named.is_none() { Some(&key) } else { None };
    let settled = call.carry_out(command, disowned).await;
    let settled = settled.inspect_err(|problem| refused(call, problem))?;
    let Reply::Reservation { explanation, .. } = &settled.reply else { return Err(odd()) };
    let reservation = settled.reservation.as_ref().ok_or_else(odd)?;
    Line::of(call).granted(&call.app, reservation);
    let view = if named.is_some() { v1::View::Full } else { v1::View::Go };
    let mut shown = v1::Reservation::of(reservation, view);
    shown.explanation = explanation.as_deref().map(|why: &Explanation| call.seen(why));
    let waits = reservation.phase() == Phase::Pending;
    Ok(reply::json(if waits { StatusCode::ACCEPTED } else { StatusCode::CREATED }, &shown))
}

fn decision(call: &Call, settled: Settled) -> Result<Response, Problem> {
    let Reply::WouldGrant { provider, explanation } = settled.reply else { return Err(odd()) };
    let shown = v1::Decision {
        dry_run: true,
        target_cluster_id: provider.to_string(),
        explanation: Some(call.seen(&explanation)),
    };
    Ok(reply::json(StatusCode::OK, &shown))
}

/// The engine answered something else than was asked.
fn odd() -> Problem {
    Problem::new(Code::Internal, "the broker made a mistake: report this with the request's id")
}

/// Ends a reservation.
pub(super) async fn release(call: &Call) -> Result<Response, Problem> {
    let which = Which::Id(find(call).await?.id);
    changed(call, Command::Release { by: call.actor(), which }).await
}

/// Ends what was asked for under a key.
pub(super) async fn release_by_key(call: &Call) -> Result<Response, Problem> {
    let key = call.parameter("key").ok_or_else(|| parameter("key", "name the key to release"))?;
    let key = key.parse().map_err(|error: sublet_core::id::Error| {
        Problem::new(Code::InvalidKey, error.to_string())
    })?;
    let which = Which::Key(call.cluster()?.clone(), key);
    changed(call, Command::Release { by: call.actor(), which }).await
}

/// Lets it run longer.
pub(super) async fn renew(call: &Call) -> Result<Response, Problem> {
    let sent: v1::Renewal = call.json_or_nothing()?;
    let (duration, id) = (sent.to_core()?, find(call).await?.id);
    changed(call, Command::Renew { by: call.actor(), id, duration }).await
}

/// Changes its amounts.
pub(super) async fn resize(call: &Call) -> Result<Response, Problem> {
    let sent: v1::Resizing = call.json()?;
    let (resources, id) = (sent.to_core()?, find(call).await?.id);
    changed(call, Command::Resize { by: call.actor(), id, resources }).await
}

/// The requester confirms use.
pub(super) async fn activate(call: &Call) -> Result<Response, Problem> {
    let (by, id) = (call.cluster()?.clone(), find(call).await?.id);
    changed(call, Command::Activate { by, id }).await
}

/// The provider confirms an instruction.
pub(super) async fn acknowledge(call: &Call) -> Result<Response, Problem> {
    let sent: v1::Acknowledgement = call.json()?;
    let (by, id) = (call.cluster()?.clone(), find(call).await?.id);
    changed(call, Command::Acknowledge { by, id, generation: sent.to_core() }).await
}

/// The clusters cannot be joined.
pub(super) async fn fail(call: &Call) -> Result<Response, Problem> {
    let sent: v1::Failed = call.json_or_nothing()?;
    let (by, id) = (call.cluster()?.clone(), find(call).await?.id);
    let why = sent.to_core();
    let said = why.as_ref().map(v1::hindrance).unwrap_or_default();
    tracing::warn!(cluster = %by, reservation = %id, why = said, "clusters cannot be joined");
    changed(call, Command::Fail { by, id, why }).await
}

/// The reservation that the path names, if the table lets the caller do this to it. What is no id
/// names nothing.
pub(super) async fn find(call: &Call) -> Result<Arc<Reservation>, Problem> {
    let id: ReservationId = call.part("id").map_err(|_| not_found())?;
    let found = call.look(move |books, _| books.ledger().share_reservation(id)).await?;
    let found = found.ok_or_else(not_found)?;
    let relation = Relation::to_reservation(call.caller(), &found);
    match call.row.verdict(call.caller(), relation) {
        Verdict::Allow => Ok(found),
        Verdict::Hide => Err(not_found()),
        Verdict::Forbid => Err(for_the_other_side(relation)),
    }
}

/// As the core says it.
pub(super) fn not_found() -> Problem {
    sublet_wire::problem_of(&sublet_core::plan::Refusal::NotFound)
}

/// What of a reservation the caller sees.
pub(super) fn view(caller: &Caller, reservation: &Reservation) -> v1::View {
    match caller {
        Caller::Cluster(cluster) if reservation.requester != *cluster => v1::View::Provider,
        _ => v1::View::Full,
    }
}

/// Carries a command out, and shows the reservation as it is then.
async fn changed(call: &Call, command: Command) -> Result<Response, Problem> {
    let settled = call.carry_out(command, None).await?;
    let reservation = settled.reservation.as_deref();
    Line::of(call).done(reservation);
    let Some(reservation) = reservation else { return Ok(reply::done()) };
    let shown = v1::Reservation::of(reservation, view(call.caller(), reservation));
    Ok(reply::json(StatusCode::OK, &shown))
}
