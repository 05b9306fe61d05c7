//! A provider whose operator mixed up two clusters when he loaded their keys: they are not joined, and whoever
//! asks is told why, in either cluster and at the broker.

use serde_json::{Value, json};
use sublet_testkit::wait::Stopwatch;

use super::super::member::{REQUEST, at_broker, comes};
use super::draining::ready;
use super::side::Side;
use crate::broker::Town;

const NAME: &str = "unpinned";
const PINS: &str = "/api/v1/namespaces/sublet/configmaps";
/// What is in the way, and what to do about it.
const WORD: &str = "KeyNotPinned";
const REMEDY: &str = "change the pin in the ConfigMap sublet-liqo-keys";

/// The Liqo key of a cluster, as its operator gives it to others.
fn key_of(side: &Side) -> String {
    let template = "go-template={{.data.publicKey | base64decode}}";
    let secret = ["get", "secret", "-n", "liqo", "authentication-keys", "-o", template];
    side.member.cluster.kubectl(&secret).unwrap()
}

/// Does it say so, and what to do?
fn is_told(said: &Value) -> Option<()> {
    let message = said["message"].as_str()?;
    (said["reason"] == WORD && message.contains(REMEDY)).then_some(())
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind)
}

/// Both instructions say it, and the request, before anything is given up.
fn both_clusters_say_it([shop, edge]: [&Side; 2], id: &str) {
    let provider = format!("{id}-provider");
    for (side, kind, name, what) in [
        (shop, "reservationinstruction", id, "Peered"),
        (edge, "providerinstruction", provider.as_str(), "Enforced"),
    ] {
        comes(&side.agent, &format!("{WORD} of the {kind}"), || {
            is_told(condition(&side.member.object(kind, name)?, what)?)
        });
    }
    comes(&shop.agent, &format!("{WORD} of the request"), || is_told(ready(&shop.request(NAME)?)?));
}

/// So do the broker and the command line, to the operator and to whoever asked for it.
fn the_broker_says_it(town: &Town, id: &str) {
    let all = town.asked("get reservations -a -o json");
    let its = all.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    let status = &its["status"];
    assert_eq!([&status["phase"], &status["obstacle"]], ["Failed", WORD], "{status}");
    assert!(status["message"].as_str().unwrap().contains(REMEDY), "{status}");
    let wide = town.ok_as("shop", "get reservations -a -o wide");
    // There is nothing left to explain but this.
    let explained = town.run_as("shop", &format!("explain {id}")).err;
    for said in [wide, explained] {
        assert!(said.contains(WORD) && said.contains(REMEDY), "{said}");
    }
}

/// edge has the key of yard for that of shop.
pub(super) fn a_key_that_is_not_pinned_is_said_everywhere(town: &Town, sides: &[Side]) {
    let [shop, edge, yard] = sides else { panic!("three clusters") };
    let clock = Stopwatch::start();
    let pins = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "sublet-liqo-keys" }, "data": { "shop": key_of(yard) },
    });
    edge.member.cluster.api().create(PINS, &pins).unwrap();
    let request = REQUEST.replace("burst", NAME);
    shop.member.cluster.apply(&format!("{request}  targetClusterID: edge\n")).unwrap();
    let id = comes(&shop.agent, "a reservation", || {
        let status = shop.request(NAME)?["status"].clone();
        status["reservationName"].as_str().filter(|id| !id.is_empty()).map(str::to_owned)
    });
    both_clusters_say_it([shop, edge], &id);
    eprintln!("{WORD} is said in both clusters after {:?}", clock.elapsed());

    // Another letter could have put it right; none did.
    comes(&shop.agent, "the end of the reservation", || {
        let found = shop.request(NAME)?;
        is_told(ready(&found)?).filter(|()| found["status"]["phase"] == "Failed")
    });
    the_broker_says_it(town, &id);
    comes(&edge.agent, "the capacity to be back after it", || {
        (at_broker(town, "edge")?["resources"]["available"]["cpu"] == "16").then_some(())
    });
    shop.member.delete("resourcerequest", NAME);
    let right = json!({ "data": { "shop": key_of(shop) } });
    edge.member.cluster.api().patch(&format!("{PINS}/sublet-liqo-keys"), &right).unwrap();
    eprintln!("{WORD} is said at the broker, and mended, after {:?}", clock.elapsed());
}
