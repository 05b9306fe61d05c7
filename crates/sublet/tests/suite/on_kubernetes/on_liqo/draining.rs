//! An operator empties a provider on which pods run that their owner cannot do without.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use sublet_testkit::wait::Stopwatch;

use super::super::member::{REQUEST, at_broker, comes};
use super::entire::{EVICTION, NAMESPACE, deployment};
use super::side::Side;
use crate::broker::Town;

const BUDGET: &str = "/apis/policy/v1/namespaces/web/poddisruptionbudgets";

/// Those pods of a namespace that nobody has told to leave.
fn staying(side: &Side, namespace: &str) -> Option<Vec<Value>> {
    let pods = side.get(&format!("/api/v1/namespaces/{namespace}/pods"))?;
    let stays = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
    Some(pods["items"].as_array()?.iter().filter(stays).cloned().collect())
}

fn is_running(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running"
}

/// How many pods run in a namespace.
pub(super) fn running(side: &Side, namespace: &str) -> Option<usize> {
    Some(staying(side, namespace)?.iter().filter(|pod| is_running(pod)).count())
}

/// Pods that run in a namespace.
struct Guests<'a> {
    side: &'a Side,
    namespace: &'a str,
    uids: Vec<Value>,
}

impl<'a> Guests<'a> {
    fn of(side: &'a Side, namespace: &'a str) -> Self {
        let pods = staying(side, namespace).unwrap();
        let uids =
            pods.iter().filter(|pod| is_running(pod)).map(|pod| pod["metadata"]["uid"].clone());
        Self { side, namespace, uids: uids.collect() }
    }

    /// Are all of them still there, with nobody having told them to leave?
    fn all_stay(&self) -> Option<bool> {
        let now = staying(self.side, self.namespace)?;
        let stays = |uid: &Value| now.iter().any(|pod| pod["metadata"]["uid"] == *uid);
        Some(self.uids.iter().all(stays))
    }
}

/// When the first of these pods leaves, on either side. It is looked all the time: how long the rest of the end
/// takes says nothing of them.
fn first_leaves(guests: &[Guests<'_>; 2], clock: Stopwatch) -> Duration {
    comes(&guests[0].side.agent, "a pod to leave", || {
        let stay: Option<Vec<_>> = guests.iter().map(Guests::all_stay).collect();
        stay?.contains(&false).then(|| clock.elapsed())
    })
}

/// What a request says of its being usable.
pub(super) fn ready(request: &Value) -> Option<&Value> {
    request["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == "Ready")
}

/// Two pods, of which none may be evicted.
fn two_pods_that_are_needed(shop: &Side, edge: &Side) -> String {
    let later = REQUEST.replace("burst", "later");
    shop.member.cluster.apply(&format!("{later}  namespaces: [{NAMESPACE}]\n")).unwrap();
    let id = shop.usable("later");
    shop.member.cluster.apply(&deployment(&id)).unwrap();
    comes(&edge.agent, "two pods over there again", || {
        (running(edge, "web-shop")? == 2).then_some(())
    });
    let budget = json!({
        "metadata": { "name": "web" },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } },
    });
    let api = shop.member.cluster.api();
    api.create(BUDGET, &budget).unwrap();
    comes(&shop.agent, "a budget that is used up", || {
        let status = api.get(&format!("{BUDGET}/web")).ok()?["status"].clone();
        (status["currentHealthy"] == 2 && status["disruptionsAllowed"] == 0).then_some(())
    });
    id
}

/// What runs there has until the deadline; then it goes, whatever it is needed for. How long that took.
pub(super) fn an_operator_empties_a_provider(town: &Town, shop: &Side, edge: &Side) -> Duration {
    let id = two_pods_that_are_needed(shop, edge);
    let guests = [Guests::of(shop, NAMESPACE), Guests::of(edge, "web-shop")];
    assert_eq!(guests.each_ref().map(|guests| guests.uids.len()), [2, 2]);
    let clock = Stopwatch::start();
    town.anna.ok("drain edge --why update");
    let node = format!("/api/v1/nodes/{id}");
    let left = thread::scope(|scope| {
        let leaving = scope.spawn(|| first_leaves(&guests, clock));
        comes(&shop.agent, "the node to take nothing more", || {
            let found = shop.member.cluster.api().get(&node).ok()?;
            (found["spec"]["unschedulable"] == true).then_some(())
        });
        comes(&shop.agent, "the request to say why it ends", || {
            let found = shop.request("later")?;
            let is_told = ready(&found)?["reason"] == "Withdrawn";
            (found["status"]["phase"] == "Releasing" && is_told).then_some(())
        });
        leaving.join().unwrap()
    });
    assert!(left >= EVICTION, "a budget holds until the deadline: {left:?}");
    comes(&edge.agent, "the capacity to be back again", || {
        let told = at_broker(town, "edge")?;
        (told["resources"]["available"]["cpu"] == "16").then_some(())
    });
    let took = clock.elapsed();
    comes(&shop.agent, "the end of the reservation", || {
        let ended = town.reservation(&id)["status"].clone();
        (ended["phase"] == "Released" && ended["reason"] == "Drained").then_some(())
    });
    comes(&shop.agent, "the end of the node", || shop.is_gone(&node).then_some(()));
    assert_eq!(running(edge, "web-shop").unwrap_or_default(), 0);
    // It lends nothing more until the operator is done.
    assert_eq!(at_broker(town, "edge").unwrap()["draining"], true);
    town.anna.ok("uncordon edge --why done");
    shop.member.cluster.api().delete(&format!("{BUDGET}/web")).unwrap();
    shop.member.delete("resourcerequest", "later");
    took
}
