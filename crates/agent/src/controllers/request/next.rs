//! What to do next about one request, given what is there and what the broker said: pure.

use std::time::Duration;

use kube::{Resource, ResourceExt};
use sublet_core::id::ReservationId;
use sublet_core::instruction::{Duty, Side};
use sublet_core::reservation::Ask;
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_crds::condition::Reason;
use sublet_crds::{
    Invalid, Obstacle, RequestPhase, ResourceRequest, ResourceRequestStatus, to_time,
};

use super::status::{hindrance, hindrance_of, is_refused, is_unheard};
use crate::controllers::context::Context;
use crate::controllers::instruction::Seen;
use crate::transport::{Order, Promise};

/// What keeps a request until its capacity is given back.
pub(crate) const FINALIZER: &str = "rear.fluidos.eu/release";
/// How often the broker is asked about what it says nothing of: what waits, and what is going.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How often it is asked about what it would say something of.
const MAKE_SURE: Duration = Duration::from_mins(5);

/// What the broker said in this round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Said {
    /// It was not asked.
    #[default]
    Unasked,
    /// This.
    Promise(Box<Promise>),
    /// That it knows nothing of it, or nothing at all.
    Nothing,
    /// It is ours, and never knew what an old one has named.
    Foreign,
}

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) request: &'a ResourceRequest,
    /// The instruction of its reservation.
    pub(crate) instruction: Option<&'a Seen>,
    pub(crate) said: &'a Said,
    pub(crate) now: Time,
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing, for so long at most.
    Rest(Option<Duration>),
    /// See to it that it cannot go before its capacity.
    Finalize,
    /// Let it go.
    Unfinalize,
    /// Give back what it holds.
    Release,
    /// Have its instruction taken down, without a broker that could say so.
    TakeDown(Order),
    /// Ask for capacity.
    Ask(Box<Ask>),
    /// See what became of it.
    Look,
    /// Have its instruction written down.
    Instruct(Order),
    /// Change the amounts.
    Resize(Resources),
    /// Let it run on.
    Renew(Span),
    /// Write down that the change of the spec was dealt with.
    Observe,
    /// Say what is in the way, as its instruction does; or that nothing is.
    Mirror(Option<(Obstacle, String)>),
    /// It makes no sense.
    Refuse(Invalid),
    /// It is over by our clock; there is nobody else's.
    Expire,
    /// The broker has forgotten it.
    Forget,
}

/// What to do next.
pub(crate) fn next(view: &View<'_>) -> Step {
    let request = view.request;
    let is_final = request.finalizers().iter().any(|name| name == FINALIZER);
    if request.meta().deletion_timestamp.is_some() {
        return if is_final { leave(view) } else { Step::Rest(None) };
    }
    let status = request.status.clone().unwrap_or_default();
    if status.phase.is_some_and(RequestPhase::is_over) && !is_asked_anew(request, &status) {
        return if !is_final {
            Step::Rest(None)
        } else if may_hold(&status) {
            leave(view)
        } else {
            Step::Unfinalize
        };
    }
    let ask = match request.spec.ask() {
        Ok(ask) => ask,
        Err(invalid) => return Step::Refuse(invalid),
    };
    if !is_final {
        return Step::Finalize;
    }
    if status.reservation_name.is_empty() {
        return Step::Ask(Box::new(ask));
    }
    held(view, &status, &ask)
}

/// A refused request that was changed is a new one: a refusal binds nothing.
fn is_asked_anew(request: &ResourceRequest, status: &ResourceRequestStatus) -> bool {
    status.phase == Some(RequestPhase::Failed)
        && status.reservation_name.is_empty()
        && status.observed_generation.is_some()
        && status.observed_generation < request.meta().generation
}

/// What is over here may be held at the broker all the same: the spec makes no sense any more, or the
/// broker did not know what it was asked about. A refusal alone binds nothing.
fn may_hold(status: &ResourceRequestStatus) -> bool {
    let invalid = Reason::InvalidSpec.to_string();
    let is_invalid = status.conditions.iter().any(|one| one.reason == invalid);
    !status.reservation_name.is_empty() || is_invalid
}

