//! What agents tell each other: brought over open streams, kept a while for who comes later, bounded,
//! only between clusters that have dealt with each other, and never in the log.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sublet_broker::limits::Limits;
use sublet_core::id::Revision;
use sublet_log::{Log, Memory};

use super::stage::{Answer, Client, Lines, Stage, quick, until};

const WATCH: &str = "/api/v1/instructions?watch=true";
const ASK: &str = r#"{"requestedResources":{"cpu":"1","memory":"1Gi"}}"#;
const PATH: &str = "/api/v1/messages";

/// `asks` has a reservation at `lends`.
async fn dealt(stage: &Stage) -> (Client, Client, String) {
    let (mut asks, mut lends) = (stage.client("asks").await, stage.client("lends").await);
    lends.advertise("lends", 8).await;
    let answer = asks.post("/api/v1/reservations", ASK).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    (asks, lends, id)
}

async fn try_send(client: &mut Client, to: &str, slot: &str, content: &str) -> Answer {
    let body = json!({"to": to, "slot": slot, "content": content, "ttl": "1m"});
    client.post(PATH, &body.to_string()).await
}

async fn send(client: &mut Client, to: &str, slot: &str, content: &str) {
    let answer = try_send(client, to, slot, content).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""), "{answer:?}");
}

/// A stream of this cluster, and the connection that it lives on.
async fn listens(stage: &Stage, cluster: &str) -> (Client, Lines) {
    let mut client = stage.client(cluster).await;
    let stream = client.open(WATCH).await;
    (client, stream)
}

/// The next message on a stream, as what it says; whatever else comes is passed over.
async fn told(stream: &mut Lines) -> String {
    loop {
        let line = stream.next().await.expect("the stream goes on");
        if line["type"] == "MESSAGE" {
            assert_eq!(line.get("cursor"), None, "{line}");
            return line["message"]["content"].as_str().unwrap().to_owned();
        }
    }
}

async fn page(stage: &Stage) -> String {
    stage.plain(stage.broker.addresses().metrics, "/metrics").await.body
}

