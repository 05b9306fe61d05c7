//! An event of the log in a sentence: names, amounts and times as people write them.

use sublet_core::event::{Event, Note, Subject};
use sublet_core::reservation::{Actor, Ask, Confirmation, Hindrance, Reason};
use sublet_core::resources::Resources;
use sublet_core::time::Time;
use sublet_wire::Timestamp;
use sublet_wire::v1::{Amounts, actor, hindrance, reason};

/// What happened.
pub(super) fn sentence(event: &Event) -> String {
    about_reservation(event).unwrap_or_else(|| about_the_rest(event))
}

fn about_reservation(event: &Event) -> Option<String> {
    let id = event.reservation()?;
    let said = match event {
        Event::Requested { requester, key, ask, priority, until, .. } => {
            let asked = asked(ask, *priority);
            format!("requested by {requester}: {asked}, key {key}, waits until {}", at(*until))
        }
        Event::Reserved { requester, provider, key, ask, priority, expires_at, .. } => {
            let (asked, end) = (asked(ask, *priority), end(*expires_at));
            format!("reserved for {requester} on {provider}: {asked}, key {key}, {end}")
        }
        Event::Granted { provider, amounts, expires_at, .. } => {
            format!("granted on {provider}: {}, {}", list(amounts), end(*expires_at))
        }
        Event::Activated { .. } => "activated by its requester".to_owned(),
        Event::Renewed { expires_at, .. } => format!("renewed, {}", end(*expires_at)),
        Event::Resized { amounts, .. } => format!("resized to {}", list(amounts)),
        Event::Acknowledged { generation, .. } => {
            format!("generation {generation} confirmed by its provider")
        }
        Event::Ending { reason, by, hindrance, .. } => {
            format!("ending: {}", why(*reason, by, hindrance.as_deref()))
        }
        Event::Ended { reason, by, confirmation, hindrance, .. } => {
            let why = why(*reason, by, hindrance.as_deref());
            format!("ended: {why}, {}", known(*confirmation))
        }
        Event::Adopted { requester, provider, amounts, generation, expires_at, .. } => {
            let (amounts, end) = (list(amounts), end(*expires_at));
            format!(
                "reported by {provider} after a restore: {amounts} for {requester}, \
                 generation {generation}, {end}"
            )
        }
        // Everything else is about no reservation.
        _ => return None,
    };
    Some(format!("{id} {said}"))
}

fn about_the_rest(event: &Event) -> String {
    match event {
        Event::KeyReleased { requester, key } => {
            format!("{requester} released the key {key} before a request under it arrived")
        }
        Event::Forgotten { reservations, tombstones } => {
            let (ended, keys) = (reservations.len(), tombstones.len());
            format!("forgot {ended} ended reservations and {keys} released keys")
        }
        Event::Cordoned { cluster, drain: false, note } => {
            format!("{cluster} cordoned{}", by(note))
        }
        Event::Cordoned { cluster, drain: true, note } => format!("{cluster} drained{}", by(note)),
        Event::Uncordoned { cluster, note } => format!("{cluster} uncordoned{}", by(note)),
        Event::Capped { cluster, limits, note } if limits.0.is_empty() => {
            format!("{cluster} lends without a cap{}", by(note))
        }
        Event::Capped { cluster, limits, note } => {
            format!("{cluster} capped at {}{}", pairs(&limits.into()), by(note))
        }
        Event::Revoked { subject, note } => format!("{} revoked{}", named(subject), by(note)),
        Event::Reinstated { subject, note } => {
            format!("{} reinstated{}", named(subject), by(note))
        }
        Event::Lost { cluster, note } => format!("{cluster} given up as lost{}", by(note)),
        Event::Returned { cluster } => format!("{cluster} is back"),
        Event::Restored { note } => format!("restored from a backup{}", by(note)),
        Event::Reconciled { cluster, note } => {
            format!("{cluster} reconciled after a restore{}", by(note))
        }
        Event::ClockConfirmed { note } => format!("clock confirmed{}", by(note)),
        // Those about a reservation were told above.
        other => format!("{other:?}"),
    }
}

/// A time as people write it.
pub(super) fn at(time: Time) -> String {
    Timestamp::from(time).whole_seconds().to_string()
}

fn end(time: Option<Time>) -> String {
    time.map_or_else(|| "without an end".to_owned(), |time| format!("until {}", at(time)))
}

fn asked(ask: &Ask, priority: i32) -> String {
    match priority {
        0 => list(&ask.resources),
        priority => format!("{}, priority {priority}", list(&ask.resources)),
    }
}

fn list(resources: &Resources) -> String {
    pairs(&resources.into())
}

fn pairs(amounts: &Amounts) -> String {
    let each = amounts.0.iter().map(|(name, amount)| format!("{name}={amount}"));
    each.collect::<Vec<_>>().join(" ")
}

fn named(subject: &Subject) -> String {
    match subject {
        Subject::Cluster(cluster) => format!("every certificate of {cluster}"),
        Subject::Serial(serial) => format!("certificate {serial}"),
    }
}

fn by(note: &Note) -> String {
    match note.why.as_str() {
        "" => format!(" by {}", actor(&note.by)),
        why => format!(" by {}: {why:?}", actor(&note.by)),
    }
}

fn why(because: Reason, by: &Actor, kept_apart: Option<&Hindrance>) -> String {
    let said = format!("{} by {}", reason(because), actor(by));
    match kept_apart {
        Some(why) => format!("{said}: {:?}", hindrance(why)),
        None => said,
    }
}

fn known(of_provider: Confirmation) -> &'static str {
    match of_provider {
        Confirmation::Confirmed => "confirmed by its provider",
        Confirmation::Unconfirmed => "its provider never confirms",
        Confirmation::ProviderLost => "its provider is lost",
        Confirmation::NothingHeld => "nothing was held",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_in_sentences() {
        let said = |text: &str| sentence(&serde_json::from_str(text).unwrap());
        let id = "rsv-aaaaaaaaaaaaaaaaaaaa";
        let reserved = format!(
            r#"{{"reserved": {{"id": "{id}", "requester": "shop", "key": "job-1", "priority": 5,
            "ask": {{"resources": {{"cpu": 1500, "memory": 1073741824}}}}, "provider": "edge",
            "confirms": true, "expires_at": 1700000000000, "basis": {{"received_at": 0,
            "suspect_after": 1, "allocatable": {{}}, "allocated": {{}}}}}}}}"#
        );
        assert_eq!(
            said(&reserved),
            format!(
                "{id} reserved for shop on edge: cpu=1500m memory=1Gi, priority 5, key job-1, \
                 until 2023-11-14T22:13:20Z"
            )
        );
        let ended = format!(
            r#"{{"ended": {{"id": "{id}", "reason": "Expired", "by": "broker",
            "confirmation": "Confirmed"}}}}"#
        );
        let told = format!("{id} ended: Expired by the broker, confirmed by its provider");
        assert_eq!(said(&ended), told);
        let ending = format!(
            r#"{{"ending": {{"id": "{id}", "reason": "PeeringFailed", "by": {{"cluster": "edge"}},
            "hindrance": {{"word": "NoLiqo", "text": "install it"}}}}}}"#
        );
        let told = format!("{id} ending: PeeringFailed by cluster edge: \"NoLiqo: install it\"");
        assert_eq!(said(&ending), told);
        let cordoned = r#"{"cordoned": {"cluster": "edge", "drain": false,
            "note": {"by": {"operator": "anna"}, "why": "kernel"}}}"#;
        assert_eq!(said(cordoned), "edge cordoned by operator anna: \"kernel\"");
    }
}
