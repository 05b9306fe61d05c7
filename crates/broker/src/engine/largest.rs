//! One more plan of the largest kind fits the record of a batch that was about to be closed: every
//! limit at its maximum, as it would be written.

use sublet_core::advertisement::Number;
use sublet_core::decision::{Constraint, Match, Strategy};
use sublet_core::event::{Basis, Event, Note};
use sublet_core::id::{ClusterId, Generation, Key, ReservationId, Revision};
use sublet_core::plan::EVENTS_MAX;
use sublet_core::reservation::{Actor, Ask, Confirmation, Hindrance, Reason};
use sublet_core::resources::{Kind, Resources};
use sublet_core::time::{Span, Time};
use sublet_log::{Body, Head, Record, Writer};

use super::step::BATCH_BYTES;

/// As in `plan::advertise` and `plan::operate`, which keep them to themselves.
const ADOPTED_MAX: usize = 32;
const WHY_MAX: usize = 512;
const OPERATOR_MAX: usize = 128;

const FAR: Time = Time::from_millis(u64::MAX);

fn cluster() -> ClusterId {
    "c".repeat(ClusterId::LENGTH_MAX).parse().unwrap()
}

fn key() -> Key {
    "\"".repeat(Key::LENGTH_MAX).parse().unwrap()
}

fn id() -> ReservationId {
    ReservationId::derive(&cluster(), &key(), Revision(1))
}

/// The longest names there can be, of the largest amounts.
fn resources() -> Resources {
    let start = Resources::new(u64::MAX, u64::MAX);
    let named = (0..Resources::EXTENDED_MAX).map(|number| {
        let name = format!("{}.example/{}{number:02}", "d".repeat(56), "n".repeat(61));
        name.parse::<Kind>().unwrap()
    });
    let kinds = named.chain([Kind::Gpu, Kind::Storage]);
    kinds.fold(start, |sum, kind| sum.with(kind, u64::MAX).unwrap())
}

/// As long as it may be written.
fn operator() -> Actor {
    Actor::Operator("n".repeat(OPERATOR_MAX))
}

fn largest_ask() -> Ask {
    let value = || "v".repeat(Ask::VALUE_MAX);
    let constraint = || Constraint {
        label: "l".repeat(Ask::LABEL_MAX),
        is: Match::NotIn(vec![value(); Ask::VALUES_MAX]),
    };
    let ask = Ask {
        resources: resources(),
        priority: i32::MIN,
        target: Some(cluster()),
        constraints: (0..Ask::CONSTRAINTS_MAX).map(|_| constraint()).collect(),
        strategy: Some(Strategy::Headroom),
        duration: Some(Ask::SPAN_MAX),
        wait: Some(Ask::SPAN_MAX),
        activates: true,
        ..Ask::default()
    };
    ask.check().unwrap();
    ask
}

fn basis() -> Basis {
    Basis {
        number: Some(Number { incarnation: u64::MAX, sequence: u64::MAX }),
        received_at: FAR,
        suspect_after: Span::from_millis(u64::MAX),
        allocatable: resources(),
        allocated: resources(),
        covered: resources(),
        ghosts: resources(),
        unreported: true,
    }
}

fn ended() -> Event {
    let (reason, by) = (Reason::ReleasedByRequester, operator());
    Event::Ended { id: id(), reason, by, confirmation: Confirmation::ProviderLost, hindrance: None }
}

fn reserved() -> Vec<Event> {
    vec![Event::Reserved {
        id: id(),
        requester: cluster(),
        key: key(),
        ask: largest_ask(),
        priority: i32::MIN,
        provider: cluster(),
        expires_at: Some(FAR),
        activate_by: Some(FAR),
        confirms: true,
        basis: basis(),
    }]
}

fn swept() -> Vec<Event> {
    let forgotten = Event::Forgotten {
        reservations: vec![id(); EVENTS_MAX],
        tombstones: vec![(cluster(), key()); EVENTS_MAX],
    };
    (1..EVENTS_MAX).map(|_| ended()).chain([forgotten]).collect()
}

/// With the longest word and text that are kept.
fn failed() -> Vec<Event> {
    let why = Hindrance::new(&"w".repeat(Hindrance::WORD_MAX), &"\"".repeat(Hindrance::TEXT_MAX));
    let (reason, by) = (Reason::PeeringFailed, Actor::Cluster(cluster()));
    vec![Event::Ending { id: id(), reason, by, hindrance: why.map(Box::new) }]
}

/// A provider is back after a restore, with an agent that does not confirm any more.
fn advertised() -> Vec<Event> {
    let adopted = || Event::Adopted {
        id: id(),
        requester: cluster(),
        provider: cluster(),
        amounts: resources(),
        generation: Generation(u32::MAX),
        expires_at: Some(FAR),
    };
    let note = Note { by: operator(), why: "\u{1}".repeat(WHY_MAX) };
    let first = [Event::Returned { cluster: cluster() }];
    let adopted = (1..ADOPTED_MAX).map(|_| adopted());
    let reconciled = [Event::Reconciled { cluster: cluster(), note }];
    let rest = std::iter::repeat_with(ended);
    first.into_iter().chain(adopted).chain(reconciled).chain(rest).take(EVENTS_MAX).collect()
}

#[test]
fn one_more_plan_of_the_largest_kind_still_fits_a_record() {
    let resized = vec![Event::Resized { id: id(), amounts: resources(), basis: basis() }];
    let plans = [
        ("a grant", reserved()),
        ("a resize", resized),
        ("a sweep", swept()),
        ("an advertisement", advertised()),
        ("a failure", failed()),
    ];
    for (what, plan) in plans {
        let mut body = Body::default();
        while body.size() < BATCH_BYTES {
            body.push(ended()).unwrap();
        }
        let before = body.size();
        for event in plan {
            body.push(event).unwrap();
        }
        let size = body.size();
        let head = Head { revision: Revision(u64::MAX - 1), time: FAR, ..Head::default() };
        let sealed = Record::seal(&head, Writer(u128::MAX), FAR, body);
        assert!(sealed.is_ok(), "{what} has {} bytes: {}", size - before, sealed.unwrap_err());
    }
}
