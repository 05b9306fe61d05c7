//! What operators decide: each an event in the log, with who and why.

use axum::response::Response;
use hyper::StatusCode;
use sublet_core::id::ClusterId;
use sublet_core::plan::{Action, Command};
use sublet_wire::{Code, Problem, v1};

use super::call::Call;
use super::reply;
use crate::authorize::Endpoint;
use sublet_process::lines::AUDIT;

/// Carries out what an operator decided.
pub(super) async fn operate(call: &Call) -> Result<Response, Problem> {
    let (action, why) = action(call)?;
    let operator = call.operator()?.to_owned();
    tracing::info!(
        target: AUDIT,
        request = call.id, caller = %call.caller(), route = call.row.route, ?action, why,
        "operator"
    );
    call.settle(Command::Operate { operator, why, action }).await?;
    Ok(reply::done())
}

fn action(call: &Call) -> Result<(Action, String), Problem> {
    let cluster = || call.part::<ClusterId>("clusterID");
    let why = || call.json_or_nothing::<v1::Why>().map(|sent| sent.why);
    Ok(match call.row.endpoint {
        Endpoint::Cordon => (Action::Cordon { cluster: cluster()?, drain: false }, why()?),
        Endpoint::Drain => (Action::Cordon { cluster: cluster()?, drain: true }, why()?),
        Endpoint::Uncordon => (Action::Uncordon(cluster()?), why()?),
        Endpoint::DeclareLost => (Action::DeclareLost(cluster()?), why()?),
        Endpoint::Vouch => (Action::Vouch(cluster()?), why()?),
        Endpoint::ConfirmClock => (Action::ConfirmClock, why()?),
        Endpoint::Cap => {
            let sent: v1::Cap = call.json()?;
            (Action::Cap(cluster()?, sent.to_core()?), sent.why)
        }
        Endpoint::Revoke => {
            let sent: v1::Revocation = call.json()?;
            (Action::Revoke(sent.to_core()?), sent.why)
        }
        Endpoint::Reinstate => {
            let sent: v1::Revocation = call.json()?;
            (Action::Reinstate(sent.to_core()?), sent.why)
        }
        // Everything else has a handler of its own.
        _ => return Err(Problem::new(Code::NoSuchRoute, "404 page not found")),
    })
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
