//! One reservation from its request to its end, and when each thing on the way was seen.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use sublet_testkit::Cluster;
use sublet_testkit::wait::wall;

use super::figures::Figures;
use super::sight::{Eyes, Kind, Place, Sight};
use super::stage::{PROVIDER, REQUESTER};
use super::{CPU, MEMORY};

const REQUESTS: &str = "/apis/rear.fluidos.eu/v1alpha1/namespaces/default/resourcerequests";

/// What is looked for.
type Mark = (&'static str, fn(&Sight, &Trial) -> bool);

/// The row that a target is about.
pub(super) const USABLE: &str = "the request is Active";
pub(super) const GONE: &str = "all of it is gone, and the capacity free";

/// On the way to a node, in about this order.
const COMING: [Mark; 11] = [
    ("the request is Reserved", |sight, trial| {
        let phase = trial.phase(sight);
        phase == Some("Reserved") || phase == Some("Active")
    }),
    ("ReservationInstruction", |sight, trial| trial.has(sight, Place::Requester, Kind::Borrowed)),
    ("ProviderInstruction", |sight, trial| trial.has(sight, Place::Provider, Kind::Lent)),
    ("slice", |sight, trial| trial.has(sight, Place::Requester, Kind::Slice)),
    ("slice at the provider", |sight, trial| trial.has(sight, Place::Provider, Kind::Slice)),
    ("slice granted", |sight, trial| {
        trial.has(sight, Place::Provider, Kind::Slice) && is_granted(sight)
    }),
    ("quota", |sight, trial| trial.has(sight, Place::Provider, Kind::Quota)),
    ("virtual node", |sight, trial| trial.has(sight, Place::Requester, Kind::VirtualNode)),
    ("node", |sight, trial| trial.has(sight, Place::Requester, Kind::Node)),
    ("node Ready", |sight, trial| {
        trial.has(sight, Place::Requester, Kind::Node) && is_ready(sight)
    }),
    (USABLE, |sight, trial| trial.phase(sight) == Some("Active")),
];

/// What goes with the reservation. When its `ProviderInstruction` goes, the provider has told the
/// broker, which has the capacity back.
const GOING: [Mark; 7] = [
    ("node", |sight, trial| trial.lost(sight, Place::Requester, Kind::Node)),
    ("virtual node", |sight, trial| trial.lost(sight, Place::Requester, Kind::VirtualNode)),
    ("slice at the provider", |sight, trial| trial.lost(sight, Place::Provider, Kind::Slice)),
    ("quota", |sight, trial| trial.lost(sight, Place::Provider, Kind::Quota)),
    ("slice", |sight, trial| trial.lost(sight, Place::Requester, Kind::Slice)),
    ("ProviderInstruction", |sight, trial| trial.lost(sight, Place::Provider, Kind::Lent)),
    ("ReservationInstruction", |sight, trial| trial.lost(sight, Place::Requester, Kind::Borrowed)),
];

/// One reservation.
pub(super) struct Trial {
    name: String,
    /// None until it is known.
    reservation: Option<String>,
}

impl Trial {
    /// Asks for it, and waits until it is usable.
    pub(super) fn begin(
        number: usize,
        cluster: &Cluster,
        eyes: &mut Eyes,
        figures: &mut Figures,
    ) -> Result<Self> {
        let mut trial = Self { name: format!("trial-{number}"), reservation: None };
        eyes.blink();
        let sent = wall();
        cluster.api().create(REQUESTS, &request(&trial.name, PROVIDER, (CPU, MEMORY)))?;
        let id =
            eyes.wait("a reservation", |log| log.iter().find_map(|sight| trial.id_in(sight)))?;
        trial.reservation = Some(id);
        for (what, at) in trial.all(&COMING, eyes)? {
            figures.add(what, at.saturating_sub(sent));
        }
        Ok(trial)
    }

    /// Gives it back, and waits until nothing is left of it.
    pub(super) fn end(
        &self,
        cluster: &Cluster,
        eyes: &mut Eyes,
        figures: &mut Figures,
    ) -> Result<()> {
        eyes.blink();
        let sent = wall();
        cluster.api().delete(&format!("{REQUESTS}/{}", self.name))?;
        let gone = self.all(&GOING, eyes)?;
        for (what, at) in &gone {
            figures.add(what, at.saturating_sub(sent));
        }
        let last = gone.iter().map(|(_, at)| *at).max().unwrap_or(sent);
        figures.add(GONE, last.saturating_sub(sent));
        Ok(())
    }

    /// Waits for all of them; when each was first seen.
    fn all(&self, marks: &[Mark], eyes: &mut Eyes) -> Result<Vec<(&'static str, Duration)>> {
        let mut times = Vec::new();
        for (what, is_it) in marks {
            let first = |log: &[Sight]| log.iter().find(|sight| is_it(sight, self)).map(|s| s.at);
            times.push((*what, eyes.wait(what, first)?));
        }
        Ok(times)
    }

    fn phase<'a>(&self, sight: &'a Sight) -> Option<&'a str> {
        let is_ours = sight.kind == Kind::Request && sight.name == self.name;
        sight.object.as_ref().filter(|_| is_ours)?["status"]["phase"].as_str()
    }

    fn id_in(&self, sight: &Sight) -> Option<String> {
        self.phase(sight)?;
        let name = sight.object.as_ref()?["status"]["reservationName"].as_str()?;
        Some(name.to_owned()).filter(|name| !name.is_empty())
    }

    /// Is it about this reservation?
    fn is(&self, sight: &Sight, place: Place, kind: Kind) -> bool {
        let Some(id) = &self.reservation else { return false };
        // Quotas and instructions have something behind it.
        (sight.place, sight.kind) == (place, kind) && sight.name.starts_with(id.as_str())
    }

    fn has(&self, sight: &Sight, place: Place, kind: Kind) -> bool {
        self.is(sight, place, kind) && sight.object.is_some()
    }

    fn lost(&self, sight: &Sight, place: Place, kind: Kind) -> bool {
        self.is(sight, place, kind) && sight.object.is_none()
    }
}

