//! Callers, the same for whatever they call: tasks on one thread, each with one request at a time.
//!
//! That is how the broker calls its engine, and it leaves the second core to what is measured. A
//! thread for each of 256 callers would measure the scheduler of the system instead.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::clock;

/// What callers saw.
pub(crate) struct Seen {
    /// Answers per second.
    pub(crate) rate: f64,
    /// Half were answered within this many nanoseconds.
    pub(crate) p50: f64,
    /// 99 of 100 were.
    pub(crate) p99: f64,
}

/// How long what is asked does not count. A journal that has not reached its size yet grows with
/// every append, which costs a sync twice its time; it has after this, as in any broker that has run
/// for a while.
const WARM: Duration = Duration::from_millis(250);

/// Lets `callers` call for about so long, each again as soon as it was answered.
///
/// `call` gets the number of its caller and counts what that one asks for. `beside` runs where they
/// run, and ends with them.
pub(crate) fn drive<C, F>(
    callers: u64,
    length: Duration,
    beside: impl Future<Output = ()> + Send + 'static,
    call: C,
) -> Result<Seen>
where
    C: Fn(u64, u64) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send,
{
    let runtime = Builder::new_current_thread().build().context("a runtime for the callers")?;
    let start = clock::now() + WARM;
    let end = start + length;
    let mut waits = runtime.block_on(async {
        let mut besides = JoinSet::new();
        besides.spawn(beside);
        let mut tasks = JoinSet::new();
        for caller in 0..callers {
            let call = call.clone();
            tasks.spawn(async move {
                let mut waits = Vec::new();
                let mut asked = clock::now();
                for number in 0.. {
                    call(caller, number).await;
                    let answered = clock::now();
                    if answered >= end {
                        break;
                    }
                    if answered >= start {
                        waits.push(answered - asked);
                    }
                    asked = answered;
                }
                waits
            });
        }
        tasks.join_all().await.concat()
    });
    let rate = f64::from(u32::try_from(waits.len())?) / length.as_secs_f64();
    waits.sort_unstable();
    let within = |percent: usize| {
        let wait = waits.get(waits.len() * percent / 100).copied().unwrap_or_default();
        wait.as_secs_f64() * 1e9
    };
    Ok(Seen { rate, p50: within(50), p99: within(99) })
}
