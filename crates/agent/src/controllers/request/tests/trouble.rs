//! What was refused, forgotten, changed in between, or never answered.

use sublet_core::instruction::Duty;
use sublet_core::reservation::Phase;
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_crds::condition::{Reason, Statement, Type, holds, say};
use sublet_crds::{Obstacle, RequestPhase, ResourceRequest, from_time};

use super::super::ask::may_fit_later;
use super::super::next::{Said, Step, View, farewell, next};
use super::super::said::is_asking;
use super::super::status::{Fact, after};
use super::{NOW, finalized, promise, promised, said, step, told};
use crate::controllers::instruction::Seen;
use crate::transport::{Error, Promise, Refusal};

/// The request after its spec was changed into something that makes no sense, and that was said.
pub(super) fn objected(mut request: ResourceRequest) -> ResourceRequest {
    request.metadata.generation = Some(2);
    request.spec.amounts.cpu = "lots".to_owned();
    let Step::Object(why) = step(&request, None, &Said::Unasked) else { panic!("it is wrong") };
    let change = after(&request, &Fact::Objected(why.to_string()), NOW).unwrap();
    assert!(change.notice.unwrap().is_warning);
    request.status = Some(change.status);
    request
}

pub(super) fn accepted(request: &ResourceRequest) -> (String, String) {
    let all = &request.status.as_ref().unwrap().conditions;
    let accepted = all.iter().find(|one| one.type_ == "Accepted").unwrap();
    (accepted.status.clone(), accepted.reason.clone())
}

#[test]
fn an_edit_that_makes_no_sense_is_said_and_what_runs_goes_on_as_it_was() {
    let (no, yes) = (("False", "InvalidSpec"), ("True", "Done"));
    let is = |request: &ResourceRequest, (holds, why): (&str, &str)| {
        assert_eq!(accepted(request), (holds.to_owned(), why.to_owned()));
    };
    for phase in [Phase::Pending, Phase::Reserved, Phase::Active] {
        let running = promise(phase);
        let request = objected(promised(finalized(), &running));
        is(&request, no);
        let status = request.status.as_ref().unwrap();
        assert_eq!(status.phase, Some(phase.into()));
        assert!(status.message.starts_with("The change was not made: "), "{}", status.message);
        // It is looked at as before, and told as before.
        let known = told(&running, (phase == Phase::Active).then_some(1));
        let rests = step(&request, Some(&known), &said(running.clone()));
        assert!(matches!(rests, Step::Rest(Some(_))), "{rests:?}");
        let mut request = promised(request, &running);
        is(&request, no);
        if phase != Phase::Pending {
            let order = running.order().unwrap();
            assert_eq!(step(&request, None, &said(running.clone())), Step::Instruct(order));
        }
        request.metadata.deletion_timestamp = Some(from_time(NOW));
        assert_eq!(step(&request, Some(&known), &Said::Unasked), Step::Release);
    }
    // Mended, it is a change as any other.
    let active = promise(Phase::Active);
    let mut request = objected(promised(finalized(), &active));
    request.metadata.generation = Some(3);
    request.spec.amounts.cpu = "1".to_owned();
    let known = told(&active, Some(1));
    let resize = Step::Resize(Resources::new(1000, 256 << 20));
    assert_eq!(step(&request, Some(&known), &said(active.clone())), resize);
    request.spec.amounts.cpu = "500m".to_owned();
    assert_eq!(step(&request, Some(&known), &said(active)), Step::Observe);
    request.status = Some(after(&request, &Fact::Observed, NOW).unwrap().status);
    is(&request, yes);
}

#[test]
fn what_is_renewed_is_renewed_also_while_an_edit_makes_no_sense() {
    let hour = 3_600_000;
    let at = |millis: u64| Time::from_millis(NOW.as_millis() + millis);
    let active = Promise { expires_at: Some(at(hour)), ..promise(Phase::Active) };
    let mut request = finalized();
    request.spec.duration = Some("1h".to_owned());
    request.spec.renew = Some(true);
    let mut request = objected(promised(request, &active));
    request.spec.duration = Some("long".to_owned());
    let (known, said) = (told(&active, Some(1)), said(active));
    let later = |request: &ResourceRequest, millis| {
        next(&View { request, instruction: Some(&known), said: &said, now: at(millis) })
    };
    assert!(matches!(later(&request, 1000), Step::Rest(_)));
    assert_eq!(later(&request, hour / 2), Step::Renew(Span::from_secs(3600)), "as it was");
    // One that is refused does not make it say now this, now that.
    let no = Error::Refused(Refusal { status: 409, message: "no".into(), ..Refusal::default() });
    let refused = after(&request, &Fact::Unchanged(&no), at(hour / 2)).unwrap();
    request.status = Some(refused.status);
    assert!(matches!(later(&request, hour / 2 + 1000), Step::Rest(_)));
}

