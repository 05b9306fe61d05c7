//! What to do next about a request and what is written of it, case by case.

mod trouble;
mod unmade;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as Stamp;
use sublet_core::id::{ClusterId, Generation, Key, ReservationId, Revision};
use sublet_core::instruction::Duty;
use sublet_core::reservation::Phase;
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_crds::{RequestPhase, ResourceRequest, ResourceRequestSpec, from_time};
use sublet_wire::Code;

use super::next::{FINALIZER, Said, Step, View, next};
use super::status::{Fact, after};
use crate::controllers::instruction::{Seen, Standing};
use crate::transport::{Error, Promise, Refusal};

const NOW: Time = Time::from_millis(1_794_780_000_000);

fn rome() -> ClusterId {
    "rome".parse().unwrap()
}

fn id() -> String {
    let key: Key = "uid".parse().unwrap();
    ReservationId::derive(&rome(), &key, Revision(1)).to_string()
}

fn asked() -> ResourceRequest {
    let mut spec = ResourceRequestSpec::default();
    spec.amounts.cpu = "500m".to_owned();
    spec.amounts.memory = "256Mi".to_owned();
    let mut request = ResourceRequest::new("a", spec);
    request.metadata.generation = Some(1);
    request
}

fn finalized() -> ResourceRequest {
    let mut request = asked();
    request.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    request
}

fn promise(phase: Phase) -> Promise {
    Promise {
        id: id(),
        provider: (phase != Phase::Pending).then(|| "milan".parse().unwrap()),
        amounts: Resources::new(500, 256 << 20),
        phase,
        message: "as it is".to_owned(),
        obstacle: None,
        reason: None,
        reserved_at: None,
        expires_at: None,
        generation: Some(Generation(1)),
    }
}

/// The request after the broker has said this.
fn promised(mut request: ResourceRequest, promise: &Promise) -> ResourceRequest {
    if let Some(change) = after(&request, &Fact::Promise(promise), NOW) {
        request.status = Some(change.status);
    }
    request
}

fn told(promise: &Promise, acknowledged: Option<u32>) -> Seen {
    let standing =
        Standing { in_force: true, applied: Some(1), acknowledged, conditions: Vec::new() };
    Seen { order: promise.order(), standing, is_deleting: false }
}

fn step(request: &ResourceRequest, instruction: Option<&Seen>, said: &Said) -> Step {
    next(&View { request, instruction, said, now: NOW })
}

fn said(promise: Promise) -> Said {
    Said::Promise(Box::new(promise))
}

#[test]
fn a_request_is_held_fast_before_the_broker_is_asked() {
    assert_eq!(step(&asked(), None, &Said::Unasked), Step::Finalize);
    assert!(matches!(step(&finalized(), None, &Said::Unasked), Step::Ask(_)));
    let mut nonsense = asked();
    nonsense.spec.amounts.cpu = "much".to_owned();
    assert!(matches!(step(&nonsense, None, &Said::Unasked), Step::Refuse(_)));
}

#[test]
fn a_reservation_gets_its_instruction_and_is_then_left_alone() {
    let reserved = promise(Phase::Reserved);
    let request = promised(finalized(), &reserved);
    let order = reserved.order().unwrap();
    assert_eq!(step(&request, None, &said(reserved.clone())), Step::Instruct(order));
    assert_eq!(step(&request, None, &Said::Unasked), Step::Look);
    let new = told(&reserved, None);
    assert!(matches!(step(&request, Some(&new), &Said::Unasked), Step::Rest(Some(_))));
    let used = told(&reserved, Some(1));
    assert_eq!(step(&request, Some(&used), &Said::Unasked), Step::Look);
    let active = promised(request, &promise(Phase::Active));
    assert!(matches!(step(&active, Some(&used), &Said::Unasked), Step::Rest(Some(_))));
    let mut down = used;
    down.order.as_mut().unwrap().duty = Duty::TakeDown;
    assert_eq!(step(&active, Some(&down), &Said::Unasked), Step::Look);
}

#[test]
fn what_waits_or_goes_is_asked_about_again() {
    for phase in [Phase::Pending, Phase::Releasing] {
        let request = promised(finalized(), &promise(phase));
        assert_eq!(step(&request, None, &Said::Unasked), Step::Look);
        let rest = step(&request, None, &said(promise(phase)));
        assert_eq!(rest, Step::Rest(Some(Duration::from_secs(10))));
    }
}

#[test]
fn what_is_over_is_let_go_and_a_deleted_one_gives_back_first() {
    let mut request = promised(finalized(), &promise(Phase::Released));
    assert_eq!(step(&request, None, &Said::Unasked), Step::Release, "it may be held all the same");
    request.metadata.finalizers = None;
    assert_eq!(step(&request, None, &Said::Unasked), Step::Rest(None));
    for mut request in [finalized(), promised(finalized(), &promise(Phase::Active))] {
        request.metadata.deletion_timestamp = Some(from_time(NOW));
        assert_eq!(step(&request, None, &Said::Unasked), Step::Release);
        request.metadata.finalizers = None;
        assert_eq!(step(&request, None, &Said::Unasked), Step::Rest(None));
    }
}

