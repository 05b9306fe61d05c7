//! Bad input: every row has its exact status and code, and after each the broker still serves.

use std::fmt::Write as _;

use sublet_wire::limits::{ADVERTISEMENT_BODY_MAX, BODY_MAX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::stage::{Client, Stage, Wish, advertisement, tls};

const RESERVE: &str = "/api/v1/reservations";
const ADVERTISE: &str = "/api/v1/advertisements";

fn ask(cpu: &str, memory: &str) -> String {
    format!(r#"{{"requestedResources":{{"cpu":"{cpu}","memory":"{memory}"}}}}"#)
}

fn with(member: &str) -> String {
    format!(r#"{{"requestedResources":{{"cpu":"1","memory":"1Gi"}},{member}}}"#)
}

/// One request and its answer.
struct Row {
    method: &'static str,
    path: String,
    body: String,
    status: u16,
    code: &'static str,
}

fn row(method: &'static str, path: &str, body: &str, status: u16, code: &'static str) -> Row {
    Row { method, path: path.to_owned(), body: body.to_owned(), status, code }
}

fn reserve(body: &str, status: u16, code: &'static str) -> Row {
    row("POST", RESERVE, body, status, code)
}

fn json() -> Vec<Row> {
    let deep = format!(r#"{{"x":{}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let broken = [
        "",
        " ",
        "{",
        "}",
        "[",
        "[]",
        "1",
        "\"x\"",
        "true",
        "{nope",
        "{\"a\"",
        "{\"a\":}",
        "nul",
        "\u{feff}{}",
        "NaN",
        "{'a':1}",
    ];
    let mut rows = Vec::new();
    for body in broken {
        rows.push(reserve(body, 400, "InvalidBody"));
        rows.push(row("POST", ADVERTISE, body, 400, "InvalidBody"));
    }
    for body in [
        r#"{"requestedResources":[]}"#,
        r#"{"requestedResources":"x"}"#,
        r#"{"requestedResources":{"cpu":1,"memory":1}}"#,
        r#"{"requestedResources":{"cpu":"1","memory":"1Gi"},"priority":1e400}"#,
        r#"{"requestedResources":{"cpu":"\ud800","memory":"1Gi"}}"#,
    ] {
        rows.push(reserve(body, 400, "InvalidBody"));
    }
    for body in [
        r#"{"clusterID":1}"#,
        r#"{"clusterID":"c1","resources":[]}"#,
        r#"{"clusterID":"c1","resources":{"capacity":"8"}}"#,
        r#"{"clusterID":"c1","timestamp":"yesterday"}"#,
        r#"{"clusterID":"c1","timestamp":7}"#,
        r#"{"clusterID":"c1","grants":{}}"#,
        r#"{"clusterID":"c1","labels":[]}"#,
        r#"{"clusterID":"c1","number":{"sequence":-1}}"#,
    ] {
        rows.push(row("POST", ADVERTISE, body, 400, "InvalidBody"));
    }
    // As Go reads it: nothing was said that is known.
    for body in ["null", "{}", r#"{"requestedResources":null}"#, &deep] {
        rows.push(reserve(body, 400, "InvalidField"));
        rows.push(row("POST", ADVERTISE, body, 403, "ClusterMismatch"));
    }
    rows.push(row("POST", ADVERTISE, r#"{"clusterID":"c1"}"#, 400, "InvalidField"));
    rows
}

fn quantities() -> Vec<Row> {
    let bad = [
        " 1",
        "1 ",
        "1.1.M",
        "1i",
        "0.1mi",
        "1K",
        "１",
        "1_000",
        "0x10",
        "many",
        "1GB",
        "--1",
        "1e",
        "-1",
        "0",
        "1e1000",
        &"9".repeat(10_000),
    ];
    let mut rows = Vec::new();
    for text in bad {
        rows.push(reserve(&ask(text, "1Gi"), 400, "InvalidField"));
        rows.push(reserve(&ask("1", text), 400, "InvalidField"));
    }
    // A number, but more than anybody has.
    rows.push(reserve(&ask("8Ei", "1Gi"), 400, "InvalidField"));
    rows.push(reserve(&ask("1", "7Ei"), 409, "NoSuitableCluster"));
    let gpu = r#"{"requestedResources":{"cpu":"1","memory":"1Gi","gpu":"0.5"}}"#;
    rows.push(reserve(gpu, 409, "NoSuitableCluster"));
    let bad = r#"{"requestedResources":{"cpu":"1","memory":"1Gi","a/b/c":"1"}}"#;
    rows.push(reserve(bad, 400, "InvalidField"));
    rows
}

fn durations() -> Vec<Row> {
    let bad = ["-1h", "0", "0s", "1", "1 day", "1d", "h", "1h1", ".", "+", "1e3s", "10000000000h"];
    let mut rows = Vec::new();
    for text in bad {
        rows.push(reserve(&with(&format!(r#""duration":"{text}""#)), 400, "InvalidField"));
    }
    rows.push(reserve(&with(r#""duration":"87601h""#), 400, "InvalidField"));
    rows.push(reserve(&with(r#""duration":5"#), 400, "InvalidBody"));
    rows.push(reserve(&with(r#""wait":"soon""#), 400, "InvalidField"));
    let late = r#"{"requestedResources":{"cpu":"1000","memory":"1Gi"},"wait":"25h"}"#;
    rows.push(reserve(late, 400, "TooLong"));
    rows.push(reserve(&with(r#""priority":2147483648"#), 400, "InvalidBody"));
    rows
}

fn names() -> Vec<Row> {
    let mut rows = Vec::new();
    for name in ["A", "-rf", "a.b", "a_b", "$(x)", "../../etc", "<script>", "=1+1", &"x".repeat(51)]
    {
        let target = format!(r#""targetClusterID":"{name}""#);
        rows.push(reserve(&with(&target), 400, "InvalidField"));
        rows.push(row("POST", ADVERTISE, &advertisement(name, 1), 403, "ClusterMismatch"));
    }
    for id in
        ["x", "rsv-", "rsv-AAAAAAAAAAAAAAAAAAAA", "%00", "%2e%2e", "rsv-aaaaaaaaaaaaaaaaaaaaa"]
    {
        rows.push(row("GET", &format!("{RESERVE}/{id}"), "", 404, "NoSuchReservation"));
    }
    for id in ["C1", "%2e%2e%2fetc", "c1%00", "other"] {
        rows.push(row("GET", &format!("{ADVERTISE}/{id}"), "", 404, "NoAdvertisement"));
        rows.push(row("GET", &format!("/api/v1/clusters/{id}"), "", 404, "NoSuchCluster"));
    }
    rows.push(row("GET", &format!("{ADVERTISE}/%ff"), "", 400, "InvalidParameter"));
    rows
}

fn routes() -> Vec<Row> {
    let mut rows = Vec::new();
    for path in ["/", "/api", "/api/v1", "/api/v1/reservations/", "//healthz", "/api/v1/../../etc"]
    {
        rows.push(row("GET", path, "", 404, "NoSuchRoute"));
    }
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        rows.push(row(method, RESERVE, "", 405, "MethodNotAllowed"));
    }
    for (query, code) in [
        ("limit=0", "InvalidParameter"),
        ("limit=1001", "InvalidParameter"),
        ("limit=x", "InvalidParameter"),
        ("after=x", "InvalidParameter"),
        ("role=x", "InvalidParameter"),
        ("phase=x", "InvalidParameter"),
        ("clusterID=A", "InvalidParameter"),
    ] {
        rows.push(row("GET", &format!("{RESERVE}?{query}"), "", 400, code));
    }
    rows.push(row(
        "POST",
        &format!("{RESERVE}?dryRun=maybe"),
        &ask("1", "1Gi"),
        400,
        "InvalidParameter",
    ));
    rows.push(row("DELETE", RESERVE, "", 400, "InvalidParameter"));
    rows.push(row("DELETE", &format!("{RESERVE}?key=a%20b"), "", 400, "InvalidKey"));
    rows.push(row("GET", "/api/v1/instructions?watch=perhaps", "", 400, "InvalidParameter"));
    rows
}

fn sizes() -> Vec<Row> {
    let many = |count: usize| {
        let mut body = String::from("{");
        for at in 0..count {
            write!(body, "\"k{at}\":1,").unwrap();
        }
        body + "\"z\":1}"
    };
    let long = " ".repeat(BODY_MAX + 1);
    vec![
        reserve(&long, 413, "BodyTooLarge"),
        reserve(&many(100_000), 413, "BodyTooLarge"),
        // Unknown members are ignored, as in Go, however many.
        row("POST", ADVERTISE, &many(100_000), 403, "ClusterMismatch"),
    ]
}

/// Sends a row on a connection that may be closed by it.
async fn play(stage: &Stage, row: &Row) -> Option<(u16, String)> {
    let mut client = stage.client("c1").await;
    let answer = client.send(row.method, &row.path, Some(&row.body)).await.ok()?;
    Some((answer.status, answer.code().to_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_request_has_its_status_and_its_code_and_harms_nobody() {
    let stage = Stage::new().await;
    let mut witness = stage.client("c2").await;
    witness.advertise("c2", 8).await;
    let rows = [json(), quantities(), durations(), names(), routes(), sizes()];
    let (mut count, mut wrong, mut held) = (0, Vec::new(), serde_json::Value::Null);
    for row in rows.iter().flatten() {
        count += 1;
        let found = play(&stage, row).await;
        let body: String = row.body.chars().take(60).collect();
        if found != Some((row.status, row.code.to_owned())) {
            wrong.push(format!("{} {} {body}: {found:?}", row.method, row.path));
        }
        let seen = witness.get("/api/v1/advertisements/c2").await;
        assert_eq!(seen.status, 200, "the broker no longer serves");
        let now = seen.json()["resources"]["reserved"].clone();
        if now != held {
            wrong.push(format!("{} {} {body}: changed something", row.method, row.path));
            held = now;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(count > 150, "{count}");
    stage.end().await;
}

/// Bytes as they are, and the status line that comes back; empty when it is only closed.
async fn framed(stage: &Stage, bytes: &[u8]) -> String {
    let pair = stage.authority.issue(&Wish::client("c1"));
    let config = std::sync::Arc::new(tls(&stage.authority.pem, Some(&pair)));
    let stream = tokio::net::TcpStream::connect(stage.http()).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(config);
    let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    // What is refused early may be closed before all of it was sent.
    drop(stream.write_all(bytes).await);
    let mut first = vec![0; 12];
    let read = stream.read_exact(&mut first);
    match tokio::time::timeout(std::time::Duration::from_secs(20), read).await.unwrap() {
        Ok(_) => String::from_utf8(first).unwrap(),
        Err(_) => String::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_framing_is_refused_and_never_smuggled() {
    let stage = Stage::new().await;
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(70_000));
    let wide = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "a".repeat(70_000));
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: 1\r\n".repeat(100));
    // Nobody waits for all of it.
    let huge = ADVERTISEMENT_BODY_MAX + 1;
    let huge = format!("POST {ADVERTISE} HTTP/1.1\r\nHost: x\r\nContent-Length: {huge}\r\n\r\nx");
    let rows: Vec<(&[u8], &[&str])> = vec![
        (huge.as_bytes(), &["HTTP/1.1 413"]),
        (b"rubbish\r\n\r\n", &["HTTP/1.1 400"]),
        (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", &["HTTP/1.1 400", "HTTP/1.1 505"]),
        (b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n", &["HTTP/1.1 400"]),
        (b"GET / HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n", &["HTTP/1.1 400"]),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            &["HTTP/1.1 400"],
        ),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", &["HTTP/1.1 400"]),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", &["HTTP/1.1 400"]),
        (long.as_bytes(), &["HTTP/1.1 414", "HTTP/1.1 431", "HTTP/1.1 400"]),
        (wide.as_bytes(), &["HTTP/1.1 431"]),
        (many.as_bytes(), &["HTTP/1.1 431"]),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &["HTTP/1.1 400", "HTTP/1.1 505", ""]),
    ];
    for (bytes, expected) in rows {
        let found = framed(&stage, bytes).await;
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]);
        assert!(expected.contains(&found.as_str()), "{shown:?}: {found:?}");
    }
    // A chunk that lies, and both lengths at once: at most the first of two requests is answered.
    let both = b"POST /api/v1/reservations HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\
        Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(framed(&stage, both).await, "HTTP/1.1 400");
    assert_eq!(stage.client("c1").await.get("/healthz").await.status, 200);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_do_not_say_who_one_is() {
    let stage = Stage::new().await;
    let mut client: Client = stage.client("c1").await;
    client.advertise("c1", 1).await;
    stage.client("c2").await.advertise("c2", 1).await;
    for name in ["x-client-cert", "x-forwarded-user", "x-forwarded-client-cert", "x-ssl-client-cn"]
    {
        client.headers = vec![(name, "CN=c2".to_owned())];
        assert_eq!(client.get("/api/v1/advertisements/c2").await.status, 404, "{name}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_makes_a_repeat_harmless_and_another_body_under_it_is_refused() {
    let stage = Stage::new().await;
    stage.client("c2").await.advertise("c2", 8).await;
    let mut client = stage.client("c1").await;
    client.headers = vec![("idempotency-key", "one".to_owned())];
    let (first, again) = (ask("1", "1Gi"), ask("2", "1Gi"));
    let granted = client.post(RESERVE, &first).await;
    let repeated = client.post(RESERVE, &first).await;
    assert_eq!((granted.status, repeated.status), (201, 201));
    assert_eq!(granted.json()["id"], repeated.json()["id"]);
    assert_eq!(client.post(RESERVE, &again).await.code(), "KeyReused");
    client.headers = vec![("idempotency-key", "a b".to_owned())];
    assert_eq!(client.post(RESERVE, &first).await.code(), "InvalidKey");
    client.headers.clear();
    // Without a key each is a new one, as the Go agents expect.
    let [one, two] = [client.post(RESERVE, &first).await, client.post(RESERVE, &first).await];
    assert_ne!(one.json()["id"], two.json()["id"]);
    // A key that is released before its request arrives stays so.
    let released = client.send("DELETE", "/api/v1/reservations?key=late", None).await.unwrap();
    assert_eq!(released.status, 204);
    client.headers = vec![("idempotency-key", "late".to_owned())];
    assert_eq!(client.post(RESERVE, &first).await.code(), "KeyReleased");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_waits_is_told_so_and_granted_when_something_fits() {
    let stage = Stage::new().await;
    let mut client = stage.client("c1").await;
    let answer = client.post(RESERVE, &with(r#""wait":"10m","explain":true"#)).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let waiting = answer.json();
    assert_eq!(waiting["status"]["phase"], "Pending");
    let path = format!("{RESERVE}/{}", waiting["id"].as_str().unwrap());
    let why = client.get(&format!("{path}/explain")).await;
    assert_eq!(why.status, 200, "{why:?}");
    stage.client("c2").await.advertise("c2", 8).await;
    let now = client.get(&path).await.json();
    assert_eq!(now["status"]["phase"], "Reserved", "{now}");
    let list = client.get(&format!("{RESERVE}?phase=Reserved")).await.json();
    assert_eq!(list["reservations"].as_array().unwrap().len(), 1);
    stage.end().await;
}
