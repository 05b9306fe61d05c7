//! What the core refuses, as a client is told.

use sublet_core::decision::explain::{Explanation, Refused};
use sublet_core::id::{Generation, ReservationId};
use sublet_core::plan::Refusal;
use sublet_core::reservation::{AskError, Phase};
use sublet_core::resources::{Kind, Resources};
use sublet_core::time::Span;
use sublet_wire::{Code, Shape, problem_of};

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
        (Refusal::TooLong { what: "wait", limit: Span::from_secs(60) }, Code::TooLong, 400),
        (Refusal::TooManyReservations(5), Code::TooManyReservations, 409),
        (Refusal::TooManyKeys { most: 5, kept: Span::from_secs(60) }, Code::TooManyKeys, 409),
        (Refusal::TooManyWaiting(5), Code::TooManyWaiting, 409),
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
        Refusal::TooLong { what: "duration", limit },
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
