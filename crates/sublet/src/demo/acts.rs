//! The play itself: each act shows one promise, and checks it.

use anyhow::{Context, Result, bail, ensure};
use sublet_core::id::Key;
use sublet_core::instruction::{Duty, Side};
use sublet_wire::Code;
use sublet_wire::client::Error;
use sublet_wire::v1::{Quantities, Reservation, ReservationRequest};
use tokio::task::JoinSet;

use super::agent::Heard;
use super::crash;
use super::stage::Stage;
use super::world::World;
use crate::borrow::request::in_our_words;

/// How many ask at once.
const CALLERS: u32 = 10;

/// Plays all acts.
pub(super) async fn play(world: &mut World, stage: &mut Stage) -> Result<()> {
    advertise(world, stage).await?;
    let web = decide(world, stage).await?;
    instruct(world, stage, &web).await?;
    retry(world, stage, &web).await?;
    refuse(world, stage).await?;
    let winner = contend(world, stage).await?;
    wait(world, stage, &winner).await?;
    expire(world, stage).await?;
    crash::survive(world, stage).await?;
    release(world, stage, &web).await?;
    audit(world, stage).await?;
    world.forget_heard();
    Ok(())
}

/// What somebody asks for.
pub(super) fn ask(cpu: &str, memory: &str) -> ReservationRequest {
    let (cpu, memory) = (cpu.into(), memory.into());
    ReservationRequest {
        requested_resources: Quantities { cpu, memory, ..Quantities::default() },
        explain: true,
        activates: true,
        ..ReservationRequest::default()
    }
}

fn gpu() -> ReservationRequest {
    let mut request = ask("1", "1Gi");
    request.requested_resources.gpu = Some("1".into());
    request
}

pub(super) fn key(text: &str) -> Result<Key> {
    Ok(text.parse()?)
}

/// What a cluster heard and did, in a sentence.
pub(super) fn sentence(heard: &Heard) -> String {
    let Heard { cluster, instruction } = heard;
    let (peer, id) = (&instruction.peer_id, &instruction.reservation_id);
    let Quantities { cpu, memory, gpu, .. } = &instruction.resources;
    let gpu = gpu.as_ref().map_or_else(String::new, |gpu| format!(", gpu {gpu}"));
    let amounts = format!("cpu {cpu}, memory {memory}{gpu}");
    let number = instruction.generation;
    match (instruction.side(), instruction.duty()) {
        (Some(Side::Provider), Some(Duty::Keep)) => {
            format!("{cluster} is told: keep {amounts} for {peer} ({id}, no. {number}); confirms")
        }
        (Some(Side::Provider), Some(Duty::TakeDown)) => {
            format!("{cluster} is told: take {id} of {peer} down (no. {number}); confirms")
        }
        (Some(Side::Requester), Some(Duty::Keep)) => {
            format!("{cluster} is told: use {amounts} on {peer} ({id}, no. {number}); activates")
        }
        (Some(Side::Requester), Some(Duty::TakeDown)) => {
            format!("{cluster} is told: stop using {id} on {peer} (no. {number})")
        }
        _ => format!("{cluster} is told: nothing is left of {id} with {peer}"),
    }
}

async fn advertise(world: &mut World, stage: &mut Stage) -> Result<()> {
    stage.title("Three clusters publish what they have, over mTLS, to a real broker").await?;
    let (url, pid) = (world.broker.url(), world.broker.pid());
    stage.say("A development CA has issued five certificates: broker, operator, clusters.").await?;
    stage.say(format!("The broker is process {pid} at {url}; its log is one SQLite file.")).await?;
    let clusters = world.all_active().await?;
    stage.table(&clusters).await?;
    let free = |name: &str| {
        let cluster = clusters.iter().find(|cluster| cluster.cluster_id == name);
        cluster.and_then(|c| c.resources.as_ref()).map(|r| r.available.cpu.clone())
    };
    ensure!(free("shop").as_deref() == Some("1"), "shop should have one core free");
    ensure!(free("edge").as_deref() == Some("6"), "edge should have six cores free");
    ensure!(free("hub").as_deref() == Some("12"), "hub should have twelve cores free");
    Ok(())
}

