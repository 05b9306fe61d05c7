//! A provider that goes down, is given up by the operator, and returns: whoever borrowed from it does
//! without, and it finds out what it lends no more.

use serde_json::Value;
use sublet_testkit::wait::{PATIENCE, Stopwatch};
use sublet_testkit::{Controller, Part, Process, wait_for};

use super::super::member::{REQUEST, at_broker, comes};
use super::draining::{ready, running};
use super::entire::{NAMESPACE, deployment};
use super::side::{Side, lends};
use crate::broker::Town;

const CONTROLLERS: [Controller; 3] =
    [Controller::Manager, Controller::Replicator, Controller::Webhook];
/// Those that need the API server.
const USERS: [Part; 3] = [Part::ControllerManager, Part::Scheduler, Part::Kwok];
const QUOTAS: &str = "/apis/offloading.liqo.io/v1beta1/quotas";

/// Everything but the state ends at once, as where the power fails.
fn go_down(side: &Side) {
    side.agent.kill();
    CONTROLLERS.iter().filter_map(|one| side.liqo.controller(*one)).for_each(Process::kill);
    for part in USERS.into_iter().chain([Part::ApiServer]) {
        side.member.cluster.part(part).kill();
    }
}

fn come_back(side: &Side) {
    let cluster = &side.member.cluster;
    cluster.start_part(Part::ApiServer).unwrap();
    for part in USERS {
        cluster.start_part(part).unwrap();
    }
    for process in CONTROLLERS.iter().filter_map(|one| side.liqo.controller(*one)) {
        process.start().unwrap();
    }
    side.agent.start().unwrap();
}

/// Waits until all that it lends is free, by the broker's books, and it is not taken for lost.
#[track_caller]
fn wait_until_free(town: &Town, edge: &Side) {
    let mut seen = Value::Null;
    let free = wait_for("the books to balance", PATIENCE, || {
        seen = at_broker(town, "edge")?;
        let is_back = seen["lost"].is_null() && seen["freshness"] == "Active";
        (is_back && seen["resources"]["available"]["cpu"] == "16").then_some(())
    });
    assert!(free.is_ok(), "{seen:#}\n{}", edge.agent.log_tail());
}

/// Two pods run over there when it goes down.
fn two_pods_astray(shop: &Side, edge: &Side) -> String {
    let request = REQUEST.replace("burst", "astray");
    shop.member.cluster.apply(&format!("{request}  namespaces: [{NAMESPACE}]\n")).unwrap();
    let id = shop.usable("astray");
    shop.member.cluster.apply(&deployment(&id)).unwrap();
    comes(&edge.agent, "two pods that are to be lost", || {
        (running(edge, "web-shop")? == 2).then_some(())
    });
    id
}

/// Nothing of it is left where it was borrowed, although the provider says nothing.
fn is_given_up(town: &Town, shop: &Side, id: &str) {
    comes(&shop.agent, "the request to say that its provider is lost", || {
        let found = shop.request("astray")?;
        let is_told = ready(&found)?["reason"] == "ProviderLost";
        (found["status"]["phase"] == "Failed" && is_told).then_some(())
    });
    let ended = town.reservation(id)["status"].clone();
    assert_eq!((&ended["phase"], &ended["reason"]), (&"Failed".into(), &"ProviderLost".into()));
    let slices = "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-edge/resourceslices";
    let paths = [format!("/api/v1/nodes/{id}"), format!("{slices}/{id}")];
    comes(&shop.agent, "the node and the slice to be given up", || {
        paths.iter().all(|path| shop.is_gone(path)).then_some(())
    });
    shop.member.delete("resourcerequest", "astray");
}

/// It is given up, returns, gives nothing any more, and can be asked again.
pub(super) fn a_provider_that_was_given_up_returns(town: &Town, shop: &Side, edge: &Side) {
    let clock = Stopwatch::start();
    let id = two_pods_astray(shop, edge);
    go_down(edge);
    town.anna.ok("lost edge --why burnt-down");
    is_given_up(town, shop, &id);
    eprintln!("given up after {:?}", clock.elapsed());
    assert!(at_broker(town, "edge").unwrap()["lost"].is_object());
    town.anna.ok("fsck data");

    let clock = Stopwatch::start();
    come_back(edge);
    comes(&edge.agent, "nothing to be lent any more", || {
        let quotas = edge.get(QUOTAS)?["items"].as_array()?.len();
        (quotas == 0 && running(edge, "web-shop")? == 0).then_some(())
    });
    lends(town, edge, true);
    wait_until_free(town, edge);
    eprintln!("back, with nothing of it, after {:?}", clock.elapsed());

    shop.member.cluster.apply(&REQUEST.replace("burst", "anew")).unwrap();
    let anew = shop.usable("anew");
    let node: Value = shop.get(&format!("/api/v1/nodes/{anew}")).unwrap();
    assert_eq!(node["status"]["allocatable"]["cpu"], "4");
    shop.member.delete("resourcerequest", "anew");
    wait_until_free(town, edge);
    town.anna.ok("fsck data");
}
