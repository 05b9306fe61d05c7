//! What the load generator is told to do, and what it says it saw. It is a process of its own with
//! one thread, so that what it costs is not counted as the server's, and is known.
#![expect(clippy::print_stdout, reason = "the load generator answers on its standard output")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::clock::{self, Spread};
use crate::connection::Door;
use crate::process::{resident, worked};
use crate::requests::{Encoded, What};
use crate::{agents, flood, held};

/// An order.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) address: SocketAddr,
    /// The server's process.
    pub(crate) server: u32,
    pub(crate) folder: PathBuf,
    pub(crate) task: Task,
}

/// What to do.
#[derive(Serialize, Deserialize)]
pub(crate) enum Task {
    /// The same request again and again; `first` is the number of the first.
    Flood(Flood),
    /// One request of a cluster, for the text of its answer.
    One(What, u64, u64),
    /// Every cluster up to this says what it has; `first` numbers it.
    Everybody { clusters: u64, first: u64 },
    /// Streams that are held open, and a provider that is told.
    Streams { count: u64, millis: u64, tells: u64 },
    /// Agents at their cadence.
    Agents { count: u32, as_go: bool, millis: u64 },
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Flood {
    pub(crate) what: What,
    pub(crate) connections: u64,
    pub(crate) millis: u64,
    pub(crate) first: u64,
    /// Per second, over all connections; without it, as fast as the answers come.
    pub(crate) rate: Option<f64>,
}

/// What was seen.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// From a request to its answer.
    pub(crate) waits: Option<Spread>,
    /// From a request until its provider has read of it.
    pub(crate) told: Option<Spread>,
    /// How long was measured, in seconds.
    pub(crate) seconds: f64,
    /// Processor time of the server during that.
    pub(crate) server: f64,
    /// Processor time of the generator during that.
    pub(crate) generator: f64,
    /// Resident bytes of the server before and after.
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The body of the last answer.
    pub(crate) answer: String,
}

impl Seen {
    pub(crate) fn rate(&self) -> f64 {
        self.waits.map_or(0.0, |waits| waits.count) / self.seconds
    }
}

/// Looks at the server's process: at the start, and at the end.
pub(crate) struct Meter {
    server: u32,
    began: std::time::Instant,
    server_worked: Duration,
    generator_worked: Duration,
    before: f64,
}

impl Meter {
    pub(crate) fn start(server: u32) -> Result<Self> {
        Ok(Self {
            server,
            server_worked: worked(server)?,
            generator_worked: worked(std::process::id())?,
            before: resident(server)?,
            began: clock::now(),
        })
    }

    pub(crate) fn end(self) -> Result<Seen> {
        let seconds = self.began.elapsed().as_secs_f64();
        let since = |now: Duration, then| now.saturating_sub(then).as_secs_f64();
        Ok(Seen {
            seconds,
            server: since(worked(self.server)?, self.server_worked),
            generator: since(worked(std::process::id())?, self.generator_worked),
            before: self.before,
            after: resident(self.server)?,
            ..Seen::default()
        })
    }
}

/// Does what an order says, and prints what it saw.
pub(crate) fn obey(order: &str) -> Result<()> {
    let Order { address, server, folder, task } = serde_json::from_str(order)?;
    let door = Door::new(address, &folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let seen = runtime.block_on(async {
        match task {
            Task::Flood(flood) => flood::run(&door, server, flood).await,
            Task::One(what, cluster, number) => one(&door, what, cluster, number).await,
            Task::Everybody { clusters, first } => {
                for cluster in 0..clusters {
                    one(&door, What::Advertise, cluster, first).await?;
                }
                Ok(Seen::default())
            }
            Task::Streams { count, millis, tells } => {
                held::run(&door, server, count, Duration::from_millis(millis), tells).await
            }
            Task::Agents { count, as_go, millis } => {
                agents::run(&door, server, count, as_go, Duration::from_millis(millis)).await
            }
        }
    })?;
    println!("{}", serde_json::to_string(&seen)?);
    Ok(())
}

async fn one(door: &Door, what: What, cluster: u64, number: u64) -> Result<Seen> {
    let mut request = Encoded::new(what, cluster);
    request.number(number);
    let mut connection = door.enter(cluster).await?;
    let answer = String::from_utf8_lossy(connection.call(&request.bytes).await?).into_owned();
    Ok(Seen { answer, ..Seen::default() })
}