#[test]
fn what_never_made_sense_or_is_forgotten_is_given_back() {
    let mut request = finalized();
    request.spec.amounts.extended.insert("no name!".to_owned(), "1".to_owned());
    let Step::Refuse(why) = step(&request, None, &Said::Unasked) else { panic!("it is wrong") };
    let invalid = Fact::Invalid(why.to_string());
    request.status = Some(after(&request, &invalid, NOW).unwrap().status);
    // The answer to an earlier request may still be on its way.
    assert_eq!(step(&request, None, &Said::Unasked), Step::Release);
    let mut request = promised(finalized(), &promise(Phase::Active));
    assert_eq!(step(&request, None, &Said::Nothing), Step::Forget);
    request.status = Some(after(&request, &Fact::Forgotten, NOW).unwrap().status);
    assert_eq!(step(&request, None, &Said::Unasked), Step::Release);
    let away = Error::Transient { why: "away".to_owned(), retry_after: None };
    let message = request.status.as_ref().unwrap().message.clone();
    let change = after(&request, &Fact::Unreleased(&away), NOW).unwrap();
    assert_eq!(change.status.message, message, "why it is over stays said");
    assert!(change.notice.unwrap().note.contains("remove the finalizer"));
}

#[test]
fn what_was_reserved_before_a_change_is_adopted_and_then_changed() {
    let mut request = finalized();
    request.metadata.generation = Some(2);
    request.spec.amounts.cpu = "1".to_owned();
    request.spec.duration = Some("1h".to_owned());
    let active = promise(Phase::Active);
    request.status = Some(after(&request, &Fact::Adopted(&active), NOW).unwrap().status);
    let known = told(&active, Some(1));
    let resize = Step::Resize(Resources::new(1000, 256 << 20));
    assert_eq!(step(&request, Some(&known), &said(active.clone())), resize);
    let grown = Promise { amounts: Resources::new(1000, 256 << 20), ..active };
    let request = promised(request, &grown);
    assert!(matches!(step(&request, Some(&known), &said(grown)), Step::Renew(_)));
}

#[test]
fn a_refused_renewal_stays_said_and_is_not_asked_for_at_each_look() {
    let at = |millis: u64| Time::from_millis(NOW.as_millis() + millis);
    let active = Promise { expires_at: Some(at(90_000)), ..promise(Phase::Active) };
    let mut request = promised(finalized(), &active);
    request.spec.duration = Some("1h".to_owned());
    request.spec.renew = Some(true);
    let known = told(&active, Some(1));
    let later = |request: &ResourceRequest, millis, said: &Said| {
        next(&View { request, instruction: Some(&known), said, now: at(millis) })
    };
    assert!(matches!(later(&request, 10_000, &said(active.clone())), Step::Renew(_)));
    let no = Error::Refused(Refusal { status: 409, message: "no".into(), ..Refusal::default() });
    let refuse = |request: &mut ResourceRequest, millis| {
        let change = after(request, &Fact::Unchanged(&no), at(millis)).expect("when is written");
        request.status = Some(change.status);
    };
    refuse(&mut request, 0);
    let request_after = promised(request.clone(), &active);
    for request in [&request, &request_after] {
        assert!(matches!(later(request, 1000, &said(active.clone())), Step::Rest(_)));
        assert!(matches!(later(request, 1000, &Said::Unasked), Step::Rest(_)));
        let conditions = &request.status.as_ref().unwrap().conditions;
        assert_eq!(holds(conditions, Type::Accepted), Some(false));
    }
    assert!(matches!(later(&request, 60_000, &said(active.clone())), Step::Renew(_)));
    refuse(&mut request, 60_000);
    assert!(matches!(later(&request, 61_000, &said(active.clone())), Step::Rest(_)));
    let change = after(&request, &Fact::Observed, at(70_000)).unwrap();
    assert_eq!(holds(&change.status.conditions, Type::Accepted), Some(true));
}

