//! What is written into the status of a request: pure.

use sublet_core::reservation::Phase;
use sublet_core::time::Time;
use sublet_crds::condition::{Reason, Statement, Type, say};
use sublet_crds::{Obstacle, RequestPhase, ResourceRequest, ResourceRequestStatus, from_time};
use sublet_wire::Code;

use super::said::{hindrance, is_answered, is_unmade, ready_message, says_unreleased};
use crate::controllers::notice::{Notice, cut};
use crate::transport::{Error, Promise};

/// The longest message that the schema takes.
pub(super) const MESSAGE_MAX: usize = 1024;

/// How a text begins that says so.
pub(super) const UNRELEASED: &str = "Not released yet";
/// What somebody can do whose broker is gone for good, which nobody here can know.
const REMEDY: &str = "If the broker never comes back, remove the finalizer \
     rear.fluidos.eu/release from this object; should the broker come back all the same, \
     `sublet release` gives back what it held.";
/// What somebody can do who does not know what an old broker has reserved.
const IN_DOUBT: &str = "See whether the broker has a Reservation for this cluster that no request \
     here names, delete it there, and create another request.";

/// Something that became known of a request.
#[derive(Debug)]
pub(crate) enum Fact<'a> {
    /// The broker says so.
    Promise(&'a Promise),
    /// What was reserved for it before it was changed: the change is yet to be dealt with.
    Adopted(&'a Promise),
    /// An old broker is about to be asked, which must not happen twice.
    Asking,
    /// The broker could not be asked for capacity, or said no.
    Error(&'a Error),
    /// The broker could not be asked about what is held; that stays as it is.
    Unheard(&'a Error),
    /// It is deleted or over, and the broker could not be asked to release what it holds.
    Unreleased(&'a Error),
    /// An old broker said no, and the request may wait.
    Waits(&'a str),
    /// A change was refused; what there was stays.
    Unchanged(&'a Error),
    /// The change was dealt with.
    Observed,
    /// It makes no sense.
    Invalid(String),
    /// It was changed into something that makes no sense; what there was stays.
    Objected(String),
    /// Its instruction says that this is in the way, or that nothing is.
    Hindered(Option<(Obstacle, &'a str)>),
    /// It ended by our clock.
    Expired,
    /// The broker knows nothing of it.
    Forgotten,
}

/// A status, and what of it changed.
pub(crate) struct Change {
    pub(crate) status: ResourceRequestStatus,
    pub(crate) notice: Option<Notice>,
}

/// The status of a request after a fact, if that is another one.
pub(crate) fn after(request: &ResourceRequest, fact: &Fact<'_>, now: Time) -> Option<Change> {
    let known = request.status.clone().unwrap_or_default();
    let mut status = known.clone();
    let generation = request.metadata.generation;
    let duration = request.spec.duration.clone();
    let mut writer = Writer { status: &mut status, generation, duration, now };
    writer.write(fact);
    // When something was last refused is worth a write: it is not asked for again for a while.
    if status == known && !matches!(fact, Fact::Unchanged(Error::Refused(_))) {
        return None;
    }
    status.last_update_time = Some(from_time(now));
    let notice = match fact {
        Fact::Unreleased(_) if !says_unreleased(&known) => {
            Some(Notice::warning("ReleasePending", ready_message(&status).unwrap_or_default()))
        }
        Fact::Objected(_) => Some(Notice::warning("InvalidSpec", &status.message)),
        _ => notice(&known, &status),
    };
    Some(Change { status, notice })
}

struct Writer<'a> {
    status: &'a mut ResourceRequestStatus,
    /// Of the spec.
    generation: Option<i64>,
    /// The spec's.
    duration: Option<String>,
    now: Time,
}

impl Writer<'_> {
    fn write(&mut self, fact: &Fact<'_>) {
        match fact {
            Fact::Promise(promise) => {
                // What was asked for stands; a change of the spec is observed when it was dealt with.
                if self.status.reservation_name.is_empty() {
                    self.observe();
                }
                self.promised(promise);
            }
            Fact::Adopted(promise) => {
                self.status.observed_generation = None;
                self.status.observed_duration = None;
                self.promised(promise);
            }
            Fact::Asking => {
                let why = "Sending reservation request to broker";
                self.phase(RequestPhase::Pending, why);
                self.say(Type::Accepted, None, Reason::InProgress, why);
            }
            Fact::Error(error) => self.failed(error),
            Fact::Unheard(error) => self.unavailable(error),
            Fact::Unreleased(error) => self.unreleased(error),
            Fact::Waits(why) => {
                self.phase(RequestPhase::Pending, why);
                self.say(Type::Accepted, Some(true), Reason::Done, "");
                self.say(Type::Reserved, Some(false), Reason::Waiting, why);
            }
            Fact::Unchanged(error) => {
                let is_refused = matches!(error, Error::Refused(_));
                // What was said of this spec stays said until there is another word on it.
                if !is_refused && is_answered(self.status, self.generation) {
                    return;
                }
                let reason = if is_refused { Reason::Refused } else { Reason::BrokerUnavailable };
                let why = format!("The change was not made: {error}");
                self.say(Type::Accepted, Some(false), reason, &why);
                self.status.message = cut(&why, MESSAGE_MAX);
                if is_refused {
                    self.status.observed_generation = self.generation;
                }
            }
            Fact::Observed => {
                self.say(Type::Accepted, Some(true), Reason::Done, "");
                self.observe();
            }
            Fact::Invalid(why) => self.over(RequestPhase::Failed, Reason::InvalidSpec, why),
            Fact::Objected(why) => {
                let why = format!("The change was not made: {why}");
                self.say(Type::Accepted, Some(false), Reason::InvalidSpec, &why);
                self.status.message = cut(&why, MESSAGE_MAX);
                // Not its duration: that of what runs is still the one that was.
                self.status.observed_generation = self.generation;
            }
            Fact::Hindered(Some((obstacle, why))) => {
                self.say(Type::Ready, Some(false), Reason::Hindered(*obstacle), why);
            }
            Fact::Hindered(None) => self.unhindered(),
            Fact::Expired => {
                self.over(RequestPhase::Released, Reason::Expired, "Its time was over");
            }
            Fact::Forgotten => {
                let why = "The broker knows nothing of the reservation any more";
                self.over(RequestPhase::Released, Reason::Released, why);
            }
        }
    }

    fn promised(&mut self, promise: &Promise) {
        self.status.reservation_name.clone_from(&promise.id);
        if let Some(provider) = &promise.provider {
            self.status.target_cluster_id = provider.to_string();
        }
        self.status.reserved_at = promise.reserved_at.map(whole);
        self.status.expires_at = promise.expires_at.map(whole);
        // That a change was refused, or could not be asked for, stays said until it was made, or the spec
        // was changed again.
        let is_running = matches!(promise.phase, Phase::Reserved | Phase::Active);
        let is_unmade = is_running && is_unmade(self.status, self.generation);
        if !is_answered(self.status, self.generation) && !is_unmade {
            self.say(Type::Accepted, Some(true), Reason::Done, "");
        }
        match promise.phase {
            Phase::Pending => {
                // Why it waits is said once, when it begins to.
                let known = Some(self.status.message.clone());
                let known = known.filter(|known| known.starts_with(&promise.message));
                let message = known.unwrap_or_else(|| promise.message.clone());
                self.phase(RequestPhase::Pending, &message);
                self.say(Type::Reserved, Some(false), Reason::Waiting, &message);
            }
            Phase::Reserved | Phase::Active => {
                let message =
                    format!("Resources reserved in cluster {}", self.status.target_cluster_id);
                let known = Some(self.status.message.clone()).filter(|_| is_unmade);
                self.phase(promise.phase.into(), known.as_ref().unwrap_or(&message));
                self.say(Type::Reserved, Some(true), Reason::Done, &message);
                // What is in the way is its instruction's to say, and to take back.
                if hindrance(self.status).is_none() {
                    self.unhindered();
                }
            }
            Phase::Releasing | Phase::Released | Phase::Failed => self.ending(promise),
        }
    }

    /// Nothing is known to be in the way.
    fn unhindered(&mut self) {
        let is_active = self.status.phase == Some(RequestPhase::Active);
        let why = if is_active { Reason::Done } else { Reason::InProgress };
        self.say(Type::Ready, Some(is_active), why, "");
    }

    /// It ends. If something was in the way, and that is why, it stays said: what the broker was told by
    /// either side, or what is known here.
    fn ending(&mut self, promise: &Promise) {
        let reason = end_reason(promise);
        let told = promise.obstacle.map(|obstacle| (obstacle, promise.message.clone()));
        let known =
            hindrance(self.status).filter(|_| told.is_none() && reason == Reason::PeeringFailed);
        let known = known.map(|(obstacle, why)| (obstacle, why.to_owned()));
        let said = match &known {
            Some((obstacle, why)) => format!("{}: {obstacle}: {why}", promise.message),
            None => promise.message.clone(),
        };
        match promise.phase {
            Phase::Releasing => {
                self.phase(RequestPhase::Releasing, &said);
                self.say(Type::Ready, Some(false), reason, &said);
            }
            Phase::Released => self.over(RequestPhase::Released, reason, &said),
            _ => self.over(RequestPhase::Failed, reason, &said),
        }
        if let Some((obstacle, why)) = told.or(known) {
            self.say(Type::Ready, Some(false), Reason::Hindered(obstacle), &why);
        }
    }

    fn unreleased(&mut self, error: &Error) {
        let error = cut(&error.to_string(), MESSAGE_MAX / 2);
        let why = format!("{UNRELEASED}: {error}; it is tried again. {REMEDY}");
        // Why it ended stays said.
        if !self.status.phase.is_some_and(RequestPhase::is_over) {
            self.status.message = cut(&why, MESSAGE_MAX);
        }
        self.say(Type::Ready, None, Reason::BrokerUnavailable, &why);
    }

    /// The spec as it is was dealt with.
    fn observe(&mut self) {
        self.status.observed_generation = self.generation;
        self.status.observed_duration.clone_from(&self.duration);
    }

    fn failed(&mut self, error: &Error) {
        match error {
            Error::Refused(no) if no.code == Some(Code::KeyReleased) => {
                self.over(RequestPhase::Released, Reason::Released, &no.message);
            }
            Error::Unknown(_) => {
                let why = format!("Reservation request failed: {error}. {IN_DOUBT}");
                self.over(RequestPhase::Failed, Reason::Refused, &why);
            }
            Error::Refused(_) => {
                let why = format!("Reservation request failed: {error}");
                self.over(RequestPhase::Failed, Reason::Refused, &why);
            }
            Error::NoBroker => {
                let why = "No broker communicator configured";
                self.over(RequestPhase::Failed, Reason::NoBroker, why);
            }
            Error::Transient { .. } | Error::Identity(_) | Error::NoMessages => {
                self.unavailable(error);
            }
        }
    }

    /// What there was stays; it is tried again.
    fn unavailable(&mut self, error: &Error) {
        let why = format!("{error}; it is tried again");
        if self.status.phase.is_none_or(|phase| phase == RequestPhase::Pending) {
            self.phase(RequestPhase::Pending, &why);
        }
        let is_held = !self.status.reservation_name.is_empty();
        let about = if is_held { Type::Ready } else { Type::Accepted };
        self.say(about, None, Reason::BrokerUnavailable, &why);
    }

    fn over(&mut self, phase: RequestPhase, reason: Reason, why: &str) {
        self.phase(phase, why);
        self.status.observed_generation = self.generation;
        if matches!(reason, Reason::InvalidSpec | Reason::Refused | Reason::NoBroker) {
            self.say(Type::Accepted, Some(false), reason, why);
        }
        self.say(Type::Reserved, Some(false), reason, why);
        self.say(Type::Ready, Some(false), reason, why);
    }

    fn phase(&mut self, phase: RequestPhase, message: &str) {
        self.status.phase = Some(phase);
        self.status.message = cut(message, MESSAGE_MAX);
    }

    fn say(&mut self, about: Type, holds: Option<bool>, reason: Reason, message: &str) {
        let message = cut(message, MESSAGE_MAX);
        let statement = Statement { about, holds, reason, message, generation: self.generation };
        say(&mut self.status.conditions, statement, self.now);
    }
}

/// Objects keep whole seconds; anything else would look like a change at each look.
fn whole(time: Time) -> sublet_crds::Time {
    from_time(Time::from_millis(time.as_millis() / 1000 * 1000))
}

/// Why it ends, in the words of conditions.
fn end_reason(promise: &Promise) -> Reason {
    match promise.reason.as_deref() {
        Some("Expired") => Reason::Expired,
        Some("ProviderLost") => Reason::ProviderLost,
        Some("PeeringFailed" | "NeverActivated") => Reason::PeeringFailed,
        Some("WaitOver") => Reason::Refused,
        Some("WithdrawnByProvider" | "ReleasedByOperator" | "Drained") => Reason::Withdrawn,
        _ => Reason::Released,
    }
}

/// What people are told when it moves on.
fn notice(known: &ResourceRequestStatus, new: &ResourceRequestStatus) -> Option<Notice> {
    if known.phase == new.phase {
        return None;
    }
    let message = &new.message;
    Some(match new.phase? {
        RequestPhase::Pending => Notice::normal("Pending", message),
        RequestPhase::Reserved => Notice::normal("Reserved", message),
        RequestPhase::Active => Notice::normal("Active", message),
        RequestPhase::Releasing => Notice::normal("Releasing", message),
        RequestPhase::Released => Notice::normal("Released", message),
        RequestPhase::Failed => Notice::warning("Failed", message),
        RequestPhase::Other => return None,
    })
}
