//! The same request on many connections: as fast as the answers come, or at a rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::clock::{self, Waits, f64_of};
use crate::connection::{Connection, Door};
use crate::order::{Flood, Meter, Seen};
use crate::requests::Encoded;

/// What is sent before it counts: caches, buffers and the branch predictor get to know it.
const WARM_PART: u32 = 5;

pub(crate) async fn run(door: &Door, server: u32, flood: Flood) -> Result<Seen> {
    let mut connections = Vec::new();
    for cluster in 0..flood.connections {
        connections.push((Encoded::new(flood.what, cluster), door.enter(cluster).await?));
    }
    let length = Duration::from_millis(flood.millis);
    let start = clock::now() + length / WARM_PART;
    let end = start + length;
    // Every number is sent once, whoever sends it.
    let numbers = Arc::new(AtomicU64::new(flood.first));
    let every = flood.rate.map(|rate| Duration::from_secs_f64(f64_of(flood.connections) / rate));
    let mut tasks = JoinSet::new();
    for (number, (request, connection)) in (0..).zip(connections) {
        let offset = every.unwrap_or_default() * number / u32::try_from(flood.connections)?;
        let first = every.map(|every| (clock::now() + offset, every));
        let caller = Caller { connection, request, numbers: Arc::clone(&numbers) };
        tasks.spawn(caller.call(start, end, first));
    }
    tokio::time::sleep_until(start.into()).await;
    let meter = Meter::start(server)?;
    tokio::time::sleep_until(end.into()).await;
    let mut seen = meter.end()?;
    let mut all = Waits::new()?;
    while let Some(waits) = tasks.join_next().await {
        all.join(&waits??)?;
    }
    seen.waits = Some(all.spread());
    Ok(seen)
}

struct Caller {
    connection: Connection,
    request: Encoded,
    numbers: Arc<AtomicU64>,
}

impl Caller {
    /// Calls from now until the end, and keeps the times of what was answered in between. With a
    /// rhythm, a call that is due while the last one is unanswered has waited since it was due; one
    /// for which the generator woke up late has not.
    async fn call(
        mut self,
        start: Instant,
        end: Instant,
        mut due: Option<(Instant, Duration)>,
    ) -> Result<Waits> {
        let mut waits = Waits::new()?;
        loop {
            let mut began = clock::now();
            if let Some((at, every)) = &mut due {
                if *at > began {
                    tokio::time::sleep_until((*at).into()).await;
                    began = clock::now();
                } else {
                    began = *at;
                }
                *at += *every;
            }
            if clock::now() >= end {
                return Ok(waits);
            }
            self.request.number(self.numbers.fetch_add(1, Ordering::Relaxed));
            self.connection.call(&self.request.bytes).await?;
            let answered = clock::now();
            if answered >= start && answered < end {
                waits.add(answered - began);
            }
        }
    }
}
