//! A right body for every route that takes one, and what each of its fields holds.

use serde_json::{Value, json};

use super::kind::Kind;

const ID: &str = "rsv-aaaaaaaaaaaaaaaaaaaa";

/// A body that is right, and what its fields hold, by their JSON pointer.
pub(super) struct Body {
    pub(super) path: String,
    pub(super) who: &'static str,
    pub(super) right: Value,
    pub(super) fields: Vec<(String, Kind)>,
}

fn amounts(at: &str, basic: Kind) -> Vec<(String, Kind)> {
    let kinds =
        [("cpu", basic), ("memory", basic), ("gpu", Kind::Amount), ("storage", Kind::Amount)];
    let kinds = kinds.into_iter().chain([("example.com~1fpga", Kind::Amount)]);
    kinds.map(|(name, kind)| (format!("{at}/{name}"), kind)).collect()
}

fn quantities() -> Value {
    json!({"cpu": "1", "memory": "1Gi", "gpu": "1", "storage": "1Gi", "example.com/fpga": "1"})
}

fn request(at: &str) -> (Value, Vec<(String, Kind)>) {
    let right = json!({
        "requestedResources": quantities(), "priority": 1, "duration": "1h", "targetClusterID": "c9",
        "strategy": "headroom", "wait": "1s", "explain": true, "activates": true,
        "constraints": [{"key": "zone", "operator": "In", "values": ["a"]}], "backends": ["liqo"],
    });
    #[rustfmt::skip]
    let own = [
        ("", Kind::Object), ("/requestedResources", Kind::Object), ("/priority", Kind::Number),
        ("/duration", Kind::Duration), ("/targetClusterID", Kind::Name),
        ("/strategy", Kind::Word), ("/wait", Kind::Patience), ("/explain", Kind::Bool),
        ("/activates", Kind::Bool), ("/constraints", Kind::List),
        ("/constraints/0", Kind::Object), ("/constraints/0/key", Kind::Text),
        ("/constraints/0/operator", Kind::Text), ("/constraints/0/values", Kind::List),
        ("/constraints/0/values/0", Kind::Text), ("/backends", Kind::List),
        ("/backends/0", Kind::Word),
    ];
    let own = own.map(|(name, kind)| (format!("{at}{name}"), kind));
    let amounts = amounts(&format!("{at}/requestedResources"), Kind::Some);
    (right, own.into_iter().chain(amounts).collect())
}

fn advertisement() -> Body {
    let grant = json!({
        "id": ID, "generation": 1, "requesterID": "c9", "amounts": quantities(),
        "used": quantities(), "remaining": "1h",
    });
    let right = json!({
        "clusterID": "c1", "clusterName": "c1", "timestamp": "2026-11-16T00:00:00Z",
        "resources": {
            "capacity": quantities(), "allocatable": quantities(), "allocated": quantities(),
        },
        "number": {"incarnation": 1, "sequence": 1}, "grants": [grant], "labels": {"zone": "a"},
        "capabilities": {"acknowledge": true, "activate": true, "renew": true, "stream": true,
            "backends": ["liqo"]},
        "lending": true,
    });
    #[rustfmt::skip]
    let own = [
        ("", Kind::Object), ("/clusterID", Kind::Oneself), ("/clusterName", Kind::Text),
        ("/resources", Kind::Object), ("/resources/capacity", Kind::Object),
        ("/resources/allocatable", Kind::Object), ("/resources/allocated", Kind::Object),
        ("/number", Kind::Object), ("/number/incarnation", Kind::Long),
        ("/number/sequence", Kind::Long), ("/grants", Kind::List), ("/grants/0", Kind::Object),
        ("/grants/0/id", Kind::Reservation), ("/grants/0/generation", Kind::Count),
        ("/grants/0/requesterID", Kind::Name), ("/grants/0/remaining", Kind::Patience),
        ("/labels", Kind::Object), ("/labels/zone", Kind::Text), ("/capabilities", Kind::Object),
        ("/capabilities/acknowledge", Kind::Bool), ("/capabilities/stream", Kind::Bool),
        ("/capabilities/backends", Kind::List), ("/capabilities/backends/0", Kind::Word),
        ("/lending", Kind::Bool),
    ];
    let mut fields: Vec<_> = own.map(|(name, kind)| (name.to_owned(), kind)).into();
    for part in ["capacity", "allocatable", "allocated"] {
        fields.extend(amounts(&format!("/resources/{part}"), Kind::Amount));
    }
    for part in ["amounts", "used"] {
        fields.extend(amounts(&format!("/grants/0/{part}"), Kind::Amount));
    }
    Body { path: "/api/v1/advertisements".to_owned(), who: "c1", right, fields }
}

