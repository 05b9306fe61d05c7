//! A provider that is lost.

use serde_json::{Value, json};
use sublet_agent::peering::{Peering as _, Removal};
use sublet_agent::transport::Order;
use sublet_core::instruction::{Duty, Side};
use sublet_testkit::Part;
use sublet_testkit::wait::Stopwatch;

use super::guests::{ABROAD, offload, pod_path, put, remote};
use super::world::{World, is_gone, is_late, small, when, when_gone};
use crate::on_kubernetes::until::until;

pub(super) async fn a_lost_provider_is_given_up_and_cleans_up_when_it_returns(
    world: &mut World<'_>,
) {
    world.keep("rsv-lost", &small()).await;
    offload(world).await;
    put(world, "guest", "rsv-lost", json!({})).await;
    world.milan.stop().await;
    let milan = &world.rig.clusters[1];
    milan.part(Part::ApiServer).kill();
    let foreign = "/apis/core.liqo.io/v1beta1/foreignclusters/milan";
    when(&world.rome.api, foreign, |found| {
        // Before Liqo has looked for the first time, it says nothing.
        super::world::condition(found, "APIServerStatus").is_some_and(|said| said != "Established")
    })
    .await;
    let clock = Stopwatch::start();
    // That the broker says it is gone, and not to be taken down, means that nobody waits for Milan.
    let lost = Order { duty: Duty::Gone, ..world.rome.order("rsv-lost", &small()) };
    // It could have confirmed, and be back in a moment.
    assert!(matches!(world.rome.peering.withdraw(&lost).await, Removal::Pending(_)));
    let annotations = |found: &Value| found["metadata"]["annotations"].clone();
    let given_up = "liqo.io/foreign-cluster-permanently-unreachable";
    let found = world.rome.api.get(foreign).unwrap();
    let mut conditions = found["status"]["conditions"].as_array().unwrap().iter();
    let said = conditions.find(|said| said["type"] == "APIServerStatus").unwrap();
    assert!(annotations(&found)[given_up].is_null() || is_late(&said["lastTransitionTime"]));
    world.rome.is_gone(&lost).await;
    assert_eq!(annotations(&world.rome.api.get(foreign).unwrap())[given_up], "true");
    eprintln!("  given up after {:?}", clock.elapsed());
    assert!(is_gone(&world.rome.api, "/api/v1/nodes/rsv-lost"));
    assert!(is_gone(&world.rome.api, &pod_path("guest")));
    assert!(is_gone(&world.rome.api, &world.rome.slice("rsv-lost")));

    milan.start_part(Part::ApiServer).unwrap();
    // That is over when Liqo reaches it again, whether or not anybody asks something of it.
    when(&world.rome.api, foreign, |found| annotations(found)[given_up].is_null()).await;
    assert_eq!(remote(&world.milan.api).len(), 1, "Milan still has it");
    world.milan.restart().await;
    // Its list of the broker's has nothing of it.
    world.forget("rsv-lost");
    let sweep = || async {
        world.milan.peering.sweep(&[Side::Provider], &|_: Side, _: &str| false).await;
        let quotas = world.milan.api.get(&world.milan.liqo("offloading", "quotas")).unwrap();
        (remote(&world.milan.api).is_empty() && quotas["items"] == json!([])).then_some(())
    };
    until("Milan gives nothing any more", sweep).await;
    when_gone(&world.milan.api, &world.milan.slice("rsv-lost")).await;
    // With the last of it go the namespaces that it had there.
    when_gone(&world.milan.api, ABROAD).await;
    let maps = world.milan.liqo("offloading", "namespacemaps");
    let is_gone =
        || async { (world.milan.api.get(&maps).unwrap()["items"] == json!([])).then_some(()) };
    until("no map is left", is_gone).await;

    // And it can be asked again.
    world.keep("rsv-anew", &small()).await;
    world.end("rsv-anew").await;
}
