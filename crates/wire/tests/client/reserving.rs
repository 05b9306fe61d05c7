//! Reserving: one key however often it is tried, and nothing held that nobody knows of.

use std::collections::BTreeSet;

use sublet_wire::Code;
use sublet_wire::client::Error;
use sublet_wire::v1::{Quantities, ReservationRequest};

use super::authority::Authority;
use super::client;
use super::server::{Reply, Seen, Server, json};

const GRANTED: &str = r#"{"id":"rsv-aaaaaaaaaaaaaaaaaaaa","requesterID":"c1",
    "targetClusterID":"c2","requestedResources":{"cpu":"1","memory":"1Gi"},
    "status":{"phase":"Reserved","message":"m"},"createdAt":"2026-11-15T22:11:17Z"}"#;

fn request() -> ReservationRequest {
    let one = Quantities { cpu: "1".to_owned(), memory: "1Gi".to_owned(), ..Quantities::default() };
    ReservationRequest { requested_resources: one, ..ReservationRequest::default() }
}

fn keys(seen: &[Seen]) -> BTreeSet<String> {
    seen.iter().filter_map(|request| request.key().map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_request_that_was_cut_is_repeated_under_the_same_key() {
    let authority = Authority::new();
    let server = Server::start(&authority, |count, _| match count {
        0 => Reply::Cut,
        _ => json(201, GRANTED),
    })
    .await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let reservation = client.reserve(&request(), None).await.expect("granted");
    assert_eq!(reservation.target_cluster_id, "c2");
    let seen = server.seen();
    assert_eq!((seen.len(), keys(&seen).len()), (2, 1));
    assert_eq!(seen[0].body, seen[1].body);
    client.reserve(&request(), None).await.expect("granted");
    assert_eq!(keys(&server.seen()).len(), 2);
    client.reserve(&request(), Some("mine".parse().unwrap())).await.expect("granted");
    assert!(keys(&server.seen()).contains("mine"));
}

#[tokio::test]
async fn when_the_outcome_stays_unknown_the_key_is_released() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, request| match request.method.as_str() {
        "DELETE" => Reply::Answer(204, "", String::new()),
        _ => Reply::Cut,
    })
    .await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let error = client.reserve(&request(), None).await.expect_err("nothing was answered");
    assert!(matches!(error, Error::Released(_)), "{error:?}");
    let seen = server.seen();
    let (last, tried) = seen.split_last().expect("requests");
    let key = keys(tried).into_iter().next().expect("a key");
    assert_eq!(keys(tried).len(), 1);
    assert_eq!(last.path, format!("/api/v1/reservations?key={key}"));
}

#[tokio::test]
async fn a_refusal_after_a_request_that_may_still_be_on_its_way_releases_the_key_too() {
    let authority = Authority::new();
    let server = Server::start(&authority, |count, request| match request.method.as_str() {
        "DELETE" => Reply::Answer(204, "", String::new()),
        _ if count == 0 => Reply::Cut,
        _ => json(409, r#"{"error":"full","code":"NoSuitableCluster"}"#),
    })
    .await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let error = client.reserve(&request(), None).await.expect_err("nobody fits");
    assert!(matches!(error, Error::Released(_)), "{error:?}");
    assert_eq!(error.problem().unwrap().code(), Some(Code::NoSuitableCluster));
}

#[tokio::test]
async fn an_error_that_is_not_the_brokers_or_not_sure_leaves_doubt_and_releases_the_key() {
    let authority = Authority::new();
    let proxy = Reply::Answer(502, "content-type: text/html\r\n", "<h1>bad</h1>".to_owned());
    let unknown = json(503, r#"{"error":"not known","code":"OutcomeUnknown"}"#);
    for said in [proxy, unknown] {
        let server = Server::start(&authority, move |_, request| match request.method.as_str() {
            "DELETE" => json(200, GRANTED),
            _ => said.clone(),
        })
        .await;
        let client = client(&authority, std::slice::from_ref(&server.url));
        let error = client.reserve(&request(), None).await.expect_err("nothing is known");
        assert!(matches!(error, Error::Released(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_plain_refusal_releases_nothing() {
    let authority = Authority::new();
    let refused = r#"{"error":"No suitable cluster found: no clusters available",
        "code":"NoSuitableCluster","explanation":{"text":"t","refused":{"clusters":2}}}"#;
    let server = Server::start(&authority, move |_, _| json(409, refused)).await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let error = client.reserve(&request(), None).await.expect_err("nobody fits");
    assert_eq!(error.code(), Some(Code::NoSuitableCluster));
    let why = error.problem().unwrap().details.explanation.clone().unwrap();
    assert_eq!(why.refused.unwrap().clusters, 2);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn when_not_even_the_release_gets_through_the_key_is_told() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, _| Reply::Cut).await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let error = client.reserve(&request(), None).await.expect_err("nothing was answered");
    let sent = keys(&server.seen()).into_iter().next().expect("a key");
    assert!(matches!(&error, Error::InDoubt { key, .. } if key.as_str() == sent), "{error:?}");
}

#[tokio::test]
async fn a_key_that_its_owner_remembers_is_not_released() {
    let authority = Authority::new();
    let server = Server::start(&authority, |_, _| Reply::Cut).await;
    let client = client(&authority, std::slice::from_ref(&server.url));
    let key = "uid".parse().unwrap();
    let error = client.reserve_under(&request(), &key).await.expect_err("nothing was answered");
    assert!(matches!(error, Error::InDoubt { .. }), "{error:?}");
    assert!(server.seen().iter().all(|request| request.method == "POST"));
}
