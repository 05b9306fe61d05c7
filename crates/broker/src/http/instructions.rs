//! What a cluster must do now: a list for the Go agents that poll, a stream for ours.

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::books::Books;
use sublet_core::id::ClusterId;
use sublet_wire::{Problem, v1};

use super::call::Call;
use super::{reply, watch};

/// The list, or the stream.
pub(super) async fn get(call: &Call) -> Result<Response, Problem> {
    if call.flag("watch")? {
        return watch::open(call).await;
    }
    let cluster = call.cluster()?.clone();
    let list = call.look(move |books, _| for_go(books, &cluster)).await?;
    // As Go writes a list that was never begun.
    let list = (!list.is_empty()).then_some(list);
    Ok(reply::json(StatusCode::OK, &list))
}

/// What a cluster must hold as a provider, as the Go agents are told.
pub(super) fn for_go(books: &Books, cluster: &ClusterId) -> Vec<v1::Reservation> {
    let account = books.ledger().account(cluster);
    let lending = account.into_iter().flat_map(|account| account.lending.iter());
    let known = lending.filter_map(|id| books.ledger().reservation(*id));
    known.filter_map(v1::Reservation::instruction_for_go).collect()
}
