//! What operators decide: each an event in the log, with who and why.

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::books::Books;
use sublet_core::id::ClusterId;
use sublet_core::plan::{Action, Command};
use sublet_wire::{Code, Problem, v1};

use super::call::Call;
use super::reply;
use crate::authorize::Endpoint;
use sublet_process::lines::AUDIT;

/// Carries out what an operator decided.
pub(super) async fn operate(call: &Call) -> Result<Response, Problem> {
    let (action, why) = action(call).await?;
    let why = v1::why(why)?;
    let operator = call.operator()?.to_owned();
    tracing::info!(
        target: AUDIT,
        request = call.id, caller = %call.caller(), route = call.row.route, ?action, why,
        "operator"
    );
    call.settle(Command::Operate { operator, why, action }).await?;
    Ok(reply::done())
}

async fn action(call: &Call) -> Result<(Action, String), Problem> {
    Ok(match call.row.endpoint {
        Endpoint::ConfirmClock => (Action::ConfirmClock, call.json_or_nothing::<v1::Why>()?.why),
        Endpoint::Revoke => {
            let sent: v1::Revocation = call.json()?;
            (Action::Revoke(sent.to_core()?), sent.why)
        }
        Endpoint::Reinstate => {
            let sent: v1::Revocation = call.json()?;
            (Action::Reinstate(sent.to_core()?), sent.why)
        }
        Endpoint::Cap => {
            let (cluster, sent): (_, v1::Cap) = (call.part("clusterID")?, call.json()?);
            let limits = sent.to_core()?;
            (Action::Cap(known(call, cluster, sent.force).await?, limits), sent.why)
        }
        endpoint => {
            let (cluster, sent): (_, v1::ClusterDecision) =
                (call.part("clusterID")?, call.json_or_nothing()?);
            let cluster = known(call, cluster, sent.force).await?;
            let action = match endpoint {
                Endpoint::Cordon => Action::Cordon { cluster, drain: false },
                Endpoint::Drain => Action::Cordon { cluster, drain: true },
                Endpoint::Uncordon => Action::Uncordon(cluster),
                Endpoint::DeclareLost => Action::DeclareLost(cluster),
                Endpoint::Vouch => Action::Vouch(cluster),
                // Everything else has a handler of its own.
                _ => return Err(Problem::new(Code::NoSuchRoute, "404 page not found")),
            };
            (action, sent.why)
        }
    })
}

/// A name that nobody has heard of is a slip, unless it is said to be meant: what is decided about
/// it would stay, and would be said of whoever comes under that name.
async fn known(call: &Call, cluster: ClusterId, is_meant: bool) -> Result<ClusterId, Problem> {
    let (name, policy) = (cluster.clone(), call.policy());
    let look = move |books: &Books, now| v1::Cluster::of(books, &name, &policy, now).is_some();
    if is_meant || call.look(look).await? {
        return Ok(cluster);
    }
    let said = format!(
        "no cluster {cluster} was ever heard of: check the name, or say with force that it is meant"
    );
    Err(Problem::new(Code::NoSuchCluster, said))
}

/// Everything that is revoked.
pub(super) async fn revocations(call: &Call) -> Result<Response, Problem> {
    let list = call.look(|books, _| v1::RevocationList {
        revocations: books
            .ledger()
            .revoked()
            .iter()
            .map(|(subject, note)| v1::Revocation::of(subject, note))
            .collect(),
    });
    Ok(reply::json(StatusCode::OK, &list.await?))
}
