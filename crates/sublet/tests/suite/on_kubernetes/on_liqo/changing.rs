//! A request that changes its mind, and then its time is over.

use serde_json::{Value, json};
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::wait_for;

use super::super::member::{REQUEST, at_broker, comes};
use super::side::{REQUESTS, Side};
use crate::broker::Town;

const NAME: &str = "changing";

/// What there is of a reservation: its slice and its node in the one cluster, its quota in the other.
fn parts(shop: &Side, edge: &Side, id: &str) -> [Option<Value>; 3] {
    let slice = "/apis/authentication.liqo.io/v1beta1/namespaces/liqo-tenant-edge/resourceslices";
    let slice = shop.get(&format!("{slice}/{id}"));
    let node = shop.get(&format!("/api/v1/nodes/{id}"));
    let quotas = "/apis/offloading.liqo.io/v1beta1/namespaces/liqo-tenant-shop/quotas";
    let quotas = edge.get(quotas).and_then(|list| list["items"].as_array().cloned());
    let is_its = |quota: &Value| quota["metadata"]["name"].as_str().unwrap().starts_with(id);
    let quota = quotas.unwrap_or_default().into_iter().find(is_its);
    [
        slice.map(|slice| slice["status"]["resources"].clone()),
        node.map(|node| node["status"]["allocatable"].clone()),
        quota.map(|quota| quota["spec"]["resources"].clone()),
    ]
}

/// Waits until everything has these amounts, and the broker has given back, or taken, the difference.
fn wait_until_sized(town: &Town, [shop, edge]: [&Side; 2], id: &str, (cpu, memory): (u32, &str)) {
    let (held, left) = (cpu.to_string(), (16 - cpu).to_string());
    let is = |part: &Option<Value>| {
        let part = part.as_ref()?;
        (part["cpu"] == *held && part["memory"] == memory).then_some(())
    };
    let mut seen = Value::Null;
    let sized = wait_for("other amounts", PATIENCE, || {
        let (all, known) = (parts(shop, edge, id), town.reservation(id));
        let free = at_broker(town, "edge")?["resources"]["available"]["cpu"].clone();
        seen = json!([all, known, free]);
        all.iter().try_for_each(is)?;
        let is_known = known["requestedResources"]["cpu"] == *held
            && known["acknowledged"] == known["generation"]
            && known["status"]["phase"] == "Active";
        (is_known && free == *left).then_some(())
    });
    assert!(sized.is_ok(), "cpu {cpu}: {seen:#}\n{}", edge.agent.log_tail());
}

/// Grown, shrunk and over, each by the request's spec alone.
pub(super) fn a_request_grows_shrinks_and_expires(town: &Town, shop: &Side, edge: &Side) {
    shop.member.cluster.apply(&REQUEST.replace("burst", NAME)).unwrap();
    let id = &shop.usable(NAME);
    let edit = |spec: Value| {
        let change = json!({ "spec": spec });
        shop.member.cluster.api().patch(&format!("{REQUESTS}/{NAME}"), &change).unwrap();
    };
    for (cpu, memory) in [(6, "9Gi"), (2, "3Gi")] {
        edit(json!({ "requestedCPU": cpu.to_string(), "requestedMemory": memory }));
        wait_until_sized(town, [shop, edge], id, (cpu, memory));
    }

    edit(json!({ "duration": "3s" }));
    comes(&shop.agent, "its time to be over", || {
        let ended = town.reservation(id)["status"].clone();
        (ended["phase"] == "Released" && ended["reason"] == "Expired").then_some(())
    });
    comes(&shop.agent, "nothing of it on either side", || {
        parts(shop, edge, id).iter().all(Option::is_none).then_some(())
    });
    comes(&shop.agent, "the request to say so", || {
        let status = shop.request(NAME)?["status"].clone();
        let all = status["conditions"].as_array()?;
        let is_told = all.iter().any(|one| one["type"] == "Ready" && one["reason"] == "Expired");
        (status["phase"] == "Released" && is_told).then_some(())
    });
    comes(&edge.agent, "the capacity to be back after it", || {
        let free = at_broker(town, "edge")?["resources"]["available"].clone();
        (free["cpu"] == "16").then_some(())
    });
    shop.member.delete("resourcerequest", NAME);
}
