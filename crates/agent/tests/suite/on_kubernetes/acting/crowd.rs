//! Two hundred requests at once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::json;
use sublet_crds::RequestPhase;
use tokio::time::Instant;

use super::World;
use crate::on_kubernetes::until::{PATIENCE, until};

const MANY: usize = 200;
/// So many of them are what Milan has.
const EACH: &str = "80m";
const CORES: u32 = 16;

/// When each request was seen to be reserved.
async fn reserved(world: &World, since: Instant) -> BTreeMap<String, Duration> {
    let mut seen = BTreeMap::new();
    let open = || async {
        world.rome.requests().watch(&WatchParams::default(), "0").await.unwrap().boxed()
    };
    let mut watch = open().await;
    while seen.len() < MANY {
        let event = tokio::time::timeout(PATIENCE, watch.try_next()).await;
        let event = event.unwrap_or_else(|_| panic!("only {} were reserved", seen.len()));
        let request = match event {
            Ok(Some(WatchEvent::Added(request) | WatchEvent::Modified(request))) => request,
            Ok(Some(WatchEvent::Deleted(_) | WatchEvent::Bookmark(_))) => continue,
            // A server under load cuts watches; another one begins with what is there.
            ended => {
                assert!(since.elapsed() < PATIENCE, "{ended:?}, {} were reserved", seen.len());
                tokio::time::sleep(Duration::from_millis(50)).await;
                watch = open().await;
                continue;
            }
        };
        let phase = request.status.as_ref().and_then(|status| status.phase);
        if matches!(phase, Some(RequestPhase::Reserved | RequestPhase::Active)) {
            let name = request.metadata.name.unwrap_or_default();
            seen.entry(name).or_insert_with(|| since.elapsed());
        }
    }
    seen
}

pub(super) async fn two_hundred_at_once_are_all_reserved_and_nothing_twice(world: &World) {
    world.milan.advertise(CORES).await;
    let spec = json!({ "requestedCPU": EACH, "requestedMemory": "64Mi" });
    let names: Vec<_> = (0..MANY).map(|index| format!("crowd-{index}")).collect();
    let start = Instant::now();
    let asks =
        futures_util::future::join_all(names.iter().map(|name| world.ask(name, spec.clone())));
    let ((), seen) = tokio::join!(async { drop(asks.await) }, reserved(world, start));
    let mut times: Vec<_> = seen.into_values().collect();
    times.sort();
    eprintln!(
        "  {MANY} requests at once: the first Reserved after {:?}, half of them {:?}, the last {:?}",
        times[0],
        times[MANY / 2],
        times[MANY - 1]
    );
    // Not one fits beside them, so that not one less is held.
    let little = json!({ "requestedCPU": "1m", "requestedMemory": "1Mi" });
    world.ask("late", little).await;
    world.in_phase("late", RequestPhase::Failed).await;
    world.balances(MANY).await;
    let held: u64 = world
        .rome
        .reservations()
        .await
        .iter()
        .filter(|one| super::is_live(one))
        .map(|one| {
            let amounts = one.requested_resources.resources("", sublet_core::quantity::Round::Up);
            amounts.unwrap().cpu
        })
        .sum();
    assert_eq!(held, u64::from(CORES) * 1000, "all of it, and nothing twice");
    for name in names.iter().map(String::as_str).chain(["late"]) {
        world.delete(name).await;
    }
    until("all of them to go", || async {
        let left = world.rome.requests().list(&ListParams::default()).await.unwrap();
        left.items.is_empty().then_some(())
    })
    .await;
    world.is_clean().await;
}