#[test]
fn a_refused_request_that_was_changed_is_asked_anew() {
    let no = Refusal { status: 409, message: "nobody fits".to_owned(), ..Refusal::default() };
    let mut request = finalized();
    let change = after(&request, &Fact::Error(&Error::Refused(no)), NOW).unwrap();
    assert_eq!(change.status.message, "Reservation request failed: nobody fits");
    assert!(change.notice.unwrap().is_warning);
    request.status = Some(change.status);
    assert_eq!(step(&request, None, &Said::Unasked), Step::Unfinalize);
    request.metadata.generation = Some(2);
    assert!(matches!(step(&request, None, &Said::Unasked), Step::Ask(_)));
}

#[test]
fn a_changed_spec_is_resized_and_renewed() {
    let active = promise(Phase::Active);
    let mut request = promised(finalized(), &active);
    request.metadata.generation = Some(2);
    request.spec.amounts.cpu = "1".to_owned();
    let known = told(&active, Some(1));
    assert_eq!(step(&request, Some(&known), &Said::Unasked), Step::Look);
    let resize = Step::Resize(Resources::new(1000, 256 << 20));
    assert_eq!(step(&request, Some(&known), &said(active.clone())), resize);
    let grown = Promise { amounts: Resources::new(1000, 256 << 20), ..active };
    assert_eq!(step(&request, Some(&known), &said(grown.clone())), Step::Observe);
    request.spec.duration = Some("1h".to_owned());
    assert!(matches!(step(&request, Some(&known), &said(grown.clone())), Step::Renew(_)));
    let change = after(&request, &Fact::Observed, NOW).unwrap();
    request.status = Some(change.status);
    assert!(matches!(step(&request, Some(&known), &said(grown.clone())), Step::Rest(_)));
    // The same duration in other words moves no end.
    request.metadata.generation = Some(3);
    request.spec.duration = Some("60m".to_owned());
    assert_eq!(step(&request, Some(&known), &said(grown)), Step::Observe);
}

#[test]
fn the_end_of_waiting_is_looked_for_when_it_is_due() {
    let waits = promise(Phase::Pending);
    let mut request = promised(finalized(), &waits);
    request.spec.wait = Some("5s".to_owned());
    request.metadata.creation_timestamp = Some(from_time(NOW));
    let rest = |millis: u64| {
        let (now, said) = (Time::from_millis(NOW.as_millis() + millis), said(waits.clone()));
        next(&View { request: &request, instruction: None, said: &said, now })
    };
    assert_eq!(rest(0), Step::Rest(Some(Duration::from_secs(7))));
    assert_eq!(rest(6500), Step::Rest(Some(Duration::from_millis(500))));
    assert_eq!(rest(9000), Step::Rest(Some(Duration::from_secs(10))));
}

#[test]
fn a_renewal_is_due_after_a_third_of_the_time_by_either_clock() {
    let hour = 3_600_000;
    let at = |millis: u64| Time::from_millis(NOW.as_millis() + millis);
    let active = Promise { expires_at: Some(at(hour)), ..promise(Phase::Active) };
    let mut request = promised(finalized(), &active);
    request.spec.duration = Some("1h".to_owned());
    request.spec.renew = Some(true);
    let known = told(&active, Some(1));
    let later = |request: &ResourceRequest, millis| {
        let said = said(active.clone());
        next(&View { request, instruction: Some(&known), said: &said, now: at(millis) })
    };
    assert!(matches!(later(&request, hour / 4), Step::Rest(_)));
    assert!(matches!(later(&request, hour / 3), Step::Renew(_)));
    request.status.as_mut().unwrap().last_update_time = Some(from_time(at(hour)));
    assert!(matches!(later(&request, hour / 4), Step::Rest(_)));
    assert!(matches!(later(&request, hour * 2 / 3), Step::Renew(_)));
    // A clock that is hours ahead always finds it over: it is renewed, but not at each look.
    request.status.as_mut().unwrap().last_update_time = Some(from_time(at(hour * 5)));
    let soon = Some(Duration::from_secs(10));
    assert_eq!(later(&request, hour * 5 + 9_000), Step::Rest(soon));
    assert!(matches!(later(&request, hour * 5 + 10_000), Step::Renew(_)));
    request.spec.renew = None;
    assert!(matches!(later(&request, hour / 2), Step::Rest(_)));
}

