//! The whole table of who may do what, every cell tried over TLS.
//!
//! The expectations are written here once more, by hand and in statuses, so that a slip in the table
//! shows. Columns: the requester (on routes about a cluster: the cluster itself), the provider,
//! another cluster, an operator, and a cluster whose certificate is revoked.

use sublet_broker::authorize::TABLE;

use super::stage::{Client, Stage, advertisement};

const ASK: &str = r#"{"requestedResources":{"cpu":"1","memory":"100Mi"}}"#;
const WHY: &str = r#"{"why":"test"}"#;

/// Name, method, path, body, and the statuses for: requester, provider, other, operator.
#[rustfmt::skip]
const CELLS: &[(&str, &str, &str, &str, [u16; 4])] = &[
    ("health",           "GET",    "/healthz", "",                                    [200, 200, 200, 200]),
    ("openapi",          "GET",    "/openapi.json", "",                               [200, 200, 200, 200]),
    ("advertise",        "POST",   "/api/v1/advertisements", "ADVERTISEMENT",         [200, 403, 403, 403]),
    ("getAdvertisement", "GET",    "/api/v1/advertisements/asks", "",                 [200, 404, 404, 200]),
    ("reserve",          "POST",   "/api/v1/reservations?dryRun=true", ASK,           [200, 200, 200, 403]),
    ("listReservations", "GET",    "/api/v1/reservations?clusterID=asks", "",         [200, 403, 403, 200]),
    ("releaseByKey",     "DELETE", "/api/v1/reservations?key=never-used", "",         [204, 204, 204, 403]),
    ("getReservation",   "GET",    "/api/v1/reservations/ID", "",                     [200, 200, 404, 200]),
    ("release",          "DELETE", "/api/v1/reservations/ID", "",                     [200, 200, 404, 200]),
    ("explain",          "GET",    "/api/v1/reservations/ID/explain", "",             [200, 403, 404, 200]),
    ("renew",            "POST",   "/api/v1/reservations/ID/renew", "{\"duration\":\"1h\"}", [200, 403, 404, 200]),
    ("resize",           "POST",   "/api/v1/reservations/ID/resize", ASK,             [200, 403, 404, 200]),
    ("activate",         "POST",   "/api/v1/reservations/ID/activate", "",            [200, 403, 404, 403]),
    ("acknowledge",      "POST",   "/api/v1/reservations/ID/acknowledge", "{\"generation\":1}", [403, 200, 404, 403]),
    ("fail",             "POST",   "/api/v1/reservations/ID/fail", WHY,               [200, 200, 404, 403]),
    ("instructions",     "GET",    "/api/v1/instructions", "",                        [200, 200, 200, 403]),
    ("sendMessage",      "POST",   "/api/v1/messages", "MESSAGE",                     [202, 202, 403, 403]),
    ("listClusters",     "GET",    "/api/v1/clusters", "",                            [200, 200, 200, 200]),
    ("getCluster",       "GET",    "/api/v1/clusters/asks", "",                       [200, 404, 404, 200]),
    ("cordon",           "POST",   "/api/v1/operator/clusters/asks/cordon", WHY,      [403, 403, 403, 204]),
    ("uncordon",         "POST",   "/api/v1/operator/clusters/asks/uncordon", WHY,    [403, 403, 403, 204]),
    ("drain",            "POST",   "/api/v1/operator/clusters/asks/drain", WHY,       [403, 403, 403, 204]),
    ("cap",              "POST",   "/api/v1/operator/clusters/asks/cap", "{\"limits\":{\"cpu\":\"1\"},\"why\":\"t\"}", [403, 403, 403, 204]),
    ("declareLost",      "POST",   "/api/v1/operator/clusters/asks/lost", WHY,        [403, 403, 403, 204]),
    ("vouch",            "POST",   "/api/v1/operator/clusters/asks/vouch", WHY,       [403, 403, 403, 204]),
    ("listRevocations",  "GET",    "/api/v1/operator/revocations", "",                [403, 403, 403, 200]),
    ("revoke",           "POST",   "/api/v1/operator/revocations", "{\"serial\":\"ff\",\"why\":\"t\"}", [403, 403, 403, 204]),
    ("reinstate",        "POST",   "/api/v1/operator/reinstatements", "{\"serial\":\"ff\",\"why\":\"t\"}", [403, 403, 403, 204]),
    ("confirmClock",     "POST",   "/api/v1/operator/clock/confirm", WHY,             [403, 403, 403, 204]),
    ("candidates",       "POST",   "/api/v1/operator/candidates", "CANDIDATES",       [403, 403, 403, 200]),
];