/// A figure of the metrics.
async fn figure(stage: &Stage, name: &str) -> u64 {
    let page = page(stage).await;
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("{name} is not in {page}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_comes_over_an_open_stream_with_its_true_sender() {
    let stage = Stage::new().await;
    let (mut asks, mut lends, _) = dealt(&stage).await;
    let (_line, mut stream) = listens(&stage, "lends").await;
    assert_eq!(stream.next().await.unwrap()["type"], "RESET");
    send(&mut asks, "lends", "first", "one").await;
    let line = loop {
        match stream.news().await.unwrap() {
            line if line["type"] == "MESSAGE" => break line,
            _ => {}
        }
    };
    let message = json!({"from": "asks", "to": "lends", "slot": "first", "content": "one"});
    assert_eq!(line, json!({"type": "MESSAGE", "message": message}));
    send(&mut asks, "lends", "second", "two").await;
    send(&mut asks, "lends", "first", "three").await;
    assert_eq!([told(&mut stream).await, told(&mut stream).await], ["two", "three"]);
    // The other way as well, though only one of them lends.
    let (_line, mut back) = listens(&stage, "asks").await;
    send(&mut lends, "asks", "first", "four").await;
    assert_eq!(told(&mut back).await, "four");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_comes_after_the_first_list_in_order_and_newest_only() {
    let stage = Stage::new().await;
    let (mut asks, _, id) = dealt(&stage).await;
    for (slot, content) in [("a", "old"), ("b", "one"), ("c", "two"), ("a", "three")] {
        send(&mut asks, "lends", slot, content).await;
    }
    // Also for a second stream: one that broke in the middle must not have cost anything.
    for _ in 0..2 {
        let (_line, mut stream) = listens(&stage, "lends").await;
        let mut lines = Vec::new();
        while lines.len() < 6 {
            lines.push(stream.next().await.unwrap());
        }
        let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds[..3], ["RESET", "INSTRUCTION", "BOOKMARK"]);
        assert_eq!(lines[1]["instruction"]["reservationID"], id.as_str());
        let said = |line: &Value| line["message"]["content"].as_str().unwrap().to_owned();
        assert_eq!([said(&lines[3]), said(&lines[4]), said(&lines[5])], ["one", "two", "three"]);
    }
    assert_eq!(figure(&stage, "sublet_broker_messages").await, 3);
    assert_eq!(figure(&stage, "sublet_broker_messages_delivered_total").await, 6);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_forgotten_after_its_time() {
    let stage = Stage::new().await;
    let (mut asks, ..) = dealt(&stage).await;
    let brief = json!({"to": "lends", "slot": "brief", "content": "gone", "ttl": "1ms"});
    assert_eq!(asks.post(PATH, &brief.to_string()).await.status, 202);
    send(&mut asks, "lends", "later", "still there").await;
    let first_is_the_later = || async {
        let (_line, mut stream) = listens(&stage, "lends").await;
        told(&mut stream).await == "still there"
    };
    until("the brief one is forgotten", first_is_the_later).await;
    let one_is_kept = || async { figure(&stage, "sublet_broker_messages").await == 1 };
    until("nothing is left of it", one_is_kept).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_refused_and_learn_no_names() {
    let stage = Stage::new().await;
    let (mut asks, ..) = dealt(&stage).await;
    let mut other = stage.client("other").await;
    other.advertise("other", 1).await;
    for (from, to) in [("other", "lends"), ("asks", "other"), ("asks", "nobody"), ("asks", "asks")]
    {
        let client = if from == "asks" { &mut asks } else { &mut other };
        let answer = try_send(client, to, "a", "x").await;
        assert_eq!((answer.status, answer.code()), (403, "Strangers"), "{answer:?}");
        let said = answer.json()["error"].as_str().unwrap().replace(to, "NAME");
        assert!(said.contains("shares no reservation with NAME"), "{said}");
    }
    let posing = json!({"from": "lends", "to": "asks", "slot": "a", "content": "x"});
    let answer = other.post(PATH, &posing.to_string()).await;
    assert_eq!((answer.status, answer.code()), (403, "ClusterMismatch"));
    assert_eq!(figure(&stage, "sublet_broker_messages").await, 0);
    let denied = "sublet_broker_denied_total{reason=\"Strangers\"}";
    assert_eq!(figure(&stage, denied).await, 4);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_end_there_is_something_to_say_until_it_is_forgotten() {
    let stage = Stage::with(quick(), |config| {
        let path = config.data_dir.join("policy.toml");
        std::fs::write(&path, "key_retention = \"2s\"\nrecovery_grace = \"0s\"\n").unwrap();
        config.policy = Some(path);
    })
    .await;
    let (mut asks, _, id) = dealt(&stage).await;
    let path = format!("/api/v1/reservations/{id}");
    // An old provider confirms nothing, so it is over at once.
    let ended = asks.send("DELETE", &path, None).await.unwrap();
    assert_eq!((ended.status, &ended.json()["status"]["phase"]), (200, &"Released".into()));
    send(&mut asks, "lends", "unlink", "it is over").await;
    let asks = tokio::sync::Mutex::new(asks);
    let forgotten = || async {
        let answer = try_send(&mut *asks.lock().await, "lends", "unlink", "x").await;
        answer.code() == "Strangers"
    };
    until("the reservation is forgotten", forgotten).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bound_has_its_clear_answer() {
    let limits = Limits { messages_per_pair: 2, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let (mut asks, ..) = dealt(&stage).await;
    let most = "x".repeat(16 << 10);
    send(&mut asks, "lends", "a", &most).await;
    let answer = try_send(&mut asks, "lends", "b", &format!("{most}x")).await;
    assert_eq!((answer.status, answer.code()), (413, "BodyTooLarge"));
    assert_eq!(answer.json()["limit"], "16384");
    let answer = try_send(&mut asks, "lends", "b", &"x".repeat(80 << 10)).await;
    assert_eq!((answer.status, answer.code()), (413, "BodyTooLarge"));
    send(&mut asks, "lends", "b", "x").await;
    let answer = try_send(&mut asks, "lends", "c", "x").await;
    assert_eq!((answer.status, answer.code()), (429, "TooManyMessages"));
    assert!(!answer.header("retry-after").is_empty());
    send(&mut asks, "lends", "b", "a newer one needs no place").await;
    for (field, value) in [
        ("slot", json!("x".repeat(33))),
        ("slot", json!("Link 1")),
        ("ttl", json!("121s")),
        ("content", json!("")),
        ("content", json!("a\nb")),
        ("to", json!("../x")),
    ] {
        let mut body = json!({"to": "lends", "slot": "a", "content": "x", "ttl": "1m"});
        body[field] = value;
        let answer = asks.post(PATH, &body.to_string()).await;
        assert_eq!((answer.status, answer.code()), (400, "InvalidField"), "{body}");
        assert_eq!(answer.json()["field"], field);
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_messages_takes_nobodys_turn_and_no_turn_of_its_heartbeats() {
    let stage = Stage::with(Limits { message_rate_per_cluster: 2, ..quick() }, |_| {}).await;
    let (mut asks, mut lends, _) = dealt(&stage).await;
    let mut limited = 0;
    for _ in 0..20 {
        let answer = try_send(&mut asks, "lends", "a", "x").await;
        match (answer.status, answer.code()) {
            (202, _) => {}
            (429, "RateLimited") => limited += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(limited >= 10, "{limited}");
    asks.advertise("asks", 1).await;
    send(&mut lends, "asks", "a", "x").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_message_is_in_the_log_and_a_restart_loses_it_until_it_is_sent_again() {
    let log = Arc::new(Memory::default());
    let home: Arc<dyn Log> = Arc::clone(&log) as Arc<dyn Log>;
    let stage = Stage::on(Arc::clone(&home), quick(), |_| {}).await;
    let (mut asks, ..) = dealt(&stage).await;
    send(&mut asks, "lends", "secret-slot", "for-your-eyes").await;
    stage.end().await;
    let stage = Stage::on(home, quick(), |_| {}).await;
    let (_line, mut stream) = listens(&stage, "lends").await;
    assert_eq!(figure(&stage, "sublet_broker_messages").await, 0);
    let mut asks = stage.client("asks").await;
    send(&mut asks, "lends", "secret-slot", "for-your-eyes-again").await;
    assert_eq!(told(&mut stream).await, "for-your-eyes-again");
    stage.end().await;
    let records = log.read(Revision(0), 1000).unwrap();
    assert!(records.iter().any(|record| record.text().contains("asks")), "this can fail");
    for record in &records {
        for word in ["for-your-eyes", "secret-slot"] {
            assert!(!record.text().contains(word), "{}", record.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_holds_no_memory_and_gets_the_newest_in_the_end() {
    let limits = Limits { message_rate_per_cluster: 1_000_000, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let (mut asks, ..) = dealt(&stage).await;
    let (_line, mut stream) = listens(&stage, "lends").await;
    // More than all buffers between the two hold.
    let (count, body) = (2000, "x".repeat(16_000));
    for number in 0..count {
        send(&mut asks, "lends", "a", &format!("{number}-{body}")).await;
    }
    assert_eq!(figure(&stage, "sublet_broker_messages").await, 1);
    assert!(figure(&stage, "sublet_broker_message_bytes").await < 20_000);
    let delivered = figure(&stage, "sublet_broker_messages_delivered_total").await;
    assert!(delivered < count, "{delivered} were written for somebody who reads nothing");
    let (last, mut before) = (format!("{}-", count - 1), None);
    loop {
        let content = told(&mut stream).await;
        let number: u64 = content.split('-').next().unwrap().parse().unwrap();
        assert!(before.is_none_or(|before| number > before), "{number} after {before:?}");
        before = Some(number);
        if content.starts_with(&last) {
            break;
        }
    }
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_ever_sees_a_message() {
    let stage = Stage::new().await;
    let (mut asks, mut lends, _) = dealt(&stage).await;
    let mut others = Vec::new();
    for name in ["other", "asks", "lend", "lends-too"] {
        others.push((name, listens(&stage, name).await));
    }
    for number in 0..20 {
        send(&mut asks, "lends", "a", &format!("{number}")).await;
    }
    // What is for `asks` comes after all of them, and it is the first that `asks` sees.
    send(&mut lends, "asks", "a", "for asks").await;
    for (name, (_, stream)) in &mut others {
        if *name == "asks" {
            assert_eq!(told(stream).await, "for asks");
        }
    }
    assert_eq!(figure(&stage, "sublet_broker_messages_delivered_total").await, 1);
    stage.end().await;
    for (name, (_, stream)) in &mut others {
        while let Some(line) = stream.next().await {
            assert_ne!(line["type"], "MESSAGE", "{name}: {line}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_revoked_neither_sends_nor_receives() {
    let stage = Stage::new().await;
    let (mut asks, mut lends, _) = dealt(&stage).await;
    let (_line, mut stream) = listens(&stage, "asks").await;
    send(&mut asks, "lends", "a", "sent while it was believed").await;
    let mut operator = stage.operator().await;
    let shut = r#"{"clusterID":"asks","why":"stolen"}"#;
    assert_eq!(operator.post("/api/v1/operator/revocations", shut).await.status, 204);
    let answer = try_send(&mut asks, "lends", "a", "x").await;
    assert_eq!((answer.status, answer.code()), (403, "CertificateRevoked"));
    // It hears nothing any more, and nothing of it is passed on, not even what was sent before.
    send(&mut lends, "asks", "a", "not for its eyes").await;
    while let Some(line) = stream.next().await {
        assert_ne!(line["type"], "MESSAGE", "{line}");
    }
    let mut other = stage.client("friend").await;
    assert_eq!(other.post("/api/v1/reservations", ASK).await.status, 201);
    send(&mut other, "lends", "a", "from a friend").await;
    let (_line, mut stream) = listens(&stage, "lends").await;
    assert_eq!(told(&mut stream).await, "from a friend");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_tells_messages_still_shows_that_it_lives_and_resumes_where_it_was() {
    let stage =
        Stage::with(Limits { keep_alive: Duration::from_millis(50), ..quick() }, |_| {}).await;
    let (mut asks, ..) = dealt(&stage).await;
    let (_line, mut stream) = listens(&stage, "lends").await;
    let mut cursor = String::new();
    while cursor.is_empty() || cursor == "0.0" {
        let line = stream.next().await.unwrap();
        cursor = line["cursor"].as_str().unwrap_or_default().to_owned();
    }
    send(&mut asks, "lends", "a", "x").await;
    assert_eq!(told(&mut stream).await, "x");
    let after = stream.next().await.unwrap();
    assert_eq!((&after["type"], &after["cursor"]), (&"BOOKMARK".into(), &cursor.as_str().into()));
    let mut lends = stage.client("lends").await;
    let mut again = lends.open(&format!("{WATCH}&after={cursor}")).await;
    assert_ne!(again.next().await.unwrap()["type"], "RESET", "it goes on where it was");
    assert_eq!(told(&mut again).await, "x");
    stage.end().await;
}
