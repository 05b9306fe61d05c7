//! Our admission policies are there, whoever removes or changes them; and what got in without them is seen.

use serde_json::{Value, json};

use super::forging::asked_by_rome;
use super::hostile::{Rogue, decided, is_decided, refusals, replicator, slice};
use super::snapshot::Snapshot;
use super::world::{World, small, when, when_gone};
use crate::on_kubernetes::logged::is_logged;
use crate::on_kubernetes::until::until;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// How often Milan's agent has put one back.
fn repairs(world: &World<'_>) -> u64 {
    let page = world.milan.metrics.page();
    let mut counts =
        page.lines().filter_map(|line| line.strip_prefix("sublet_agent_policy_repairs_total "));
    counts.next().map_or(0, |count| count.trim().parse().unwrap())
}

async fn is_repaired(world: &World<'_>, times: u64) {
    let what = format!("{times} repairs of policies");
    until(&what, || async { (repairs(world) >= times).then_some(()) }).await;
}

/// At once, and not at the next look: only who watches them counts.
pub(super) async fn a_policy_that_somebody_removes_is_back_at_once(world: &mut World<'_>) {
    let api = &world.milan.api;
    let version = |found: &Value| found["metadata"]["resourceVersion"].clone();
    for kind in ["validatingadmissionpolicies", "validatingadmissionpolicybindings"] {
        for name in ["sublet-liqo-slices", "sublet-liqo-pods", "sublet-liqo-copies"] {
            let path = format!("{ADMISSION}/{kind}/{name}");
            let (found, known) = (when(api, &path, |_| true).await, repairs(world));
            api.delete(&path).unwrap();
            is_repaired(world, known + 1).await;
            is_logged(&["WARN", "it is put back", name]).await;
            let back = when(api, &path, |back| version(back) != version(&found)).await;
            assert_eq!(back["spec"], found["spec"]);
        }
    }
    // One that lets everybody through is worth as much as none.
    let path = format!("{ADMISSION}/validatingadmissionpolicybindings/sublet-liqo-slices");
    let (found, known) = (api.get(&path).unwrap(), repairs(world));
    api.patch(&path, &json!({ "spec": { "validationActions": ["Audit"] } })).unwrap();
    is_repaired(world, known + 1).await;
    when(api, &path, |back| back["spec"] == found["spec"]).await;
    // What is as it should be is not written again.
    let (at_rest, known) = (version(&api.get(&path).unwrap()), repairs(world));
    world.keep("rsv-policed", &small()).await;
    let (rogue, before) = (Rogue::of_cluster(world), refusals(world));
    let refused = || async { rogue.create(world, &slice("rsv-own", "default", "64")).err() };
    let refused = until("that the policy is in force", refused).await;
    assert!(refused.contains("only slices of reservations"), "{refused}");
    assert!(refusals(world) > before);
    world.end("rsv-policed").await;
    assert_eq!((version(&api.get(&path).unwrap()), repairs(world)), (at_rest, known));
}

/// Rome's own certificate is enough, while the agent is away and so is what refuses it.
async fn by_the_back_door(world: &mut World<'_>, wanted: &Value) {
    let (rogue, known) = (Rogue::of_cluster(world), refusals(world));
    let refused = || async { rogue.create(world, wanted).err() };
    let refused = until("that the policy is in force", refused).await;
    assert!(refused.contains("only slices of reservations"), "{refused}");
    assert!(refusals(world) > known, "what a policy refuses is counted");
    world.milan.stop().await;
    let binding = format!("{ADMISSION}/validatingadmissionpolicybindings/sublet-liqo-slices");
    world.milan.api.delete(&binding).unwrap();
    until("that nothing refuses it", || async { rogue.create(world, wanted).ok() }).await;
}

/// Milan's agent comes back, and sees it.
async fn is_seen(world: &mut World<'_>) {
    world.milan.restart().await;
    is_decided(world, "foreign_class", 1).await;
    let events = "/apis/events.k8s.io/v1/namespaces/liqo-tenant-rome/events";
    let is_said = |found: &Value| {
        let mut all = found["items"].as_array().into_iter().flatten();
        all.any(|event| event["reason"] == "ForeignClass" && event["regarding"]["name"] == OPEN)
    };
    when(&world.milan.api, events, is_said).await;
    is_logged(&["WARN", "a slice of another class is here", OPEN]).await;
}

const OPEN: &str = "by-the-back-door";

/// Who has joined the clusters by hand may have wanted it so.
pub(super) async fn a_slice_of_liqos_own_class_is_seen(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    replicator(world).kill();
    by_the_back_door(world, &slice(OPEN, "default", "64")).await;
    is_seen(world).await;
    // Another agent sees it too, and says it once.
    world.milan.restart().await;
    is_decided(world, "foreign_class", 1).await;
    let path = world.milan.slice(OPEN);
    assert!(world.milan.api.get(&path).unwrap()["metadata"]["deletionTimestamp"].is_null());
    world.milan.api.delete(&path).unwrap();
    when_gone(&world.milan.api, &path).await;
    assert_eq!(decided(world, "expelled"), 0);
    replicator(world).start().unwrap();
    before.is_back(world).await;
}

/// Where agents have joined them, nobody has. Liqo grants it what it asks for, and that is taken away.
pub(super) async fn a_slice_of_liqos_own_class_does_not_stay(world: &mut World<'_>) {
    let before = Snapshot::of(world).await;
    world.keep("rsv-honest", &small()).await;
    replicator(world).kill();
    let mut wanted = slice(OPEN, "default", "64");
    wanted["spec"]["csr"] = json!(asked_by_rome(world, OPEN));
    by_the_back_door(world, &wanted).await;
    let quotas = world.milan.liqo("offloading", "quotas");
    let has = |found: &Value, cpu: &str| {
        let mut all = found["items"].as_array().into_iter().flatten();
        all.any(|quota| quota["spec"]["resources"]["cpu"] == cpu)
    };
    when(&world.milan.api, &quotas, |found| has(found, "64")).await;
    is_seen(world).await;
    is_decided(world, "expelled", 1).await;
    is_logged(&["WARN", "a slice of another class is removed", OPEN]).await;
    when_gone(&world.milan.api, &world.milan.slice(OPEN)).await;
    let left = when(&world.milan.api, &quotas, |found| !has(found, "64")).await;
    assert!(has(&left, "2"), "what is reserved stays: {left}");
    // One that gets in while the policy is on its way goes as the first did.
    let again = || async {
        let made = Rogue::of_cluster(world).create(world, &wanted);
        made.err().filter(|refused| !refused.contains("already exists"))
    };
    let refused = until("that it cannot come back", again).await;
    assert!(refused.contains("only slices of reservations"), "{refused}");
    replicator(world).start().unwrap();
    world.keep("rsv-honest", &small()).await;
    world.end("rsv-honest").await;
    before.is_back(world).await;
}