fn small(who: &'static str, path: &str, right: Value, fields: &[(&str, Kind)]) -> Body {
    let fields = fields.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
    let fields = [(String::new(), Kind::Object)].into_iter().chain(fields).collect();
    Body { path: format!("/api/v1/{path}"), who, right, fields }
}

pub(super) fn bodies() -> Vec<Body> {
    let mut bodies = vec![advertisement()];
    for path in ["/api/v1/reservations", "/api/v1/reservations?dryRun=true"] {
        let (right, fields) = request("");
        bodies.push(Body { path: path.to_owned(), who: "c1", right, fields });
    }
    let (inner, mut fields) = request("/request");
    let right = json!({"requesterID": "c9", "request": inner});
    fields.push(("/requesterID".to_owned(), Kind::Name));
    bodies.push(Body {
        path: "/api/v1/operator/candidates".into(),
        who: "operator",
        right,
        fields,
    });
    let mut resize = small(
        "c1",
        &format!("reservations/{ID}/resize"),
        json!({"requestedResources": quantities()}),
        &[("/requestedResources", Kind::Object)],
    );
    resize.fields.extend(amounts("/requestedResources", Kind::Some));
    let duration = [("/duration", Kind::Duration)];
    let renew =
        small("c1", &format!("reservations/{ID}/renew"), json!({"duration": "1h"}), &duration);
    let number = [("/generation", Kind::Count)];
    let path = format!("reservations/{ID}/acknowledge");
    let acknowledge = small("c1", &path, json!({"generation": 1}), &number);
    let why = [("/why", Kind::Text), ("/obstacle", Kind::Text)];
    let right = json!({"why": "w", "obstacle": "NoLiqo"});
    let fail = small("c1", &format!("reservations/{ID}/fail"), right, &why);
    let message = json!({"from": "c1", "to": "c9", "slot": "a", "content": "x", "ttl": "1m"});
    let fields = [
        ("/from", Kind::Oneself),
        ("/to", Kind::Name),
        ("/slot", Kind::Slot),
        ("/content", Kind::Plain),
        ("/ttl", Kind::Brief),
    ];
    let message = small("c1", "messages", message, &fields);
    bodies.extend([resize, renew, acknowledge, fail, message]);
    for act in ["cordon", "uncordon", "drain", "lost", "vouch"] {
        let right = json!({"why": "w", "force": true});
        let fields = [("/why", Kind::Reason), ("/force", Kind::Bool)];
        bodies.push(small("operator", &format!("operator/clusters/c1/{act}"), right, &fields));
    }
    let right = json!({"limits": quantities(), "why": "w", "force": true});
    let fields = [("/limits", Kind::Object), ("/why", Kind::Reason), ("/force", Kind::Bool)];
    let mut cap = small("operator", "operator/clusters/c1/cap", right, &fields);
    cap.fields.extend(amounts("/limits", Kind::Amount));
    bodies.push(cap);
    let reason = [("/why", Kind::Reason)];
    for path in ["operator/revocations", "operator/reinstatements"] {
        let right = json!({"clusterID": "c9", "why": "w"});
        let fields = [("/clusterID", Kind::Name), ("/why", Kind::Reason)];
        bodies.push(small("operator", path, right, &fields));
    }
    bodies.push(small("operator", "operator/clock/confirm", json!({"why": "w"}), &reason));
    bodies
}
