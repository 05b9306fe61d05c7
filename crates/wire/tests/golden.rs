//! What the Go programs really send is read, converted, and written back without loss.

use serde_json::Value;
use sublet_wire::decode::{Fill, decode};
use sublet_wire::v1::{
    Advertisement, AdvertisementResponse, Reservation, ReservationRequest, View,
};
use sublet_wire::{Problem, encode};

const AGENT: &str = include_str!("fixtures/go-agent-requests.jsonl");
const BROKER: &str = include_str!("fixtures/go-broker-exchanges.jsonl");

struct Exchange {
    note: String,
    identity: String,
    method: String,
    path: String,
    body: Option<String>,
    status: u64,
    answer: String,
}

fn exchanges(lines: &str) -> Vec<Exchange> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let read = |line: &str| {
        let one: Value = serde_json::from_str(line).expect("a line of JSON");
        let (request, response) = (&one["request"], &one["response"]);
        Exchange {
            note: text(&one["note"]),
            identity: text(&one["identity"]),
            method: text(&request["method"]),
            path: text(&request["path"]),
            body: request["body"].as_str().map(str::to_owned),
            status: response["status"].as_u64().expect("a status"),
            answer: text(&response["body"]),
        }
    };
    lines.lines().map(read).collect()
}

/// Reads as `T`, writes again, and compares as JSON.
fn survives<T: Fill + Default + serde::Serialize>(body: &str) {
    let value: T = decode(body.as_bytes()).unwrap_or_else(|error| panic!("{body}: {error}"));
    let written: Value = serde_json::from_slice(&encode(&value)).expect("we write JSON");
    let original: Value = serde_json::from_str(body).expect("the fixture is JSON");
    assert_eq!(written, original);
}