#[test]
fn a_refused_change_stays_said_until_the_spec_is_changed_again() {
    let active = promise(Phase::Active);
    let mut request = promised(finalized(), &active);
    request.metadata.generation = Some(2);
    request.spec.amounts.cpu = "99".to_owned();
    let no = Error::Refused(Refusal { status: 409, message: "no".into(), ..Refusal::default() });
    request.status = Some(after(&request, &Fact::Unchanged(&no), NOW).unwrap().status);
    let accepted = |request: &ResourceRequest| {
        holds(&request.status.as_ref().unwrap().conditions, Type::Accepted)
    };
    let mut request = promised(request, &active);
    assert_eq!(accepted(&request), Some(false));
    request.metadata.generation = Some(3);
    assert_eq!(accepted(&promised(request, &active)), Some(true));
}

#[test]
fn that_an_old_broker_is_asked_is_known_until_its_answer_is() {
    let mut request = finalized();
    let change = after(&request, &Fact::Asking, NOW).unwrap();
    assert_eq!(change.status.phase, Some(RequestPhase::Pending));
    assert!(is_asking(&change.status));
    request.status = Some(change.status);
    let away = Error::Transient { why: "away".to_owned(), retry_after: None };
    let unknown = Error::Unknown("cut".to_owned());
    let reserved = promise(Phase::Reserved);
    for fact in
        [Fact::Promise(&reserved), Fact::Unheard(&away), Fact::Waits("full"), Fact::Error(&unknown)]
    {
        assert!(!is_asking(&after(&request, &fact, NOW).unwrap().status), "{fact:?}");
    }
    let status = after(&request, &Fact::Error(&unknown), NOW).unwrap().status;
    assert!(status.message.contains("create another request"), "{}", status.message);
    request.status = Some(status);
    assert_eq!(step(&request, None, &Said::Unasked), Step::Unfinalize);
}

#[test]
fn an_old_broker_is_asked_again_only_if_nothing_fits_yet() {
    let said = |status, message: &str| Refusal {
        status,
        message: message.to_owned(),
        ..Refusal::default()
    };
    assert!(may_fit_later(&said(409, "No suitable cluster found: no clusters available")));
    assert!(!may_fit_later(&said(409, "Failed to lock resources")));
    assert!(!may_fit_later(&said(400, "No suitable cluster found")));
}

#[test]
fn what_an_old_broker_has_named_is_forgotten_where_the_broker_is_ours() {
    let old = Promise { id: "rsv-rome-1794780677613".to_owned(), ..promise(Phase::Reserved) };
    let mut request = promised(finalized(), &old);
    assert!(matches!(step(&request, None, &Said::Nothing), Step::Instruct(_)));
    assert_eq!(step(&request, None, &Said::Foreign), Step::Forget);
    request.status = Some(after(&request, &Fact::Forgotten, NOW).unwrap().status);
    let known = told(&old, None);
    assert!(matches!(step(&request, Some(&known), &Said::Unasked), Step::TakeDown(_)));
    assert_eq!(step(&request, None, &Said::Unasked), Step::Release);
}

#[test]
fn an_instruction_on_its_way_does_not_outlive_its_request() {
    let old = Promise { id: "rsv-rome-1794780677613".to_owned(), ..promise(Phase::Reserved) };
    let bye = farewell(&promised(finalized(), &old).status.unwrap()).unwrap();
    assert_eq!((bye.reservation, bye.duty), (old.id, Duty::Gone));
    let ours = promised(finalized(), &promise(Phase::Reserved)).status.unwrap();
    assert_eq!(farewell(&ours), None, "our broker says so itself");
}

#[test]
fn a_broker_that_cannot_be_asked_ends_nothing() {
    let running = promised(finalized(), &promise(Phase::Active));
    let no = Error::Refused(Refusal { status: 403, message: "no".into(), ..Refusal::default() });
    for error in [no, Error::NoBroker] {
        let status = after(&running, &Fact::Unheard(&error), NOW).unwrap().status;
        assert_eq!(status.phase, Some(RequestPhase::Active), "{error}");
    }
}

