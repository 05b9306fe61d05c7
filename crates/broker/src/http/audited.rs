//! The audit line of a decision that a call asked for: the same whether its caller waited or not.

use sublet_core::reservation::{Phase, Reservation};
use sublet_process::lines::AUDIT;
use sublet_wire::{Code, Problem};

use super::app::App;
use super::call::Call;
use crate::authorize::Endpoint;
use crate::engine::{Answer, Failure};
use crate::identity::Caller;
use crate::metrics::{Because, Word};

/// What a line says of the call behind a decision.
pub(crate) struct Audited {
    pub(crate) request: String,
    caller: Caller,
    route: &'static str,
    endpoint: Endpoint,
}

impl Audited {
    /// Of this call, to outlive it.
    pub(super) fn of(call: &Call) -> Self {
        let (request, caller) = (call.id.clone(), call.caller().clone());
        Self { request, caller, route: call.row.route, endpoint: call.row.endpoint }
    }

    /// Nobody will know what became of it.
    pub(crate) fn lost(&self) {
        let (caller, route) = (&self.caller, self.route);
        tracing::error!(
            target: AUDIT,
            request = self.request, %caller, route,
            "too many callers did not wait: what became of this is in the log alone"
        );
    }

    /// The answer that its caller did not wait for.
    pub(crate) fn settled(&self, app: &App, answer: Answer) {
        let line = Line { request: &self.request, caller: &self.caller, route: self.route };
        match answer.map(|settled| settled.reservation) {
            Ok(Some(reservation)) if self.endpoint == Endpoint::Reserve => {
                line.granted(app, &reservation);
            }
            Ok(reservation) => line.done(reservation.as_deref()),
            Err(failure) => {
                let code = code(&failure).as_str();
                if self.endpoint == Endpoint::Reserve {
                    app.metrics.refused.get_or_create(&Because { reason: Word(code) }).inc();
                }
                let (caller, route) = (&self.caller, self.route);
                tracing::info!(
                    target: AUDIT,
                    request = self.request, %caller, route, code, said = %failure,
                    "denied"
                );
            }
        }
    }
}

fn code(failure: &Failure) -> Code {
    match failure {
        Failure::Refused(refusal) => {
            sublet_wire::problem_of(refusal).code().unwrap_or(Code::Internal)
        }
        Failure::Overloaded => Code::Overloaded,
        Failure::Unavailable => Code::Unavailable,
        Failure::Unknown => Code::OutcomeUnknown,
    }
}

/// Whose line it is.
pub(super) struct Line<'a> {
    request: &'a str,
    caller: &'a Caller,
    route: &'static str,
}

impl<'a> Line<'a> {
    pub(super) fn of(call: &'a Call) -> Self {
        Self { request: &call.id, caller: call.caller(), route: call.row.route }
    }

    /// Capacity was granted, or is waited for.
    pub(super) fn granted(&self, app: &App, reservation: &Reservation) {
        let provider = reservation.grant().map_or("none yet", |grant| grant.provider.as_str());
        let (id, phase) = (reservation.id, reservation.phase());
        if phase != Phase::Pending {
            app.metrics.granted.inc();
        }
        tracing::info!(
            target: AUDIT,
            request = self.request, caller = %self.caller, reservation = %id, %phase, provider,
            "decided"
        );
    }

    /// A reservation was moved on.
    pub(super) fn done(&self, reservation: Option<&Reservation>) {
        let (request, caller, route) = (self.request, self.caller, self.route);
        let Some(reservation) = reservation else {
            tracing::info!(target: AUDIT, request, %caller, route, "done");
            return;
        };
        let (id, phase) = (reservation.id, reservation.phase());
        tracing::info!(
            target: AUDIT,
            request, %caller, route, reservation = %id, %phase,
            "done"
        );
    }
}

/// Counts a request for capacity that came to nothing.
pub(super) fn refused(call: &Call, problem: &Problem) {
    let reason = Word(problem.code().unwrap_or(Code::Internal).as_str());
    call.app.metrics.refused.get_or_create(&Because { reason }).inc();
}
