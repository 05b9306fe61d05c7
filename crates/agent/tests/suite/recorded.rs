//! What the Go broker answered when it was recorded, word for word: each is understood as what it is.

use std::time::Duration;

use serde_json::Value;
use sublet_agent::transport::{Broker as _, Error, Feed, Http, News};
use sublet_wire::v1::{Advertisement, Quantities, ReservationRequest};

use crate::old_broker::OldBroker;

/// The requests that were sent to the Go broker, and its answers.
const EXCHANGES: &str = include_str!("../../../wire/tests/fixtures/go-broker-exchanges.jsonl");

const RESERVE: &str = "POST /api/v1/reservations";
const LIST: &str = "GET /api/v1/instructions";
const ADVERTISE: &str = "POST /api/v1/advertisements";

/// The exchanges of one route.
fn recorded(route: &str) -> impl Iterator<Item = Value> {
    let all = EXCHANGES.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(move |one| {
        let [method, path] = ["method", "path"].map(|part| one["request"][part].as_str().unwrap());
        route == format!("{method} {path}")
    })
}

/// From now on it answers so.
fn says(broker: &OldBroker, route: &str, exchange: &Value) {
    let answer = &exchange["response"];
    let status = answer["status"].as_u64().unwrap().try_into().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let said = (status, text(&answer["headers"]["Content-Type"]), text(&answer["body"]));
    broker.change(|script| script.recorded.insert(route.to_owned(), said));
}

fn body(exchange: &Value) -> Value {
    serde_json::from_str(exchange["response"]["body"].as_str().unwrap()).unwrap()
}

/// The ids in a list of the Go broker's, in order.
fn ids(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn way(broker: &OldBroker, poll: Option<Duration>) -> Http {
    Http::new(broker.authority.options("c2", broker.address), poll).unwrap()
}

async fn next(feed: &mut dyn Feed) -> News {
    tokio::time::timeout(Duration::from_mins(1), feed.next()).await.expect("some news")
}

fn request() -> ReservationRequest {
    let requested_resources =
        Quantities { cpu: "500m".into(), memory: "256Mi".into(), ..Quantities::default() };
    ReservationRequest { requested_resources, ..ReservationRequest::default() }
}

#[tokio::test]
async fn every_answer_to_a_request_for_capacity_is_a_promise_or_a_refusal_with_its_words() {
    let broker = OldBroker::new().await;
    let http = way(&broker, None);
    let (mut granted, mut refused) = (0, 0);
    for exchange in recorded(RESERVE) {
        says(&broker, RESERVE, &exchange);
        let (note, told) = (&exchange["note"], body(&exchange));
        match http.reserve(&"a-key".parse().unwrap(), &request()).await {
            Ok(promise) => {
                assert_eq!(exchange["response"]["status"], 201, "{note}");
                assert_eq!(
                    (promise.id.as_str(), promise.generation),
                    (told["id"].as_str().unwrap(), None)
                );
                let provider = promise.provider.as_ref().map(sublet_core::id::ClusterId::as_str);
                assert_eq!(provider, told["targetClusterID"].as_str(), "{note}");
                let ends = told["status"]["expiresAt"].is_string();
                assert_eq!(promise.expires_at.is_some(), ends, "{note}");
                granted += 1;
            }
            Err(Error::Refused(no)) => {
                assert_eq!(exchange["response"]["status"], no.status, "{note}");
                assert_eq!((told["error"].as_str(), no.code), (Some(no.message.as_str()), None));
                refused += 1;
            }
            Err(error) => panic!("{note}: {error}"),
        }
    }
    assert!(granted > 10 && refused > 10, "{granted} granted, {refused} refused");
}

#[tokio::test]
async fn every_list_of_instructions_is_what_is_to_be_done() {
    let broker = OldBroker::new().await;
    let (mut lists, mut orders) = (0, 0);
    for exchange in recorded(LIST).filter(|one| one["response"]["status"] == 200) {
        says(&broker, LIST, &exchange);
        let http = way(&broker, Some(Duration::from_hours(1)));
        let (mut feed, mut heard) = (http.feed(), Vec::new());
        loop {
            match next(&mut *feed).await {
                News::Order(order) => {
                    assert_eq!(order.peer.as_str(), "c1");
                    heard.push(order.reservation);
                }
                News::Synced => break,
                News::Connected | News::Reset(_) => {}
                other => panic!("{}: {other:?}", exchange["note"]),
            }
        }
        assert_eq!(heard, ids(&body(&exchange)), "{}", exchange["note"]);
        (lists, orders) = (lists + 1, orders + heard.len());
    }
    assert!(lists > 2 && orders > 2, "{lists} lists, {orders} orders");
}

#[tokio::test]
async fn every_answer_to_an_advertisement_is_taken_with_the_instructions_that_ride_in_it() {
    let broker = OldBroker::new().await;
    let http = way(&broker, None);
    let mut feed = http.feed();
    while !matches!(next(&mut *feed).await, News::Synced) {}
    let mut orders = 0;
    for exchange in recorded(ADVERTISE) {
        says(&broker, ADVERTISE, &exchange);
        let told = http.publish(&Advertisement::default()).await;
        match exchange["response"]["status"].as_u64() {
            Some(200) => assert_eq!(told.unwrap(), None, "{}", exchange["note"]),
            // Its words for a conflict and for an error of its own are the same: it is told again.
            _ => assert!(told.unwrap_err().is_transient(), "{}", exchange["note"]),
        }
        let riding = if exchange["response"]["status"] == 200 {
            ids(&body(&exchange)["providerInstructions"])
        } else {
            Vec::new()
        };
        for id in riding {
            let News::Order(order) = next(&mut *feed).await else { panic!("{id} was not told") };
            assert_eq!((order.reservation, order.peer.as_str()), (id, "c1"));
            orders += 1;
        }
    }
    assert!(orders > 2, "{orders} orders");
}
