//! The broker of the demo: this executable, started as `sublet broker`, in a process of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// How long a broker may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked whether it has.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How much of its log is shown when it does not.
const LINES_SHOWN: usize = 20;

/// What it writes once it serves.
#[derive(Deserialize)]
struct Addresses {
    http: std::net::SocketAddr,
}

/// A running broker; killed when it is dropped. It also ends when this process does without
/// dropping anything, because it reads from a pipe that nobody else holds.
pub(super) struct Broker {
    child: Child,
    folder: PathBuf,
    port: u16,
}

impl Broker {
    /// Starts one in a folder with `certs/broker` and `policy.toml`, on a port that is free.
    pub(super) async fn start(folder: &Path) -> Result<Self> {
        let mut broker = Self { child: spawn(folder, 0)?, folder: folder.into(), port: 0 };
        broker.port = broker.served_port().await?;
        Ok(broker)
    }

    /// Where it serves.
    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as `kill -9` does: it has no time to say or save anything.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("the broker cannot be killed")?;
        self.child.wait().context("the broker does not end")?;
        Ok(())
    }

    /// Has it ended by itself?
    pub(super) fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("the broker cannot be looked at")?.is_some())
    }

    /// Starts it again on the same log and the same port.
    pub(super) async fn restart(&mut self) -> Result<()> {
        self.child = spawn(&self.folder, self.port)?;
        self.served_port().await?;
        Ok(())
    }

    /// Waits until it says where it serves.
    async fn served_port(&mut self) -> Result<u16> {
        let path = self.folder.join(ADDRESSES);
        let serving = async {
            loop {
                if let Ok(text) = fs::read(&path) {
                    return Ok(serde_json::from_slice::<Addresses>(&text)?.http.port());
                }
                if self.has_ended()? {
                    bail!("it ended");
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let serving = tokio::time::timeout(PATIENCE, serving).await;
        let serving = serving.unwrap_or_else(|_| bail!("it did not say where it serves"));
        serving.with_context(|| format!("the broker did not start:\n{}", self.last_lines()))
    }

    fn last_lines(&self) -> String {
        let text = fs::read_to_string(self.folder.join(LOG)).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    }
}

impl Drop for Broker {
    /// One that has ended already cannot be killed, which is as good.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

const ADDRESSES: &str = "addresses.json";
const LOG: &str = "broker.log";

fn spawn(folder: &Path, port: u16) -> Result<Child> {
    let addresses = folder.join(ADDRESSES);
    // A file of the last time would be taken for this one's.
    if addresses.exists() {
        fs::remove_file(&addresses).context("the file with the addresses cannot be removed")?;
    }
    let log = File::options().create(true).append(true).open(folder.join(LOG))?;
    let program = std::env::current_exe().context("it is not known which program this is")?;
    let mut command = Command::new(program);
    command.arg("broker");
    command.arg("--data-dir").arg(folder.join("data"));
    command.arg("--http-cert-path").arg(folder.join("certs/broker"));
    command.arg("--policy").arg(folder.join("policy.toml"));
    command.arg("--address-file").arg(addresses);
    command.args(["--http-bind-address", "127.0.0.1", "--http-port", &port.to_string()]);
    command.args(["--health-probe-bind-address", "0", "--metrics-bind-address", "0"]);
    command.arg("--end-with-stdin").stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
    command.spawn().context("the broker cannot be started")
}
