//! Bad input: every row of `bad-input.txt` has its exact status and code, and after each the broker
//! still serves.

use std::time::Duration;

use super::stage::{Client, Stage};

const RESERVE: &str = "/api/v1/reservations";

fn ask(cpu: &str, memory: &str) -> String {
    format!(r#"{{"requestedResources":{{"cpu":"{cpu}","memory":"{memory}"}}}}"#)
}

fn with(member: &str) -> String {
    format!(r#"{{"requestedResources":{{"cpu":"1","memory":"1Gi"}},{member}}}"#)
}

/// One line of the table.
struct Row {
    line: usize,
    who: &'static str,
    header: Option<(&'static str, String)>,
    status: u16,
    code: &'static str,
    method: &'static str,
    path: String,
    body: Vec<u8>,
}

/// Replaces `<3*ab>` and `<xff>`.
fn expanded(text: &str) -> Vec<u8> {
    let Some((before, rest)) = text.split_once('<') else { return text.as_bytes().to_vec() };
    let (inside, after) = rest.split_once('>').expect("a bracket is closed");
    let mut bytes = before.as_bytes().to_vec();
    match inside.split_once('*') {
        Some((times, what)) => bytes.extend(what.repeat(times.parse().unwrap()).as_bytes()),
        None => bytes.push(u8::from_str_radix(inside.strip_prefix('x').unwrap(), 16).unwrap()),
    }
    bytes.extend(expanded(after));
    bytes
}

fn text(text: &str) -> String {
    String::from_utf8(expanded(text)).unwrap()
}

fn table() -> Vec<Row> {
    let (mut rows, mut who, mut header) = (Vec::new(), "c1", None);
    for (line, written) in (1..).zip(include_str!("bad-input.txt").lines()) {
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        if let Some(name) = written.strip_prefix("as ") {
            (who, header) = (name, None);
            continue;
        }
        if let Some((name, value)) = written.strip_prefix("with ").and_then(|w| w.split_once(": "))
        {
            header = Some((name, text(value)));
            continue;
        }
        let mut rest = written;
        let mut word = || {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after.trim_start();
            word
        };
        let (status, code, method, path) = (word(), word(), word(), word());
        rows.push(Row {
            line,
            who,
            header: header.clone(),
            status: status.parse().unwrap(),
            code,
            method,
            path: text(path),
            body: expanded(rest),
        });
    }
    rows
}

/// Sends a row on a connection that may be closed by it.
async fn play(stage: &Stage, row: &Row) -> Option<(u16, String)> {
    let mut client = match row.who {
        "operator" => stage.operator().await,
        cluster => stage.client(cluster).await,
    };
    client.headers.extend(row.header.clone());
    let answer = client.send_bytes(row.method, &row.path, &row.body);
    let answer = tokio::time::timeout(Duration::from_secs(10), answer).await.ok()?.ok()?;
    Some((answer.status, answer.code().to_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_request_has_its_status_and_its_code_and_harms_nobody() {
    let stage = Stage::new().await;
    let mut witness = stage.client("c2").await;
    witness.advertise("c2", 8).await;
    let (rows, mut wrong) = (table(), Vec::new());
    let mut held = serde_json::Value::Null;
    for row in &rows {
        let found = play(&stage, row).await;
        if found != Some((row.status, row.code.to_owned())) {
            wrong.push(format!("bad-input.txt:{}: {found:?}", row.line));
        }
        let seen = witness.get("/api/v1/advertisements/c2").await;
        assert_eq!(seen.status, 200, "line {}: the broker no longer serves", row.line);
        let now = seen.json()["resources"]["reserved"].clone();
        if now != held {
            wrong.push(format!("bad-input.txt:{}: changed something", row.line));
            held = now;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(rows.len() > 300, "{}", rows.len());
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
