//! Calls: failover, repeats, timeouts, errors, trust.

use std::time::Duration;

use sublet_wire::Code;
use sublet_wire::client::{Client, Credentials, Error, Options, Page, ReservationQuery};
use sublet_wire::v1::{Message, ReservationRequest};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::authority::Authority;
use super::client;
use super::server::{Reply, Server, json};

const CLUSTERS: &str = r#"{"clusters":[{"clusterID":"c1"}]}"#;

/// An address where nobody listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    format!("https://{}", listener.local_addr().expect("bound"))
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_passed_over_and_then_not_asked_first() {
    let authority = Authority::new();
    let there = Server::start(&authority, |_, _| json(200, CLUSTERS)).await;
    let client = client(&authority, &[nobody().await, there.url.clone()]);
    for _ in 0..3 {
        let list = client.clusters(&Page::default()).await.expect("a list");
        assert_eq!(list.clusters[0].cluster_id, "c1");
    }
    assert_eq!(there.seen().len(), 3);
}

#[tokio::test]
async fn a_broker_that_says_503_is_passed_over_too() {
    let authority = Authority::new();
    let away = r#"{"error":"going away","code":"Unavailable"}"#;
    let first = Server::start(&authority, move |_, _| json(503, away)).await;
    let second = Server::start(&authority, |_, _| json(200, CLUSTERS)).await;
    let client = client(&authority, &[first.url.clone(), second.url.clone()]);
    client.clusters(&Page::default()).await.expect("a list");
    assert_eq!((first.seen().len(), second.seen().len()), (1, 1));
}

#[tokio::test]
async fn a_message_is_sent_again_until_it_is_taken_and_a_refusal_is_told() {
    let authority = Authority::new();
    let strangers = r#"{"error":"who?","code":"Strangers"}"#;
    let server = Server::start(&authority, move |count, _| match count {
        0 => json(503, r#"{"error":"going away","code":"Unavailable"}"#),
        1 => Reply::Answer(202, "", String::new()),
        _ => json(403, strangers),
    })
    .await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let message = Message { to: "milan".into(), slot: "a".into(), ..Message::default() };
    client.send_message(&message).await.expect("taken");
    let error = client.send_message(&message).await.expect_err("refused");
    let code = error.problem().and_then(sublet_wire::Problem::code);
    assert_eq!(code, Some(Code::Strangers));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| request.path == "/api/v1/messages"));
}

#[tokio::test]
async fn a_busy_broker_is_left_alone_for_as_long_as_it_asks() {
    let authority = Authority::new();
    let busy = "retry-after: 1\r\ncontent-type: application/json\r\n";
    let server = Server::start(&authority, move |count, _| match count {
        0 => Reply::Answer(429, busy, r#"{"error":"slow down","code":"RateLimited"}"#.to_owned()),
        _ => json(200, CLUSTERS),
    })
    .await;
    let begun = Instant::now();
    let client = client(&authority, std::slice::from_ref(&server.url));
    client.clusters(&Page::default()).await.expect("a list");
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_broker_that_asks_for_more_than_our_patience_is_not_waited_for() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, _| {
        Reply::Answer(503, "retry-after: 3600\r\n", String::new())
    })
    .await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let error = client.clusters(&Page::default()).await.expect_err("it is busy");
    assert!(matches!(error, Error::Problem { status: 503, .. }), "{error:?}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn who_waits_for_no_more_than_a_moment_tries_again_and_is_told_to_come_later() {
    let authority = Authority::new();
    let server = Server::start(&authority, |count, _| match count {
        0 => Reply::Answer(503, "", String::new()),
        _ => Reply::Answer(503, "retry-after: 2\r\n", String::new()),
    })
    .await;
    let options = Options::new(vec![server.url.clone()], authority.credentials("c1"));
    let client = Client::new(Options { wait_max: Duration::from_secs(1), ..options }).unwrap();
    let error = client.clusters(&Page::default()).await.expect_err("it is busy");
    assert_eq!(error.problem().and_then(|problem| problem.details.retry_after), Some(2));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_refusal_is_final_and_typed_in_either_shape() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, request| match request.path.as_str() {
        "/api/v1/advertisements/c2" => Reply::Answer(
            404,
            "content-type: text/plain; charset=utf-8\r\nx-sublet-code: NoAdvertisement\r\n",
            "Advertisement not found\n".to_owned(),
        ),
        _ => json(409, r#"{"error":"no","code":"WrongPhase","phase":"Released"}"#),
    })
    .await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let error = client.advertisement(&"c2".parse().unwrap()).await.expect_err("not there");
    assert_eq!(error.code(), Some(Code::NoAdvertisement));
    assert_eq!(error.to_string(), "Advertisement not found");
    let id = "rsv-aaaaaaaaaaaaaaaaaaaa".parse().unwrap();
    let error = client.activate(id).await.expect_err("it is over");
    assert_eq!(error.problem().unwrap().details.phase.as_deref(), Some("Released"));
    assert_eq!(server.seen().len(), 2);
    let path = "/api/v1/reservations/rsv-aaaaaaaaaaaaaaaaaaaa/activate";
    assert_eq!((server.seen()[1].method.as_str(), server.seen()[1].path.as_str()), ("POST", path));
}

#[tokio::test]
async fn tries_have_an_end_and_the_last_word_is_told() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, _| json(500, r#"{"error":"oh no"}"#)).await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let error = client.clusters(&Page::default()).await.expect_err("it fails");
    assert_eq!(error.to_string(), "oh no");
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_broker_that_does_not_answer_is_given_up_in_time() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, _| Reply::Hang).await;
    let mut options = Options::new(vec![server.url.clone()], authority.credentials("c1"));
    options.request_timeout = Duration::from_millis(50);
    options.attempts = 1;
    let client = Client::new(options).expect("a client");
    let error = client.health().await.expect_err("no answer");
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
}

