//! Everything that was recorded from the running Go system, played against our broker: the same
//! status and a body that an old agent reads the same way. Where we differ, we mean to, and it is
//! written down here one by one.

use std::collections::BTreeMap;

use serde_json::Value;
use sublet_core::quantity::Quantity;

use super::stage::{Answer, Client, Stage, Wish};

const EXCHANGES: &str = include_str!("../../../wire/tests/fixtures/go-broker-exchanges.jsonl");
const AGENT: &str = include_str!("../../../wire/tests/fixtures/go-agent-requests.jsonl");

/// What we answer instead, by the note of the exchange: status, code, shape, and why.
#[rustfmt::skip]
const DIFFERENCES: &[(&str, u16, &str, &str, &str)] = &[
    ("read another's advertisement", 404, "NoAdvertisement", PLAIN, "a cluster sees its own objects only"),
    ("HEAD on a GET route", 404, "NoAdvertisement", PLAIN, "it was another's advertisement"),
    ("reservation with gpu and storage (both ignored there)", 409, "NoSuitableCluster", JSON, "both are honoured: no cluster has that storage"),
    ("bad quantity in an advertisement", 400, "InvalidField", PLAIN, "what is wrong is 400, never 500"),
    ("missing timestamp", 400, "InvalidField", PLAIN, "what is wrong is 400, never 500"),
    ("null where an object is expected", 400, "InvalidField", PLAIN, "what is wrong is 400, never 500"),
    ("negative duration", 400, "InvalidField", JSON, "it would be over before it begins"),
    ("duration 0", 400, "InvalidField", JSON, "it would be over at once"),
    ("duration 0s", 400, "InvalidField", JSON, "it would be over at once"),
    ("wrong method", 400, "InvalidParameter", JSON, "DELETE is a route of ours, and needs the key to release"),
];
const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// Chosen by them and by us: c3 says that it has gpus and does not say how many are in use, of which
/// the Go broker makes a nil dereference, so that c3 never lends there. Here it does, and it has more
/// headroom.
const CHOSEN: [&str; 2] = ["c2", "c3"];

/// The reservation with the gpu and the storage that nobody has: we refused it.
fn was_refused(reservation: &Value) -> bool {
    reservation["requestedResources"]["cpu"] == "1500m"
}

/// Paths in bodies whose values differ by design: ids and times are ours, `available` is computed by
/// us and not copied from the agent, `reserved` has no double lock, and messages say more.
fn is_ours_to_say(path: &str) -> bool {
    let member = path.rsplit('.').next().unwrap_or_default();
    let time = ["timestamp", "createdAt", "reservedAt", "expiresAt"].contains(&member);
    let amounts = path.contains("resources.available.") || path.contains("resources.reserved.");
    time || amounts || ["id", "message"].contains(&member)
}

/// Every member that the Go broker sends is there, of the same type, and has the same value unless
/// it is ours to say.
fn compare(path: &str, theirs: &Value, ours: &Value, wrong: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            for (name, value) in theirs {
                let path = format!("{path}.{name}");
                match ours.get(name) {
                    Some(found) => compare(&path, value, found, wrong),
                    None => wrong.push(format!("{path} is missing")),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            for value in theirs.iter().filter(|value| !was_refused(value)) {
                let amounts = &value["requestedResources"];
                match ours.iter().find(|found| found["requestedResources"] == *amounts) {
                    Some(found) => compare(&format!("{path}[]"), value, found, wrong),
                    None => wrong.push(format!("{path}: nothing for {amounts}")),
                }
            }
            let kept = theirs.iter().filter(|value| !was_refused(value)).count();
            if ours.len() != kept {
                wrong.push(format!("{path}: {kept} became {}", ours.len()));
            }
        }
        (Value::String(theirs), Value::String(ours))
            if path == ".targetClusterID" && [theirs.as_str(), ours] == CHOSEN => {}
        (Value::String(_), Value::String(_)) if is_ours_to_say(path) => {}
        (theirs, ours) if theirs == ours => {}
        (theirs, ours) => wrong.push(format!("{path}: {theirs} became {ours}")),
    }
}

/// What was granted, by provider, as the answers said: what `reserved` must be.
#[derive(Default)]
struct Granted(Vec<(String, Value)>);

