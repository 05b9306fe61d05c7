//! Peers of HTTP/2 that say nothing when they should, frame by frame.

use std::fs;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sublet_broker::limits::Limits;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;

use super::framing::frame;
use super::stage::{Authority, Stage, h2, quick, until};

const SETTINGS: u8 = 4;
const HEADERS: u8 = 1;
/// The end of a stream and of its headers.
const WHOLE: u8 = 5;

/// With what every connection begins.
fn preface() -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(SETTINGS, 0, 0, &[])].concat()
}

/// `GET` of a short path.
fn get(stream: u32, path: &str) -> Vec<u8> {
    let length = [u8::try_from(path.len()).unwrap()];
    // A method and a scheme of HPACK's table, and a path that is written out.
    frame(HEADERS, WHOLE, stream, &[&[0x82, 0x87, 0x04][..], &length, path.as_bytes()].concat())
}

/// Reads whatever comes; true when the broker has closed within the time of any wait here.
async fn is_closed(stream: &mut (impl AsyncRead + Unpin)) -> bool {
    let read = async { while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {} };
    tokio::time::timeout(Duration::from_secs(20), read).await.is_ok()
}

/// Asks again and again, and acknowledges nothing; true when the broker has closed.
async fn is_shut_out(stream: impl AsyncRead + AsyncWrite) -> bool {
    let (mut read, mut write) = tokio::io::split(stream);
    let asks = async {
        for number in 0.. {
            if write.write_all(&get(2 * number + 1, "/healthz")).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        closed = is_closed(&mut read) => closed,
        () = asks => unreachable!("it asks for ever"),
    }
}

/// A client of the usual kind that takes so much of each answer at once.
async fn sender(stage: &Stage, window: u32) -> (SendRequest<Empty<Bytes>>, JoinSet<()>) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (sender, connection) = builder.handshake(TokioIo::new(h2(stage).await)).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    (sender, tasks)
}

fn request(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("https://localhost{path}")).body(Empty::new()).unwrap()
}

async fn page(stage: &Stage) -> String {
    stage.plain(stage.broker.addresses().metrics, "/metrics").await.body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_of_a_replaced_authority_is_left_although_it_understands_no_goodbye() {
    for begins_before in [true, false] {
        let limits = Limits { drain: Duration::from_millis(200), ..quick() };
        let stage = Stage::with(limits, |_| {}).await;
        let mut stream = h2(&stage).await;
        if begins_before {
            stream.write_all(&preface()).await.unwrap();
            stream.read_u8().await.unwrap();
        }
        let second = Authority::new("second");
        fs::write(stage.certificates.path().join("ca.crt"), &second.pem).unwrap();
        let reloaded = "reloads_total{what=\"tls\",result=\"ok\"} 1";
        until("the new authority", || async { page(&stage).await.contains(reloaded) }).await;
        if !begins_before {
            // It may be closed by now.
            drop(stream.write_all(&preface()).await);
        }
        assert!(is_shut_out(stream).await, "begins before: {begins_before}");
        stage.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_without_a_request_is_closed_before_the_first_and_after_the_last() {
    let soon = Duration::from_millis(100);
    let limits = Limits { head: soon, idle: soon, drain: soon, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let begun = preface();
    let asked = [preface(), get(1, "/healthz")].concat();
    for (what, bytes) in [("nothing", vec![]), ("a preface", begun), ("one request", asked)] {
        let mut stream = h2(&stage).await;
        stream.write_all(&bytes).await.unwrap();
        assert!(is_closed(&mut stream).await, "after {what} it is kept");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_open_is_a_request_however_long_it_lasts() {
    let beat = Duration::from_millis(50);
    let limits = Limits { head: beat, idle: beat, drain: beat, keep_alive: beat, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let (mut sender, _tasks) = sender(&stage, 1 << 16).await;
    let watch = sender.send_request(request("/api/v1/instructions?watch=true"));
    let mut lines = watch.await.unwrap().into_body();
    for signs in 0..40 {
        let line = tokio::time::timeout(Duration::from_secs(20), lines.frame()).await;
        assert!(matches!(line, Ok(Some(Ok(_)))), "{line:?} after {signs} signs of life");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_that_is_not_taken_keeps_its_turn_and_ends_its_connection() {
    let limits = Limits { write: Duration::from_secs(1), ordinary_per_cluster: 1, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let mut stream = h2(&stage).await;
    let bytes = [preface(), no_window, get(1, "/no/such/route")].concat();
    stream.write_all(&bytes).await.unwrap();
    let status = || async { stage.client("c1").await.get("/openapi.json").await.status };
    until("the turn is taken", || async { status().await == 429 }).await;
    assert!(is_closed(&mut stream).await, "the connection is kept although nothing is taken");
    until("the turn is free again", || async { status().await == 200 }).await;
    stage.end().await;
}