#[tokio::test]
async fn who_is_not_trusted_is_told_so_and_not_asked_again() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let server = Server::start(&theirs, |_, _| json(200, CLUSTERS)).await;
    // We do not believe them.
    let error = client(&ours, std::slice::from_ref(&server.url)).health().await;
    assert!(matches!(error, Err(Error::Tls { .. })), "{error:?}");
    // They do not believe us.
    let [certificate, key, _] = ours.files("c1").map(|(_, text)| text.into_bytes());
    let [_, _, ca] = theirs.files("c1").map(|(_, text)| text.into_bytes());
    let odd = Credentials::from_pem(certificate, key, ca);
    let client = Client::new(Options::new(vec![server.url.clone()], odd)).expect("a client");
    let error = client.reserve(&ReservationRequest::default(), None).await;
    assert!(matches!(error, Err(Error::Tls { .. })), "{error:?}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn where_one_broker_is_not_trusted_another_is_tried() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let stranger = Server::start(&theirs, |_, _| json(200, CLUSTERS)).await;
    let known = Server::start(&ours, |_, _| json(200, CLUSTERS)).await;
    let client = client(&ours, &[stranger.url.clone(), known.url.clone()]);
    client.health().await.expect("the second one answers");
    assert_eq!((stranger.seen().len(), known.seen().len()), (0, 1));
}

#[tokio::test]
async fn credentials_come_from_a_folder_and_what_is_missing_is_named() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().expect("a folder");
    let error = Credentials::from_folder(folder.path()).expect_err("it is empty");
    assert!(error.to_string().ends_with("tls.crt"), "{error}");
    for (name, text) in authority.files("c1") {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let credentials = Credentials::from_folder(folder.path()).expect("three files");
    assert_eq!(format!("{credentials:?}"), "Credentials { .. }");
    let server = Server::start(&authority, |_, _| Reply::Answer(200, "", "ok".into())).await;
    let client = Client::new(Options::new(vec![format!("{}/", server.url)], credentials));
    client.expect("a client").health().await.expect("healthy");
    assert_eq!(server.seen()[0].path, "/healthz");
}

#[tokio::test]
async fn an_address_that_cannot_be_one_is_refused_at_once() {
    let authority = Authority::new();
    for url in ["http://localhost:1", "localhost:8443", "https://", "https://h/?x=1", "a b"] {
        let made = Client::new(Options::new(vec![url.to_owned()], authority.credentials("c1")));
        assert!(matches!(made, Err(Error::Url(_))), "{url}");
    }
    let none = Client::new(Options::new(Vec::new(), authority.credentials("c1")));
    assert!(matches!(none, Err(Error::NoUrl)));
}

#[tokio::test]
async fn a_list_is_asked_for_by_page_and_kind() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, _| {
        json(200, r#"{"reservations":[{"id":"rsv-1"}],"next":"rsv-1"}"#)
    })
    .await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let which = ReservationQuery {
        cluster: Some("c1".parse().unwrap()),
        role: Some("provider".to_owned()),
        phase: None,
        page: Page { limit: Some(5), after: Some("a/b".to_owned()) },
    };
    let list = client.reservations(&which).await.expect("a list");
    assert_eq!(list.next.as_deref(), Some("rsv-1"));
    let path = "/api/v1/reservations?clusterID=c1&role=provider&limit=5&after=a%2Fb";
    assert_eq!(server.seen()[0].path, path);
    // Also when nobody says how much: else it would look like a question of the older Go agents.
    let which = ReservationQuery { page: Page::default(), ..which };
    client.reservations(&which).await.expect("a list");
    let path = "/api/v1/reservations?clusterID=c1&role=provider&limit=100";
    assert_eq!(server.seen()[1].path, path);
}