impl Granted {
    /// An answer to a request for capacity.
    fn note(&mut self, answer: &Answer) {
        if answer.status == 201 {
            let granted = answer.json();
            let provider = granted["targetClusterID"].as_str().unwrap().to_owned();
            self.0.push((provider, granted["requestedResources"].clone()));
        }
    }

    /// `reserved` is ours to say too: the sum of what was granted on this cluster, none of which has
    /// ended, and nothing of what was refused.
    fn check(&self, ours: &Value, wrong: &mut Vec<String>) {
        let advertisement = ours.get("advertisement").unwrap_or(ours);
        let Some(resources) = advertisement.get("resources") else { return };
        for name in ["cpu", "memory", "gpu", "storage"] {
            let amount = |of: &Value| -> Quantity {
                of[name].as_str().filter(|text| !text.is_empty()).unwrap_or("0").parse().unwrap()
            };
            let here =
                self.0.iter().filter(|(provider, _)| advertisement["clusterID"] == **provider);
            let said = amount(&resources["reserved"]);
            let more = here.fold(said.clone(), |left, (_, granted)| left.minus(&amount(granted)));
            if !more.is_zero() {
                wrong.push(format!("{name}: {said} is reserved, {more} more than was granted"));
            }
        }
    }
}

/// `available` is ours to say, so it is computed once more from what stands beside it: what can be
/// allocated, without what is allocated and what is held for others.
fn check_available(ours: &Value, wrong: &mut Vec<String>) {
    let advertisement = ours.get("advertisement").unwrap_or(ours);
    let Some(resources) = advertisement.get("resources") else { return };
    let Some(available) = resources["available"].as_object() else {
        return wrong.push(format!("nothing is available: {resources}"));
    };
    for (name, found) in available {
        let amount = |part: &str| -> Quantity {
            resources[part][name].as_str().unwrap_or("0").parse().unwrap()
        };
        let left = amount("allocatable").minus(&amount("allocated")).minus(&amount("reserved"));
        let left = if left.signum() < 0 { "0".parse().unwrap() } else { left };
        let found: Quantity = found.as_str().unwrap().parse().unwrap();
        if !found.minus(&left).is_zero() {
            wrong.push(format!("{name}: {found} is available instead of {left}"));
        }
    }
}

struct Player {
    stage: Stage,
    clients: BTreeMap<String, Client>,
}

impl Player {
    async fn new() -> Self {
        let stage = Stage::new().await;
        let mut clients = BTreeMap::new();
        for name in ["c1", "c2", "c3"] {
            clients.insert(name.to_owned(), stage.client(name).await);
        }
        let nameless = Wish { names: Vec::new(), ..Wish::client("") };
        clients.insert("nocn".into(), stage.client_with(&nameless).await.unwrap());
        Self { stage, clients }
    }

    async fn play(&mut self, identity: &str, request: &Value) -> Answer {
        let client = self.clients.get_mut(identity).unwrap();
        let text = |name: &str| request[name].as_str();
        client.send(text("method").unwrap(), text("path").unwrap(), text("body")).await.unwrap()
    }
}

fn check_headers(theirs: &Value, ours: &Answer, wrong: &mut Vec<String>) {
    for (name, value) in theirs.as_object().unwrap() {
        let (found, value) = (ours.header(&name.to_lowercase()), value.as_str().unwrap());
        if found != value {
            wrong.push(format!("header {name}: {value:?} became {found:?}"));
        }
    }
}

