//! The other ports, overload, and slow clients.

use std::time::Duration;

use sublet_broker::limits::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::stage::{Client, Stage, Wish, quick, tls, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_and_metrics_are_where_the_go_broker_has_them() {
    let stage = Stage::new().await;
    let addresses = stage.broker.addresses();
    for path in ["/healthz", "/readyz", "/healthz/healthz", "/readyz/readyz"] {
        let answer = stage.plain(addresses.health, path).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"), "{path}");
    }
    stage.client("c1").await.advertise("c1", 1).await;
    let page = stage.plain(addresses.metrics, "/metrics").await.body;
    let line = r#"sublet_broker_requests_total{route="advertise",status="200"} 1"#;
    assert!(page.contains(line), "{page}");
    assert!(page.contains("sublet_broker_up 1"), "{page}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_over_tls_want_a_certificate() {
    let stage = Stage::with(quick(), |config| {
        config.metrics_cert_path = Some(config.http_cert_path.clone());
    })
    .await;
    let address = stage.broker.addresses().metrics.unwrap();
    let pair = stage.authority.issue(&Wish::client("prometheus"));
    let mut client = Client::connect(address, &stage.authority.pem, Some(&pair)).await.unwrap();
    assert!(client.get("/metrics").await.body.contains("sublet_broker_up 1"));
    let nobody = Client::connect(address, &stage.authority.pem, None).await;
    let served = match nobody {
        Ok(mut client) => client.send("GET", "/metrics", None).await.is_ok(),
        Err(_) => false,
    };
    assert!(!served);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_sends_too_much_is_told_when_to_come_back_and_the_others_are_not() {
    let stage = Stage::with(Limits { rate_per_cluster: 2, ..quick() }, |_| {}).await;
    let (mut greedy, mut polite) = (stage.client("greedy").await, stage.client("polite").await);
    let mut refused = None;
    for _ in 0..20 {
        let answer = greedy.get("/api/v1/clusters/greedy").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("20 requests at once are more than 2 per second");
    assert_eq!((refused.code(), refused.header("retry-after")), ("RateLimited", "1"));
    // Its heartbeat has a lane of its own.
    greedy.advertise("greedy", 1).await;
    polite.advertise("polite", 1).await;
    assert_eq!(polite.get("/api/v1/clusters/polite").await.status, 200);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connections_of_one_cluster_are_bounded() {
    let stage = Stage::with(Limits { connections_per_cluster: 1, ..quick() }, |_| {}).await;
    let mut first = stage.client("c1").await;
    assert_eq!(first.get("/healthz").await.status, 200);
    let served = match stage.client_with(&Wish::client("c1")).await {
        Ok(mut second) => second.send("GET", "/healthz", None).await.is_ok(),
        Err(_) => false,
    };
    assert!(!served);
    assert_eq!(stage.client("c2").await.get("/healthz").await.status, 200);
    stage.end().await;
}

/// A connection on which bytes can be sent as one likes.
async fn raw(stage: &Stage) -> TlsStream<TcpStream> {
    let pair = stage.authority.issue(&Wish::client("slow"));
    let config = std::sync::Arc::new(tls(&stage.authority.pem, Some(&pair)));
    let stream = TcpStream::connect(stage.http()).await.unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(config).connect(name, stream).await.unwrap()
}

/// Reads until the broker closes; fails when it does not.
async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut read = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut read)).await;
    // A close without TLS's goodbye is a close all the same.
    drop(end.expect("the broker should have closed"));
    String::from_utf8_lossy(&read).into_owned()
}

fn hasty() -> Limits {
    let soon = Duration::from_millis(200);
    Limits { handshake: soon, head: soon, body: soon, idle: soon * 5, ..quick() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_not_waited_for() {
    let stage = Stage::with(hasty(), |_| {}).await;
    // Says nothing at all.
    let mut silent = TcpStream::connect(stage.http()).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
    // Begins a request and does not go on, or drips.
    let mut begun = raw(&stage).await;
    begun.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n").await.unwrap();
    assert!(!rest(&mut begun).await.contains("200 OK"));
    // Announces a body and does not send it.
    let mut empty = raw(&stage).await;
    let head = "POST /api/v1/reservations HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n";
    empty.write_all(head.as_bytes()).await.unwrap();
    assert!(rest(&mut empty).await.starts_with("HTTP/1.1 408"));
    // Does nothing after an answer.
    let mut idle = raw(&stage).await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(rest(&mut idle).await.ends_with("ok"));
    // The others do not notice.
    assert_eq!(stage.client("c1").await.get("/healthz").await.status, 200);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_outlives_the_time_for_headers() {
    let limits = Limits { head: Duration::from_millis(50), ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let mut client = stage.client("c1").await;
    assert_eq!(client.get("/healthz").await.status, 200);
    // Longer than the time for headers, which must not run while nothing was begun.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(client.get("/healthz").await.status, 200);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_changes_is_used_and_a_bad_one_is_not() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "").unwrap();
    let stage = Stage::with(quick(), |config| config.policy = Some(file.path().into())).await;
    let (mut asks, mut lends) = (stage.client("asks").await, stage.client("lends").await);
    lends.advertise("lends", 8).await;
    let ask = r#"{"requestedResources":{"cpu":"1","memory":"1Gi"}}"#;
    let dry = "/api/v1/reservations?dryRun=true";
    assert_eq!(asks.post(dry, ask).await.status, 200);

    let rule = "[[lending]]\nrequesters = [\"asks\"]\nproviders = \"any\"\nallow = false\n";
    std::fs::write(file.path(), rule).unwrap();
    let reloaded = |line: &'static str| {
        let stage = &stage;
        move || async move {
            let page = stage.plain(stage.broker.addresses().metrics, "/metrics").await;
            page.body.contains(line)
        }
    };
    until("the rule", reloaded(r#"reloads_total{what="policy",result="ok"} 1"#)).await;
    assert_eq!(asks.post(dry, ask).await.status, 409);

    std::fs::write(file.path(), "nonsense").unwrap();
    until("the refusal", reloaded(r#"reload_failing{what="policy"} 1"#)).await;
    assert_eq!(asks.post(dry, ask).await.status, 409);
    stage.end().await;
}
