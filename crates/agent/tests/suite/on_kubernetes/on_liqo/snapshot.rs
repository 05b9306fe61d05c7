//! What there was before, and whether it is so again.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use sublet_testkit::{Api, differences, inventory};

use crate::on_kubernetes::until::{PATIENCE, within};

/// How long Liqo may take to let go of everything.
const BACK_WITHIN: Duration = Duration::from_mins(2);
/// A look lists everything there is, in both clusters.
const PAUSE: Duration = Duration::from_millis(200);
const NAMESPACES: &str = "/api/v1/namespaces";
const CLUSTERS: &str = "/apis/core.liqo.io/v1beta1/foreignclusters";

/// Two clusters.
pub(super) trait Pair {
    /// The ways to both.
    fn apis(&self) -> [&Api; 2];
}

/// What there was in both clusters.
#[derive(Debug)]
pub(super) struct Snapshot([BTreeSet<String>; 2]);

impl Snapshot {
    /// What there is, once nothing goes any more of what was there before, and nothing comes any more of what
    /// was just made: neither would be there when it is compared.
    pub(super) async fn of(pair: &impl Pair) -> Self {
        let restless = Mutex::new(Vec::new());
        let looked = within(PAUSE, PATIENCE, || async {
            let now = Self::at_once(pair);
            let moving: Vec<_> = now.0.iter().flat_map(moving).collect();
            let is_at_rest = moving.is_empty();
            *restless.lock().unwrap() = moving;
            is_at_rest.then_some(now)
        });
        let looked = looked.await;
        looked
            .unwrap_or_else(|| panic!("it does not come to rest: {:#?}", restless.lock().unwrap()))
    }

    fn at_once(pair: &impl Pair) -> Self {
        Self(pair.apis().map(|api| {
            let mut all = inventory(api).unwrap();
            all.retain(|object| matters(object));
            all
        }))
    }

    /// Waits until everything is as it was; says what is not.
    pub(super) async fn is_back(&self, pair: &impl Pair) {
        self.is_back_with(pair, async || {}).await;
    }

    /// The same, with something that somebody does again and again meanwhile.
    pub(super) async fn is_back_with(&self, pair: &impl Pair, again: impl AsyncFn()) {
        let left = Mutex::new(Vec::new());
        let looked = within(PAUSE, BACK_WITHIN, || async {
            again().await;
            let both = self.0.iter().zip(pair.apis());
            let found = both.flat_map(|(was, api)| differences(api, was, matters).unwrap());
            let found = found.collect::<Vec<_>>();
            left.lock().unwrap().clone_from(&found);
            found.is_empty().then_some(())
        });
        let is_back = looked.await.is_some();
        assert!(is_back, "not as before: {:#?}", left.lock().unwrap());
    }
}

/// What is pinned stays, on purpose, and so do the policies, which come whenever the agent has looked.
pub(super) fn matters(object: &str) -> bool {
    let policies = ["/sublet-liqo-slices", "/sublet-liqo-pods", "/sublet-liqo-copies"];
    let mut stays = policies.iter().chain(&["sublet/sublet-liqo-keys"]);
    !stays.any(|name| object.ends_with(&format!(" {name}")))
}

/// The certificate of a slice, which Liqo may have made after everything else of it was gone. It stays until
/// everything is swept.
fn stays(name: &str) -> bool {
    name.starts_with("liqo-remote-certificate-")
}

/// What says that somebody is still at work: what is being deleted, what Liqo has made for a reservation or of
/// the namespaces that went with it, and what every namespace and every pair is about to have.
fn moving(all: &BTreeSet<String>) -> Vec<String> {
    let parts = |object: &str| {
        // Between the two stands what is to be as it was, of what is Liqo's or ours.
        let collection = object.split(' ').next().unwrap();
        let (namespace, name) = object.rsplit(' ').next().unwrap().split_once('/').unwrap();
        [collection, namespace, name].map(str::to_owned)
    };
    let named: BTreeSet<_> = all.iter().map(|object| parts(object)).collect();
    let is_there = |collection: &str, namespace: &str, name: &str| {
        named.contains(&[collection, namespace, name].map(str::to_owned))
    };
    let goes = all.iter().filter(|object| {
        let [collection, _, name] = parts(object);
        object.starts_with(&format!("{collection} going "))
            || collection.ends_with("/namespacemaps")
            || name.contains("rsv-") && !collection.contains("rear.fluidos.eu") && !stays(&name)
    });
    let comes = named.iter().filter(|[collection, _, name]| {
        let peer = name.strip_prefix("liqo-tenant-");
        collection == NAMESPACES
            && (!is_there("/api/v1/serviceaccounts", name, "default")
                || peer.is_some_and(|peer| !is_there(CLUSTERS, "", peer)))
    });
    goes.cloned().chain(comes.map(|parts| parts.join(" "))).collect()
}