fn check(note: &str, theirs: &Value, ours: &Answer, granted: &Granted) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some((_, status, code, shape, _)) = DIFFERENCES.iter().find(|row| row.0 == note) {
        let found = (ours.status, ours.code(), ours.header("content-type"));
        if found != (*status, *code, *shape) {
            wrong.push(format!("{found:?} instead of our own {status} {code} {shape}: {ours:?}"));
        }
        // What people read is there in both shapes; only HEAD has none.
        let says = match *shape {
            JSON => ours.json()["code"] == *code && ours.json()["error"].is_string(),
            _ => note.starts_with("HEAD") == ours.body.trim().is_empty(),
        };
        if !says {
            wrong.push(format!("says nothing: {ours:?}"));
        }
        return wrong;
    }
    let status = theirs["status"].as_u64().unwrap();
    if u64::from(ours.status) != status {
        wrong.push(format!("status {status} became {}: {}", ours.status, ours.body));
        return wrong;
    }
    check_headers(&theirs["headers"], ours, &mut wrong);
    let (theirs, ours) = (theirs["body"].as_str().unwrap(), ours.body.as_str());
    match (serde_json::from_str::<Value>(theirs), serde_json::from_str::<Value>(ours)) {
        (Ok(theirs), Ok(ours)) if status < 400 => {
            compare("", &theirs, &ours, &mut wrong);
            check_available(&ours, &mut wrong);
            granted.check(&ours, &mut wrong);
        }
        // Messages say more than theirs, and begin with it.
        (Ok(theirs), Ok(ours)) => {
            let [said, says] =
                [&theirs["error"], &ours["error"]].map(|v| v.as_str().unwrap_or("-"));
            if !says.starts_with(said.split(": ").next().unwrap()) || ours["code"].is_null() {
                wrong.push(format!("{said:?} became {ours}"));
            }
        }
        _ if ours.starts_with(theirs.trim_end()) => {}
        _ => wrong.push(format!("{theirs:?} became {ours:?}")),
    }
    wrong
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_recorded_exchange_ends_as_with_the_go_broker() {
    let mut player = Player::new().await;
    let (mut count, mut wrong, mut granted) = (0, Vec::new(), Granted::default());
    for line in EXCHANGES.lines() {
        let exchange: Value = serde_json::from_str(line).unwrap();
        let [note, identity] = ["note", "identity"].map(|name| exchange[name].as_str().unwrap());
        let ours = player.play(identity, &exchange["request"]).await;
        if exchange["request"]["path"] == "/api/v1/reservations" {
            granted.note(&ours);
        }
        let found = check(note, &exchange["response"], &ours, &granted);
        wrong.extend(found.into_iter().map(|what| format!("{note}: {what}")));
        count += 1;
    }
    assert_eq!((count, wrong), (60, Vec::new()));
    assert!(!granted.0.is_empty(), "nothing was recounted");
    player.stage.end().await;
}

#[test]
fn every_difference_is_about_an_exchange_that_there_is() {
    for (note, ..) in DIFFERENCES {
        assert!(EXCHANGES.contains(&format!("\"note\": \"{note}\"")), "{note}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_of_the_go_agent_is_accepted() {
    let mut player = Player::new().await;
    // Somebody must lend what the agent asks for.
    player.clients.get_mut("c2").unwrap().advertise("c2", 16).await;
    let mut statuses = BTreeMap::<(String, u16), usize>::new();
    for line in AGENT.lines() {
        let exchange: Value = serde_json::from_str(line).unwrap();
        let request = &exchange["request"];
        let client = player.clients.get_mut("c1").unwrap();
        let sent = request["headers"].as_object().unwrap().iter();
        client.headers = sent
            .filter(|(name, _)| {
                ["User-Agent", "Accept-Encoding", "Content-Type"].contains(&name.as_str())
            })
            .map(|(name, value)| {
                let name: &'static str = match name.as_str() {
                    "User-Agent" => "user-agent",
                    "Accept-Encoding" => "accept-encoding",
                    _ => "content-type",
                };
                (name, value.as_str().unwrap().to_owned())
            })
            .collect();
        let ours = player.play("c1", request).await;
        let route = format!("{} {}", request["method"], request["path"]);
        *statuses.entry((route, ours.status)).or_default() += 1;
        let body = request["body"].as_str().unwrap_or_default();
        let is_too_big = body.contains(r#""cpu":"99""#);
        let is_first = request["path"] == "/api/v1/advertisements/c1" && ours.status == 404;
        assert!(ours.status < 300 || is_first || (is_too_big && ours.status == 409), "{ours:?}");
    }
    // The first look at its own advertisement finds none; everything after it does.
    let firsts: usize = statuses.iter().filter(|((_, s), _)| *s == 404).map(|(_, n)| *n).sum();
    assert_eq!(firsts, 1, "{statuses:?}");
    player.stage.end().await;
}
