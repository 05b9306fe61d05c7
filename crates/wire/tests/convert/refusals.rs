//! What the core refuses, as a client is told.

use sublet_core::decision::explain::{Explanation, Nearest, Refused};
use sublet_core::id::{Generation, ReservationId};
use sublet_core::plan::Refusal;
use sublet_core::policy::Visibility;
use sublet_core::reservation::{AskError, Phase};
use sublet_core::resources::{Kind, Resources};
use sublet_core::time::Span;
use sublet_wire::{Code, Shape, problem_of, problem_seen_by};

fn why(clusters: u64) -> Box<Explanation> {
    Box::new(Explanation::Refused(Refused { clusters, ..Refused::default() }))
}

#[test]
fn every_refusal_has_its_code_and_status() {
    let refusals = [
        (Refusal::NobodyFits(why(1)), Code::NoSuitableCluster, 409),
        (Refusal::OnlySuspects(why(1)), Code::ProvidersOverdue, 503),
        (Refusal::KeyReused(ReservationId::FIRST), Code::KeyReused, 409),
        (Refusal::KeyReleased, Code::KeyReleased, 409),
        (Refusal::NotFound, Code::NoSuchReservation, 404),
        (Refusal::Phase(Phase::Released), Code::WrongPhase, 409),
        (Refusal::Generation(Generation(3)), Code::UnknownGeneration, 409),
        (Refusal::Ask(AskError::Nothing(Kind::Cpu)), Code::InvalidField, 400),
        (
            Refusal::TooLong { what: "wait", limit: Span::from_secs(60), why: Some(why(1)) },
            Code::TooLong,
            400,
        ),
        (Refusal::TooManyReservations(5), Code::TooManyReservations, 409),
        (Refusal::TooManyKeys { most: 5, kept: Span::from_secs(60) }, Code::TooManyKeys, 409),
        (Refusal::TooManyWaiting { most: 5, why: why(1) }, Code::TooManyWaiting, 409),
        (Refusal::InUse(Resources::new(1, 1)), Code::InUse, 409),
        (Refusal::ProviderIsOld, Code::ProviderTooOld, 409),
        (Refusal::Revoked, Code::CertificateRevoked, 403),
        (Refusal::TextTooLong(512), Code::InvalidField, 400),
    ];
    for (refusal, code, status) in refusals {
        let problem = problem_of(&refusal);
        assert_eq!((problem.code(), problem.status()), (Some(code), status), "{refusal:?}");
        assert!(!problem.error.is_empty());
    }
}

#[test]
fn where_the_go_broker_has_words_they_come_first() {
    let said = |refusal: Refusal| problem_of(&refusal).error;
    let none = "No suitable cluster found: no clusters available";
    assert_eq!(said(Refusal::NobodyFits(why(0))), none);
    let some = "No suitable cluster found: no suitable cluster found for requested resources: ";
    assert!(said(Refusal::NobodyFits(why(3))).starts_with(some));
    let zero = "Requested CPU and memory must be greater than zero";
    assert_eq!(said(Refusal::Ask(AskError::Nothing(Kind::Memory))), zero);
    let limit = Span::from_secs(60);
    for refusal in [
        Refusal::Ask(AskError::NoTime),
        Refusal::Ask(AskError::TooLong("duration")),
        Refusal::TooLong { what: "duration", limit, why: None },
    ] {
        assert!(said(refusal).starts_with("Invalid duration: "));
    }
}

#[test]
fn details_come_with_the_code() {
    let overdue = problem_of(&Refusal::OnlySuspects(why(2)));
    assert_eq!(overdue.details.retry_after, Some(5));
    assert_eq!(overdue.details.explanation.unwrap().refused.unwrap().clusters, 2);
    let phase = problem_of(&Refusal::Phase(Phase::Releasing));
    assert_eq!(phase.details.phase.as_deref(), Some("Releasing"));
    let constraint = problem_of(&Refusal::Ask(AskError::Constraint));
    assert_eq!(constraint.details.field.as_deref(), Some("constraints"));
}

#[test]
fn who_may_not_wait_is_told_why_it_would_have_to_as_far_as_it_may_see() {
    let near = || Nearest {
        cluster: "c2".parse().unwrap(),
        less: Some(Resources::new(2000, 0)),
        more: None,
        cap: None,
    };
    let why = || {
        let refused = Refused { clusters: 2, nearest: vec![near()], ..Refused::default() };
        Box::new(Explanation::Refused(refused))
    };
    let limit = Span::from_secs(60);
    for refusal in [
        Refusal::TooManyWaiting { most: 5, why: why() },
        Refusal::TooLong { what: "wait", limit, why: Some(why()) },
    ] {
        let problem = problem_seen_by(&refusal, Visibility::Names);
        assert!(problem.error.contains("nothing fits now: of 2 clusters"), "{}", problem.error);
        assert!(problem.error.contains("2 cores less on c2"), "{}", problem.error);
        assert!(problem.details.explanation.unwrap().text.contains("on c2"));
        let problem = problem_seen_by(&refusal, Visibility::Counts);
        assert!(!problem.error.contains("c2"), "{}", problem.error);
        assert!(!problem.details.explanation.unwrap().text.contains("c2"));
    }
}

#[test]
fn a_problem_has_both_shapes() {
    let problem = problem_of(&Refusal::NotFound);
    let json = String::from_utf8(problem.body(Shape::Json)).unwrap();
    assert_eq!(
        json,
        "{\"error\":\"there is no such reservation: list yours to see what there is\",\
         \"code\":\"NoSuchReservation\"}\n"
    );
    let plain = String::from_utf8(problem.body(Shape::Plain)).unwrap();
    assert_eq!(plain, "there is no such reservation: list yours to see what there is\n");
}