/// It was deleted, or is over.
fn leave(view: &View<'_>) -> Step {
    let status = view.request.status.clone().unwrap_or_default();
    let is_old = !status.reservation_name.is_empty() && is_old(&status.reservation_name);
    match view.instruction.and_then(|seen| seen.order.as_ref()) {
        // Nobody else will say so.
        Some(order) if is_old => Step::TakeDown(Order { duty: Duty::Gone, ..order.clone() }),
        _ => Step::Release,
    }
}

/// What becomes of the instruction of a request that goes, where nobody else will say so: it may
/// just be on its way into the cluster.
pub(crate) fn farewell(status: &ResourceRequestStatus) -> Option<Order> {
    let reservation = Some(&status.reservation_name).filter(|name| !name.is_empty())?;
    is_old(reservation).then_some(Order {
        reservation: reservation.clone(),
        side: Side::Requester,
        peer: status.target_cluster_id.parse().ok()?,
        duty: Duty::Gone,
        amounts: Resources::default(),
        expires_at: None,
        generation: None,
    })
}

/// An old broker's names are not as ours.
pub(crate) fn is_old(reservation: &str) -> bool {
    reservation.parse::<ReservationId>().is_err()
}

/// It has a reservation.
fn held(view: &View<'_>, status: &ResourceRequestStatus, ask: &Ask) -> Step {
    if let Some(mirror) = unmirrored(view, status) {
        return mirror;
    }
    let promise = match view.said {
        Said::Unasked if is_worth_a_look(view, status, ask) => return Step::Look,
        Said::Unasked => return Step::Rest(Some(patience(view, status, ask))),
        Said::Nothing if is_old(&status.reservation_name) => {
            return by_our_clock(view, status, ask);
        }
        Said::Nothing | Said::Foreign => return Step::Forget,
        Said::Promise(promise) => promise,
    };
    if matches!(status.phase, Some(RequestPhase::Pending | RequestPhase::Releasing)) {
        return Step::Rest(Some(patience(view, status, ask)));
    }
    if view.instruction.is_none()
        && let Some(order) = promise.order().filter(|order| order.duty == Duty::Keep)
    {
        return Step::Instruct(order);
    }
    if status.observed_generation < view.request.meta().generation {
        if promise.amounts != ask.resources {
            return Step::Resize(ask.resources.clone());
        }
        let known = status.observed_duration.as_deref().and_then(|text| text.parse::<Span>().ok());
        return match ask.duration {
            Some(duration) if known != Some(duration) => Step::Renew(duration),
            // The end stays where it is.
            _ => Step::Observe,
        };
    }
    match ask.duration.filter(|duration| is_renewal_due(view, status, *duration)) {
        Some(duration) => Step::Renew(duration),
        None => Step::Rest(Some(patience(view, status, ask))),
    }
}

/// What its instruction says to be in the way, if the request says something else. One that is to be
/// taken down has other things to say; and while the broker is not heard, that is said.
fn unmirrored(view: &View<'_>, status: &ResourceRequestStatus) -> Option<Step> {
    let is_kept = |seen: &&Seen| seen.order.as_ref().is_some_and(|order| order.duty == Duty::Keep);
    let instruction = view.instruction.filter(is_kept)?;
    let is_running = matches!(status.phase, Some(RequestPhase::Reserved | RequestPhase::Active));
    if !is_running || is_unheard(status) {
        return None;
    }
    let now = hindrance_of(&instruction.standing);
    let is_said = hindrance(status) == now.as_ref().map(|(by, why)| (*by, why.as_str()));
    (!is_said).then_some(Step::Mirror(now))
}

