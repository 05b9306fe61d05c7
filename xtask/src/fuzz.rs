//! `cargo xtask fuzz`: the fuzz targets on libFuzzer, with the stable compiler, for a bounded time
//! each.
//!
//! Each target begins with its corpus in the tree (`fuzz/corpus/<target>`). What it finds on the
//! way is kept outside of the tree, in the cache folder, and is where the next run begins; so is an
//! input that fails, and its path is printed.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::metadata::{Metadata, Package};
use crate::process;
use crate::repo::{self, Repo};

/// What `cargo xtask fuzz` is asked to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One target; without it, all of them, one after the other
    target: Option<String>,
    /// Seconds per target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// Fuzzes one target or all of them.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<bool> {
    let Some(target) = &args.target else {
        return Ok(every_target(repo, args.seconds)?.into_iter().all(|passed| passed));
    };
    let known = targets(repo)?;
    ensure!(
        known.contains(target),
        "there is no fuzz target {target}; there are: {}",
        known.join(", ")
    );
    Bench::prepared(repo)?.fuzz(target, args.seconds)
}

/// Fuzzes every target for some seconds, and says of each whether it survived.
pub(crate) fn every_target(repo: &Repo, seconds: u64) -> Result<Vec<bool>> {
    let targets = targets(repo)?;
    let bench = Bench::prepared(repo)?;
    targets.iter().map(|target| bench.fuzz(target, seconds)).collect()
}

/// Where the targets are, if there are any: a workspace of their own, because they are built with
/// other flags.
pub(crate) fn folder(repo: &Repo) -> Option<PathBuf> {
    Some(repo.root().join("fuzz")).filter(|folder| folder.exists())
}

fn targets(repo: &Repo) -> Result<Vec<String>> {
    let folder = folder(repo).context("there is no folder fuzz")?;
    let metadata = Metadata::of(&folder, &[])?;
    let targets: Vec<_> =
        metadata.members().flat_map(Package::programs).map(str::to_owned).collect();
    ensure!(!targets.is_empty(), "{} has no targets", folder.display());
    Ok(targets)
}

/// Targets that are built, and the folders that they work with.
struct Bench {
    folder: PathBuf,
    built: PathBuf,
    findings: PathBuf,
}

impl Bench {
    /// Builds all targets.
    fn prepared(repo: &Repo) -> Result<Self> {
        let folder = folder(repo).context("there is no folder fuzz")?;
        let cache = repo::cache()?;
        let bench = Self { folder, built: cache.join("fuzz-target"), findings: cache.join("fuzz") };
        let mut command = bench.cargo("build");
        command.arg("--bins");
        ensure!(process::passes(&bench.folder, command)?, "the fuzz targets do not build");
        Ok(bench)
    }

    /// Runs one target on its corpus and beyond.
    fn fuzz(&self, target: &str, seconds: u64) -> Result<bool> {
        let new_inputs = created(self.findings.join(target).join("inputs"))?;
        let failures = created(self.findings.join(target).join("failures"))?;
        let corpus = self.folder.join("corpus").join(target);
        let mut command = self.cargo("run");
        command.args(["--quiet", "--bin", target, "--"]);
        // The first folder is read and written, the others are read.
        command.arg(new_inputs).args(corpus.exists().then_some(corpus));
        command.arg(format!("-max_total_time={seconds}"));
        command.args(["-timeout=10", "-verbosity=0", "-print_final_stats=1"]);
        command.arg(format!("-artifact_prefix={}/", failures.display()));
        process::passes(&self.folder, command)
    }

    /// Cargo with the flags of the fuzz folder's own configuration, which the environment would
    /// replace.
    fn cargo(&self, verb: &str) -> Command {
        let mut command = process::cargo([verb, "--locked", "--release", "--target-dir"]);
        command.arg(&self.built).env_remove("RUSTFLAGS");
        command
    }
}

fn created(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder)
}