/// Waits until the link is gone in both clusters; how long after this time that was.
pub(super) fn wait_until_unlinked(eyes: &mut Eyes, since: Duration) -> Result<Duration> {
    let lost = |log: &[Sight], place: Place, kind: Kind, name: &str| {
        let is_it = |sight: &&Sight| {
            (sight.place, sight.kind, sight.name.as_str()) == (place, kind, name)
                && sight.object.is_none()
        };
        log.iter().find(is_it).map(|sight| sight.at)
    };
    let mut end = since;
    for (place, peer) in [(Place::Requester, PROVIDER), (Place::Provider, REQUESTER)] {
        let namespace = format!("liqo-tenant-{peer}");
        for (kind, name) in [(Kind::Namespace, namespace.as_str()), (Kind::Foreign, peer)] {
            let gone = eyes.wait("the end of the link", |log| lost(log, place, kind, name))?;
            end = end.max(gone);
        }
    }
    Ok(end.saturating_sub(since))
}

/// What somebody asks for.
pub(super) fn request(name: &str, provider: &str, (cpu, memory): (&str, &str)) -> Value {
    json!({
        "apiVersion": "rear.fluidos.eu/v1alpha1", "kind": "ResourceRequest",
        "metadata": { "name": name },
        "spec": { "requestedCPU": cpu, "requestedMemory": memory, "duration": "1h",
                  "targetClusterID": provider },
    })
}

/// Sends a request without waiting for anything.
pub(super) fn ask(cluster: &Cluster, request: &Value) -> Result<()> {
    cluster.api().create(REQUESTS, request)?;
    Ok(())
}

/// How many requests there are, and how many of them are usable.
pub(super) fn usable(cluster: &Cluster) -> Result<(usize, usize)> {
    let list = cluster.api().get(REQUESTS)?;
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let active = items.iter().filter(|one| one["status"]["phase"] == "Active");
    Ok((items.len(), active.count()))
}

/// Takes all requests back.
pub(super) fn take_all_back(cluster: &Cluster) -> Result<()> {
    cluster.api().delete(REQUESTS)?;
    Ok(())
}

fn is_granted(sight: &Sight) -> bool {
    condition(sight, "Resources") == Some("Accepted")
}

pub(super) fn is_ready(sight: &Sight) -> bool {
    condition(sight, "Ready") == Some("True")
}

fn condition<'a>(sight: &'a Sight, about: &str) -> Option<&'a str> {
    let conditions = sight.object.as_ref()?["status"]["conditions"].as_array()?;
    conditions.iter().find(|one| one["type"] == about)?["status"].as_str()
}
