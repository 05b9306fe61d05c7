//! What the broker knows of clusters: of oneself, and for operators of all.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::books::Books;
use sublet_core::decision::explain::candidates as judge;
use sublet_core::event::Subject;
use sublet_core::id::ClusterId;
use sublet_wire::{Code, Problem, v1};

use super::call::Call;
use super::reply;
use crate::identity::Caller;

/// None, or not yours to see.
pub(super) fn not_found() -> Problem {
    Problem::new(Code::NoSuchCluster, "there is no such cluster: list those that there are")
}

/// One cluster.
pub(super) async fn get(call: &Call) -> Result<Response, Problem> {
    let cluster: ClusterId = call.part("clusterID").map_err(|_| not_found())?;
    let policy = call.policy();
    let look = move |books: &Books, now| v1::Cluster::of(books, &cluster, &policy, now);
    let found = call.look(look).await?.ok_or_else(not_found)?;
    Ok(reply::json(StatusCode::OK, &found))
}

/// A page of clusters; for a cluster, itself.
pub(super) async fn list(call: &Call) -> Result<Response, Problem> {
    let (after, limit) = (call.parameter_as::<ClusterId>("after")?, call.limit()?);
    let (policy, caller) = (call.policy(), call.caller().clone());
    let list = call.survey(move |books, now| {
        let names = match &caller {
            Caller::Cluster(own) => BTreeSet::from([own.clone()]),
            Caller::Operator(_) => first(books, after.as_ref(), limit + 1),
        };
        let next = names.iter().nth(limit).map(ToString::to_string);
        let page = names.iter().take(limit);
        let clusters = page.filter_map(|name| v1::Cluster::of(books, name, &policy, now)).collect();
        // A page begins after the last name of the one before.
        let next = next.and(names.iter().take(limit).next_back()).map(ToString::to_string);
        v1::ClusterList { clusters, next }
    });
    Ok(reply::json(StatusCode::OK, &list.await?))
}

/// The first names after `after`, of all that advertised, lend, borrow, or were decided about.
fn first(books: &Books, after: Option<&ClusterId>, most: usize) -> BTreeSet<ClusterId> {
    let ledger = books.ledger();
    let revoked = ledger.revoked().keys().filter_map(|subject| match subject {
        Subject::Cluster(cluster) => Some(cluster),
        Subject::Serial(_) => None,
    });
    let all = books.market().entries().map(|(name, _)| name);
    let all = all.chain(ledger.accounts().map(|(name, _)| name));
    let all = all.chain(ledger.standings().map(|(name, _)| name)).chain(revoked);
    let mut names = BTreeSet::new();
    for name in all.filter(|name| after.is_none_or(|after| *name > after)) {
        // Only the smallest are kept, so that a page of a large fleet costs little memory.
        if names.len() < most || names.last().is_some_and(|last: &ClusterId| name < last) {
            names.insert(name.clone());
            if names.len() > most {
                names.pop_last();
            }
        }
    }
    names
}

/// What every cluster is to a request.
pub(super) async fn candidates(call: &Call) -> Result<Response, Problem> {
    let sent: v1::CandidateRequest = call.json()?;
    let (requester, ask) = sent.to_core()?;
    let (after, limit) = (call.parameter_as::<ClusterId>("after")?, call.limit()?);
    let policy = call.policy();
    let found = call.survey(move |books, now| {
        judge(books, &requester, &ask, &policy, now, after.as_ref(), limit + 1)
    });
    let found = Arc::new(found.await?);
    let more = found.len() > limit;
    let page = found.iter().take(limit);
    let list = v1::CandidateList {
        next: page.clone().next_back().filter(|_| more).map(|last| last.cluster.to_string()),
        candidates: page.map(v1::Candidate::from).collect(),
    };
    Ok(reply::json(StatusCode::OK, &list))
}