async fn decide(world: &mut World, stage: &mut Stage) -> Result<Reservation> {
    stage.title("shop asks for two cores; the broker decides, writes, and says why").await?;
    let request = ReservationRequest { duration: Some("1h".into()), ..ask("2", "4Gi") };
    let web = world.client("shop")?.reserve_under(&request, &key("web")?).await?;
    stage.table(std::slice::from_ref(&web)).await?;
    ensure!(web.target_cluster_id == "hub", "hub keeps the largest share free, not {web:?}");
    let why = web.explanation.as_ref().context("the grant came without its reasons")?;
    ensure!(why.text.starts_with("hub"), "the reasons are of another cluster: {}", why.text);
    ensure!(why.text.contains("edge"), "who came next is not named: {}", why.text);
    stage.say(format!("why: {}", why.text)).await?;
    Ok(web)
}

async fn instruct(world: &mut World, stage: &mut Stage, web: &Reservation) -> Result<()> {
    stage
        .title("Both sides are told by a stream; the provider confirms, the requester uses it")
        .await?;
    let keep = world.told("hub", &web.id, Duty::Keep).await?;
    ensure!(keep.instruction.peer_id == "shop", "hub keeps it for another: {keep:?}");
    stage.say(sentence(&keep)).await?;
    let using = world.told("shop", &web.id, Duty::Keep).await?;
    ensure!(using.instruction.peer_id == "hub", "shop uses another: {using:?}");
    stage.say(sentence(&using)).await?;
    let active = world.in_phase(&web.id, "Active").await?;
    stage.table(std::slice::from_ref(&active)).await
}

async fn retry(world: &mut World, stage: &mut Stage, web: &Reservation) -> Result<()> {
    stage.title("The answer got lost? The same key brings the same reservation").await?;
    let shop = world.client("shop")?;
    let request = ReservationRequest { duration: Some("1h".into()), ..ask("2", "4Gi") };
    let again = shop.reserve_under(&request, &key("web")?).await?;
    ensure!(again.id == web.id, "a repeat made another reservation: {again:?}");
    stage.say(format!("again {}, and nothing more is held", again.id)).await?;
    let other = shop.reserve_under(&ask("3", "4Gi"), &key("web")?).await;
    let refusal = refused(other, Code::KeyReused)?;
    stage.say(format!("another request under that key: {refusal}")).await
}

async fn refuse(world: &mut World, stage: &mut Stage) -> Result<()> {
    stage.title("What nobody has is refused, with what would have been enough").await?;
    let answer = world.client("shop")?.reserve(&ask("100", "4Gi"), None).await;
    let refusal = refused(answer, Code::NoSuitableCluster)?;
    stage.say(refusal).await
}

/// The refusal that was expected, in its words.
fn refused(answer: Result<Reservation, Error>, code: Code) -> Result<String> {
    let error = match answer {
        Ok(reservation) => bail!("it should have been refused: {reservation:?}"),
        Err(error) => error,
    };
    ensure!(error.code() == Some(code), "it should have been refused as {code}: {error}");
    Ok(in_our_words(&error).unwrap_or_else(|| error.to_string()))
}

async fn contend(world: &mut World, stage: &mut Stage) -> Result<Reservation> {
    stage.title("Ten ask for the last GPU at the same moment: exactly one gets it").await?;
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let client = world.client(if number % 2 == 0 { "shop" } else { "edge" })?;
        let key = key(&format!("gpu-{number}"))?;
        callers.spawn(async move { client.reserve_under(&gpu(), &key).await });
    }
    let (mut granted, mut reasons) = (Vec::new(), Vec::new());
    for answer in callers.join_all().await {
        match answer {
            Ok(reservation) => granted.push(reservation),
            refusal => reasons.push(refused(refusal, Code::NoSuitableCluster)?),
        }
    }
    stage.table(&granted).await?;
    let reason = reasons.first().cloned().unwrap_or_default();
    stage.say(format!("{} others were refused: {reason}", reasons.len())).await?;
    ensure!(granted.len() == 1, "{} were granted the last GPU", granted.len());
    ensure!(reasons.len() == 9, "{} were refused", reasons.len());
    let held = world.reservations().await?;
    let gpus = held.iter().filter(|r| r.requested_resources.gpu.is_some()).count();
    ensure!(gpus == 1, "{gpus} reservations hold a GPU");
    granted.pop().context("nobody was granted")
}

