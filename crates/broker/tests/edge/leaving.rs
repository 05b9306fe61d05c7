//! Callers that go before they are answered, while the disk is slow.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sublet_broker::limits::Limits;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use super::gated::Gated;
use super::stage::{Client, Stage, h2, quick, raw, until};

const ASK: &str = r#"{"requestedResources":{"cpu":"1","memory":"1Gi"}}"#;
const PATH: &str = "/api/v1/reservations";

/// A broker with one provider, whose log lets nothing pass.
async fn stuck(limits: Limits) -> (Stage, Gated, Client) {
    let log = Gated::default();
    let stage = Stage::on(Arc::new(log.clone()), limits, |_| {}).await;
    stage.client("lends").await.advertise("lends", 8).await;
    let operator = stage.operator().await;
    (stage, log, operator)
}

async fn page(stage: &Stage) -> String {
    stage.plain(stage.broker.addresses().metrics, "/metrics").await.body
}

/// Waits until the broker has noticed that nobody waits any more.
async fn nobody_waits(stage: &Stage) {
    let idle = || async { page(stage).await.contains("sublet_broker_requests_in_flight 0\n") };
    until("no request in flight", idle).await;
}

/// The phases of all reservations, once there is one.
async fn phases(operator: &mut Client) -> Vec<String> {
    let list = operator.get("/api/v1/reservations?limit=100").await.json();
    let list = list["reservations"].as_array().unwrap().clone();
    list.iter().map(|one| one["status"]["phase"].as_str().unwrap().to_owned()).collect()
}

async fn is_given_back_and_counted(stage: Stage, log: Gated, operator: Client) {
    nobody_waits(&stage).await;
    log.admit(1000);
    let operator = tokio::sync::Mutex::new(operator);
    let released = || async { phases(&mut *operator.lock().await).await == ["Released"] };
    until("what nobody knows of is given back", released).await;
    let line = "sublet_broker_reservations_granted_total 1\n";
    until("it is counted", || async { page(&stage).await.contains(line) }).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_granted_to_whom_went_without_a_key_is_given_back() {
    let (stage, log, operator) = stuck(quick()).await;
    let mut caller = raw(&stage).await;
    let head = format!("POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {}", ASK.len());
    caller.write_all(format!("{head}\r\n\r\n{ASK}").as_bytes()).await.unwrap();
    until("the request is at the disk", || async { log.reached().len() == 1 }).await;
    drop(caller);
    is_given_back_and_counted(stage, log, operator).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_for_a_connection_and_for_a_request_of_http_2() {
    for closes_all in [true, false] {
        let (stage, log, operator) = stuck(quick()).await;
        let io = TokioIo::new(h2(&stage).await);
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        let request = Request::post(format!("https://localhost{PATH}"));
        let request = request.body(Full::new(Bytes::from_static(ASK.as_bytes()))).unwrap();
        let answer = sender.send_request(request);
        let mut waiting = JoinSet::new();
        waiting.spawn(async move { drop(answer.await) });
        until("the request is at the disk", || async { log.reached().len() == 1 }).await;
        if closes_all {
            tasks.shutdown().await;
        }
        waiting.shutdown().await;
        is_given_back_and_counted(stage, log, operator).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_too_long_is_given_back_too_unless_it_has_a_key() {
    let limits = Limits { request: Duration::from_millis(200), ..quick() };
    for (key, phase) in [(None, "Released"), (Some("mine"), "Reserved")] {
        let (stage, log, mut operator) = stuck(limits.clone()).await;
        let mut caller = stage.client("asks").await;
        caller.headers = key.into_iter().map(|key| ("idempotency-key", key.to_owned())).collect();
        let answer = caller.post(PATH, ASK).await;
        assert_eq!(answer.code(), "OutcomeUnknown");
        let said = if key.is_some() { "with the same key" } else { "is given back" };
        assert!(answer.body.contains(said), "{answer:?}");
        log.admit(1000);
        let line = "sublet_broker_reservations_granted_total 1\n";
        until("it is counted", || async { page(&stage).await.contains(line) }).await;
        assert_eq!(phases(&mut operator).await, [phase], "{key:?}");
        stage.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_broker_does_not_end_before_it_has_given_back_what_nobody_waits_for() {
    let (stage, log, _operator) = stuck(quick()).await;
    let mut caller = raw(&stage).await;
    let head = format!("POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {}", ASK.len());
    caller.write_all(format!("{head}\r\n\r\n{ASK}").as_bytes()).await.unwrap();
    until("the request is at the disk", || async { log.reached().len() == 1 }).await;
    drop(caller);
    nobody_waits(&stage).await;
    let mut opens = JoinSet::new();
    let gate = log.clone();
    opens.spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.admit(1000);
    });
    stage.end().await;
    let again = Stage::on(Arc::new(log.home.clone()), quick(), |_| {}).await;
    assert_eq!(phases(&mut again.operator().await).await, ["Released"]);
    again.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_open_when_the_broker_is_told_to_end_is_answered() {
    let (stage, log, _operator) = stuck(quick()).await;
    let (mut caller, address) = (stage.client("asks").await, stage.http());
    let mut waiting = JoinSet::new();
    waiting.spawn(async move { caller.post(PATH, ASK).await.status });
    until("the request is at the disk", || async { log.reached().len() == 1 }).await;
    let mut ending = JoinSet::new();
    ending.spawn(stage.end());
    let closed = || async { tokio::net::TcpStream::connect(address).await.is_err() };
    until("nothing new is taken", closed).await;
    log.admit(1000);
    assert_eq!(waiting.join_next().await.unwrap().unwrap(), 201);
    ending.join_next().await.unwrap().unwrap();
    let again = Stage::on(Arc::new(log.home.clone()), quick(), |_| {}).await;
    assert_eq!(phases(&mut again.operator().await).await, ["Reserved"]);
    again.end().await;
}
