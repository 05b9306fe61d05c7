//! What a process has used, by the kernel's count.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result};
use sublet_testkit::Process;
use sublet_testkit::wait::Stopwatch;

/// How often connections are looked at: one that is closed is not counted to its end.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A look that comes so late says that somebody has stopped us, and the process with us.
const LATE: Duration = Duration::from_secs(5);

/// Sent and received over one connection.
type Traffic = (u64, u64);

/// Watches what a process uses.
pub(crate) struct Meter<'a> {
    process: &'a Process,
    /// The port of the broker.
    broker: &'a str,
    clock: Stopwatch,
    cpu: Duration,
    open: BTreeMap<String, Traffic>,
    to_broker: Traffic,
    to_others: Traffic,
    is_interrupted: bool,
}

impl<'a> Meter<'a> {
    /// From now on.
    pub(crate) fn start(process: &'a Process, broker: &'a str) -> Result<Self> {
        let pid = process.pid().context("it has ended")?;
        let (clock, open) = (Stopwatch::start(), connections(pid)?);
        let cpu = cpu(pid)?;
        let (to_broker, to_others, is_interrupted) = ((0, 0), (0, 0), false);
        Ok(Self { process, broker, clock, cpu, open, to_broker, to_others, is_interrupted })
    }

    /// Lets so much time pass.
    pub(crate) fn wait(&mut self, time: Duration) -> Result<()> {
        let clock = Stopwatch::start();
        while clock.elapsed() < time {
            let pause = Stopwatch::start();
            thread::sleep(LOOK_EVERY);
            self.is_interrupted |= pause.elapsed() > LATE;
            self.look()?;
        }
        Ok(())
    }

    /// Counts what went over the connections since the last look.
    pub(crate) fn look(&mut self) -> Result<()> {
        let now = connections(self.process.pid().context("it has ended")?)?;
        for (name, (sent, received)) in &now {
            let before = self.open.get(name).copied().unwrap_or_default();
            let is_broker = name.ends_with(&format!(":{}", self.broker));
            let sum = if is_broker { &mut self.to_broker } else { &mut self.to_others };
            sum.0 += sent.saturating_sub(before.0);
            sum.1 += received.saturating_sub(before.1);
        }
        self.open = now;
        Ok(())
    }

    /// Prints a row for each figure.
    pub(crate) fn print(mut self, what: &str) -> Result<()> {
        self.look()?;
        let seconds = self.clock.elapsed().as_secs_f64();
        let used = cpu(self.process.pid().context("it has ended")?)?.saturating_sub(self.cpu);
        let cpu = used.as_secs_f64() / seconds * 100.0;
        row(&format!("{what}: processor"), &format!("{cpu:.3} % of a core"), "< 0.1 % idle");
        let rate = |bytes: u64| {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            format!("{:.0} B/s", f64::from(bytes) / seconds)
        };
        let both = |(sent, received)| format!("{} sent, {} received", rate(sent), rate(received));
        row(&format!("{what}: with the broker"), &both(self.to_broker), "< 100 B/s sent, idle");
        row(&format!("{what}: with the API server"), &both(self.to_others), "");
        if self.is_interrupted {
            row(what, "was stopped meanwhile: measure again", "");
        }
        Ok(())
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

/// The connections that are open now, by `ss`.
fn connections(pid: u32) -> Result<BTreeMap<String, Traffic>> {
    let output = Command::new("ss").arg("-Htinp").output().context("starting `ss`, of iproute2")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<_> = text.lines().collect();
    let ours = lines.windows(2).filter(|two| two[0].contains(&format!("pid={pid},")));
    let count = |line: &str, name: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name));
        word.and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    let connection = |two: &[&str]| {
        let ends: Vec<_> = two[0].split_whitespace().skip(3).take(2).collect();
        (ends.join(" "), (count(two[1], "bytes_sent:"), count(two[1], "bytes_received:")))
    };
    Ok(ours.map(connection).collect())
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
