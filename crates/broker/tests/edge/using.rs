//! What runs inside of a reservation, as its provider reports it, is shown to both sides.

use serde_json::{Value, json};

use super::stage::{Stage, advertisement};

const ASK: &str = r#"{"requestedResources":{"cpu":"2","memory":"2Gi"}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn use_inside_a_reservation_is_shown_with_it_and_in_lists_of_ours_alone() {
    let stage = Stage::new().await;
    let (mut asks, mut lends) = (stage.client("asks").await, stage.client("lends").await);
    lends.advertise("lends", 8).await;
    let id = asks.post("/api/v1/reservations", ASK).await.json()["id"].clone();
    let path = format!("/api/v1/reservations/{}", id.as_str().unwrap());
    assert_eq!(asks.get(&path).await.json().get("used"), None, "nothing is reported yet");

    let mut word: Value = serde_json::from_str(&advertisement("lends", 8)).unwrap();
    let used = json!({"cpu": "500m", "memory": "1Gi"});
    let amounts = json!({"cpu": "2", "memory": "2Gi"});
    word["resources"]["allocated"] = used.clone();
    word["grants"] = json!([
        {"id": id, "generation": 1, "requesterID": "asks", "amounts": amounts, "used": used}
    ]);
    let answer = lends.post("/api/v1/advertisements", &word.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");

    for client in [&mut asks, &mut lends] {
        assert_eq!(client.get(&path).await.json()["used"], used);
        let list = client.get("/api/v1/reservations").await.json();
        assert_eq!(list["reservations"][0]["used"], used, "{list}");
    }
    // The older Go agents' list has their fields alone.
    let list = asks.get("/api/v1/reservations?clusterID=asks&role=requester").await.json();
    assert_eq!(list["reservations"][0].get("used"), None, "{list}");
}