#[test]
fn every_row_of_the_table_is_tried() {
    let rows: Vec<_> = TABLE.iter().map(|row| row.route).collect();
    let cells: Vec<_> = CELLS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(rows, cells);
}

struct Cast {
    stage: Stage,
    /// In the order of the columns.
    clients: [Client; 4],
    revoked: Client,
}

impl Cast {
    async fn new() -> Self {
        let stage = Stage::new().await;
        let clients = [
            stage.client("asks").await,
            stage.client("lends").await,
            stage.client("else").await,
            stage.operator().await,
        ];
        let mut cast = Self { revoked: stage.client("revoked").await, stage, clients };
        let shut = r#"{"clusterID":"revoked","why":"test"}"#;
        let answer = cast.clients[3].post("/api/v1/operator/revocations", shut).await;
        assert_eq!(answer.status, 204);
        cast
    }

    /// Everybody is as at the beginning, and `asks` has a reservation at `lends`.
    async fn set(&mut self) -> String {
        self.clients[0].advertise("asks", 1).await;
        for path in ["asks/uncordon", "asks/vouch"] {
            let path = format!("/api/v1/operator/clusters/{path}");
            assert_eq!(self.clients[3].post(&path, WHY).await.status, 204);
        }
        let lift = "/api/v1/operator/clusters/asks/cap";
        self.clients[3].post(lift, r#"{"limits":{},"why":"t"}"#).await;
        self.clients[1].advertise("lends", 640).await;
        let answer = self.clients[0].post("/api/v1/reservations", ASK).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let granted = answer.json();
        assert_eq!(granted["targetClusterID"], "lends");
        granted["id"].as_str().unwrap().to_owned()
    }
}

fn filled(body: &str, column: usize) -> String {
    match body {
        // Each writes to the other side; who has none, to one of the two.
        "MESSAGE" => {
            let to = if column == 0 { "lends" } else { "asks" };
            format!(r#"{{"to":"{to}","slot":"a","content":"x"}}"#)
        }
        "ADVERTISEMENT" => advertisement("asks", 1),
        "CANDIDATES" => format!(r#"{{"requesterID":"asks","request":{ASK}}}"#),
        body => body.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cell_of_the_table_is_as_it_says() {
    let mut cast = Cast::new().await;
    let mut wrong = Vec::new();
    for (name, method, path, body, statuses) in CELLS {
        for (column, expected) in statuses.iter().enumerate() {
            let id = cast.set().await;
            let path = path.replace("/ID", &format!("/{id}"));
            let client = &mut cast.clients[column];
            let answer = client.send(method, &path, Some(&filled(body, column))).await.unwrap();
            if answer.status != *expected {
                wrong.push(format!("{name} for column {column}: {expected} was {answer:?}"));
            }
        }
        let id = cast.set().await;
        let path = path.replace("/ID", &format!("/{id}"));
        let answer = cast.revoked.send(method, &path, Some("{}")).await.unwrap();
        let expected = if *name == "health" { 200 } else { 403 };
        if answer.status != expected {
            wrong.push(format!("{name} for who is revoked: {expected} was {answer:?}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    cast.stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hidden_looks_as_if_it_were_not_there() {
    let mut cast = Cast::new().await;
    let id = cast.set().await;
    let missing = "rsv-aaaaaaaaaaaaaaaaaaaa";
    for (method, path) in [
        ("GET", "/api/v1/reservations/ID"),
        ("DELETE", "/api/v1/reservations/ID"),
        ("GET", "/api/v1/reservations/ID/explain"),
        ("POST", "/api/v1/reservations/ID/activate"),
    ] {
        let client = &mut cast.clients[2];
        let hidden = client.send(method, &path.replace("ID", &id), None).await.unwrap();
        let absent = client.send(method, &path.replace("ID", missing), None).await.unwrap();
        assert_eq!((hidden.status, hidden.body), (absent.status, absent.body), "{path}");
    }
    let hidden = cast.clients[2].get("/api/v1/advertisements/asks").await;
    let absent = cast.clients[2].get("/api/v1/advertisements/nobody").await;
    assert_eq!((hidden.status, hidden.body), (absent.status, absent.body));
    cast.stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_not_is_told_who_may() {
    let mut cast = Cast::new().await;
    let id = cast.set().await;
    let mine = "/api/v1/reservations/ID".replace("ID", &id);
    let generation = r#"{"generation":1}"#;
    for (column, method, path, body, told) in [
        (3, "GET", "/api/v1/instructions", "", "operators have no cluster"),
        (3, "POST", "/api/v1/reservations", ASK, "operators have no cluster"),
        (0, "POST", "/api/v1/operator/clusters/asks/cordon", WHY, "this is for operators"),
        (0, "GET", "/api/v1/reservations?clusterID=lends", "", "itself alone"),
        (1, "GET", &format!("{mine}/explain"), "", "for the requester"),
        (1, "POST", &format!("{mine}/activate"), "", "for the requester"),
        (1, "POST", &format!("{mine}/resize"), ASK, "for the requester"),
        (0, "POST", &format!("{mine}/acknowledge"), generation, "for the provider"),
    ] {
        let answer = cast.clients[column].send(method, path, Some(body)).await.unwrap();
        assert_eq!((answer.status, answer.code()), (403, "Forbidden"), "{path}");
        let said = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(said.contains(told), "{path}: {said}");
    }
    cast.stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_show_nothing_of_others() {
    let mut cast = Cast::new().await;
    let id = cast.set().await;
    cast.clients[2].advertise("else", 1).await;
    for path in [
        "/api/v1/clusters",
        "/api/v1/clusters?limit=1000",
        "/api/v1/instructions",
        "/api/v1/reservations",
        "/api/v1/reservations?limit=1000",
        "/api/v1/reservations?role=provider",
        "/api/v1/reservations?clusterID=else&role=requester",
    ] {
        let answer = cast.clients[2].get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        for of_others in [id.as_str(), "asks", "lends", "640"] {
            assert!(!answer.body.contains(of_others), "{path} shows {of_others}: {}", answer.body);
        }
        // The same list as an operator, or as a part of it, does show them: this can fail.
        let column = if path.contains("instructions") { 1 } else { 3 };
        let shown =
            cast.clients[column].get(&path.replace("clusterID=else", "clusterID=asks")).await;
        let known = if path.contains("clusters") { "lends" } else { id.as_str() };
        assert!(shown.body.contains(known), "{path}: {}", shown.body);
    }
    let watch = cast.clients[3].get("/api/v1/instructions?watch=true").await;
    assert_eq!((watch.status, watch.code()), (403, "Forbidden"));
    cast.stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_key_of_another_cluster_releases_nothing_of_it() {
    let mut cast = Cast::new().await;
    cast.set().await;
    cast.clients[0].headers = vec![("idempotency-key", "mine".to_owned())];
    let id = cast.clients[0].post("/api/v1/reservations", ASK).await.json()["id"].clone();
    let by_key = "/api/v1/reservations?key=mine";
    assert_eq!(cast.clients[2].send("DELETE", by_key, None).await.unwrap().status, 204);
    let path = format!("/api/v1/reservations/{}", id.as_str().unwrap());
    let still = cast.clients[0].get(&path).await.json();
    assert_eq!(still["status"]["phase"], "Reserved");
    assert_eq!(cast.clients[0].send("DELETE", by_key, None).await.unwrap().status, 200);
    cast.stage.end().await;
}
