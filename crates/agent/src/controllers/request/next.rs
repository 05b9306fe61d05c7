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

use super::said::{hindrance, hindrance_of, is_answered, is_refused, is_unheard, is_unmade};
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
    /// It was changed into something that makes no sense: that is said, and what runs goes on.
    Object(Invalid),
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
    let is_held = !status.reservation_name.is_empty();
    let ask = match request.spec.ask() {
        Err(invalid) if !is_held => return Step::Refuse(invalid),
        ask => ask,
    };
    if !is_final {
        return Step::Finalize;
    }
    match ask {
        Ok(ask) if !is_held => Step::Ask(Box::new(ask)),
        Ok(ask) => held(view, &status, &Wish::of(ask)),
        Err(invalid) if !is_answered(&status, request.meta().generation) => Step::Object(invalid),
        Err(_) => held(view, &status, &Wish::as_before(&status)),
    }
}

/// What of the spec matters to what is held.
struct Wish {
    /// None where the spec makes no sense: they stay as they are.
    amounts: Option<Resources>,
    duration: Option<Span>,
    wait: Option<Span>,
}

impl Wish {
    fn of(ask: Ask) -> Self {
        Self { amounts: Some(ask.resources), duration: ask.duration, wait: ask.wait }
    }

    /// The spec was changed into something that makes no sense, and what runs goes on as it was: also
    /// with its renewals.
    fn as_before(status: &ResourceRequestStatus) -> Self {
        Self { amounts: None, duration: observed_duration(status), wait: None }
    }
}

fn observed_duration(status: &ResourceRequestStatus) -> Option<Span> {
    status.observed_duration.as_deref()?.parse().ok()
}

/// A refused request that was changed is a new one: a refusal binds nothing.
fn is_asked_anew(request: &ResourceRequest, status: &ResourceRequestStatus) -> bool {
    status.phase == Some(RequestPhase::Failed)
        && status.reservation_name.is_empty()
        && status.observed_generation.is_some()
        && status.observed_generation < request.meta().generation
}

