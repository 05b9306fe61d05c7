//! Of a cluster's advertisements the one with the highest number is kept, and the answer says which.

use serde_json::{Value, json};

use super::stage::{Client, Stage, advertisement};

/// Advertises so many cores under a number, and says how many are kept under which.
async fn told(client: &mut Client, cores: u32, incarnation: u64, sequence: u64) -> (Value, Value) {
    let mut word: Value = serde_json::from_str(&advertisement("lends", cores)).unwrap();
    word["number"] = json!({ "incarnation": incarnation, "sequence": sequence });
    let answer = client.post("/api/v1/advertisements", &word.to_string()).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let kept = answer.json()["advertisement"].clone();
    (kept["resources"]["capacity"]["cpu"].clone(), kept["number"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_with_a_lower_number_is_told_the_one_that_is_kept() {
    let stage = Stage::new().await;
    let mut lends = stage.client("lends").await;
    let high = json!({ "incarnation": 200, "sequence": 7 });
    assert_eq!(told(&mut lends, 8, 200, 7).await, (json!("8"), high.clone()));
    assert_eq!(told(&mut lends, 9, 100, 1).await, (json!("8"), high.clone()));
    assert_eq!(told(&mut lends, 9, 200, 6).await, (json!("8"), high));
    let higher = json!({ "incarnation": 201, "sequence": 1 });
    assert_eq!(told(&mut lends, 9, 201, 1).await, (json!("9"), higher));
    // A Go agent that was replaced is told what is kept; it goes by the status alone.
    let kept = lends.advertise("lends", 10).await.json();
    assert_eq!(kept["advertisement"]["resources"]["capacity"]["cpu"], "9");
    // One that is alone has no numbers, is always heard, and is told none.
    let mut go = stage.client("go").await;
    for cores in [10, 9] {
        let answer = go.advertise("go", cores).await.json();
        let capacity = &answer["advertisement"]["resources"]["capacity"];
        assert_eq!(capacity["cpu"], cores.to_string());
        assert_eq!(answer["advertisement"].get("number"), None);
    }
}
