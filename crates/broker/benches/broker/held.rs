//! Agents that are connected and idle: each has said what it has and reads its stream. Then a
//! provider among them is told of reservations.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sublet_wire::paths;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::{self, Waits};
use crate::connection::{Connection, Door};
use crate::order::{Meter, Seen};
use crate::requests::{self, Encoded, What};

/// The provider that is told.
const PROVIDER: u64 = 0;

pub(crate) async fn run(
    door: &Door,
    server: u32,
    count: u64,
    length: Duration,
    tells: u64,
) -> Result<Seen> {
    let before = Meter::start(server)?.end()?.before;
    let mut requester = door.enter(count).await?;
    let (told, mut lines) = mpsc::channel(16);
    let mut readers = JoinSet::new();
    for cluster in 0..count {
        let stream = open(door, cluster).await?;
        let told = (cluster == PROVIDER).then(|| told.clone());
        readers.spawn(read(stream, told));
    }
    drop(told);
    let meter = Meter::start(server)?;
    tokio::select! {
        () = tokio::time::sleep(length) => {}
        Some(ended) = readers.join_next() => ended??,
    }
    let mut seen = meter.end()?;
    seen.before = before;
    // A provider is chosen only while it is heard.
    let mut request = Encoded::new(What::Advertise, PROVIDER);
    request.number(2);
    door.enter(PROVIDER).await?.call(&request.bytes).await?;
    let (mut waits, mut arrivals) = (Waits::new()?, Waits::new()?);
    let mut request = requests::reserve(count, Some(PROVIDER));
    for number in 0..tells {
        request.number(number);
        let began = clock::now();
        let answer = requester.call(&request.bytes);
        let (answer, line) = tokio::join!(answered(answer), lines.recv());
        waits.add(answer? - began);
        arrivals.add(line.context("the provider's stream ended")? - began);
    }
    (seen.waits, seen.told) = (Some(waits.spread()), Some(arrivals.spread()));
    Ok(seen)
}

async fn answered<'a>(answer: impl Future<Output = Result<&'a [u8]>>) -> Result<Instant> {
    answer.await?;
    Ok(clock::now())
}

/// Says what the cluster has, and opens its stream on the same connection.
pub(crate) async fn open(door: &Door, cluster: u64) -> Result<Connection> {
    let mut connection = door.enter(cluster).await?;
    let mut request = Encoded::new(What::Advertise, cluster);
    request.number(1);
    connection.call(&request.bytes).await?;
    let watch = requests::get(&format!("{}?watch=true", paths::INSTRUCTIONS));
    let answer = connection.ask(watch.as_bytes()).await?;
    anyhow::ensure!(answer.status == 200, "a stream was answered with {}", answer.status);
    // The list that it begins with ends with a bookmark.
    while !is_of(connection.line().await?, b"BOOKMARK") {}
    Ok(connection)
}

/// Reads a stream, which never ends, and passes on when it was told something.
pub(crate) async fn read(
    mut stream: Connection,
    told: Option<mpsc::Sender<Instant>>,
) -> Result<()> {
    loop {
        let line = stream.line().await?;
        let arrived = clock::now();
        if is_of(line, b"GOODBYE") {
            bail!("the server said goodbye");
        }
        if let (true, Some(told)) = (is_of(line, b"INSTRUCTION"), &told) {
            // Whoever does not listen any more knows enough.
            told.send(arrived).await.ok();
        }
    }
}

/// Is the line of this kind? The kind is what it begins with.
fn is_of(line: &[u8], kind: &[u8]) -> bool {
    line.strip_prefix(br#"{"type":""#).is_some_and(|rest| rest.starts_with(kind))
}
