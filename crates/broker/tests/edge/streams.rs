//! Instructions as a stream: told at once, resumed without a gap, ended when they must end.

use std::time::Duration;

use serde_json::Value;
use sublet_broker::limits::Limits;

use super::stage::{Client, Stage, quick, until};

const WATCH: &str = "/api/v1/instructions?watch=true";
const ASK: &str = r#"{"requestedResources":{"cpu":"1","memory":"1Gi"}}"#;

async fn reserve(client: &mut Client) -> String {
    let answer = client.post("/api/v1/reservations", ASK).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["id"].as_str().unwrap().to_owned()
}

fn told(line: &Value) -> (&str, &str, &str) {
    let text = |name: &str| line["instruction"][name].as_str().unwrap();
    (text("reservationID"), text("side"), text("duty"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_are_told_and_whoever_comes_back_misses_nothing() {
    let stage = Stage::new().await;
    let (mut asks, mut lends) = (stage.client("asks").await, stage.client("lends").await);
    lends.advertise("lends", 8).await;
    let first = reserve(&mut asks).await;

    let mut provider = stage.client("lends").await;
    let mut stream = provider.open(WATCH).await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.next().await.unwrap()["type"], "RESET");
    let line = stream.next().await.unwrap();
    assert_eq!(told(&line), (first.as_str(), "Provider", "Keep"));
    let bookmark = stream.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");

    // Told while it watches.
    let second = reserve(&mut asks).await;
    let line = stream.news().await.unwrap();
    assert_eq!(told(&line), (second.as_str(), "Provider", "Keep"));
    let cursor = line["cursor"].as_str().unwrap().to_owned();
    drop((stream, provider));

    // What happens while nobody watches is told to whoever comes back, and no more than that.
    let path = format!("/api/v1/reservations/{first}");
    assert_eq!(asks.send("DELETE", &path, None).await.unwrap().status, 200);
    let mut provider = stage.client("lends").await;
    let mut stream = provider.open(&format!("{WATCH}&after={cursor}")).await;
    let line = stream.news().await.unwrap();
    assert_eq!(line["type"], "INSTRUCTION", "{line}");
    assert_eq!(told(&line).0, first);

    // The requester has a side, too.
    let mut requester = stage.client("asks").await;
    let mut stream = requester.open(WATCH).await;
    assert_eq!(stream.next().await.unwrap()["type"], "RESET");
    assert_eq!(told(&stream.next().await.unwrap()), (second.as_str(), "Requester", "Keep"));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_from_elsewhere_begins_with_the_whole_list_and_rubbish_is_refused() {
    let stage = Stage::new().await;
    let mut client = stage.client("c1").await;
    let mut stream = client.open(&format!("{WATCH}&after=999999.1")).await;
    assert_eq!(stream.next().await.unwrap()["type"], "RESET");
    let mut client = stage.client("c1").await;
    for rubbish in ["x", "1", "1.x", "-1.1", "1.1.1.1"] {
        let answer = client.get(&format!("{WATCH}&after={rubbish}")).await;
        assert_eq!((answer.status, answer.code()), (400, "InvalidParameter"), "{rubbish}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_stream_shows_that_it_lives() {
    let limits = Limits { keep_alive: Duration::from_millis(20), ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let mut client = stage.client("c1").await;
    let mut stream = client.open(WATCH).await;
    assert_eq!(stream.next().await.unwrap()["type"], "RESET");
    for _ in 0..4 {
        assert_eq!(stream.next().await.unwrap()["type"], "BOOKMARK");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_ends_an_open_stream() {
    let stage = Stage::new().await;
    let (mut client, mut operator) = (stage.client("c1").await, stage.operator().await);
    let mut stream = client.open(WATCH).await;
    assert_eq!(stream.next().await.unwrap()["type"], "RESET");
    let cluster = r#"{"clusterID":"c1","why":"left"}"#;
    assert_eq!(operator.post("/api/v1/operator/revocations", cluster).await.status, 204);
    assert_eq!(stream.news().await, None);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_stops_says_goodbye() {
    let stage = Stage::new().await;
    let mut client = stage.client("c1").await;
    let mut stream = client.open(WATCH).await;
    assert_eq!(stream.next().await.unwrap()["type"], "RESET");
    let (last, ()) = tokio::join!(stream.news(), stage.end());
    let last = last.unwrap();
    assert_eq!((&last["type"], &last["retryAfter"]), (&"GOODBYE".into(), &1.into()));
    assert_eq!(stream.next().await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_streams_of_one_cluster_are_bounded_and_given_back() {
    let stage = Stage::with(Limits { streams_per_cluster: 1, ..quick() }, |_| {}).await;
    let (mut one, mut two) = (stage.client("c1").await, stage.client("c1").await);
    let stream = one.open(WATCH).await;
    let answer = two.get(WATCH).await;
    assert_eq!((answer.status, answer.code()), (429, "RateLimited"));
    assert!(!answer.header("retry-after").is_empty());
    drop((stream, one));
    let is_zero = || async {
        let page = stage.plain(stage.broker.addresses().metrics, "/metrics").await;
        page.body.contains("sublet_broker_streams 0")
    };
    until("the stream is given back", is_zero).await;
    assert_eq!(two.open(WATCH).await.status, 200);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_new_broker_a_wait_is_over_when_it_is() {
    // With the usual grace, which is for those whom an earlier process promised something.
    let stage = Stage::new().await;
    let mut asks = stage.client("asks").await;
    asks.headers = vec![("idempotency-key", "soon".to_owned())];
    let ask = r#"{"requestedResources":{"cpu":"1","memory":"1Gi"},"wait":"100ms"}"#;
    let waits = asks.post("/api/v1/reservations", ask).await;
    assert_eq!(waits.status, 202, "{waits:?}");
    let path = format!("/api/v1/reservations/{}", waits.json()["id"].as_str().unwrap());
    let asks = tokio::sync::Mutex::new(asks);
    let over = || async {
        let answer = asks.lock().await.get(&path).await.json();
        answer["status"]["phase"] == "Failed" && answer["status"]["reason"] == "WaitOver"
    };
    until("the end of the wait", over).await;
    stage.end().await;
}