/// An instruction that says so.
fn hindered(promise: &Promise, by: Option<Obstacle>) -> Seen {
    let mut seen = told(promise, None);
    seen.standing.in_force = by.is_none();
    let reason = by.map_or(Reason::Done, Reason::Hindered);
    let statement = Statement {
        about: Type::Peered,
        holds: Some(by.is_none()),
        reason,
        message: by.map(|by| by.remedy().to_owned()).unwrap_or_default(),
        generation: None,
    };
    say(&mut seen.standing.conditions, statement, NOW);
    seen
}

/// The request after everything that its instruction says is said of it too.
fn mirrored(mut request: ResourceRequest, seen: &Seen) -> ResourceRequest {
    if let Step::Mirror(now) = step(&request, Some(seen), &Said::Unasked) {
        let now = now.as_ref().map(|(by, why)| (*by, why.as_str()));
        request.status = Some(after(&request, &Fact::Hindered(now), NOW).unwrap().status);
    }
    assert!(!matches!(step(&request, Some(seen), &Said::Unasked), Step::Mirror(_)), "said twice");
    request
}

fn ready(request: &ResourceRequest) -> (String, String) {
    let all = &request.status.as_ref().unwrap().conditions;
    let ready = all.iter().find(|one| one.type_ == "Ready").unwrap();
    (ready.status.clone(), ready.reason.clone())
}

#[test]
fn what_is_in_the_way_of_its_instruction_is_said_of_the_request_until_it_is_not() {
    let said = |holds: &str, reason: &str| (holds.to_owned(), reason.to_owned());
    let reserved = promise(Phase::Reserved);
    let request = promised(finalized(), &reserved);
    let pin = hindered(&reserved, Some(Obstacle::KeyNotPinned));
    let request = mirrored(request, &pin);
    assert_eq!(ready(&request), said("False", "KeyNotPinned"));
    let request = promised(request, &reserved);
    assert_eq!(ready(&request), said("False", "KeyNotPinned"), "the broker knows nothing of it");
    let request = mirrored(request, &hindered(&reserved, Some(Obstacle::LiqoSilent)));
    assert_eq!(ready(&request), said("False", "LiqoSilent"));
    let request = mirrored(request, &hindered(&reserved, None));
    assert_eq!(ready(&request), said("False", "InProgress"));
    let active = promise(Phase::Active);
    let request = mirrored(promised(request, &active), &hindered(&active, None));
    assert_eq!(ready(&request), said("True", "Done"));
    let request = mirrored(request, &hindered(&active, Some(Obstacle::NodeNotReady)));
    assert_eq!(ready(&request), said("False", "NodeNotReady"));
    let mut down = hindered(&active, Some(Obstacle::PodsHeld));
    down.order.as_mut().unwrap().duty = Duty::TakeDown;
    assert_eq!(step(&request, Some(&down), &Said::Unasked), Step::Look);
}

#[test]
fn why_clusters_could_not_be_joined_stays_said_after_the_end_and_nothing_else_does() {
    let reserved = promise(Phase::Reserved);
    let failing = |phase: Phase, reason: &str| Promise {
        reason: Some(reason.to_owned()),
        message: "No".to_owned(),
        ..promise(phase)
    };
    for (reason, kept) in [("PeeringFailed", "KeyNotPinned"), ("Expired", "Expired")] {
        let pin = hindered(&reserved, Some(Obstacle::KeyNotPinned));
        let mut request = mirrored(promised(finalized(), &reserved), &pin);
        for phase in [Phase::Releasing, Phase::Failed] {
            request = promised(request, &failing(phase, reason));
            assert_eq!(ready(&request).1, kept, "{phase:?}");
            let message = &request.status.as_ref().unwrap().message;
            let is_explained = message.starts_with("No: KeyNotPinned: if its Liqo was given");
            assert_eq!(is_explained, kept == "KeyNotPinned", "{message}");
        }
    }
    // What the broker was told is of the side that gave up.
    let mut request = mirrored(promised(finalized(), &reserved), &hindered(&reserved, None));
    for phase in [Phase::Releasing, Phase::Failed] {
        let told = Promise {
            obstacle: Some(Obstacle::NoLiqo),
            message: "No: NoLiqo: install it".to_owned(),
            ..failing(phase, "PeeringFailed")
        };
        request = promised(request, &told);
        assert_eq!(ready(&request).1, "NoLiqo", "{phase:?}");
        assert_eq!(request.status.as_ref().unwrap().message, told.message);
    }
}