async fn wait(world: &mut World, stage: &mut Stage, winner: &Reservation) -> Result<()> {
    stage.title("A patient one waits; when the winner gives the GPU back, it is next").await?;
    let request = ReservationRequest { wait: Some("10m".into()), ..gpu() };
    let patient = world.client("edge")?.reserve_under(&request, &key("patient")?).await?;
    ensure!(patient.status.phase == "Pending", "it should wait: {patient:?}");
    stage.table(std::slice::from_ref(&patient)).await?;
    world.in_phase(&winner.id, "Active").await?;
    let owner = world.client(&winner.requester_id)?;
    let released = owner.release(winner.id.parse()?).await?;
    let phase = &released.status.phase;
    stage.say(format!("{} releases {}: {phase}", winner.requester_id, winner.id)).await?;
    let down = world.told("hub", &winner.id, Duty::TakeDown).await?;
    stage.say(sentence(&down)).await?;
    world.in_phase(&winner.id, "Released").await?;
    let keep = world.told("hub", &patient.id, Duty::Keep).await?;
    stage.say(sentence(&keep)).await?;
    let active = world.in_phase(&patient.id, "Active").await?;
    stage.table(std::slice::from_ref(&active)).await
}

async fn expire(world: &mut World, stage: &mut Stage) -> Result<()> {
    stage.title("A reservation for two seconds ends by itself").await?;
    let request = ReservationRequest { duration: Some("2s".into()), ..ask("500m", "256Mi") };
    let brief = world.client("shop")?.reserve_under(&request, &key("brief")?).await?;
    stage.table(std::slice::from_ref(&brief)).await?;
    let down = world.told(&brief.target_cluster_id, &brief.id, Duty::TakeDown).await?;
    stage.say(sentence(&down)).await?;
    let over = world.in_phase(&brief.id, "Released").await?;
    ensure!(over.status.reason.as_deref() == Some("Expired"), "it ended otherwise: {over:?}");
    stage.say(format!("{} is {}: {}", over.id, over.status.phase, over.status.message)).await
}

async fn release(world: &mut World, stage: &mut Stage, web: &Reservation) -> Result<()> {
    stage.title("shop is done; capacity comes back when the provider has confirmed").await?;
    let released = world.client("shop")?.release(web.id.parse()?).await?;
    stage.table(std::slice::from_ref(&released)).await?;
    let down = world.told("hub", &web.id, Duty::TakeDown).await?;
    stage.say(sentence(&down)).await?;
    let over = world.in_phase(&web.id, "Released").await?;
    stage.table(std::slice::from_ref(&over)).await
}

async fn audit(world: &mut World, stage: &mut Stage) -> Result<()> {
    stage.title("The log is read back beside the running broker, and every sum is checked").await?;
    let log = sublet_log::Embedded::look(&world.folder().join("data"))?;
    let report = sublet_log::fsck::check(&log)?;
    ensure!(report.findings.is_empty(), "the log is not sound: {:#?}", report.findings);
    let (records, head) = (report.records, report.head.revision);
    stage.say(format!("{records} records up to revision {head}: nothing to object")).await?;
    let live = world.reservations().await?;
    let live: Vec<_> = live.into_iter().filter(|r| r.status.phase == "Active").collect();
    stage.table(&live).await?;
    ensure!(live.len() == 1, "one should be left, the patient one: {live:?}");
    let clusters = world.clusters().await?;
    let hub = clusters.iter().find(|cluster| cluster.cluster_id == "hub");
    let lent = hub.and_then(|hub| hub.resources.as_ref()?.reserved.as_ref());
    ensure!(lent.is_some_and(|lent| lent.cpu == "1"), "hub should lend one core: {lent:?}");
    Ok(())
}