/// What the stream would not have said, or has said.
fn is_worth_a_look(view: &View<'_>, status: &ResourceRequestStatus, ask: &Ask) -> bool {
    let phase = status.phase;
    let is_told = |seen: &Seen| match &seen.order {
        // In use, and not known here yet; or being taken down.
        Some(order) => {
            order.duty != Duty::Keep
                || phase == Some(RequestPhase::Reserved) && seen.standing.acknowledged.is_some()
        }
        None => true,
    };
    let is_changed = status.observed_generation < view.request.meta().generation;
    let is_long_ago = elapsed(view, status) >= MAKE_SURE;
    let is_over = expiry(status).is_some_and(|end| end <= view.now);
    let may_renew = ask.duration.is_some_and(|duration| is_renewal_due(view, status, duration));
    matches!(phase, Some(RequestPhase::Pending | RequestPhase::Releasing))
        || view.instruction.is_none_or(is_told)
        || is_changed
        || is_long_ago
        || is_over
        || may_renew
}

/// With an old broker: it holds until it ends by our clock.
fn by_our_clock(view: &View<'_>, status: &ResourceRequestStatus, ask: &Ask) -> Step {
    let end = expiry(status);
    if end.is_some_and(|end| end <= view.now) {
        return Step::Expire;
    }
    if view.instruction.is_none()
        && let Ok(peer) = status.target_cluster_id.parse()
    {
        return Step::Instruct(Order {
            reservation: status.reservation_name.clone(),
            side: Side::Requester,
            peer,
            duty: Duty::Keep,
            amounts: ask.resources.clone(),
            expires_at: end,
            generation: None,
        });
    }
    let until = end.map(|end| Duration::from_millis(end.since(view.now).as_millis()));
    Step::Rest(Some(until.unwrap_or(MAKE_SURE).min(MAKE_SURE)))
}

/// A third of its time has passed since it was last written, or half of it is left: whichever of
/// the two clocks says so.
fn is_renewal_due(view: &View<'_>, status: &ResourceRequestStatus, duration: Span) -> bool {
    let wants = view.request.spec.renew.unwrap_or_default();
    let left = expiry(status).map(|end| end.since(view.now).as_millis());
    let is_short = left.is_some_and(|left| left < duration.as_millis() / 2);
    let elapsed = elapsed(view, status);
    let is_late = elapsed.as_millis() >= u128::from(duration.as_millis() / 3);
    // One that was refused is asked for again, but not at each look.
    let is_barred = is_refused(status, view.request.meta().generation) && elapsed < Context::LONG;
    wants && left.is_some() && (is_short || is_late) && !is_barred
}

/// How long ago the status was written, by our clock.
fn elapsed(view: &View<'_>, status: &ResourceRequestStatus) -> Duration {
    let written = status.last_update_time.as_ref();
    let written = written.and_then(|time| to_time("status.lastUpdateTime", time).ok());
    written.map_or(Duration::MAX, |then| Duration::from_millis(view.now.since(then).as_millis()))
}

fn expiry(status: &ResourceRequestStatus) -> Option<Time> {
    to_time("status.expiresAt", status.expires_at.as_ref()?).ok()
}

/// How long until the next look, if nobody says anything. Of the end of waiting nobody does: it is
/// looked for when it is due, so long after the request was made, by the one clock that made it.
fn patience(view: &View<'_>, status: &ResourceRequestStatus, ask: &Ask) -> Duration {
    let renewal = ask.duration.map(|duration| Duration::from_millis(duration.as_millis() / 3));
    let waited = || {
        let created =
            to_time("creationTimestamp", view.request.meta().creation_timestamp.as_ref()?);
        // Objects keep whole seconds, and the broker looks after each.
        let end = created.ok()?.checked_add(ask.wait?)?.checked_add(Span::from_secs(2))?;
        let left = end.since(view.now);
        (!left.is_zero()).then(|| Duration::from_millis(left.as_millis()))
    };
    match status.phase {
        Some(RequestPhase::Reserved | RequestPhase::Active)
            if is_refused(status, view.request.meta().generation) =>
        {
            Context::LONG
        }
        Some(RequestPhase::Reserved | RequestPhase::Active) => {
            renewal.unwrap_or(MAKE_SURE).clamp(Duration::from_millis(500), MAKE_SURE)
        }
        Some(RequestPhase::Pending) => waited().unwrap_or(ASK_AGAIN).min(ASK_AGAIN),
        _ => ASK_AGAIN,
    }
}
