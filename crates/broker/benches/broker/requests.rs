//! What the load generator sends, encoded beforehand: only the number in it changes.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sublet_wire::paths;

/// Numbers have as many digits as this, so that they fit where the last one was.
const FIRST: u64 = 1_000_000_000_000;

/// What is asked for again and again.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum What {
    /// Half a core for an hour, wherever there is room.
    Reserve,
    /// What an agent of ours says of its cluster.
    Advertise,
}

/// The name of cluster `number`.
pub(crate) fn name(number: u64) -> String {
    format!("cluster-{number:05}")
}

/// A request as it goes over the wire, with a number in it that makes it another one.
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    digits: usize,
}

impl Encoded {
    pub(crate) fn new(what: What, cluster: u64) -> Self {
        match what {
            What::Reserve => reserve(cluster, None),
            What::Advertise => advertise(cluster),
        }
    }

    /// Makes it the request of this number.
    pub(crate) fn number(&mut self, number: u64) {
        let mut left = FIRST + number;
        let length = FIRST.to_string().len();
        for digit in self.bytes[self.digits..self.digits + length].iter_mut().rev() {
            *digit = b'0' + u8::try_from(left % 10).unwrap_or_default();
            left /= 10;
        }
    }

    /// With the digits where the first number stands.
    fn of(text: String) -> Self {
        let digits = text.find(&FIRST.to_string()).unwrap_or_default();
        Self { bytes: text.into_bytes(), digits }
    }
}

/// Half a core for an hour, of any cluster or of one.
pub(crate) fn reserve(cluster: u64, target: Option<u64>) -> Encoded {
    let mut body = json!({
        "requestedResources": { "cpu": "500m", "memory": "1Gi" },
        "duration": "1h",
        "activates": true,
        "backends": ["liqo"],
    });
    if let Some(target) = target {
        body["targetClusterID"] = name(target).into();
    }
    let key = format!("Idempotency-Key: 5f1c09a2-7be4-4d1f-{cluster:05}-{FIRST}\r\n");
    Encoded::of(post(paths::RESERVATIONS, &key, &body.to_string()))
}

/// What an agent of ours says: room for a hundred thousand times what is asked for at once.
fn advertise(cluster: u64) -> Encoded {
    let amounts = |percent: u64| {
        let (cores, gib) = (percent * 100_000, percent * 400_000);
        json!({ "cpu": cores.to_string(), "memory": format!("{gib}Gi") })
    };
    let body = json!({
        "clusterID": name(cluster),
        "clusterName": "cluster-advertisement",
        "resources": {
            "capacity": amounts(100), "allocatable": amounts(100),
            "allocated": amounts(30 + cluster * 7 % 60), "available": amounts(0),
        },
        "timestamp": "2026-11-16T00:00:00Z",
        "number": { "incarnation": 1, "sequence": FIRST },
        "grants": [],
        "labels": { "region": "eu-west", "tier": "gold" },
        "capabilities": {
            "acknowledge": true, "activate": true, "renew": true, "stream": true,
            "backends": ["liqo"],
        },
    });
    Encoded::of(post(paths::ADVERTISEMENTS, "", &body.to_string()))
}

/// What a Go agent says, as it was recorded: no number, no grants, no capabilities.
pub(crate) fn go_advertise(cluster: u64) -> String {
    let all = json!({ "cpu": "12", "memory": "24Gi", "gpu": "2" });
    let body = json!({
        "clusterID": name(cluster),
        "clusterName": "cluster-advertisement",
        "resources": {
            "capacity": all, "allocatable": all,
            "allocated": { "cpu": "500m", "memory": "1Gi" },
            "available": { "cpu": "11500m", "memory": "23Gi", "gpu": "2" },
        },
        "timestamp": "2026-11-16T00:00:00Z",
    });
    post(paths::ADVERTISEMENTS, "User-Agent: Go-http-client/1.1\r\n", &body.to_string())
}

fn post(path: &str, header: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}Content-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

/// A request without a body.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}
