//! What kept two clusters apart is told to both, and to whoever asks why.

use super::stage::Stage;

const ASK: &str = r#"{"requestedResources":{"cpu":"2","memory":"2Gi"}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_one_side_gave_up_is_told_to_both() {
    let stage = Stage::new().await;
    let (mut asks, mut lends) = (stage.client("asks").await, stage.client("lends").await);
    lends.advertise("lends", 8).await;
    let long = "x".repeat(2000);
    let tales = [
        (
            r#"{"obstacle":"KeyNotPinned","why":"another\nkey"}"#,
            Some("KeyNotPinned"),
            ": another key",
        ),
        (r#"{"why":"no way"}"#, None, "joined: no way"),
        (&format!(r#"{{"obstacle":"{long}","why":"{long}"}}"#), None, &long[..512]),
        ("", None, "The clusters could not be joined"),
    ];
    for (body, obstacle, said) in tales {
        let id = asks.post("/api/v1/reservations", ASK).await.json()["id"].clone();
        let path = format!("/api/v1/reservations/{}", id.as_str().unwrap());
        let answer = lends.post(&format!("{path}/fail"), body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        for client in [&mut asks, &mut lends] {
            let status = client.get(&path).await.json()["status"].clone();
            assert_eq!(status["reason"], "PeeringFailed");
            assert_eq!(status["obstacle"].as_str(), obstacle);
            let message = status["message"].as_str().unwrap();
            assert!(message.contains(said) && message.len() < 800, "{message}");
        }
    }
}

/// What it is told by its own API server has names and addresses of its cluster in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_requester_found_at_home_is_told_to_its_provider_in_a_word() {
    let stage = Stage::new().await;
    let (mut asks, mut lends) = (stage.client("asks").await, stage.client("lends").await);
    lends.advertise("lends", 8).await;
    for (body, said) in [
        (r#"{"obstacle":"Forbidden","why":"User inner cannot list"}"#, "joined: Forbidden"),
        (r#"{"why":"User inner cannot list"}"#, "The clusters could not be joined"),
    ] {
        let id = asks.post("/api/v1/reservations", ASK).await.json()["id"].clone();
        let path = format!("/api/v1/reservations/{}", id.as_str().unwrap());
        asks.post(&format!("{path}/fail"), body).await;
        let own = asks.get(&path).await.json()["status"]["message"].clone();
        assert!(own.as_str().unwrap().contains("User inner cannot list"), "{own}");
        for path in [path.clone(), format!("{path}/explain"), "/api/v1/reservations".to_owned()] {
            let told = lends.get(&path).await;
            let text = told.json().to_string();
            assert!(!text.contains("inner"), "{path}: {told:?}");
            assert!(path.ends_with("explain") || text.contains(said), "{path}: {told:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_to_have_it_explained_is_told_why_it_ended() {
    let stage = Stage::new().await;
    let (mut asks, mut lends) = (stage.client("asks").await, stage.client("lends").await);
    lends.advertise("lends", 8).await;
    let id = asks.post("/api/v1/reservations", ASK).await.json()["id"].clone();
    let path = format!("/api/v1/reservations/{}", id.as_str().unwrap());
    asks.post(&format!("{path}/fail"), r#"{"obstacle":"NoLiqo","why":"install it"}"#).await;
    lends.post(&format!("{path}/acknowledge"), r#"{"generation":2}"#).await;
    let answer = asks.get(&format!("{path}/explain")).await;
    let said = answer.json().to_string();
    assert!(said.contains("NoLiqo: install it"), "{answer:?}");
}
