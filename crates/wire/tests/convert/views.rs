//! What the broker shows: clusters, explanations, candidates, instructions, the stream's lines.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sublet_core::advertisement::Advertisement;
use sublet_core::books::Books;
use sublet_core::decision::explain::{self, Judgement, Nearest, Refused};
use sublet_core::decision::filter::Filter;
use sublet_core::event::{Event, Note};
use sublet_core::id::{ClusterId, Generation, ReservationId, Revision};
use sublet_core::instruction::{Duty, Instruction, Side};
use sublet_core::ledger::Stamp;
use sublet_core::policy::Policy;
use sublet_core::reservation::Actor;
use sublet_core::resources::Resources;
use sublet_core::time::{Span, Time};
use sublet_wire::encode;
use sublet_wire::v1::{self, Candidate, Cluster, Explanation, WatchEvent, WatchType};

fn shown(value: &impl serde::Serialize) -> Value {
    serde_json::from_slice(&encode(value)).expect("we write JSON")
}

fn told(side: Side) -> Instruction {
    Instruction {
        reservation: ReservationId::FIRST,
        side,
        peer: "c2".parse().unwrap(),
        duty: Duty::TakeDown,
        amounts: Resources::new(500, 1 << 30),
        expires_at: Some(Time::from_millis(0)),
        generation: Generation(3),
        revision: Revision(9),
    }
}

#[test]
fn a_cluster_is_shown_with_what_it_said_and_what_was_decided() {
    let (c1, c9): (ClusterId, ClusterId) = ("c1".parse().unwrap(), "c9".parse().unwrap());
    let (policy, now) = (Policy::default(), Time::from_millis(1_000_000));
    let mut books = Books::default();
    assert_eq!(Cluster::of(&books, &c1, &policy, now), None);
    let (all, used) = (Resources::new(8000, 16 << 30), Resources::new(2000, 4 << 30));
    books.hear(Advertisement::plain(c1.clone(), all, used), now, &policy.silence);
    let cordoned = |cluster: &ClusterId| Event::Cordoned {
        cluster: cluster.clone(),
        drain: true,
        note: Note { by: Actor::Operator("ann".to_owned()), why: "disk".to_owned() },
    };
    let stamp = Stamp { revision: Revision(1), time: now };
    books.apply(stamp, &cordoned(&c1)).expect("it can be cordoned");
    let later = now.checked_add(Span::from_secs(120)).unwrap();
    let cluster = Cluster::of(&books, &c1, &policy, later).expect("it is known");
    assert_eq!((cluster.freshness.as_str(), cluster.age.as_deref()), ("Suspect", Some("2m0s")));
    assert_eq!(cluster.score.as_deref(), Some("75.00"));
    assert_eq!(cluster.resources.unwrap().available.cpu, "6");
    assert!(cluster.draining && cluster.lending && !cluster.overcommitted);
    let note = v1::Note { by: "operator ann".to_owned(), why: "disk".to_owned() };
    assert_eq!(cluster.cordoned, Some(note));
    // One that only operators know.
    books.apply(stamp, &cordoned(&c9)).expect("it can be cordoned");
    let unheard = Cluster::of(&books, &c9, &policy, later).expect("it is known");
    assert_eq!((unheard.freshness.as_str(), unheard.borrowed.cpu.as_str()), ("Unknown", "0"));
}

#[test]
fn an_explanation_has_its_sentence_and_its_parts() {
    let refused = Refused {
        clusters: 3,
        refused: BTreeMap::from([(Filter::Itself, 1), (Filter::Fit, 2)]),
        nearest: vec![Nearest {
            cluster: "c2".parse().unwrap(),
            less: Some(Resources::new(2000, 0)),
            more: None,
            cap: None,
        }],
        ..Refused::default()
    };
    let why = explain::Explanation::Refused(refused);
    let json = shown(&Explanation::from(&why));
    assert_eq!(json["text"], why.to_string());
    assert_eq!(json["refused"]["refused"], json!({ "itself": 1, "fit": 2 }));
    assert_eq!(json["refused"]["nearest"], json!([{ "clusterID": "c2", "less": { "cpu": "2" } }]));
}

#[test]
fn filters_are_named_as_the_core_names_them() {
    for filter in Filter::ALL {
        let verdict = Judgement::Refused { filter, detail: explain::Detail::default() };
        let candidate = explain::Candidate { cluster: "c1".parse().unwrap(), verdict };
        let named = Candidate::from(&candidate).filter.expect("a reason");
        assert_eq!(json!(named), serde_json::to_value(filter).expect("a name"));
    }
}

#[test]
fn an_instruction_is_told_to_either_side() {
    let json = shown(&v1::Instruction::from(&told(Side::Provider)));
    assert_eq!(
        json,
        json!({
            "reservationID": "rsv-aaaaaaaaaaaaaaaaaaaa", "side": "Provider", "peerID": "c2",
            "duty": "TakeDown", "resources": { "cpu": "500m", "memory": "1Gi" },
            "expiresAt": "1970-01-01T00:00:00Z", "generation": 3,
        })
    );
    let read: v1::Instruction = super::read(&json);
    assert_eq!((read.side(), read.duty()), (Some(Side::Provider), Some(Duty::TakeDown)));
    let me = "c1".parse().unwrap();
    let go = v1::Reservation::of_instruction(&told(Side::Requester), &me);
    assert_eq!((go.requester_id.as_str(), go.target_cluster_id.as_str()), ("c1", "c2"));
}

#[test]
fn the_place_in_a_stream_moves_only_with_the_last_line_of_a_commit() {
    let two = [told(Side::Provider), told(Side::Requester)];
    let lines = WatchEvent::lines(true, &two, "9.1".parse().unwrap());
    let kinds: Vec<_> = lines.iter().map(|line| line.kind).collect();
    let instruction = WatchType::Instruction;
    assert_eq!(kinds, [WatchType::Reset, instruction, instruction, WatchType::Bookmark]);
    assert!(lines[..3].iter().all(|line| line.cursor.is_empty()));
    let written = String::from_utf8(encode(&lines[3])).unwrap();
    assert_eq!(written, "{\"type\":\"BOOKMARK\",\"cursor\":\"9.1\"}\n");
    let written = String::from_utf8(encode(&lines[0])).unwrap();
    assert_eq!(written, "{\"type\":\"RESET\"}\n");
}
