//! What two agents would do, done by hand: the smallest objects that make Liqo ask for a slice and grant
//! it. An agent can be compared with it, step by step.

use serde_json::{Value, json};
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Api, Cluster, link_by_hand, wait_for};

/// A class that Liqo does not know, so that it leaves the decision to whoever does.
const CLASS: &str = "sublet.test/reservation";

/// A requester and a provider.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) requester: &'a Cluster,
    pub(super) provider: &'a Cluster,
}

/// What is at a path when it is as wanted.
pub(super) fn when(api: &Api, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    wait_for(path, PATIENCE, || api.get(path).ok().filter(&wanted)).unwrap()
}

/// Waits until there is nothing at a path.
pub(super) fn until_gone(api: &Api, path: &str) {
    let gone = || api.get(path).is_err_and(|error| error.status() == Some(404));
    wait_for(&format!("the end of {path}"), PATIENCE, || gone().then_some(())).unwrap();
}

/// The status of a condition.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}

impl Pair<'_> {
    /// Links the two.
    pub(super) fn link(self) {
        link_by_hand(self.requester, self.provider).unwrap();
    }

    /// Requester: a slice of so much.
    pub(super) fn ask(self, name: &str, amounts: &Value) {
        let provider = self.provider.name();
        let slice = json!({
            "apiVersion": "authentication.liqo.io/v1beta1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": name,
                "labels": {
                    "liqo.io/replication": "true",
                    "liqo.io/remoteID": provider,
                    "liqo.io/remote-cluster-id": provider,
                },
                "annotations": { "liqo.io/create-virtual-node": "true" },
            },
            "spec": { "class": CLASS, "providerClusterID": provider, "resources": amounts },
        });
        self.requester.api().create(&slices(provider), &slice).unwrap();
    }

    /// Where the requester's own slice is.
    pub(super) fn slice(self, name: &str) -> String {
        format!("{}/{name}", slices(self.provider.name()))
    }

    /// Where the provider's copy of it is.
    pub(super) fn replica(self, name: &str) -> String {
        format!("{}/{name}", slices(self.requester.name()))
    }

    /// Where the provider's quotas for this requester are.
    pub(super) fn quotas(self) -> String {
        liqo("offloading", self.requester.name(), "quotas")
    }

    /// Where the requester's virtual nodes at this provider are.
    pub(super) fn virtual_nodes(self) -> String {
        liqo("offloading", self.provider.name(), "virtualnodes")
    }

    /// Provider: grants a slice so much, beside the conditions that Liqo has set. Somebody may write
    /// between look and patch, and then it is done again.
    pub(super) fn grant(self, name: &str, amounts: &Value) {
        let (api, path) = (self.provider.api(), self.replica(name));
        let accepted = json!({
            "type": "Resources",
            "status": "Accepted",
            "reason": "ResourceSliceResourcesAccepted",
            "message": "reserved",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let grant = || {
            let slice = api.get(&path).ok()?;
            let found = slice["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let others = found.into_iter().filter(|condition| condition["type"] != "Resources");
            let conditions: Vec<_> = others.chain([accepted.clone()]).collect();
            let granted = json!({
                "metadata": { "resourceVersion": slice["metadata"]["resourceVersion"] },
                "status": {
                    "resources": amounts,
                    "nodeLabels": { CLASS: name },
                    "conditions": conditions,
                },
            });
            match api.patch(&format!("{path}/status"), &granted) {
                Err(error) if error.status() == Some(409) => None,
                done => Some(done.unwrap()),
            }
        };
        wait_for("a grant", PATIENCE, grant).unwrap();
    }
}

fn slices(peer: &str) -> String {
    liqo("authentication", peer, "resourceslices")
}

/// A collection of Liqo's in the namespace for a peer.
fn liqo(group: &str, peer: &str, plural: &str) -> String {
    format!("/apis/{group}.liqo.io/v1beta1/namespaces/liqo-tenant-{peer}/{plural}")
}
