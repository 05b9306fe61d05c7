//! Agents at the cadence of the Go agents: an advertisement every 30 seconds, and instructions every
//! 5 seconds by asking for them, as the Go agents do, or by a stream, as ours do.

use std::time::Duration;

use anyhow::Result;
use sublet_wire::paths;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::clock;
use crate::connection::{Connection, Door};
use crate::held;
use crate::order::{Meter, Seen};
use crate::requests::{self, Encoded, What};

const ADVERTISE_EVERY: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_secs(5);

pub(crate) async fn run(
    door: &Door,
    server: u32,
    count: u32,
    as_go: bool,
    length: Duration,
) -> Result<Seen> {
    let mut tasks = JoinSet::new();
    let start = Instant::from(clock::now());
    // Spread over their period, as agents are that were not started together.
    let first = |every: Duration, number: u32| start + every * number / count;
    for number in 0..count {
        let cluster = u64::from(number);
        let mut connection = door.enter(cluster).await?;
        if as_go {
            connection.call(requests::go_advertise(cluster).as_bytes()).await?;
            tasks.spawn(go(connection, cluster, first(ASK_EVERY, number)));
        } else {
            tasks.spawn(held::read(held::open(door, cluster).await?, None));
            tasks.spawn(ours(connection, cluster, first(ADVERTISE_EVERY, number)));
        }
    }
    let meter = Meter::start(server)?;
    tokio::select! {
        () = tokio::time::sleep(length) => {}
        Some(ended) = tasks.join_next() => ended??,
    }
    meter.end()
}

/// A Go agent: looks at its advertisement before it sends the next one.
async fn go(mut connection: Connection, cluster: u64, mut at: Instant) -> Result<()> {
    let look = requests::get(&format!("{}/{}", paths::ADVERTISEMENTS, requests::name(cluster)));
    let (advertise, ask) = (requests::go_advertise(cluster), requests::get(paths::INSTRUCTIONS));
    let rounds = ADVERTISE_EVERY.as_secs() / ASK_EVERY.as_secs();
    // Not all of them advertise in the same five seconds.
    for turn in cluster.. {
        sleep_until(at).await;
        if turn % rounds == 0 {
            connection.call(look.as_bytes()).await?;
            connection.call(advertise.as_bytes()).await?;
        }
        connection.call(ask.as_bytes()).await?;
        at += ASK_EVERY;
    }
    Ok(())
}

/// Our agent, beside its stream.
async fn ours(mut connection: Connection, cluster: u64, mut at: Instant) -> Result<()> {
    let mut request = Encoded::new(What::Advertise, cluster);
    for number in 2.. {
        sleep_until(at).await;
        request.number(number);
        connection.call(&request.bytes).await?;
        at += ADVERTISE_EVERY;
    }
    Ok(())
}