#[test]
fn every_body_of_the_go_agent_is_read_and_converted() {
    let mut seen = (0, 0);
    for exchange in exchanges(AGENT) {
        let Some(body) = exchange.body else { continue };
        match exchange.path.as_str() {
            "/api/v1/advertisements" => {
                let sent: Advertisement = decode(body.as_bytes()).expect(&body);
                let cluster = sent.cluster_id.parse().expect("a cluster");
                let core = sent.to_core(cluster).expect(&body);
                assert_eq!((core.allocatable.cpu, core.allocatable.gpu), (12_000, 2));
                assert_eq!((core.allocated.cpu, core.allocated.memory), (500, 1 << 30));
                assert!(core.number.is_none() && core.grants.is_none() && core.lending);
                survives::<Advertisement>(&body);
                seen.0 += 1;
            }
            "/api/v1/reservations" => {
                let sent: ReservationRequest = decode(body.as_bytes()).expect(&body);
                let ask = sent.to_core().expect(&body);
                ask.check().expect(&body);
                assert_eq!((ask.priority, ask.duration.unwrap().as_millis()), (10, 3_600_000));
                survives::<ReservationRequest>(&body);
                seen.1 += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(seen, (5, 3));
}

#[test]
fn every_answer_of_the_go_system_is_read_and_written_back() {
    let mut seen = 0;
    for exchange in exchanges(AGENT).iter().chain(&exchanges(BROKER)) {
        let answer = exchange.answer.as_str();
        let path = exchange.path.trim_end_matches("c1").trim_end_matches("c2");
        match (exchange.method.as_str(), path, exchange.status) {
            ("POST", "/api/v1/advertisements", 200) => survives::<AdvertisementResponse>(answer),
            ("GET", "/api/v1/advertisements/", 200) => survives::<Advertisement>(answer),
            ("POST", "/api/v1/reservations", 201) => survives::<Reservation>(answer),
            ("GET", "/api/v1/instructions", 200) => survives::<Option<Vec<Reservation>>>(answer),
            ("POST", "/api/v1/reservations", 400..) => {
                let problem: Problem = decode(answer.as_bytes()).expect(answer);
                assert!(!problem.error.is_empty());
                continue;
            }
            _ => continue,
        }
        seen += 1;
    }
    assert!(seen > 50, "only {seen}");
}

/// What a request to the Go broker means here before anybody decides about it.
fn judged(exchange: &Exchange) -> Option<Result<(), Problem>> {
    let body = exchange.body.as_deref()?.as_bytes();
    let outcome = match exchange.path.as_str() {
        "/api/v1/advertisements" => decode::<Advertisement>(body)
            .map_err(Problem::from)
            .and_then(|sent| Ok(sent.to_core(exchange.identity.parse().unwrap()).map(drop)?)),
        "/api/v1/reservations" => decode::<ReservationRequest>(body)
            .map_err(Problem::from)
            .and_then(|sent| Ok(sent.to_core().map(drop)?)),
        _ => return None,
    };
    Some(outcome)
}

#[test]
fn bad_bodies_are_refused_as_the_go_broker_does_apart_from_what_we_want_otherwise() {
    // Ours are 400: the Go broker says 500, or takes them.
    let otherwise = [
        "bad quantity in an advertisement",
        "missing timestamp",
        "null where an object is expected",
        "negative duration",
        "duration 0",
        "duration 0s",
    ];
    for exchange in exchanges(BROKER) {
        let note = exchange.note.as_str();
        // Whose it is, the caller checks.
        let Some(outcome) = judged(&exchange).filter(|_| note != "someone else's clusterID") else {
            continue;
        };
        let wanted = if otherwise.contains(&note) { 400 } else { exchange.status };
        match outcome {
            Ok(()) => assert!(matches!(wanted, 200 | 201 | 409), "{note}: {wanted}"),
            Err(problem) => {
                assert_eq!(u64::from(problem.status()), wanted, "{note}: {problem}");
                if exchange.status == 400 {
                    let said = exchange.answer.trim_end();
                    let theirs = serde_json::from_str::<Value>(said)
                        .map_or(said.to_owned(), |json| json["error"].as_str().unwrap().to_owned());
                    let (beginning, _) = theirs.split_once(": ").unwrap_or((&theirs, ""));
                    assert!(problem.error.starts_with(beginning), "{note}: {problem}");
                }
            }
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let fields: Vec<_> = exchanges(BROKER)
        .iter()
        .filter_map(|exchange| Some((exchange.note.clone(), judged(exchange)?.err()?)))
        .map(|(note, problem)| format!("{note}: {}", problem.details.field.unwrap_or_default()))
        .collect();
    assert_eq!(
        fields,
        [
            "broken JSON, advertisement: ",
            "broken JSON, reservation: ",
            "empty body, advertisement: ",
            "empty body, reservation: ",
            "bad quantity in an advertisement: resources.capacity.cpu",
            "missing timestamp: timestamp",
            "null where an object is expected: resources.capacity",
            "quantities as numbers: requestedResources.cpu",
            "no cpu: requestedResources",
            "no requestedResources: requestedResources",
            "null body: requestedResources",
            "bad cpu: requestedResources.cpu",
            "bad memory: requestedResources.memory",
            "zero cpu: requestedResources",
            "negative memory: requestedResources",
            "bad duration: duration",
            "negative duration: duration",
            "priority out of range: priority",
            "priority as a string: priority",
            "duration 0: duration",
            "duration 0s: duration",
        ]
    );
}

#[test]
fn odd_amounts_come_back_as_the_go_broker_writes_them() {
    let odd = exchanges(BROKER)
        .into_iter()
        .find(|exchange| exchange.note.contains("not in canonical form"))
        .expect("it is recorded");
    let sent: Advertisement = decode(odd.body.unwrap().as_bytes()).unwrap();
    let core = sent.to_core("c3".parse().unwrap()).unwrap();
    let answer: AdvertisementResponse = decode(odd.answer.as_bytes()).unwrap();
    let theirs = answer.advertisement.resources;
    assert_eq!(sublet_wire::v1::Quantities::from(&core.capacity), theirs.capacity);
    assert_eq!(sublet_wire::v1::Quantities::from(&core.allocated), theirs.allocated);
}

#[test]
fn the_phase_that_go_does_not_know_is_shown_as_active() {
    use sublet_core::id::{Generation, Revision};
    use sublet_core::reservation::{self as core, Actor, Ending, Grant, Reason, State};
    use sublet_core::resources::Resources;
    use sublet_core::time::Time;
    let at = Time::from_millis(1_794_780_677_666);
    let grant = Grant {
        provider: "c2".parse().unwrap(),
        amounts: Resources::new(500, 256 << 20),
        held: Resources::new(1000, 256 << 20),
        granted_at: at,
        expires_at: None,
        activate_by: None,
        generation: Generation(3),
        acknowledged: Generation(2),
        confirms: true,
    };
    let ending = Ending { reason: Reason::Expired, by: Actor::Broker, at, hindrance: None };
    let known = core::Reservation {
        id: sublet_core::id::ReservationId::FIRST,
        requester: "c1".parse().unwrap(),
        key: Some("k1".parse().unwrap()),
        ask: core::Ask { resources: grant.amounts.clone(), ..core::Ask::default() },
        priority: 10,
        requested_at: at,
        arrival: 1,
        state: State::Releasing(grant.clone(), ending),
        changed: Revision(7),
    };
    let shown = Reservation::of(&known, View::Go);
    let json: Value = serde_json::from_slice(&encode(&shown)).unwrap();
    let names: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let theirs =
        ["createdAt", "id", "requestedResources", "requesterID", "status", "targetClusterID"];
    assert_eq!(names, theirs);
    assert_eq!(json["status"]["phase"], "Active");
    assert_eq!(Reservation::of(&known, View::Provider).key, None);
    let full = Reservation::of(&known, View::Full);
    assert_eq!((full.status.phase.as_str(), full.key.as_deref()), ("Releasing", Some("k1")));
    assert_eq!(full.held.unwrap().cpu, "1");
    assert!(Reservation::instruction_for_go(&known).is_none());
    let active = core::Reservation { state: State::Active(grant), ..known };
    let told = Reservation::instruction_for_go(&active).expect("it is to be held");
    assert_eq!(told.status.phase, "Reserved");
}
