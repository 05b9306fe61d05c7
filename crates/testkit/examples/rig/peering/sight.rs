//! What the API servers of a pair show, as it comes: by watches, so that looking takes no time from what
//! is looked at.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use sublet_testkit::wait::{PATIENCE, wall};
use sublet_testkit::{Api, Cluster};

/// More than a trial brings, so that no watch ever waits for the reader.
const AHEAD: usize = 4096;
/// Before a list is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// In which of the two clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Requester,
    Provider,
}

/// What.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Borrowed,
    Lent,
    Slice,
    Identity,
    Quota,
    VirtualNode,
    Node,
    Namespace,
    Foreign,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Request,
        Self::Borrowed,
        Self::Lent,
        Self::Slice,
        Self::Identity,
        Self::Quota,
        Self::VirtualNode,
        Self::Node,
        Self::Namespace,
        Self::Foreign,
    ];

    const fn path(self) -> &'static str {
        match self {
            Self::Request => "/apis/rear.fluidos.eu/v1alpha1/resourcerequests",
            Self::Borrowed => "/apis/rear.fluidos.eu/v1alpha1/reservationinstructions",
            Self::Lent => "/apis/rear.fluidos.eu/v1alpha1/providerinstructions",
            Self::Slice => "/apis/authentication.liqo.io/v1beta1/resourceslices",
            Self::Identity => "/apis/authentication.liqo.io/v1beta1/identities",
            Self::Quota => "/apis/offloading.liqo.io/v1beta1/quotas",
            Self::VirtualNode => "/apis/offloading.liqo.io/v1beta1/virtualnodes",
            Self::Node => "/api/v1/nodes",
            Self::Namespace => "/api/v1/namespaces",
            Self::Foreign => "/apis/core.liqo.io/v1beta1/foreignclusters",
        }
    }
}

/// An object as it was seen, and when; without it, that it is gone.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub(super) at: Duration,
    pub(super) place: Place,
    pub(super) kind: Kind,
    pub(super) name: String,
    pub(super) object: Option<Value>,
}

/// Looks at both clusters, from its making to its end.
pub(super) struct Eyes {
    sights: Receiver<Sight>,
    stop: Arc<AtomicBool>,
    log: Vec<Sight>,
}

impl Eyes {
    /// Opens them. Each watch has a thread, which ends by itself soon after this value: it waits for the
    /// API server, which nobody can hurry.
    pub(super) fn open(requester: &Cluster, provider: &Cluster) -> Self {
        let (tell, sights) = sync_channel(AHEAD);
        let stop = Arc::new(AtomicBool::new(false));
        for (place, cluster) in [(Place::Requester, requester), (Place::Provider, provider)] {
            for kind in Kind::ALL {
                let watch = Watch { api: cluster.api(), place, kind, tell: tell.clone() };
                let stop = Arc::clone(&stop);
                thread::spawn(move || watch.run(&stop));
            }
        }
        Self { sights, stop, log: Vec::new() }
    }

    /// Forgets what was seen until now: what is waited for next comes later.
    pub(super) fn blink(&mut self) {
        while self.sights.try_recv().is_ok() {}
        self.log.clear();
    }

    /// Waits until something was seen, of all since the last blink.
    pub(super) fn wait<T>(
        &mut self,
        what: &str,
        look: impl Fn(&[Sight]) -> Option<T>,
    ) -> Result<T> {
        loop {
            if let Some(found) = look(&self.log) {
                return Ok(found);
            }
            let sight = self.sights.recv_timeout(PATIENCE);
            self.log.push(sight.with_context(|| format!("never seen: {what}"))?);
        }
    }
}

impl Drop for Eyes {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Watch {
    api: Api,
    place: Place,
    kind: Kind,
    tell: SyncSender<Sight>,
}

impl Watch {
    /// Lists and watches until nobody listens. What went while it did not look is told too, late.
    fn run(&self, stop: &AtomicBool) {
        let mut known = BTreeSet::new();
        while !stop.load(Ordering::Relaxed) {
            let Ok(list) = self.api.get(self.kind.path()) else {
                thread::sleep(PAUSE);
                continue;
            };
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let there: BTreeSet<_> = items.iter().map(name).collect();
            let mut heard = true;
            for gone in known.difference(&there) {
                heard &= self.say(gone, None);
            }
            for item in &items {
                heard &= self.say(&name(item), Some(item));
            }
            known = there;
            let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            // A minute without news ends it, as an error; then it is listed again.
            drop(self.api.watch_after(self.kind.path(), version, |event| {
                let object = &event["object"];
                let name = name(object);
                let is_gone = event["type"] == "DELETED";
                heard &= self.say(&name, (!is_gone).then_some(object));
                if is_gone {
                    known.remove(&name)
                } else {
                    known.insert(name)
                };
                heard && event["type"] != "ERROR"
            }));
            if !heard {
                return;
            }
        }
    }

    /// Tells it; false if nobody listens any more.
    fn say(&self, name: &str, object: Option<&Value>) -> bool {
        let (place, kind, at) = (self.place, self.kind, wall());
        let sight = Sight { at, place, kind, name: name.to_owned(), object: object.cloned() };
        self.tell.send(sight).is_ok()
    }
}

/// Names are enough: no two objects of a kind that matter here differ by namespace alone.
fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