/// Objects keep whole seconds, and each renewal changes an instruction, which is a reason to look again.
#[test]
fn what_lasts_seconds_is_not_renewed_more_often_than_each_second_whatever_the_clock_says() {
    for (seconds, skew_ms) in [(1, 0), (1, 10_000_000), (3, 0), (3, 10_000_000), (20, 10_000_000)] {
        let at = |millis: u64| Time::from_millis(NOW.as_millis() + millis);
        let whole = |time: Time| from_time(Time::from_millis(time.as_millis() / 1000 * 1000));
        let mut request = finalized();
        request.spec.duration = Some(format!("{seconds}s"));
        request.spec.renew = Some(true);
        let active = Promise { expires_at: Some(at(seconds * 1000)), ..promise(Phase::Active) };
        let (mut request, known) = (promised(request, &active), told(&active, Some(1)));
        let (mut renewed, mut last) = (0, 0);
        for millis in (0..30_000).step_by(10) {
            let (now, said) = (at(millis + skew_ms), said(active.clone()));
            let view = View { request: &request, instruction: Some(&known), said: &said, now };
            if matches!(next(&view), Step::Renew(_)) {
                (renewed, last) = (renewed + 1, millis);
                let status = request.status.as_mut().unwrap();
                status.expires_at = Some(whole(at(millis + seconds * 1000)));
                status.last_update_time = Some(whole(now));
            }
            assert!(millis - last <= seconds.max(2) * 1000, "{seconds} s: its time was over");
        }
        assert!(renewed <= 31, "{renewed} in 30 s, for {seconds} s each");
    }
}

#[test]
fn an_old_brokers_reservation_holds_until_its_end_by_our_clock() {
    let stamp = |millis: u64| -> Option<Stamp> { Some(from_time(Time::from_millis(millis))) };
    let old = Promise {
        id: "rsv-rome-1794780677613".to_owned(),
        generation: None,
        ..promise(Phase::Reserved)
    };
    let mut request = promised(finalized(), &old);
    let order = old.order().unwrap();
    assert_eq!(step(&request, None, &Said::Nothing), Step::Instruct(order.clone()));
    request.status.as_mut().unwrap().expires_at = stamp(NOW.as_millis() + 5000);
    let known = told(&old, None);
    let rest = Step::Rest(Some(Duration::from_secs(5)));
    assert_eq!(step(&request, Some(&known), &Said::Nothing), rest);
    request.status.as_mut().unwrap().expires_at = stamp(NOW.as_millis() - 5000);
    assert_eq!(step(&request, Some(&known), &Said::Unasked), Step::Look);
    assert_eq!(step(&request, Some(&known), &Said::Nothing), Step::Expire);
    request.metadata.deletion_timestamp = Some(from_time(NOW));
    assert!(matches!(step(&request, Some(&known), &Said::Unasked), Step::TakeDown(_)));
    assert_eq!(step(&request, None, &Said::Unasked), Step::Release);
    let ours = promised(finalized(), &promise(Phase::Active));
    assert_eq!(step(&ours, None, &Said::Nothing), Step::Forget);
}

#[test]
fn every_error_is_told_as_what_it_is() {
    let refused = |code| {
        Error::Refused(Refusal {
            status: 409,
            code: Some(code),
            message: "no".into(),
            reservation: None,
        })
    };
    let away = Error::Transient { why: "away".to_owned(), retry_after: None };
    for (error, phase, reason) in [
        (refused(Code::NoSuitableCluster), RequestPhase::Failed, "Refused"),
        (refused(Code::KeyReleased), RequestPhase::Released, "Released"),
        (Error::NoBroker, RequestPhase::Failed, "NoBroker"),
        (Error::Unknown("cut".to_owned()), RequestPhase::Failed, "Refused"),
        (away, RequestPhase::Pending, "BrokerUnavailable"),
        (Error::Identity("revoked".to_owned()), RequestPhase::Pending, "BrokerUnavailable"),
    ] {
        let mut request = asked();
        let status = after(&request, &Fact::Error(&error), NOW).unwrap().status;
        assert_eq!(status.phase, Some(phase), "{error}");
        assert!(status.conditions.iter().any(|one| one.reason == reason), "{error}");
        request.status = Some(status);
        assert!(after(&request, &Fact::Error(&error), NOW).is_none(), "said twice");
    }
    let running = promised(finalized(), &promise(Phase::Active));
    let away = Error::Transient { why: "away".to_owned(), retry_after: None };
    let status = after(&running, &Fact::Error(&away), NOW).unwrap().status;
    assert_eq!(status.phase, Some(RequestPhase::Active), "what there was stays");
}

#[test]
fn a_deleted_request_that_cannot_be_released_says_what_to_do_once() {
    let mut request = promised(finalized(), &promise(Phase::Active));
    let away = Error::Transient { why: "away".to_owned(), retry_after: None };
    let change = after(&request, &Fact::Unreleased(&away), NOW).unwrap();
    assert!(change.status.message.contains("remove the finalizer"), "{}", change.status.message);
    assert!(change.notice.unwrap().is_warning);
    request.status = Some(change.status);
    assert!(after(&request, &Fact::Unreleased(&away), NOW).is_none());
    let other = Error::Transient { why: "still away".to_owned(), retry_after: None };
    let change = after(&request, &Fact::Unreleased(&other), NOW).unwrap();
    assert!(change.notice.is_none(), "one Event is enough");
}
