//! The other ports, overload, and slow clients.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sublet_broker::limits::Limits;
use sublet_broker::tls::Places;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::stage::{Authority, Client, Pair, Stage, Wish, h2, h2_at, quick, raw, tls, until};

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
async fn the_id_of_a_request_comes_back_and_rubbish_is_replaced() {
    let stage = Stage::new().await;
    let mut client = stage.client("c1").await;
    for (sent, kept) in [("trace-7", true), ("two words", false), (&*"x".repeat(129), false)] {
        client.headers = vec![("x-request-id", sent.to_owned())];
        let answer = client.get("/api/v1/instructions").await;
        let found = answer.header("x-request-id");
        assert_eq!(found == sent, kept, "{found}");
        assert!(!found.is_empty());
    }
    stage.end().await;
}

fn ask(path: &str) -> Request<Empty<Bytes>> {
    let uri = format!("https://localhost{path}");
    Request::get(uri).body(Empty::<Bytes>::new()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_takes_hold_their_turns_until_somebody_does() {
    let stage = Stage::with(Limits { ordinary_per_cluster: 3, ..quick() }, |_| {}).await;
    let io = TokioIo::new(h2(&stage).await);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    // No more of an answer than this is taken before somebody reads it.
    builder.initial_stream_window_size(1);
    let (mut sender, connection) = builder.handshake(io).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(sender.send_request(ask("/openapi.json")).await.unwrap());
    }
    assert!(open.iter().all(|answer| answer.status() == 200));
    assert_eq!(sender.send_request(ask("/openapi.json")).await.unwrap().status(), 429);
    drop(open);
    let free = || async { stage.client("c1").await.get("/openapi.json").await.status == 200 };
    until("the turns are free again", free).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_is_spoken_and_its_streams_are_bounded() {
    let stage = Stage::with(Limits { streams_per_connection: 2, ..quick() }, |_| {}).await;
    let io = TokioIo::new(h2(&stage).await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let answer = sender.send_request(ask("/api/v1/instructions")).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_2));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "null\n");
    // Two streams that stay open are all that this connection may have; a third waits for its turn.
    let watch = "/api/v1/instructions?watch=true";
    let first = sender.send_request(ask(watch)).await.unwrap();
    let second = sender.send_request(ask(watch)).await.unwrap();
    assert_eq!([first.status(), second.status()], [200, 200]);
    let mut more = sender.clone();
    let mut third = std::pin::pin!(more.send_request(ask("/healthz")));
    let soon = tokio::time::timeout(Duration::from_millis(100), &mut third).await;
    assert!(soon.is_err(), "a third was answered beside two");
    drop(first);
    assert_eq!(third.await.unwrap().status(), 200);
    drop(second);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_over_tls_want_a_certificate() {
    let stage = Stage::with(quick(), |config| {
        config.metrics_cert_path = Some(Places::in_folder(&config.http_cert_path));
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
    // Who has a certificate that names nobody is asked for another one.
    let odd = stage.authority.issue(&Wish::client("No Cluster"));
    let mut odd = Client::connect(address, &stage.authority.pem, Some(&odd)).await.unwrap();
    assert_eq!(odd.get("/metrics").await.code(), "InvalidIdentity");
    let cluster = r#"{"clusterID":"prometheus","why":"left"}"#;
    let revoked = stage.operator().await.post("/api/v1/operator/revocations", cluster).await;
    assert_eq!(revoked.status, 204);
    assert_eq!(client.get("/metrics").await.status, 403);
    let other = stage.authority.issue(&Wish::client("other"));
    let mut other = Client::connect(address, &stage.authority.pem, Some(&other)).await.unwrap();
    let page = other.get("/metrics").await.body;
    for code in ["InvalidIdentity", "CertificateRevoked"] {
        let counted = format!("sublet_broker_denied_total{{reason=\"{code}\"}} 1");
        assert!(page.contains(&counted), "{counted}: {page}");
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_metrics_that_are_not_taken_keep_their_turns() {
    let stage = Stage::with(Limits { urgent_per_cluster: 2, ..quick() }, |config| {
        config.metrics_cert_path = Some(Places::in_folder(&config.http_cert_path));
    })
    .await;
    let address = stage.broker.addresses().metrics.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(0);
    let io = TokioIo::new(h2_at(&stage, address).await);
    let (mut sender, connection) = builder.handshake(io).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let (mut untaken, mut statuses) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let request = Request::get("https://localhost/metrics").body(Empty::<Bytes>::new());
        let answer = sender.send_request(request.unwrap()).await.unwrap();
        statuses.push(answer.status().as_u16());
        untaken.push(answer);
    }
    assert_eq!(statuses, [200, 200, 429]);
    let other = stage.authority.issue(&Wish::client("other"));
    let mut other = Client::connect(address, &stage.authority.pem, Some(&other)).await.unwrap();
    assert_eq!(other.get("/metrics").await.status, 200);
    drop(untaken);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_of_metrics_may_come_without_an_authority_and_reloads_by_its_own_name() {
    let folder = tempfile::TempDir::new().unwrap();
    let second = Authority::new("second");
    let write = |pair: &Pair| {
        std::fs::write(folder.path().join("web.crt"), &pair.certificate).unwrap();
        std::fs::write(folder.path().join("web.key"), &pair.key).unwrap();
    };
    write(&second.issue(&Wish::server()));
    let stage = Stage::with(quick(), |config| {
        config.metrics_cert_path = Some(Places {
            certificate: folder.path().join("web.crt"),
            key: folder.path().join("web.key"),
            ..Places::in_folder(folder.path())
        });
    })
    .await;
    let address = stage.broker.addresses().metrics.unwrap();
    // The server is the second authority's, its clients are those of the API.
    let pair = stage.authority.issue(&Wish::client("prometheus"));
    let page = || async {
        let mut client = Client::connect(address, &second.pem, Some(&pair)).await.unwrap();
        client.get("/metrics").await.body
    };
    assert!(page().await.contains("sublet_broker_up 1"));
    let stranger = second.issue(&Wish::client("prometheus"));
    let served = match Client::connect(address, &second.pem, Some(&stranger)).await {
        Ok(mut client) => client.send("GET", "/metrics", None).await.is_ok(),
        Err(_) => false,
    };
    assert!(!served);
    write(&second.issue(&Wish::server()));
    let reloaded = r#"reloads_total{what="metrics_tls",result="ok"} 1"#;
    until("the reload", || async { page().await.contains(reloaded) }).await;
    assert!(!page().await.contains(r#"reloads_total{what="tls""#));
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

/// A connection that has begun a handshake, and does not go on.
async fn begun(stage: &Stage) -> TcpStream {
    let mut stream = TcpStream::connect(stage.http()).await.unwrap();
    stream.write_all(&[0x16]).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_address_cannot_hold_all_handshakes_nor_all_connections() {
    let few =
        Limits { handshakes: 3, handshakes_per_address: 2, arrivals_per_address: 4, ..quick() };
    let stage = Stage::with(few, |_| {}).await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(begun(&stage).await);
    }
    assert_eq!(rest(&mut begun(&stage).await).await, "");
    let page = stage.plain(stage.broker.addresses().metrics, "/metrics").await.body;
    assert!(page.contains(r#"connections_refused_total{reason="address_full"} 1"#), "{page}");
    // Another address: all of 127/8 is this machine.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let stream = socket.connect(stage.http()).await.unwrap();
    let pair = stage.authority.issue(&Wish::client("c1"));
    let config = std::sync::Arc::new(tls(&stage.authority.pem, Some(&pair)));
    let connected = TlsConnector::from(config).connect("localhost".try_into().unwrap(), stream);
    let soon = tokio::time::timeout(Duration::from_secs(5), connected).await;
    assert!(soon.expect("its turn should have come").is_ok());
    drop(held);
    stage.end().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_cluster_calls_itself_is_known_after_a_restart() {
    let log: std::sync::Arc<dyn sublet_log::Log> = std::sync::Arc::<sublet_log::Memory>::default();
    let stage = Stage::on(std::sync::Arc::clone(&log), quick(), |_| {}).await;
    stage.client("c1").await.advertise("c1", 1).await;
    stage.end().await;
    let stage = Stage::on(log, quick(), |_| {}).await;
    let known = stage.client("c1").await.get("/api/v1/advertisements/c1").await;
    assert_eq!((known.status, &known.json()["clusterName"]), (200, &"n".into()));
    stage.end().await;
}