/// What is over here may be held at the broker all the same: the spec made no sense when an answer was
/// still on its way, or the broker did not know what it was asked about. A refusal alone binds nothing.
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
fn held(view: &View<'_>, status: &ResourceRequestStatus, wish: &Wish) -> Step {
    if let Some(mirror) = unmirrored(view, status) {
        return mirror;
    }
    let promise = match view.said {
        Said::Unasked if is_worth_a_look(view, status, wish) => return Step::Look,
        Said::Unasked => return Step::Rest(Some(patience(view, status, wish))),
        Said::Nothing if is_old(&status.reservation_name) => {
            return by_our_clock(view, status, wish);
        }
        Said::Nothing | Said::Foreign => return Step::Forget,
        Said::Promise(promise) => promise,
    };
    if matches!(status.phase, Some(RequestPhase::Pending | RequestPhase::Releasing)) {
        return Step::Rest(Some(patience(view, status, wish)));
    }
    if view.instruction.is_none()
        && let Some(order) = promise.order().filter(|order| order.duty == Duty::Keep)
    {
        return Step::Instruct(order);
    }
    if status.observed_generation < view.request.meta().generation {
        if let Some(amounts) = wish.amounts.as_ref().filter(|wish| **wish != promise.amounts) {
            return Step::Resize(amounts.clone());
        }
        return match wish.duration {
            Some(duration) if observed_duration(status) != Some(duration) => Step::Renew(duration),
            // The end stays where it is.
            _ => Step::Observe,
        };
    }
    match wish.duration.filter(|duration| is_renewal_due(view, status, *duration)) {
        Some(duration) => Step::Renew(duration),
        // What could not be asked for is wanted no more, or done all the same.
        None if is_unmade(status, view.request.meta().generation) => Step::Observe,
        None => Step::Rest(Some(patience(view, status, wish))),
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
fn is_worth_a_look(view: &View<'_>, status: &ResourceRequestStatus, wish: &Wish) -> bool {
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
    let may_renew = wish.duration.is_some_and(|duration| is_renewal_due(view, status, duration));
    matches!(phase, Some(RequestPhase::Pending | RequestPhase::Releasing))
        || view.instruction.is_none_or(is_told)
        || is_changed
        || is_long_ago
        || is_over
        || may_renew
}

/// With an old broker: it holds until it ends by our clock.
fn by_our_clock(view: &View<'_>, status: &ResourceRequestStatus, wish: &Wish) -> Step {
    let end = expiry(status);
    if end.is_some_and(|end| end <= view.now) {
        return Step::Expire;
    }
    if view.instruction.is_none()
        && let Ok(peer) = status.target_cluster_id.parse()
        && let Some(amounts) = wish.amounts.clone()
    {
        return Step::Instruct(Order {
            reservation: status.reservation_name.clone(),
            side: Side::Requester,
            peer,
            duty: Duty::Keep,
            amounts,
            expires_at: end,
            generation: None,
        });
    }
    let until = end.map(|end| Duration::from_millis(end.since(view.now).as_millis()));
    Step::Rest(Some(until.unwrap_or(MAKE_SURE).min(MAKE_SURE)))
}

/// What was written so lately is not renewed because little is left of it: a clock that is far ahead of
/// the broker's always finds that.
const RENEWAL_PAUSE: Span = Span::from_secs(10);
/// Objects keep whole seconds: what was written in this one may have been written just now.
const UNSEEN_MS: u64 = 1000;

/// A third of its time has passed since it was last written, or half of it is left: whichever of
/// the two clocks says so.
fn is_renewal_due(view: &View<'_>, status: &ResourceRequestStatus, duration: Span) -> bool {
    let wants = view.request.spec.renew.unwrap_or_default();
    let elapsed = elapsed(view, status);
    let is_late = elapsed.as_millis() >= u128::from((duration.as_millis() / 3).max(UNSEEN_MS));
    let pause = RENEWAL_PAUSE.as_millis().min(duration.as_millis() / 6 + UNSEEN_MS);
    let is_new = written(status)
        .is_some_and(|then| then <= view.now && view.now.since(then).as_millis() < pause);
    // One that was refused is asked for again, but not at each look.
    let is_barred = is_refused(status, view.request.meta().generation) && elapsed < Context::LONG;
    // One that the broker could not be asked for is due until it is made: that it failed was written.
    let is_unmade = is_unmade(status, view.request.meta().generation);
    let is_due = is_short(view, status, duration) && !is_new || is_late || is_unmade;
    wants && expiry(status).is_some() && is_due && !is_barred
}

/// Is less than half of its time left, by our clock?
fn is_short(view: &View<'_>, status: &ResourceRequestStatus, duration: Span) -> bool {
    let left = expiry(status).map(|end| end.since(view.now).as_millis());
    left.is_some_and(|left| left < duration.as_millis() / 2)
}

/// How long ago the status was written, by our clock.
fn elapsed(view: &View<'_>, status: &ResourceRequestStatus) -> Duration {
    written(status)
        .map_or(Duration::MAX, |then| Duration::from_millis(view.now.since(then).as_millis()))
}

fn written(status: &ResourceRequestStatus) -> Option<Time> {
    to_time("status.lastUpdateTime", status.last_update_time.as_ref()?).ok()
}

fn expiry(status: &ResourceRequestStatus) -> Option<Time> {
    to_time("status.expiresAt", status.expires_at.as_ref()?).ok()
}

/// How long until the next look, if nobody says anything. Of the end of waiting nobody does: it is
/// looked for when it is due, so long after the request was made, by the one clock that made it.
fn patience(view: &View<'_>, status: &ResourceRequestStatus, wish: &Wish) -> Duration {
    let renewal = wish.duration.map(|duration| {
        let soon = view.request.spec.renew == Some(true) && is_short(view, status, duration);
        let most = if soon { RENEWAL_PAUSE } else { duration };
        Duration::from_millis(most.as_millis().min(duration.as_millis() / 3))
    });
    let waited = || {
        let created =
            to_time("creationTimestamp", view.request.meta().creation_timestamp.as_ref()?);
        // Objects keep whole seconds, and the broker looks after each.
        let end = created.ok()?.checked_add(wish.wait?)?.checked_add(Span::from_secs(2))?;
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
