//! The act in which the broker is killed: what was acknowledged is there afterwards, and what was on
//! its way happens exactly once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sublet_core::id::Key;
use sublet_wire::client::{Client, Error};
use sublet_wire::v1::Reservation;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::acts::{ask, key};
use super::stage::Stage;
use super::world::World;

/// How many requests are on their way when the broker is killed.
const ON_THEIR_WAY: u32 = 20;
/// How long a caller goes on asking, and how often.
const PATIENCE: Duration = Duration::from_secs(20);
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// What must be the same after a crash.
fn essence(mut all: Vec<Reservation>) -> Vec<String> {
    all.sort_by(|a, b| a.id.cmp(&b.id));
    let one = |r: &Reservation| {
        let (phase, amounts) = (&r.status.phase, &r.requested_resources);
        format!("{} {phase} {} {} {amounts:?}", r.id, r.requester_id, r.target_cluster_id)
    };
    all.iter().map(one).collect()
}

/// Plays it.
pub(super) async fn survive(world: &mut World, stage: &mut Stage) -> Result<()> {
    stage.title("kill -9 hits the broker in the middle of twenty requests").await?;
    let before = essence(world.reservations().await?);
    let shop = world.client("shop")?;
    let mut callers = JoinSet::new();
    for number in 0..ON_THEIR_WAY {
        let (client, key) = (shop.clone(), key(&format!("crash-{number}"))?);
        callers.spawn(async move { persist(&client, &key).await });
    }
    let first = callers.join_next().await.context("nobody asked")???;
    let pid = world.broker.pid();
    world.broker.kill()?;
    stage.say(format!("{} was answered; process {pid} is dead", first.id)).await?;
    world.broker.restart().await?;
    stage.say(format!("process {} reads the log and serves again", world.broker.pid())).await?;
    let mut answered = vec![first];
    while let Some(answer) = callers.join_next().await {
        answered.push(answer??);
    }
    check_survival(world, &before, &answered).await?;
    stage.say(format!(
        "all {ON_THEIR_WAY} have an answer, each exactly one reservation; what was there before \
         is there, unchanged"
    ))
    .await?;
    world.forget_heard();
    give_back(&shop, world).await?;
    stage.table(&world.all_active().await?).await
}

/// Asks again under the same key until the outcome is known. A broker that has just come back
/// remembers the clusters, but does not choose one before it has heard of it again: until then it
/// says 503.
async fn persist(client: &Client, key: &Key) -> Result<Reservation, Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        match client.reserve_under(&ask("100m", "64Mi"), key).await {
            Err(_) if Instant::now() < until => tokio::time::sleep(ASK_AGAIN).await,
            answer => return answer,
        }
    }
}

/// Everything from before is there, and each caller has one reservation.
async fn check_survival(world: &World, before: &[String], answered: &[Reservation]) -> Result<()> {
    let after = world.reservations().await?;
    let is_new = |r: &Reservation| r.key.as_deref().is_some_and(|key| key.starts_with("crash-"));
    let (new, old): (Vec<_>, Vec<_>) = after.into_iter().partition(is_new);
    let old = essence(old);
    ensure!(old == before, "before the crash: {before:#?}\nafter it: {old:#?}");
    ensure!(new.len() == answered.len(), "{} reservations, {} answers", new.len(), answered.len());
    for one in answered {
        ensure!(new.iter().any(|new| new.id == one.id), "{} was acknowledged and is lost", one.id);
    }
    Ok(())
}

/// Gives back what the crash was played with.
async fn give_back(shop: &Client, world: &World) -> Result<()> {
    let mut released = Vec::new();
    for number in 0..ON_THEIR_WAY {
        released.extend(shop.release_by_key(&key(&format!("crash-{number}"))?).await?);
    }
    for reservation in released {
        world.in_phase(&reservation.id, "Released").await?;
    }
    Ok(())
}
