//! What clusters say of themselves.

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::books::Books;
use sublet_core::id::ClusterId;
use sublet_core::plan::Command;
use sublet_wire::{Code, Problem, v1};

use super::call::Call;
use super::instructions::{for_go, lent};
use super::reply;
use crate::authorize::{Relation, Verdict};

/// The Go broker's words, which also hide that there is one of somebody else.
pub(super) fn not_found() -> Problem {
    Problem::new(Code::NoAdvertisement, "Advertisement not found")
}

/// A cluster says what it has, and is told what it must do as a provider.
pub(super) async fn post(call: &Call) -> Result<Response, Problem> {
    let sent: v1::Advertisement = call.json()?;
    let cluster = call.cluster()?.clone();
    let relation = Relation::to_cluster(call.caller(), &sent.cluster_id);
    if call.row.verdict(call.caller(), relation) != Verdict::Allow {
        return Err(Problem::new(Code::ClusterMismatch, "Cluster ID does not match certificate"));
    }
    let advertisement = sent.to_core(cluster.clone())?;
    let engine = &call.app.engine;
    // Both are handed in before either is waited for, so that they share one trip to the disk.
    let command = Command::Advertise(Box::new(advertisement));
    let taken = engine.submit(command).map_err(|failure| call.problem(failure))?;
    let answer = call.look(move |books, _| response(books, &cluster));
    let (taken, answer) = tokio::join!(call.answer(taken), answer);
    taken?;
    let answer = answer?.ok_or_else(not_found)?;
    Ok(reply::json(StatusCode::OK, &answer))
}

fn response(books: &Books, cluster: &ClusterId) -> Option<v1::AdvertisementResponse> {
    let entry = books.market().entry(cluster)?;
    Some(v1::AdvertisementResponse {
        advertisement: v1::Advertisement::of(books, entry),
        provider_instructions: for_go(&lent(books, cluster)),
    })
}

/// What a cluster said.
pub(super) async fn get(call: &Call) -> Result<Response, Problem> {
    let cluster: ClusterId = call.part("clusterID").map_err(|_| not_found())?;
    let look = move |books: &Books, _| {
        let entry = books.market().entry(&cluster)?;
        Some(v1::Advertisement::of(books, entry))
    };
    let found = call.look(look).await?.ok_or_else(not_found)?;
    Ok(reply::json(StatusCode::OK, &found))
}
