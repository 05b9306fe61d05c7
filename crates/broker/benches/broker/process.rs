//! The processes of a run, which end with it, and what the system says of them.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::clock::f64_of;
use crate::ground::Ground;
use crate::order::{Order, Seen, Task};

/// How long a server may take to begin: also one that loads a large log on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// No bound of the broker's that exists to keep clusters apart is to be what is measured.
const WIDE: [&str; 4] = ["--cluster-rate-max", "10000000", "--connections-max", "100000"];

/// A server that runs; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// The broker, with its log in a folder of that name.
    pub(crate) fn broker(ground: &Ground, data: &str) -> Result<Self> {
        let data = ground.folder().join(data);
        let at = data.with_extension("at.json");
        let lines = File::options().create(true).append(true).open(data.with_extension("log"))?;
        let mut command = Command::new(&ground.sublet);
        command.arg("broker").arg("--data-dir").arg(&data).arg("--address-file").arg(&at);
        command.arg("--http-cert-path").arg(ground.folder());
        command.args(["--http-bind-address", "127.0.0.1", "--http-port", "0"]);
        command.args(["--health-probe-bind-address", "0", "--end-with-stdin"]).args(WIDE);
        Self::start(command.stdout(Stdio::null()).stderr(lines), &at)
    }

    /// The handler that does nothing.
    pub(crate) fn null(ground: &Ground) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--null").arg(ground.folder()).stdout(Stdio::null());
        Self::start(&mut command, &ground.folder().join(crate::null::ADDRESSES))
    }

    fn start(command: &mut Command, at: &Path) -> Result<Self> {
        // A file of the last time would be taken for this one's.
        if at.exists() {
            fs::remove_file(at)?;
        }
        let mut child = command.stdin(Stdio::piped()).spawn().context("a server cannot start")?;
        let mut left = PATIENCE;
        let text = loop {
            if let Ok(text) = fs::read(at) {
                break text;
            }
            if let Some(status) = child.try_wait()? {
                bail!("{command:?} ended with {status}");
            }
            left = left.checked_sub(LOOK_AGAIN).context("a server did not begin to serve")?;
            thread::sleep(LOOK_AGAIN);
        };
        let address = serde_json::from_slice::<Addresses>(&text)?.http;
        Ok(Self { child, address })
    }

    /// Has a process of its own make load on it.
    pub(crate) fn load(&self, ground: &Ground, task: Task) -> Result<Seen> {
        let (address, folder) = (self.address, ground.folder().to_owned());
        let order = Order { address, server: self.child.id(), folder, task };
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--load").arg(serde_json::to_string(&order)?);
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "the load generator ended with {}", output.status);
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Kills it as `kill -9` does.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[derive(Deserialize)]
struct Addresses {
    http: SocketAddr,
}

/// How long the threads of a process have had a processor. Those that ended do not count: the
/// servers here keep theirs.
pub(crate) fn worked(process: u32) -> Result<Duration> {
    let mut nanos: u64 = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).context("only Linux counts this")? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// Bytes of a process that are in memory.
pub(crate) fn resident(process: u32) -> Result<f64> {
    const PAGE_BYTES: f64 = 4096.0;
    let statm = fs::read_to_string(format!("/proc/{process}/statm"))?;
    let pages: u64 = statm.split(' ').nth(1).context("a second field")?.parse()?;
    Ok(f64_of(pages) * PAGE_BYTES)
}
