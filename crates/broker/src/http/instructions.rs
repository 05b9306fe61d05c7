//! What a cluster must do now: a list for the Go agents that poll, a stream for ours.

use std::sync::Arc;

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::books::Books;
use sublet_core::id::ClusterId;
use sublet_core::reservation::Reservation;
use sublet_wire::{Problem, v1};

use super::call::Call;
use super::{reply, watch};

/// The list, or the stream.
pub(super) async fn get(call: &Call) -> Result<Response, Problem> {
    if call.flag("watch")? {
        return watch::open(call).await;
    }
    let cluster = call.cluster()?.clone();
    let lent = call.look(move |books, _| lent(books, &cluster)).await?;
    let list = for_go(&lent);
    // As Go writes a list that was never begun.
    let list = (!list.is_empty()).then_some(list);
    Ok(reply::json(StatusCode::OK, &list))
}

/// What a cluster lends. It is shared, because an answer is long only where it is made and nothing
/// is waited for.
pub(super) fn lent(books: &Books, cluster: &ClusterId) -> Vec<Arc<Reservation>> {
    let account = books.ledger().account(cluster);
    let lending = account.into_iter().flat_map(|account| account.lending.iter());
    lending.filter_map(|id| books.ledger().share_reservation(*id)).collect()
}

/// What a cluster must hold as a provider, as the Go agents are told.
pub(super) fn for_go(lent: &[Arc<Reservation>]) -> Vec<v1::Reservation> {
    lent.iter().filter_map(|known| v1::Reservation::instruction_for_go(known)).collect()
}
