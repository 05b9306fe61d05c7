//! Whoever takes more than its part, or does not take what it asked for.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sublet_broker::limits::Limits;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use super::stage::{Client, Stage, Wish, advertisement, h2, quick, raw, until};

async fn is_refused_at_last(client: &mut Client, path: &str, first: u16) {
    let mut seen = Vec::new();
    for _ in 0..20 {
        seen.push(client.get(path).await.status);
    }
    assert_eq!(seen[0], first, "{path}");
    assert!(seen.contains(&429), "{path}: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_denied_or_only_asks_for_health_has_a_rate_too() {
    let stage = Stage::with(Limits { rate_per_cluster: 2, ..quick() }, |_| {}).await;
    is_refused_at_last(&mut stage.client("c1").await, "/no/such/route", 404).await;
    is_refused_at_last(&mut stage.client("c2").await, "/healthz", 200).await;
    let mut revoked = stage.client("c3").await;
    let shut = r#"{"clusterID":"c3","why":"test"}"#;
    let answer = stage.operator().await.post("/api/v1/operator/revocations", shut).await;
    assert_eq!(answer.status, 204);
    is_refused_at_last(&mut revoked, "/api/v1/clusters", 403).await;
    // All whose certificates name nobody share one rate.
    let unnamed = Wish::client("No Cluster");
    let mut first = stage.client_with(&unnamed).await.unwrap();
    is_refused_at_last(&mut first, "/api/v1/clusters", 403).await;
    let other = Wish::client("Nor This");
    assert_eq!(stage.client_with(&other).await.unwrap().get("/api/v1/clusters").await.status, 429);
    assert_eq!(stage.client("c4").await.get("/healthz").await.status, 200);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_whose_answers_are_not_taken_is_closed_though_it_lives() {
    let limits = Limits { write: Duration::from_millis(300), ordinary_per_cluster: 1, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let io = TokioIo::new(h2(&stage).await);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1);
    let (mut sender, connection) = builder.handshake(io).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let request = Request::get("https://localhost/openapi.json");
    let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let closed = tokio::time::timeout(Duration::from_secs(20), tasks.join_next()).await;
    assert!(closed.is_ok(), "the connection is kept although nothing is taken");
    let free = || async { stage.client("c1").await.get("/openapi.json").await.status == 200 };
    until("the turn is free again", free).await;
    drop(answer);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_answers_that_are_not_taken_are_bounded_together_and_short_ones_go_on() {
    let limits = Limits { answer_bytes_per_cluster: 100_000, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    stage.client("lends").await.advertise("lends", 500).await;
    let mut c1 = stage.client("c1").await;
    let ask = r#"{"requestedResources":{"cpu":"1","memory":"1Mi"}}"#;
    for _ in 0..130 {
        assert_eq!(c1.post("/api/v1/reservations", ask).await.status, 201);
    }
    let list = "/api/v1/reservations?clusterID=c1&role=requester";
    let whole = c1.get(list).await;
    assert!((20_000..100_000).contains(&whole.body.len()), "{} bytes", whole.body.len());

    let io = TokioIo::new(h2(&stage).await);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1);
    let (mut sender, connection) = builder.handshake(io).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let mut untaken = Vec::new();
    for _ in 0..100_000 / whole.body.len() {
        let request = Request::get(format!("https://localhost{list}")).body(Empty::<Bytes>::new());
        let answer = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200, "after {}", untaken.len());
        untaken.push(answer);
    }
    let refused = c1.get(list).await;
    assert_eq!((refused.status, refused.code()), (429, "RateLimited"), "{refused:?}");
    assert!(!refused.header("retry-after").is_empty());
    assert_eq!(c1.get("/healthz").await.status, 200);
    assert_eq!(stage.client("lends").await.get("/openapi.json").await.status, 200);
    drop((untaken, sender));
    tasks.shutdown().await;
    let c1 = tokio::sync::Mutex::new(c1);
    let comes = || async { c1.lock().await.get(list).await.body == whole.body };
    until("the list is given whole again", comes).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_streams_begin_with_take_room_until_they_are_taken() {
    let limits = Limits { answer_bytes_per_cluster: 40_000, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    stage.client("lends").await.advertise("lends", 500).await;
    let mut c1 = stage.client("c1").await;
    let ask = r#"{"requestedResources":{"cpu":"1","memory":"1Mi"}}"#;
    for _ in 0..50 {
        assert_eq!(c1.post("/api/v1/reservations", ask).await.status, 201);
    }
    let watch = "/api/v1/instructions?watch=true";
    let io = TokioIo::new(h2(&stage).await);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(0);
    let (mut sender, connection) = builder.handshake(io).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let request = Request::get(format!("https://localhost{watch}")).body(Empty::<Bytes>::new());
    let untaken = sender.send_request(request.unwrap()).await.unwrap();
    assert_eq!(untaken.status(), 200);
    assert_eq!(c1.open(watch).await.status, 429);
    // The other side of these has room of its own, and whoever takes the list needs it no longer.
    let mut taken = Vec::new();
    for _ in 0..3 {
        let mut lends = stage.client("lends").await;
        let mut lines = lends.open(watch).await;
        assert_eq!(lines.status, 200);
        while lines.next().await.unwrap()["type"] != "BOOKMARK" {}
        taken.push((lends, lines));
    }
    drop((untaken, sender));
    tasks.shutdown().await;
    let opens = || async { stage.client("c1").await.open(watch).await.status == 200 };
    until("there is room again", opens).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_that_was_only_announced_takes_no_place() {
    let stage = Stage::with(Limits { large_bodies: 1, ..quick() }, |_| {}).await;
    let mut announced = Vec::new();
    for _ in 0..3 {
        let mut stream = raw(&stage).await;
        let head = "POST /api/v1/advertisements HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000";
        stream.write_all(format!("{head}\r\n\r\n{{").as_bytes()).await.unwrap();
        announced.push(stream);
    }
    let idle = "sublet_broker_requests_in_flight 3\n";
    let metrics = stage.broker.addresses().metrics;
    until("all three are being read", || async {
        stage.plain(metrics, "/metrics").await.body.contains(idle)
    })
    .await;
    let body = format!("{}{}", advertisement("c1", 1), " ".repeat(200_000));
    let answer = stage.client("c1").await.post("/api/v1/advertisements", &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    drop(announced);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_go_agent_gets_all_that_it_has_now_in_one_list() {
    let stage = Stage::new().await;
    stage.client("lends").await.advertise("lends", 500).await;
    let mut asks = stage.client("asks").await;
    let ask = r#"{"requestedResources":{"cpu":"1","memory":"1Mi"}}"#;
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..130 {
        let granted = asks.post("/api/v1/reservations", ask).await.json();
        ids.insert(granted["id"].as_str().unwrap().to_owned());
    }
    let ended = ids.pop_first().unwrap();
    let path = format!("/api/v1/reservations/{ended}");
    assert_eq!(asks.send("DELETE", &path, None).await.unwrap().status, 200);
    let shown = |list: &serde_json::Value| {
        let list = list["reservations"].as_array().unwrap().clone();
        let ids = list.iter().map(|one| one["id"].as_str().unwrap().to_owned());
        ids.collect::<std::collections::BTreeSet<_>>()
    };
    let path = "/api/v1/reservations?clusterID=asks&role=requester";
    let list = asks.get(path).await.json();
    assert_eq!((shown(&list), list.get("next")), (ids.clone(), None));
    let path = "/api/v1/reservations?clusterID=lends&role=provider";
    let list = stage.client("lends").await.get(path).await.json();
    assert_eq!((shown(&list), list.get("next")), (ids, None));
    // Ours says how much it wants, and gets pages of all that is remembered.
    let page =
        asks.get("/api/v1/reservations?clusterID=asks&role=requester&limit=100").await.json();
    assert_eq!((shown(&page).len(), page["next"].is_string()), (100, true));
    let all =
        asks.get("/api/v1/reservations?clusterID=asks&role=requester&limit=1000").await.json();
    assert_eq!((shown(&all).len(), shown(&all).contains(&ended)), (130, true));
    stage.end().await;
}
