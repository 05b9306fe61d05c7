//! Bad input, multiplied: every field of every body, and every part of a path, with every value that
//! cannot be right there. What is expected follows from the kind of the field and of the value, and
//! is exact. `bad-input.txt` has what does not follow from anything.

mod bodies;
mod kind;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sublet_broker::limits::Limits;

use super::stage::{Client, Stage, quick};
use bodies::{Body, bodies};
use kind::{NO_NAME, NO_RESERVATION};

/// A body is cut at every so many bytes.
const CUT_EVERY: usize = 7;

/// One row: who, how, where, what, and the answer.
struct Row {
    who: &'static str,
    method: &'static str,
    path: String,
    body: String,
    /// What is wrong with it.
    what: String,
    status: u16,
    code: &'static str,
}

/// Written here once more, so that a slip in the table of codes shows.
fn status(code: &str) -> u16 {
    match code {
        "InvalidBody" | "InvalidField" | "InvalidParameter" => 400,
        "ClusterMismatch" => 403,
        _ => 404,
    }
}

/// Every field with every value that cannot be right there, and every body cut short.
fn of_bodies() -> Vec<Row> {
    let mut rows = Vec::new();
    for Body { path, who, right, fields } in bodies() {
        let mut add = |what: String, body: String, code: &'static str| {
            let (path, status) = (path.clone(), status(code));
            rows.push(Row { who, method: "POST", path, body, what, status, code });
        };
        let mut put = |field: &str, value: Value, code| {
            let (what, mut body) = (format!("{field} = {value}"), right.clone());
            *body.pointer_mut(field).unwrap_or_else(|| panic!("no field {field}")) = value;
            add(what, body.to_string(), code);
        };
        for (field, kind) in &fields {
            let (texts, code) = kind.texts();
            for text in texts {
                put(field, json!(text), code);
            }
            for value in kind.others() {
                put(field, value, "InvalidBody");
            }
        }
        let whole = right.to_string();
        for end in (1..whole.len()).step_by(CUT_EVERY) {
            add(format!("cut after {end} bytes"), whole[..end].to_owned(), "InvalidBody");
        }
    }
    rows
}

fn escaped(text: &str) -> String {
    let bytes: Vec<_> = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    bytes.concat()
}

/// Every part of a path, and every parameter, with every name that is none.
fn of_paths() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |who, method, path: String, code| {
        let (status, body) = (status(code), r#"{"why":"w","force":true}"#.to_owned());
        let path = format!("/api/v1/{path}");
        rows.push(Row { who, method, path, body, what: String::new(), status, code });
    };
    for name in NO_NAME {
        let name = escaped(name);
        add("c1", "GET", format!("advertisements/{name}"), "NoAdvertisement");
        add("c1", "GET", format!("clusters/{name}"), "NoSuchCluster");
        add("c1", "GET", format!("reservations?clusterID={name}"), "InvalidParameter");
        add("operator", "GET", format!("clusters/{name}"), "NoSuchCluster");
        add("operator", "GET", format!("clusters?after={name}"), "InvalidParameter");
        for act in ["cordon", "uncordon", "drain", "lost", "vouch"] {
            add("operator", "POST", format!("operator/clusters/{name}/{act}"), "InvalidParameter");
        }
    }
    for id in NO_RESERVATION {
        let id = escaped(id);
        for (method, rest) in
            [("GET", ""), ("DELETE", ""), ("GET", "/explain"), ("POST", "/activate")]
        {
            add("c1", method, format!("reservations/{id}{rest}"), "NoSuchReservation");
        }
        add("c1", "GET", format!("reservations?after={id}"), "InvalidParameter");
    }
    for limit in ["0", "-1", "1001", "x", "1e2", "1.5", "4294967296", "%20", "１", "0x10", "+"] {
        for list in ["reservations", "clusters"] {
            for who in ["c1", "operator"] {
                add(who, "GET", format!("{list}?limit={limit}"), "InvalidParameter");
            }
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_refuses_what_cannot_be_right_in_it() {
    let (rate_per_cluster, message_rate_per_cluster) = (1_000_000, 1_000_000);
    let limits = Limits { rate_per_cluster, message_rate_per_cluster, ..quick() };
    let stage = Stage::with(limits, |_| {}).await;
    let mut witness = stage.client("c2").await;
    witness.advertise("c2", 8).await;
    stage.client("c1").await.advertise("c1", 1).await;
    let (mut rows, mut wrong) = (of_bodies(), Vec::new());
    rows.extend(of_paths());
    let mut clients: BTreeMap<&str, Client> = BTreeMap::new();
    clients.insert("c1", stage.client("c1").await);
    clients.insert("operator", stage.operator().await);
    let before = witness.get("/api/v1/advertisements/c2").await.json()["resources"].clone();
    for (number, row) in rows.iter().enumerate() {
        let client = clients.get_mut(row.who).unwrap();
        let answer = client.send_bytes(row.method, &row.path, row.body.as_bytes()).await.unwrap();
        if (answer.status, answer.code()) != (row.status, row.code) {
            let Row { method, path, what, code, .. } = row;
            let found = (answer.status, answer.code());
            wrong.push(format!("{method} {path} {what}: {code} was {found:?} {}", answer.body));
        }
        if number % 50 == 0 {
            assert_eq!(witness.get("/api/v1/clusters").await.status, 200, "it no longer serves");
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{} of {}", wrong.len(), rows.len());
    assert!(rows.len() > 3000, "{}", rows.len());
    let after = witness.get("/api/v1/advertisements/c2").await.json()["resources"].clone();
    assert_eq!(after, before);
    let revoked = clients.get_mut("operator").unwrap().get("/api/v1/operator/revocations").await;
    assert_eq!(revoked.json()["revocations"], json!([]));
    stage.end().await;
}
