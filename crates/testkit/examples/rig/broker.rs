//! A broker beside the clusters: `sublet broker` with a development CA, a certificate for every
//! cluster and for an operator, and contexts to use them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sublet_testkit::wait::PATIENCE;
use sublet_testkit::{Cluster, Process, Recipe, wait_for};

/// The operator, whose context is in use.
const OPERATOR: &str = "admin";

/// A running broker.
pub(crate) struct Broker {
    sublet: PathBuf,
    folder: PathBuf,
    url: String,
    process: Process,
}

impl Broker {
    /// Starts this program as one, in the folder of the first cluster, with a certificate for each.
    pub(crate) fn start(clusters: &[Cluster], sublet: PathBuf) -> Result<Self> {
        let first = clusters.first().context("a broker wants a cluster")?;
        let folder = first.folder().join("broker");
        fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        let recipe = Recipe::new(&sublet).folder(&folder).args(
            "broker --data-dir data --http-cert-path certs/broker --address-file at.json \
             --http-bind-address 127.0.0.1 --http-port 0 --health-probe-bind-address 0"
                .split_whitespace(),
        );
        let process = first.process("broker", recipe);
        let mut broker = Self { sublet, folder, url: String::new(), process };
        broker.sublet(&["ca", "init", "--dir", "ca"])?;
        broker.issue("broker", &["--server"])?;
        broker.issue(OPERATOR, &["--operator"])?;
        broker.process.start()?;
        broker.url = broker.served_url()?;
        broker.set_context(OPERATOR)?;
        broker.sublet(&["config", "use-context", OPERATOR])?;
        clusters.iter().try_for_each(|cluster| broker.admit(cluster))?;
        Ok(broker)
    }

    /// One more cluster: a certificate, and a context to use it.
    pub(crate) fn admit(&self, cluster: &Cluster) -> Result<()> {
        self.issue(cluster.name(), &[])?;
        self.set_context(cluster.name())
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The program that it is.
    pub(crate) fn sublet_path(&self) -> &Path {
        &self.sublet
    }

    /// The folder with the certificate of a cluster.
    pub(crate) fn certificate(&self, cluster: &Cluster) -> PathBuf {
        self.folder.join("certs").join(cluster.name())
    }

    /// How to use it, ready to paste.
    pub(crate) fn show(&self) {
        let folder = self.folder.display();
        let pid = self.process.pid().map_or_else(|| "gone".to_owned(), |pid| pid.to_string());
        println!("\nbroker: {} (pid {pid}, log {})", self.url, self.process.log().display());
        println!("    export SUBLET_CONFIG={folder}/config.toml");
        println!("    sublet get clusters");
        println!("    sublet config get-contexts     # {OPERATOR}, and one for each cluster");
        println!("  a certificate for each cluster: {folder}/certs/<cluster>");
    }

    fn issue(&self, name: &str, role: &[&str]) -> Result<()> {
        let out = format!("certs/{name}");
        let words = ["ca", "issue", name, "--dir", "ca", "--out", &out];
        self.sublet(&[&words, role].concat())
    }

    fn set_context(&self, name: &str) -> Result<()> {
        let cert = format!("certs/{name}");
        let how = ["--cert-path", &cert, "--broker-url", &self.url];
        self.sublet(&[&["config", "set-context", name], how.as_slice()].concat())
    }

    /// What the program answers to an operator.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<serde_json::Value> {
        Ok(serde_json::from_str(&self.answer(arguments)?)?)
    }

    fn sublet(&self, arguments: &[&str]) -> Result<()> {
        self.answer(arguments).map(drop)
    }

    fn answer(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.sublet);
        command.args(arguments).current_dir(&self.folder);
        let output = command.env("SUBLET_CONFIG", self.folder.join("config.toml")).output();
        let output = output.with_context(|| format!("starting {}", self.sublet.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "sublet {}: {said}", arguments.join(" "));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Where it serves, which it writes down when it does.
    fn served_url(&self) -> Result<String> {
        let at = self.folder.join("at.json");
        let found = wait_for("the broker", PATIENCE, || match self.process.ended() {
            Some(_) => Some(None),
            None => port(&at).map(Some),
        })?;
        let port =
            found.with_context(|| format!("the broker ended:\n{}", self.process.log_tail()))?;
        Ok(format!("https://127.0.0.1:{port}"))
    }
}

fn port(at: &Path) -> Option<String> {
    let at: serde_json::Value = serde_json::from_slice(&fs::read(at).ok()?).ok()?;
    Some(at["http"].as_str()?.rsplit(':').next()?.to_owned())
}

/// `sublet`, which cargo puts two folders above its examples.
pub(crate) fn program() -> Result<PathBuf> {
    let rig = std::env::current_exe().context("this program's own path is not known")?;
    let built = rig.parent().and_then(Path::parent).context("no folder above")?.join("sublet");
    ensure!(built.is_file(), "{} is not there: run `cargo build`", built.display());
    Ok(built)
}
