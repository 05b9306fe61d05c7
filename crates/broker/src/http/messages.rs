//! What agents tell each other: taken here, kept by [`crate::mail`], and brought by the stream.

use std::sync::Arc;

use axum::response::Response;
use sublet_wire::{Code, Problem, v1};

use super::call::Call;
use super::reply;
use crate::authorize::{Relation, Verdict};

/// Takes a message for another cluster.
pub(super) async fn post(call: &Call) -> Result<Response, Problem> {
    let from = call.cluster()?.clone();
    let sent: v1::Message = call.json()?;
    if !sent.from.is_empty() && sent.from != from.as_str() {
        return Err(Code::ClusterMismatch.into());
    }
    let post = sent.to_post()?;
    let (one, other) = (from.clone(), post.to.clone());
    let known = call.look(move |books, _| books.ledger().have_dealt(&one, &other)).await?;
    // On which side of it does not matter: both have something to say.
    let relation = if known { Relation::Requester } else { Relation::Other };
    if call.row.verdict(call.caller(), relation) != Verdict::Allow {
        return Err(strangers(&post));
    }
    let now = call.app.machine.read().monotonic;
    let put = call.app.mail.put(Arc::clone(&call.identity), from, post, now);
    put.map_err(|full| {
        Problem::new(Code::TooManyMessages, full.to_string()).retry_after(full.retry_after)
    })?;
    Ok(reply::accepted())
}

/// The same whether there is such a cluster or not.
fn strangers(post: &v1::Posted) -> Problem {
    let said = format!(
        "this cluster shares no reservation with {}, now or lately: there is nothing to tell it",
        post.to
    );
    Problem::new(Code::Strangers, said)
}
