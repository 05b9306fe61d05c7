//! What a process has used, by the kernel's count.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use sublet_testkit::Process;

/// What a process has used so far.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    cpu: Duration,
    /// Over the connections that are open, to the broker and to everybody.
    bytes: Option<Bytes>,
}

#[derive(Clone, Copy, Default)]
struct Bytes {
    to_broker: u64,
    sent: u64,
    received: u64,
}

impl Used {
    /// So far; the broker is known by its port.
    pub(crate) fn by(process: &Process, broker: &str) -> Result<Self> {
        let pid = process.pid().context("it has ended")?;
        Ok(Self { cpu: cpu(pid)?, bytes: bytes(pid, broker) })
    }

    /// Prints a row for each figure of what was used since then, over this time.
    pub(crate) fn print(self, what: &str, since: Self, over: Duration) {
        let seconds = over.as_secs_f64();
        let cpu = self.cpu.saturating_sub(since.cpu).as_secs_f64() / seconds * 100.0;
        row(&format!("{what}: processor"), &format!("{cpu:.3} % of a core"), "< 0.1 % idle");
        let (Some(now), Some(then)) = (self.bytes, since.bytes) else {
            return row(&format!("{what}: bytes"), "not known: there is no `ss` here", "");
        };
        let rate = |now: u64, then: u64| {
            let bytes = u32::try_from(now.saturating_sub(then)).unwrap_or(u32::MAX);
            format!("{:.0} B/s", f64::from(bytes) / seconds)
        };
        let to_broker = rate(now.to_broker, then.to_broker);
        row(&format!("{what}: sent to the broker"), &to_broker, "< 100 B/s idle");
        row(&format!("{what}: sent, API server included"), &rate(now.sent, then.sent), "");
        row(&format!("{what}: received"), &rate(now.received, then.received), "");
    }
}

/// A row of the table.
pub(crate) fn row(what: &str, found: &str, to_reach: &str) {
    println!("| {what} | {found} | {to_reach} |");
}

/// What its threads have run for.
fn cpu(pid: u32) -> Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let ran = text.split_whitespace().next().context("an empty schedstat")?;
        sum += Duration::from_nanos(ran.parse()?);
    }
    Ok(sum)
}

/// Over the connections that are open now, by `ss`.
fn bytes(pid: u32, broker: &str) -> Option<Bytes> {
    let output = Command::new("ss").arg("-Htinp").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = text.lines().collect();
    let ours = lines.windows(2).filter(|two| two[0].contains(&format!("pid={pid},")));
    let count = |line: &str, name: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name));
        word.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    Some(ours.fold(Bytes::default(), |mut sum, two| {
        let sent = count(two[1], "bytes_sent:");
        let peer = two[0].split_whitespace().nth(4).unwrap_or_default();
        if peer.ends_with(&format!(":{broker}")) {
            sum.to_broker += sent;
        }
        sum.sent += sent;
        sum.received += count(two[1], "bytes_received:");
        sum
    }))
}

/// Prints a row for the memory of a process.
pub(crate) fn print_memory(process: &Process, what: &str) -> Result<()> {
    let pid = process.pid().context("it has ended")?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mib = |name: &str| -> Result<f64> {
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        let kib: u32 = line.trim_matches(|c: char| !c.is_ascii_digit()).parse()?;
        Ok(f64::from(kib) / 1024.0)
    };
    let (all, own, file) = (mib("VmRSS:")?, mib("RssAnon:")?, mib("RssFile:")?);
    let peak = mib("VmHWM:")?;
    let found =
        format!("{all:.1} MiB: {own:.1} its own, {file:.1} of the program's file; peak {peak:.1}");
    row(&format!("{what}: resident"), &found, "< 15 MiB");
    Ok(())
}
